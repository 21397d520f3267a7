"""Messages that no honest device would send, over connections with good certificates, and strangers without them."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import msgspec

from edgewright.cluster.node.connections import dial, hang_up
from edgewright.cluster.node.credentials import load_credentials
from edgewright.cluster.node.messages import (
    MOST_BYTES,
    PROTOCOL,
    Beat,
    Begin,
    FilePiece,
    Hello,
    Message,
    Prepare,
    Rest,
    RunRefused,
    Stored,
    Survey,
    Welcome,
    receive,
    send,
)
from edgewright.cluster.node.node_plan import plan_bytes
from edgewright.errors import EdgewrightError
from tests.cluster.trials import Trial

ODD_NUMBERS = (0, 1, 2, 3, 7, -1, 1 << 31, 1 << 32, (1 << 53) - 1, 1 << 53, (1 << 64) - 1, -(1 << 63))


class Fuzzer:
    """Plays devices that lie to one node; each `round` is a few connections. The seed says what they send."""

    def __init__(self, trial: Trial, device: str, seed: int) -> None:
        self.trial, self.device, self.random = trial, device, Random(seed)
        self.address = trial.nodes.addresses[device]
        others = [name for name in trial.names if name != device]
        self.credentials = {name: load_credentials(trial.keys / name) for name in others}
        self.rounds = self.messages = 0
        self.plans = [plan for plan in trial.plans if device in plan.nodes]

    def round(self) -> None:
        """A run of a coordinator that sends nonsense, with devices that do the same beside it."""
        run = f"run {self.random.randrange(1 << 60)}"
        with ExitStack() as opened:
            reports = self._open(opened, self.trial.gateway, Hello(PROTOCOL, "reports", run))
            if reports is None or not self._is_taken(reports):
                return
            orders = self._open(opened, self.trial.gateway, Hello(PROTOCOL, "orders", run))
            for _ in range(self.random.randint(1, 12)):
                self._say(orders, self._order())
            for _ in range(self.random.randint(0, 3)):
                self._play_device(opened, run)
            files = self._open(opened, self.trial.gateway, Hello(PROTOCOL, "files", run))
            for _ in range(self.random.randint(0, 3)):
                self._say(files, self._piece())
        self.rounds += 1

    def intrude(self, run: str, epoch: int) -> None:
        """Lies of a device to one that is at work."""
        with ExitStack() as opened:
            for _ in range(4):
                self._play_device(opened, run, epoch)
                self._open(opened, self._other(), self._greeting(run, epoch))
        self.rounds += 1

    # Connections

    def _open(self, opened: ExitStack, name: str, greeting: Hello) -> ssl.SSLSocket | None:
        with suppress(EdgewrightError):
            connection = dial(self.address, self.device, self.credentials[name], greeting)
            connection.settimeout(2.0)
            opened.callback(connection.close)
            opened.callback(hang_up, connection)
            return connection
        return None

    def _is_taken(self, reports: ssl.SSLSocket) -> bool:
        """Whether the node works for this run; it may not have noticed yet that the last one is over."""
        with suppress(Exception):
            answer: Welcome | RunRefused = receive(reports, Welcome | RunRefused)
            return isinstance(answer, Welcome)
        return False

    def _play_device(self, opened: ExitStack, run: str, epoch: int | None = None) -> None:
        epoch = self.random.choice((0, 1, 2)) if epoch is None else epoch
        purpose = self.random.choice(("tensors", "credits"))
        connection = self._open(opened, self._other(), Hello(PROTOCOL, purpose, run, epoch))
        for _ in range(self.random.randint(1, 4)):
            numbers = [abs(self.random.choice(ODD_NUMBERS)) for _ in range(3)]
            head = struct.pack("<IQI", numbers[0] % (1 << 32), numbers[1] % (1 << 64), numbers[2] % (1 << 32))
            self._write(connection, head + self.random.randbytes(self.random.choice((0, 4, 1000))))

    def _other(self) -> str:
        return self.random.choice([name for name in self.credentials if name != self.trial.gateway])

    def _greeting(self, run: str, epoch: int) -> Hello:
        """A first message with something wrong about it."""
        purpose = self.random.choice(("orders", "reports", "files", "", "x" * 3000, "tensors"))
        protocol = self.random.choice((PROTOCOL, 0, PROTOCOL + 1))
        return Hello(protocol, purpose, self.random.choice((run, "", "another")), epoch + self.random.choice((-1, 0)))

    # Messages

    def _say(self, connection: ssl.SSLSocket | None, message: Message) -> None:
        """A message, damaged more often than not."""
        data = msgspec.msgpack.encode(message)
        size, draw = len(data), self.random.random()
        if draw < 0.2:
            at = self.random.randrange(len(data))
            data = data[:at] + self.random.randbytes(1) + data[at + 1 :]
        elif draw < 0.3:
            data = data[: self.random.randrange(len(data))]
        elif draw < 0.4:
            data = self.random.randbytes(self.random.randint(0, 200))
            size = len(data)
        elif draw < 0.45:
            size = self.random.choice((MOST_BYTES + 1, (1 << 32) - 1, MOST_BYTES))
        self._write(connection, struct.pack("<I", size) + data)

    def _write(self, connection: ssl.SSLSocket | None, data: bytes) -> None:
        if connection is not None:
            with suppress(OSError):
                connection.sendall(data)
                self.messages += 1

    def _order(self) -> Message:
        plan = self.random.choice(self.plans)
        content, signature = plan.signed[self.device]
        odd = self.random.choice
        makers: tuple[Callable[[], Message], ...] = (
            Beat,
            Rest,
            lambda: Survey({digest: odd(ODD_NUMBERS) for digest in ("0" * 64, "../" * 20, "A" * 64, "")}),
            lambda: Survey({self.random.randbytes(32).hex(): 1 for _ in range(100)}),
            lambda: Survey(plan.files(self.device)),
            lambda: Prepare(content, signature),
            lambda: Prepare(content, signature),
            lambda: Prepare(content + b" ", signature),
            lambda: Prepare(content, self.random.randbytes(odd((0, 63, 64)))),
            lambda: Prepare(plan_bytes(plan.nodes[self.trial.gateway]), signature),
            lambda: Begin(1, plan.name, 0),
            lambda: Begin(odd(ODD_NUMBERS), odd((plan.name, "", "none")), odd(ODD_NUMBERS)),
            lambda: Hello(PROTOCOL, "orders", "again"),
            lambda: Stored("0" * 64),
        )
        return odd(makers)()

    def _piece(self) -> Message:
        digest = self.random.choice(("0" * 64, self.random.randbytes(32).hex(), "../passwd", ""))
        data = self.random.randbytes(self.random.choice((0, 1, 5000)))
        return FilePiece(digest, self.random.choice(ODD_NUMBERS), data, self.random.random() < 0.5)


def fuzz(trial: Trial, seconds: float, seed: int, each: Callable[[], None] = lambda: None) -> int:
    """Lies to all nodes at the same time; returns the number of messages. `each` is called now and then."""
    fuzzers = [Fuzzer(trial, name, seed + number) for number, name in enumerate(trial.nodes.names)]
    end = time.monotonic() + seconds

    def lie(fuzzer: Fuzzer) -> None:
        while time.monotonic() < end:
            fuzzer.round()

    with ThreadPoolExecutor(len(fuzzers)) as pool:
        jobs = [pool.submit(lie, fuzzer) for fuzzer in fuzzers]
        while not all(job.done() for job in jobs):
            each()
            time.sleep(0.05)
        for job in jobs:
            job.result()
    assert all(fuzzer.rounds for fuzzer in fuzzers)
    return sum(fuzzer.messages for fuzzer in fuzzers)


def trouble_of(trial: Trial) -> str:
    """What is wrong with the nodes: one has ended, or an exception was not handled."""
    for name, process in trial.nodes.processes.items():
        if process.poll() not in (None, -9):  # killed by a test
            return f"the node of '{name}' ended with {process.returncode}"
        log = (trial.nodes.folder / f"{name}.log").read_text()
        if "Traceback" in log:
            return log[log.index("Traceback") :][:2000]
    return ""


def resident(pid: int) -> int:
    """Bytes of a process in RAM."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    fields = dict(line.split(":") for line in text.splitlines()[1:])
    return 1024 * (int(fields["Private_Dirty"].split()[0]) + int(fields["Private_Clean"].split()[0]))


class FalseDevice:
    """Has a device's keys, welcomes a coordinator, and then reports nonsense."""

    def __init__(self, trial: Trial, device: str, seed: int) -> None:
        self.trial, self.device, self.random = trial, device, Random(seed)

    def serve(self, connection: ssl.SSLSocket, _peer: object, greeting: Hello) -> None:
        with suppress(Exception):
            if greeting.purpose == "reports":
                send(connection, Welcome(PROTOCOL, self.device, "0", "none", (), 0, 0))
                while True:
                    time.sleep(0.02)
                    connection.sendall(self._report())
            while True:
                connection.recv(1000)

    def _report(self) -> bytes:
        missing = dict.fromkeys(("0" * 64, "x"), self.random.choice(ODD_NUMBERS))
        reports = (
            {"type": "Missing", "offsets": missing},
            {"type": "Prepared", "plan": self.random.choice([plan.name for plan in self.trial.plans])},
            {"type": "Begun", "epoch": self.random.choice(ODD_NUMBERS), "allocated": self.random.choice(ODD_NUMBERS)},
            {"type": "Trouble", "epoch": self.random.choice(ODD_NUMBERS), "what": "x", "peer": "nobody"},
            {"type": "Trouble", "epoch": 1, "what": "x", "peer": self.random.choice(self.trial.names)},
            {"type": "Pulse", "epoch": 1, "elapsed_s": float("nan"), "runs": -1, "computing_s": 0.0, "sent": {},
             "awaited": "x" * 100, "resident": -1},
        )  # fmt: skip
        data = msgspec.msgpack.encode(self.random.choice(reports))
        if self.random.random() < 0.1:
            data = self.random.randbytes(50)
        return struct.pack("<I", len(data)) + data


def half_open(address: str, count: int) -> list[socket.socket]:
    """Connections that say nothing, or half of a greeting."""
    host, _, port = address.rpartition(":")
    made = []
    for number in range(count):
        connection = socket.create_connection((host, int(port)), timeout=5.0)
        if number % 2:
            connection.sendall(b"\x16\x03\x01\x02")
        made.append(connection)
    return made
