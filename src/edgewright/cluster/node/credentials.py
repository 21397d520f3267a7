"""What a device proves its name with: its certificate and key, the cluster's CA, the public half of the signing key.

Connections use TLS 1.3 with certificates on both sides (RFC 8446, 4.4.2). A client learns only when it first reads that
the server has refused its certificate.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InputError
from ...files import read_file
from .ciphers import OPTIONS, prefer_fast_cipher

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.x509 import Certificate

CERTIFICATE, KEY, CA_CERTIFICATE, SIGNING_PUBLIC = "node.crt", "node.key", "ca.crt", "signing.pub"
COORDINATOR = "urn:edgewright:coordinator"  # a URI in the certificate of the device that may command the others
_MOST_BYTES = 1 << 16  # of a file of keys
_ADVICE = "copy the whole folder that `edgewright cluster keys` wrote for this device"


@dataclass(frozen=True)
class Peer:
    """The other end of a connection, as the CA names it."""

    name: str
    is_coordinator: bool


@dataclass(frozen=True)
class Credentials:
    """The files of one device, checked."""

    folder: Path
    name: str
    is_coordinator: bool
    valid_until: datetime
    ca: str  # PEM
    signing_key: Ed25519PublicKey

    def server_context(self) -> ssl.SSLContext:
        """For connections that others open: they need a certificate of the same CA."""
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0
        return context

    def client_context(self) -> ssl.SSLContext:
        """For connections that this device opens: all share one, since to read keys takes as long as a handshake."""
        return self._client_context

    @cached_property
    def _client_context(self) -> ssl.SSLContext:
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def _context(self, protocol: int) -> ssl.SSLContext:
        prefer_fast_cipher()
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # devices have names, not addresses: `peer_of` tells them
        context.verify_mode = ssl.CERT_REQUIRED
        context.options |= ssl.OP_NO_TICKET | OPTIONS
        context.load_verify_locations(cadata=self.ca)
        context.load_cert_chain(self.folder / CERTIFICATE, self.folder / KEY)
        return context

    def is_signed(self, content: bytes, signature: bytes) -> bool:
        """Whether the holder of the CA signed exactly this content."""
        from cryptography.exceptions import InvalidSignature

        try:
            self.signing_key.verify(signature, content)
        except InvalidSignature:
            return False
        return True


def load_credentials(folder: Path) -> Credentials:
    """The credentials in a device's folder; an error names the file and what to do about it."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key, load_pem_public_key
    except ImportError as error:
        raise InputError("keys are read with cryptography: pip install 'edgewright[cluster]'") from error
    _check_private(folder / KEY)
    certificate, ca = read_certificate(folder / CERTIFICATE), read_certificate(folder / CA_CERTIFICATE)
    key = read_key(folder / KEY, lambda content: load_pem_private_key(content, None))
    if not isinstance(key, EllipticCurvePrivateKey):
        raise InputError(f"'{folder / KEY}' holds no private key of a device; {_ADVICE}")
    if key.public_key() != certificate.public_key():
        raise InputError(f"'{folder / KEY}' is not the key of {CERTIFICATE}; {_ADVICE}")
    if not is_issued_by(certificate, ca):
        raise InputError(f"'{folder / CERTIFICATE}' is a certificate of another CA than {CA_CERTIFICATE}; {_ADVICE}")
    _check_dates(folder / CERTIFICATE, certificate)
    signing_key = read_key(folder / SIGNING_PUBLIC, load_pem_public_key)
    if not isinstance(signing_key, Ed25519PublicKey):
        raise InputError(f"'{folder / SIGNING_PUBLIC}' is no Ed25519 key; {_ADVICE}")
    peer = _peer_in(folder / CERTIFICATE, certificate)
    end, ca_text = certificate.not_valid_after_utc, ca.public_bytes(Encoding.PEM).decode()
    return Credentials(folder, peer.name, peer.is_coordinator, end, ca_text, signing_key)


def peer_of(connection: ssl.SSLSocket) -> Peer:
    """Who is at the other end, once the handshake is over."""
    certificate: Mapping[str, Any] = connection.getpeercert() or {}
    return _peer([(kind, value) for kind, value in certificate.get("subjectAltName", ())], "the other end")


def _peer(names: list[tuple[str, str]], where: str) -> Peer:
    """The device of a certificate's alternative names, as `ssl` gives them."""
    devices = [value for kind, value in names if kind == "DNS"]
    if len(devices) != 1:
        raise InputError(f"{where}: its certificate names {len(devices)} devices; expected one")
    return Peer(devices[0], ("URI", COORDINATOR) in names)


def _peer_in(path: Path, certificate: Certificate) -> Peer:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return _peer([], f"'{path}'")
    devices = [("DNS", name) for name in names.get_values_for_type(x509.DNSName)]
    roles = [("URI", name) for name in names.get_values_for_type(x509.UniformResourceIdentifier)]
    return _peer([*devices, *roles], f"'{path}'")


def _check_private(path: Path) -> None:
    """Refuses a key that others may read or change."""
    read_file(path, _ADVICE, 1)
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise InputError(f"others may use the key '{path}' (mode {mode:03o}); run: chmod 600 '{path}'")


def is_issued_by(certificate: Certificate, ca: Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        certificate.verify_directly_issued_by(ca)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        return False
    return True


def _check_dates(path: Path, certificate: Certificate) -> None:
    first, last, now = certificate.not_valid_before_utc, certificate.not_valid_after_utc, datetime.now(UTC)
    if now > last:
        raise InputError(
            f"'{path}' expired on {last:%Y-%m-%d}, and this device's clock says {now:%Y-%m-%d}; set the clock, or "
            "remove the device's folder and run `edgewright cluster keys` again"
        )
    if now < first:
        raise InputError(
            f"'{path}' is valid from {first:%Y-%m-%d} on, and this device's clock says {now:%Y-%m-%d}; set the clock"
        )


def read_certificate(path: Path, advice: str = _ADVICE) -> Certificate:
    """The certificate in a file, if all of its parts can be read."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    content = read_file(path, advice, _MOST_BYTES)
    damages = x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, UnsupportedAlgorithm
    try:
        certificate = x509.load_pem_x509_certificate(content)
        _ = certificate.public_key(), certificate.extensions, certificate.signature_hash_algorithm
        _ = certificate.subject, certificate.issuer, certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except (*damages, ValueError, TypeError):
        raise InputError(f"'{path}' holds no certificate; {advice}") from None
    return certificate


def read_key(path: Path, load: Callable[[bytes], object], advice: str = _ADVICE) -> object:
    """The key in a file by a function of cryptography, or None if the file holds none."""
    from cryptography.exceptions import InternalError, UnsupportedAlgorithm

    content = read_file(path, advice, _MOST_BYTES)
    try:
        return load(content)
    except (ValueError, TypeError, UnsupportedAlgorithm, InternalError):  # TypeError: it needs a password
        return None
