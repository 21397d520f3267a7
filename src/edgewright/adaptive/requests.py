"""Sources of scenario requests for a running application: lines of a file or a socket, or random.

A line is a scenario, `release`, or a signal with its value: `battery = 0.2`.
"""

from __future__ import annotations

import socketserver
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, TextIO

from ..errors import EdgewrightError, InputError
from .runtime import Adaptive

PATIENCE = 1.0  # seconds that the next line of a file waits for a switch
PAUSES, MOST_PAUSE = 4.0, 0.1  # at most this many frames, and seconds, between random requests
PORTS = range(1, 65536)


def obey(running: Adaptive, line: str) -> None:
    """Carries out a line; an error says what is wrong with it."""
    name, is_signal, value = (part.strip() for part in line.partition("="))
    if is_signal:
        if not name:
            raise InputError(f'"{line.strip()}" names no signal; expected a line such as battery = 0.25')
        try:
            running.signal(name, float(value))
        except ValueError:
            raise InputError(f'"{value}" is no number; expected a line such as {name} = 0.25') from None
    elif name == "release" and name not in running.scenarios:
        running.release()
    else:
        running.request(name)


class LineRequests:
    """Requests from the lines of a file, in a separate thread: each waits for the first result of the previous one."""

    def __init__(self, lines: TextIO) -> None:
        self.lines = lines
        self.error: EdgewrightError | None = None
        self.count = 0
        self._ended = Event()

    @contextmanager
    def feeding(self, running: Adaptive) -> Iterator[None]:
        Thread(target=self._feed, args=(running,), daemon=True).start()  # it may wait for a line that never comes
        try:
            yield
        finally:
            self._ended.set()

    def _feed(self, running: Adaptive) -> None:
        try:
            for line in self.lines:
                if self._ended.is_set():
                    return
                if line.strip():
                    obey(running, line)
                    self.count += 1
                    self._await(running, line.strip())
        except EdgewrightError as error:
            self.error = error
        except (OSError, ValueError):  # closed, or not text
            return

    def _await(self, running: Adaptive, scenario: str) -> None:
        until = time.monotonic() + PATIENCE
        while scenario in running.scenarios and running.is_switching and time.monotonic() < until:
            if self._ended.wait(0.001):
                return


class SocketRequests:
    """Requests from a TCP port of this machine, or from a Unix socket. Each line is answered `ok`, or with an error."""

    def __init__(self, address: str) -> None:
        if address.isdigit() and int(address) not in PORTS:
            raise InputError(f"--requests {address} is no port; expected 1 to {PORTS[-1]}, or a path")
        self.address = address
        self.error: EdgewrightError | None = None
        self.count = 0

    @contextmanager
    def feeding(self, running: Adaptive) -> Iterator[None]:
        server = self._server(running)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
            if not self.address.isdigit():
                Path(self.address).unlink(missing_ok=True)

    def _server(self, running: Adaptive) -> socketserver.BaseServer:
        owner = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for raw in self.rfile:
                    line = raw.decode(errors="replace").strip()
                    try:
                        obey(running, line)
                        owner.count += 1
                        self.wfile.write(b"ok\n")
                    except EdgewrightError as error:
                        self.wfile.write(f"error: {error}\n".encode())

        where: Any = self.address
        kind: Any = getattr(socketserver, "ThreadingUnixStreamServer", None)
        if self.address.isdigit():
            where, kind = ("127.0.0.1", int(self.address)), socketserver.ThreadingTCPServer
        else:
            _remove_old_socket(Path(self.address))
        if kind is None:
            raise InputError("this system has no Unix sockets; give --requests a port")
        try:
            server: socketserver.BaseServer = kind(where, Handler)
        except OSError as error:
            raise InputError(
                f"cannot listen at '{self.address}': {error.strerror or error}; give another one"
            ) from None
        server.daemon_threads = True  # type: ignore[attr-defined]
        return server


def _remove_old_socket(path: Path) -> None:
    """Removes a socket left by an earlier run; anything else is refused."""
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise InputError(f"'{path}' exists and is no socket; give --requests another path, or a port")
    path.unlink()


class RandomRequests:
    """Requests for random scenarios at random times, from a separate thread."""

    def __init__(self, seed: int = 1) -> None:
        self.error: EdgewrightError | None = None
        self.count = 0
        self._random = Random(seed)
        self._ended = Event()

    @contextmanager
    def feeding(self, running: Adaptive) -> Iterator[None]:
        thread = Thread(target=self._feed, args=(running,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _feed(self, running: Adaptive) -> None:
        while not self._ended.wait(min(MOST_PAUSE, self._random.random() * PAUSES * running.frame_time)):
            running.request(self._random.choice(running.scenarios))
            self.count += 1
