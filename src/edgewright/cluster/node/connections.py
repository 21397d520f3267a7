"""Connections between devices: TCP with TLS on both sides, small delays, and an end that is noticed."""

from __future__ import annotations

import errno
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from ...errors import InputError, RunError
from .addresses import host_and_port
from .credentials import Credentials, Peer, peer_of
from .messages import PROTOCOL, Disconnected, Hello, receive, send

CONNECT_S, HANDSHAKE_S = 3.0, 5.0  # how long others may take
GONE_S = 2.0  # without an acknowledgement of sent data, a connection ends
UNSENT_BYTES = 1 << 17  # that the system takes ahead: more would let a later frame's tensor go first
STRANGERS = 32  # connections that have not proved yet who they are; one more, and the oldest of them is closed
MOST_SERVED = 1024  # connections of other devices
QUIET_S = 1.0  # between two lines of the log about strangers
_HELLO_BYTES = 1 << 12

Serve = Callable[[ssl.SSLSocket, Peer, Hello], None]  # until the connection ends; it is closed afterwards
Watch = Callable[[socket.socket], None]  # is given a connection before it is open, to be able to hang up


def dial(
    address: str, device: str, credentials: Credentials, hello: Hello, watch: Watch = lambda _connection: None
) -> ssl.SSLSocket:
    """A connection to a device, which proves that it is the one; RunError says why there is none."""
    where = f"device '{device}' at {address}"
    host, port = host_and_port(address)
    context = credentials.client_context()
    failure = f"{where} cannot be reached: it has no address"
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        raise RunError(f"{where} cannot be reached: {_words(error)}") from None
    for family, _, _, _, place in places:
        connection = context.wrap_socket(socket.socket(family), do_handshake_on_connect=False)
        try:
            watch(connection)
            _tune(connection)
            connection.settimeout(CONNECT_S)
            connection.connect(place)
            connection.settimeout(HANDSHAKE_S)
            connection.do_handshake()
            found = peer_of(connection).name
            if found != device:
                raise RunError(f"{where} says that it is '{found}'; check the addresses in the cluster file")
            send(connection, hello)
            connection.settimeout(None)
            return connection
        except (OSError, ValueError, Disconnected, InputError) as error:
            connection.close()
            failure = f"{where} cannot be reached: {_words(error)}"
        except BaseException:
            connection.close()
            raise
    raise RunError(failure)


def hang_up(connection: socket.socket) -> None:
    """Ends a connection and wakes the thread that waits for it, which closes it.

    Closing it here would give its file number to the next connection while that thread still reads from it, and
    `SSLSocket.shutdown` would let that thread send a last message without TLS.
    """
    with suppress(OSError, ValueError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


class Listener:
    """Accepts connections; each gets a thread, and is served once its certificate and first message are good.

    Strangers get no answer, and cannot keep others out: they have little time, and the newest connections are kept.
    """

    def __init__(self, address: str, credentials: Credentials, serve: Serve, log: Callable[[str], None]) -> None:
        host, port = host_and_port(address)
        self._serve, self._log = serve, log
        self._context = credentials.server_context()
        self._lock = threading.Lock()
        self._strangers: dict[socket.socket, None] = {}  # the oldest first
        self._served, self._refused, self._quiet_until = 0, 0, 0.0
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
            try:
                connection = self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
                threading.Thread(target=self._answer, args=(connection, str(address[0])), daemon=True).start()
            except (OSError, ValueError, RuntimeError):  # it ended at once, or there are too many threads
                plain.close()

    def _answer(self, connection: ssl.SSLSocket, address: str) -> None:
        with self._lock:
            if len(self._strangers) >= STRANGERS:
                hang_up(next(iter(self._strangers)))
            self._strangers[connection] = None
        try:
            try:
                peer, hello = self._greeted(connection)
            finally:
                with self._lock:
                    del self._strangers[connection]
            with self._lock:
                if self._served >= MOST_SERVED:
                    raise RunError(f"'{peer.name}' would be connection {MOST_SERVED + 1}")
                self._served += 1
            try:
                self._serve(connection, peer, hello)
            finally:
                with self._lock:
                    self._served -= 1
        except (OSError, ValueError, Disconnected, InputError, RunError) as error:
            self._note(f"refused a connection from {address}: {_words(error)}")
        finally:
            with suppress(OSError, ValueError):
                connection.close()

    def _greeted(self, connection: ssl.SSLSocket) -> tuple[Peer, Hello]:
        """Who it is, and what for."""
        _tune(connection)
        connection.settimeout(HANDSHAKE_S)
        connection.do_handshake()
        peer = peer_of(connection)
        hello: Hello = receive(connection, Hello, _HELLO_BYTES)
        connection.settimeout(None)
        return peer, hello

    def _note(self, refusal: str) -> None:
        """Logs it, but not a line for each of many."""
        with self._lock:
            self._refused += 1
            if time.monotonic() < self._quiet_until:
                return
            others, self._refused = self._refused - 1, 0
            self._quiet_until = time.monotonic() + QUIET_S
        self._log(f"{refusal} (and {others} before)" if others else refusal)


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
        ("TCP_NOTSENT_LOWAT", UNSENT_BYTES),
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
