"""A device as the coordinator knows it: three connections, what it reports, and the moment when it is lost."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import RunError
from ..node.connections import dial, hang_up, hello
from ..node.credentials import Credentials
from ..node.messages import (
    PIECE_BYTES,
    Beat,
    Disconnected,
    FilePiece,
    Message,
    Missing,
    Prepare,
    Prepared,
    Report,
    RunRefused,
    Stored,
    Survey,
    Trouble,
    Welcome,
    checked_protocol,
    receive,
    send,
)
from ..node.server import BEAT_S
from .prepared_plan import PreparedPlan

LEASE_S = 1.0  # without a sign of life, a device is lost
BUSY_S = 8.0  # that a device may need to notice that its last coordinator is gone
ANSWER_S = 60.0  # a file may have to be written, and compared
_REPORT_BYTES = 1 << 20


@dataclass(frozen=True)
class Lost:
    """A device is gone."""

    why: str


Event = Report | Lost
Progress = Callable[[int], None]  # is told of bytes that the device has stored


def untold(_size: int) -> None:
    """Ignores progress."""


class RemoteDevice:
    """A device that has answered. What it reports goes to `notify`, which must not wait."""

    def __init__(
        self, name: str, address: str, credentials: Credentials, run: str, notify: Callable[[RemoteDevice, Event], None]
    ) -> None:
        """RunError when it cannot be reached, or works for somebody else."""
        self.name, self.address, self._notify = name, address, notify
        self._credentials, self._run = credentials, run
        self._reports, self.welcome = self._welcomed()
        self._lock, self._sending = threading.Condition(), threading.Lock()
        self._is_lost = False
        self._missing: dict[str, int] | None = None
        self._stored: set[str] = set()
        self._prepared: set[str] = set()
        self._refused = ""
        try:
            self._orders = self._dialled("orders")
        except RunError:
            self._reports.close()
            raise
        self._reports.settimeout(LEASE_S)
        for work in (self._listen, self._beat):
            threading.Thread(target=work, name=f"edgewright-{name}", daemon=True).start()

    def _welcomed(self) -> tuple[ssl.SSLSocket, Welcome]:
        give_up = time.monotonic() + BUSY_S
        while True:
            connection = self._dialled("reports")
            connection.settimeout(BUSY_S)
            try:
                answer: Welcome | RunRefused = receive(connection, Welcome | RunRefused, _REPORT_BYTES)
            except Disconnected as end:
                connection.close()
                raise RunError(f"device '{self.name}' at {self.address} does not take this run: {end}") from None
            if isinstance(answer, Welcome):
                checked_protocol(answer.protocol, f"device '{self.name}'", answer.version)
                return connection, answer
            connection.close()
            if time.monotonic() > give_up:
                raise RunError(f"device '{self.name}' at {self.address} does not take this run: {answer.why}")
            time.sleep(BEAT_S)

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    def order(self, message: Message) -> None:
        """Sends an order; if the device is gone, that is noticed elsewhere."""
        try:
            with self._sending:
                send(self._orders, message)
        except Disconnected as end:
            self.lose(str(end))

    def lose(self, why: str) -> None:
        """The device is given up: its connections end, and the coordinator is told once."""
        with self._lock:
            if self._is_lost:
                return
            self._is_lost = True
        self.close()
        self._notify(self, Lost(why))

    def close(self) -> None:
        """Ends the connections; threads that wait for answers get an error."""
        with self._lock:
            self._is_lost = True
            self._lock.notify_all()
        hang_up(self._reports)
        hang_up(self._orders)

    def _send_files(self, files: Mapping[str, Path], sizes: Mapping[str, int], progress: Progress) -> None:
        """Sends what the device does not have yet; RunError when it cannot take it."""
        self.order(Survey(dict(sizes)))
        self._wait(lambda: self._missing is not None)
        missing, self._missing = self._missing or {}, None
        if any(digest not in sizes or not 0 <= there <= sizes[digest] for digest, there in missing.items()):
            raise RunError(f"device '{self.name}' asks for files that it does not need; reinstall edgewright there")
        progress(sum(sizes.values()) - sum(sizes[digest] - there for digest, there in missing.items()))
        if not missing:
            return
        try:
            connection = self._dialled("files")
        except RunError:
            self._wait(lambda: False, 2 * LEASE_S)  # it may be lost, which is noticed on another connection
            raise
        try:
            for digest, there in missing.items():
                with files[digest].open("rb") as file:
                    file.seek(there)
                    at, is_last = there, False
                    while not is_last:
                        data = file.read(PIECE_BYTES)
                        is_last = at + len(data) >= sizes[digest]
                        send(connection, FilePiece(digest, at, data, is_last))
                        at += len(data)
                        progress(len(data))
                self._wait(lambda digest=digest: digest in self._stored)  # type: ignore[misc]
        except Disconnected as end:
            self._wait(lambda: False, 1.0)  # a refusal says more
            raise RunError(f"device '{self.name}' does not take files: {end}") from None
        finally:
            connection.close()

    def prepare(self, plans: Sequence[PreparedPlan], progress: Progress) -> None:
        """Hands over files and plans, those that the device has a share in; RunError when it cannot take them."""
        own = [plan for plan in plans if self.name in plan.nodes and plan.name not in self._prepared]
        sizes = {digest: size for plan in own for digest, size in plan.files(self.name).items()}
        paths = {digest: path for plan in own for digest, path in plan.libraries.items()}
        self._refused = ""
        if sizes:
            self._send_files(paths, sizes, progress)
        for plan in own:
            self.order(Prepare(*plan.signed[self.name]))
        self._wait(lambda: {plan.name for plan in own} <= self._prepared)

    def _wait(self, condition: Callable[[], bool], seconds: float = ANSWER_S) -> None:
        with self._lock:
            self._lock.wait_for(lambda: condition() or self._is_lost or bool(self._refused), seconds)
            if self._refused:
                raise RunError(f"device '{self.name}': {self._refused}")
            if self._is_lost:
                raise RunError(f"device '{self.name}' was lost")
            if seconds == ANSWER_S and not condition():
                raise RunError(f"device '{self.name}' has not answered for {ANSWER_S:g} s")

    def _dialled(self, purpose: str) -> ssl.SSLSocket:
        return dial(self.address, self.name, self._credentials, hello(purpose, self._run))

    def _listen(self) -> None:
        try:
            while True:
                report: Report = receive(self._reports, Report, _REPORT_BYTES)
                with self._lock:
                    if isinstance(report, Missing):
                        self._missing = report.offsets
                    elif isinstance(report, Stored):
                        self._stored.add(report.digest)
                    elif isinstance(report, Prepared):
                        self._prepared.add(report.plan)
                    elif isinstance(report, Trouble) and report.epoch == 0:
                        self._refused = report.what
                    self._lock.notify_all()
                self._notify(self, report)
        except Exception as end:  # whatever it is, the device is not listened to any more
            self.lose(f"no sign of life for {LEASE_S:g} s" if "timed out" in str(end) else str(end))
        finally:
            self._reports.close()

    def _beat(self) -> None:
        is_over = False
        while not is_over:
            self.order(Beat())
            with self._lock:
                is_over = self._lock.wait_for(lambda: self._is_lost, BEAT_S)
        with self._sending:
            self._orders.close()
