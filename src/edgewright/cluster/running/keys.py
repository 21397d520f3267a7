"""Keys of a cluster: a private CA, a certificate per device, and the key that signs what devices may execute.

What devices do with them is in `cluster.node.credentials`.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InputError
from ...files import make_folder
from ..node.credentials import (
    CA_CERTIFICATE,
    CERTIFICATE,
    COORDINATOR,
    KEY,
    SIGNING_PUBLIC,
    is_issued_by,
    load_credentials,
    read_certificate,
    read_key,
)
from .install_files import install_files

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder, ExtensionType, Name

CA, CA_KEY, SIGNING_KEY = "ca", "ca.key", "signing.key"
MOST_DAYS = 36_500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # devices without a battery for their clock boot with any old date
_NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)  # RFC 5280, 4.1.2.5: no well-defined end
_ADVICE = "restore the folder, or make all keys of the cluster again in another one"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class DeviceKeys:
    """The folder of one device."""

    name: str
    folder: Path
    is_coordinator: bool
    is_new: bool
    valid_until: datetime


@dataclass(frozen=True)
class _Authority:
    """What the holder of the CA has."""

    cluster: str
    certificate: Certificate
    key: EllipticCurvePrivateKey
    signing: Ed25519PrivateKey


def make_keys(
    cluster_name: str, devices: Sequence[str], gateway: str, folder: Path, days: int = 3650
) -> tuple[DeviceKeys, ...]:
    """Makes keys for every device that has none in this folder yet, and a CA if there is none.

    The gateway's certificate makes it the coordinator: the other devices take orders from it alone.
    """
    _check_names(cluster_name, devices, gateway)
    if not 1 <= days <= MOST_DAYS:
        raise InputError(f"keys cannot be valid for {days:,} days; expected 1 to {MOST_DAYS:,}")
    _need_cryptography()
    make_folder(folder)
    if not os.path.lexists(folder / CA):
        _make_authority(cluster_name, folder / CA)
    authority = _open_authority(folder / CA)
    if authority.cluster != cluster_name:
        raise InputError(
            f"'{folder}' has the keys of cluster '{authority.cluster}', not of '{cluster_name}'; give another folder"
        )
    is_new = {name: not os.path.lexists(folder / name) for name in devices}
    for name in devices:
        if not is_new[name]:
            _check_device(folder / name, name, name == gateway, authority)
    until = datetime.now(UTC) + timedelta(days=days)
    for name in devices:
        if is_new[name]:
            _make_device(name, name == gateway, folder / name, authority, until)
    ends = {name: load_credentials(folder / name).valid_until for name in devices}
    return tuple(DeviceKeys(name, folder / name, name == gateway, is_new[name], ends[name]) for name in devices)


def sign(folder: Path, content: bytes) -> bytes:
    """The signature of the content, by the key in the folder that `make_keys` filled."""
    _need_cryptography()
    return _signing_key(folder / CA / SIGNING_KEY).sign(content)


def _check_names(cluster_name: str, devices: Sequence[str], gateway: str) -> None:
    for name in (cluster_name, *devices):
        if not _NAME.fullmatch(name):
            raise InputError(f'\'{name}\' cannot stand in a certificate; expected a name of a-z, 0-9, "-" and "_"')
    if CA in devices:
        raise InputError(f"no device can have the name '{CA}', which is the folder of the CA; rename the device")
    if len(set(devices)) < len(devices):
        raise InputError("two devices have the same name; give each a name of its own")
    if gateway not in devices:
        raise InputError(f"the gateway '{gateway}' is none of the devices; expected one of {', '.join(devices)}")


def _check_device(folder: Path, name: str, is_coordinator: bool, authority: _Authority) -> None:
    """Refuses existing keys that do not fit the cluster, rather than replace them."""
    advice = f"remove '{folder}' and run `edgewright cluster keys` again to replace its keys"
    try:
        found = load_credentials(folder)
    except InputError as error:
        raise InputError(f"{error}; or {advice}") from error
    if found.name != name:
        raise InputError(f"'{folder}' has the keys of device '{found.name}', not of '{name}'; {advice}")
    if found.ca.encode() != _pem(authority.certificate):
        raise InputError(f"'{folder}' has keys of another CA; {advice}")
    if found.is_coordinator != is_coordinator:
        was, is_now = ("is", "is not") if found.is_coordinator else ("is not", "is")
        raise InputError(f"'{name}' {is_now} the gateway, but by its certificate it {was} the coordinator; {advice}")


def _make_authority(cluster_name: str, folder: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    key, signing = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    subject = _subject("CA", cluster_name)
    extensions = (x509.BasicConstraints(ca=True, path_length=0), _usage(signs_certificates=True))
    certificate = _certificate(_builder(subject, key, _NEVER, extensions).issuer_name(subject), key)
    files = {CA_CERTIFICATE: _pem(certificate), CA_KEY: _private_pem(key), SIGNING_KEY: _private_pem(signing)}
    _write_folder(folder, files)


def _make_device(name: str, is_coordinator: bool, folder: Path, authority: _Authority, until: datetime) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from cryptography.x509.oid import ExtendedKeyUsageOID

    key = ec.generate_private_key(ec.SECP256R1())
    role = (x509.UniformResourceIdentifier(COORDINATOR),) if is_coordinator else ()
    extensions = (
        x509.BasicConstraints(ca=False, path_length=None),
        _usage(signs_certificates=False),
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
        x509.SubjectAlternativeName([x509.DNSName(name), *role]),
    )
    builder = _builder(_subject(name, authority.cluster), key, until, extensions)
    certificate = _certificate(builder.issuer_name(authority.certificate.subject), authority.key)
    public = authority.signing.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    texts = {} if is_coordinator else install_files(authority.cluster, name)  # no node runs on the gateway
    files = {file: text.encode() for file, text in texts.items()}
    keys = {CERTIFICATE: _pem(certificate), KEY: _private_pem(key)}
    _write_folder(folder, {**files, **keys, CA_CERTIFICATE: _pem(authority.certificate), SIGNING_PUBLIC: public})


def _subject(name: str, cluster: str) -> Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    attributes = {NameOID.ORGANIZATION_NAME: cluster, NameOID.COMMON_NAME: name}
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in attributes.items()])


def _usage(signs_certificates: bool) -> ExtensionType:
    from cryptography import x509

    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign")
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
        **dict.fromkeys(others, False),
    )


def _builder(
    subject: Name, key: EllipticCurvePrivateKey, until: datetime, extensions: Sequence[ExtensionType]
) -> CertificateBuilder:
    from cryptography import x509

    builder = x509.CertificateBuilder().subject_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(_EPOCH).not_valid_after(until)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    for extension in extensions:
        is_critical = isinstance(extension, (x509.BasicConstraints, x509.KeyUsage))
        builder = builder.add_extension(extension, critical=is_critical)
    return builder


def _certificate(builder: CertificateBuilder, issuer: EllipticCurvePrivateKey) -> Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())
    return builder.add_extension(identifier, critical=False).sign(issuer, SHA256())


def _pem(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _private_pem(key: EllipticCurvePrivateKey | Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes all files or none, into a new folder that only its owner can ever read."""
    temporary = None
    try:
        temporary = tempfile.mkdtemp(dir=folder.parent, prefix=".edgewright-")  # mode 700
        for name, content in {**files, ".gitignore": b"*\n"}.items():  # keys are no part of a repository
            handle = os.open(os.path.join(temporary, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
        os.rename(temporary, folder)  # fails if somebody else filled the folder meanwhile
    except OSError as error:
        raise InputError(f"cannot write '{folder}': {error.strerror or error}") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _open_authority(folder: Path) -> _Authority:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509.oid import NameOID

    certificate = read_certificate(folder / CA_CERTIFICATE, _ADVICE)
    clusters = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if not clusters or not is_issued_by(certificate, certificate):
        raise InputError(f"'{folder / CA_CERTIFICATE}' is no certificate of a CA; {_ADVICE}")
    key = _private_key(folder / CA_KEY)
    if not isinstance(key, EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise InputError(f"'{folder / CA_KEY}' is not the key of {CA_CERTIFICATE}; {_ADVICE}")
    return _Authority(str(clusters[0].value), certificate, key, _signing_key(folder / SIGNING_KEY))


def _signing_key(path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = _private_key(path)
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"'{path}' holds no Ed25519 key; {_ADVICE}")
    return key


def _private_key(path: Path) -> object:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return read_key(path, lambda content: load_pem_private_key(content, None), _ADVICE)


def _need_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise InputError("keys are made with cryptography: pip install 'edgewright[cluster]'") from error
