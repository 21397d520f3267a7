"""Connections between devices: TCP with TLS on both sides, small delays, and an end that is noticed."""

from __future__ import annotations

import errno
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress

from ...errors import InputError, RunError
from .credentials import Credentials, Peer, peer_of
from .messages import PROTOCOL, Disconnected, Hello, checked_protocol, receive, send

PORT = 7447
CONNECT_S, HANDSHAKE_S = 3.0, 5.0  # how long others may take
GONE_S = 2.0  # data that nobody acknowledges for so long ends a connection
STRANGERS = 32  # connections that have not said yet who they are; more are closed at once
_HELLO_BYTES = 1 << 12

Serve = Callable[[ssl.SSLSocket, Peer, Hello], None]  # until the connection ends; it is closed afterwards


def host_and_port(address: str) -> tuple[str, int]:
    """pi1, pi1:7447, 10.0.0.1:7447 or [fe80::1]:7447."""
    host, colon, port = address.rpartition(":")
    if not colon or "]" in port or (host.count(":") and not host.startswith("[")):
        host, port = address, str(PORT)
    if not host or not port.isdecimal() or not 0 <= int(port) < 1 << 16:
        raise InputError(f"'{address}' is no address; expected a host and perhaps a port, such as pi1.local:{PORT}")
    return host.strip("[]"), int(port)


def dial(address: str, device: str, credentials: Credentials, hello: Hello) -> ssl.SSLSocket:
    """A connection to a device, which proves that it is the one; RunError says why there is none."""
    where = f"device '{device}' at {address}"
    plain: socket.socket | None = None
    try:
        plain = socket.create_connection(host_and_port(address), timeout=CONNECT_S)
        _tune(plain)
        plain.settimeout(HANDSHAKE_S)
        connection = credentials.client_context().wrap_socket(plain)
    except (OSError, ValueError) as error:
        if plain is not None:
            plain.close()
        raise RunError(f"{where} cannot be reached: {_words(error)}") from None
    try:
        found = peer_of(connection).name
        if found != device:
            raise RunError(f"{where} says that it is '{found}'; check the addresses in the cluster file")
        send(connection, hello)
        connection.settimeout(None)
    except (Disconnected, InputError) as error:
        connection.close()
        raise RunError(f"{where} cannot be reached: {error}") from None
    except BaseException:
        connection.close()
        raise
    return connection


class Listener:
    """Waits for connections, each of which gets a thread once its certificate and its first message are good.

    Strangers get no answer, and cannot keep others out: they have little time, and few of them are waited for.
    """

    def __init__(self, address: str, credentials: Credentials, serve: Serve, log: Callable[[str], None]) -> None:
        host, port = host_and_port(address)
        self._serve, self._log = serve, log
        self._context = credentials.server_context()
        self._strangers = threading.BoundedSemaphore(STRANGERS)
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._is_closed = False
        threading.Thread(target=self._accept, name="edgewright-listen", daemon=True).start()

    def close(self) -> None:
        self._is_closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                plain, address = self._socket.accept()
            except OSError as error:
                if self._is_closed or error.errno == errno.EBADF:
                    return
                threading.Event().wait(0.1)  # too many open files, or a connection that ended at once
                continue
            if not self._strangers.acquire(blocking=False):
                plain.close()
                continue
            threading.Thread(target=self._greet, args=(plain, str(address[0])), daemon=True).start()

    def _greet(self, plain: socket.socket, address: str) -> None:
        connection: socket.socket = plain
        try:
            try:
                _tune(plain)
                plain.settimeout(HANDSHAKE_S)
                connection = secure = self._context.wrap_socket(plain, server_side=True)
                peer = peer_of(secure)
                hello: Hello = receive(secure, Hello, _HELLO_BYTES)
                checked_protocol(hello.protocol, f"device '{peer.name}'")
                secure.settimeout(None)
            except (OSError, ValueError, Disconnected, InputError, RunError) as error:
                self._log(f"refused a connection from {address}: {_words(error)}")
                return
            finally:
                self._strangers.release()
            self._serve(secure, peer, hello)
        finally:
            with suppress(OSError, ValueError):
                connection.close()


def hello(purpose: str, run: str, epoch: int = 0) -> Hello:
    return Hello(PROTOCOL, purpose, run, epoch)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"port {port} is in use, perhaps by another node; end that one, or choose a port with --listen"
            ) from None
        raise InputError(f"cannot listen at {host}:{port}: {_words(error)}") from None


def _tune(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_USER_TIMEOUT", int(GONE_S * 1000)),
        ("TCP_KEEPIDLE", 1),
        ("TCP_KEEPINTVL", 1),
        ("TCP_KEEPCNT", 2),
    ):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"the TLS handshake failed ({error.reason or 'the connection was closed'})"
    if isinstance(error, TimeoutError):
        return "it does not answer"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
