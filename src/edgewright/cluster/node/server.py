"""A node: waits for a coordinator, stores its files and plans, and carries out the plan that it begins.

One run at a time. A run ends when its connections do, or when nothing is heard of its coordinator: then the memory of
its plan is free again, and the next coordinator may come.
"""

from __future__ import annotations

import os
import queue
import shutil
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ...errors import EdgewrightError, InputError, RunError
from ...run.machine import architecture, processor_features, resident_bytes
from .connections import Listener, Watch, dial, hang_up, hello
from .credentials import Credentials, Peer
from .current_engine import CurrentEngine
from .engine import Dial, Engine
from .heap import return_free_memory
from .messages import (
    MOST_WORDS,
    PIECE_BYTES,
    PROTOCOL,
    Beat,
    Begin,
    Begun,
    Disconnected,
    FilePiece,
    Hello,
    Message,
    Missing,
    Order,
    Prepare,
    Prepared,
    Pulse,
    Report,
    Rest,
    RunRefused,
    Stored,
    Survey,
    Trouble,
    Welcome,
    checked_protocol,
    receive,
    send,
)
from .node_plan import NodePlan, read_plan
from .store import FileStore

BEAT_S = 0.2  # from sign of life to sign of life
COORDINATOR_S = 5.0  # without one, the run is over
PLANS = 256  # of one run

Log = Callable[[str], None]


class ClusterNode:
    """One device. `address` is where it listens; with port 0 the system chooses one (`port`)."""

    def __init__(self, credentials: Credentials, address: str, folder: Path, log: Log = print) -> None:
        self.credentials, self.log = credentials, log
        self.store = FileStore(folder)
        self._lock = threading.Lock()
        self._session: _Session | None = None
        self._listener = Listener(address, credentials, self._serve, log)
        self.port = self._listener.port

    def close(self) -> None:
        self._listener.close()
        with self._lock:
            session = self._session
        if session:
            session.end("the node was closed")

    def _serve(self, connection: ssl.SSLSocket, peer: Peer, greeting: Hello) -> None:
        purpose = greeting.purpose[:20]
        try:
            if purpose == "reports" and peer.is_coordinator:
                self._serve_reports(connection, peer, greeting)
                return
            checked_protocol(greeting.protocol, f"device '{peer.name}'")
            session = self._session_of(greeting)
            if purpose in ("tensors", "credits"):
                if session:
                    self._serve_device(session, connection, peer, greeting)
            elif not peer.is_coordinator:
                raise RunError(f"'{peer.name}' asked for {purpose}, and its certificate is not the gateway's")
            elif purpose not in ("orders", "files"):
                raise RunError(f"'{peer.name}' asked for '{purpose}', which is not known here")
            elif session:
                (session.take_orders if purpose == "orders" else session.take_files)(connection)
        except Disconnected as end:
            self.log(f"{purpose} of '{peer.name}' ended: {end}")

    def _serve_reports(self, connection: ssl.SSLSocket, peer: Peer, greeting: Hello) -> None:
        """A coordinator that comes begins a run, if there is none."""
        if greeting.protocol != PROTOCOL:
            send(connection, welcome(self))  # it says which edgewright this is
            return
        with self._lock:
            other = self._session
            if other is None:
                session = self._session = _Session(self, greeting.run, peer.name)
        if other is not None:
            send(connection, RunRefused(f"it works for another run, which '{other.coordinator}' began"))
            return
        self.log(f"run {greeting.run[:12]} of '{peer.name}' begins")
        try:
            session.send_reports(connection)
        finally:
            session.end("nobody reads its reports")
            with self._lock:
                self._session = None
            return_free_memory()
            self.log(f"run {greeting.run[:12]} is over: {session.why}")

    def _serve_device(self, session: _Session, connection: ssl.SSLSocket, peer: Peer, greeting: Hello) -> None:
        """Another device of the run, in the epoch that it is in."""
        try:
            session.current.serve(connection, peer.name, greeting)
        except Disconnected as end:
            session.trouble(greeting.epoch, str(end), peer.name)

    def _session_of(self, greeting: Hello) -> _Session | None:
        with self._lock:
            return self._session if self._session and self._session.run == greeting.run else None


class _Session:
    """What a node does for one run of one coordinator."""

    def __init__(self, node: ClusterNode, run: str, coordinator: str) -> None:
        self.node, self.run, self.coordinator = node, run, coordinator
        self.why = ""
        self._plans: dict[str, NodePlan] = {}
        self.current = CurrentEngine()
        self._reports: queue.SimpleQueue[Report | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._connections: set[ssl.SSLSocket] = set()
        self._awaited: frozenset[str] = frozenset()  # digests of files to come
        self._began, self._has_orders = time.monotonic(), False

    def end(self, why: str) -> None:
        with self._lock:
            if self.why:
                return
            self.why = why
            connections = tuple(self._connections)
        self._reports.put(None)
        for connection in connections:
            hang_up(connection)
        self.current.end()

    def trouble(self, epoch: int, what: str, peer: str = "") -> None:
        """Tells the coordinator, unless it concerns an epoch that is over."""
        engine = self.current.engine
        if engine is not None and engine.epoch == epoch:
            self._reports.put(Trouble(epoch, what[:MOST_WORDS], peer))

    # Connections

    def send_reports(self, connection: ssl.SSLSocket) -> None:
        """Reports as they come, and a sign of life where there are none."""
        with self._attended(connection):
            send(connection, welcome(self.node))
            while not self.why:
                try:
                    report = self._reports.get(timeout=BEAT_S)
                except queue.Empty:
                    report = self._pulse()
                if report is not None:
                    send(connection, report)
                if not self._has_orders and time.monotonic() > self._began + COORDINATOR_S:
                    self.end("the coordinator gives no orders")

    def take_orders(self, connection: ssl.SSLSocket) -> None:
        why = "it failed"
        try:
            with self._attended(connection):
                self._has_orders = True
                connection.settimeout(COORDINATOR_S)
                while True:
                    order: Order = receive(connection, Order)
                    if not isinstance(order, Beat):
                        self._obey(order)
        except Disconnected as end:
            why = f"the coordinator is gone ({end})"
        finally:
            self.end(why)

    def take_files(self, connection: ssl.SSLSocket) -> None:
        """Pieces of files, until the connection ends."""
        with self._attended(connection):
            while True:
                piece: FilePiece = receive(connection, FilePiece, 2 * PIECE_BYTES)
                try:
                    if piece.digest not in self._awaited:
                        raise InputError(f"file {piece.digest[:12]} was sent, and is not missing here")
                    if piece.data:
                        self.node.store.append(piece.digest, piece.offset, piece.data)
                    if piece.is_last:
                        self.node.store.finish(piece.digest)
                        self._reports.put(Stored(piece.digest))
                except EdgewrightError as error:
                    self._reports.put(Trouble(0, str(error)[:MOST_WORDS]))
                    return

    @contextmanager
    def _attended(self, connection: ssl.SSLSocket) -> Iterator[None]:
        """While a connection is served: it ends with the run."""
        with self._lock:
            if self.why:
                raise Disconnected(f"the run is over: {self.why}")
            self._connections.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._connections.discard(connection)

    # Orders

    def _obey(self, order: Message) -> None:
        try:
            if isinstance(order, Survey):
                missing = self._missing(order.files)
                self._awaited = frozenset(missing)
                self._reports.put(Missing(missing))
            elif isinstance(order, Prepare):
                self._prepare(order)
            elif isinstance(order, Begin):
                self._begin(order)
            elif isinstance(order, Rest):
                self.current.replace(None)
        except EdgewrightError as error:
            self._reports.put(Trouble(getattr(order, "epoch", 0), str(error)[:MOST_WORDS]))

    def _missing(self, files: dict[str, int]) -> dict[str, int]:
        """What is missing of these files. On a full disk, those of earlier runs are deleted first."""
        store = self.node.store
        try:
            return store.reserve(files)
        except RunError:
            store.keep_only({*files, *(plan.library.digest for plan in self._plans.values() if plan.library)})
            return store.reserve(files)

    def _prepare(self, order: Prepare) -> None:
        if not self.node.credentials.is_signed(order.plan, order.signature):
            raise InputError("a plan came that the holder of the keys has not signed; nothing of it is carried out")
        plan = read_plan(order.plan)
        if plan.device != self.node.credentials.name:
            raise InputError(f"a plan came that is for device '{plan.device}'")
        if len(self._plans) >= PLANS and plan.name not in self._plans:
            raise InputError(f"more than {PLANS} plans came")
        check_core(plan)
        if plan.library:
            self.node.store.path(plan.library.digest)
        self._plans[plan.name] = plan
        self._reports.put(Prepared(plan.name))

    def _begin(self, order: Begin) -> None:
        plan = self._plans.get(order.plan)
        if plan is None:
            raise InputError(f"plan '{order.plan[:80]}' is to begin, and did not come before")
        library = self.node.store.path(plan.library.digest) if plan.library else None
        dialler, trouble = self._dialler(plan, order.epoch), partial(self.trouble, order.epoch)
        engine = self.current.replace(lambda: Engine(plan, order.epoch, order.first, library, dialler, trouble))
        if engine:
            self._reports.put(Begun(order.epoch, engine.allocated))

    def _dialler(self, plan: NodePlan, epoch: int) -> Dial:
        def opened(device: str, purpose: str, watch: Watch) -> ssl.SSLSocket:
            greeting = hello(purpose, self.run, epoch)
            return dial(plan.addresses[device], device, self.node.credentials, greeting, watch)

        return opened

    def _pulse(self) -> Report:
        engine, resident = self.current.engine, resident_bytes()
        return engine.pulse(resident) if engine else Pulse(0, 0.0, 0, 0.0, {}, "", resident)


def welcome(node: ClusterNode) -> Welcome:
    """What a device says of itself."""
    ram = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    disk, release = 0, "of an unknown version"
    with suppress(OSError):
        disk = shutil.disk_usage(node.store.folder).free
    with suppress(PackageNotFoundError):
        release = version("edgewright")
    return Welcome(PROTOCOL, node.credentials.name, release, architecture(), processor_features(), ram, disk)


def check_core(plan: NodePlan) -> None:
    """An error where the library is for another processor than this one."""
    library = plan.library
    if library is None:
        return
    if architecture().startswith("armv"):
        raise InputError(
            f"'{plan.device}' has a 32-bit system ({architecture()}), which nothing is compiled for; install 64 bits"
        )
    if library.architecture != architecture():
        raise InputError(
            f"the library for '{plan.device}' was built for {library.architecture}, and the device is "
            f"{architecture()}; give the device's board in the cluster file, and plan again"
        )
    missing = sorted(set(library.features) - set(processor_features()))
    if missing:
        raise InputError(
            f"the library for '{plan.device}' uses {', '.join(missing[:5])}, which its processor lacks; give the "
            "device's board in the cluster file, and plan again"
        )
