"""One epoch on one device: memory, library, and the threads that compute, send and tell others that they may send.

All shared state is in the FrameBook, under one lock. A tensor goes from the sender's slot to the receiver's without a
copy in between. An engine does not recover from errors: it reports them, and the coordinator begins a new epoch.
"""

from __future__ import annotations

import _ctypes
import ctypes
import mmap
import queue
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ...errors import InputError, RunError
from .connections import Watch, hang_up
from .frame_book import FrameBook
from .messages import Disconnected, Pulse, receive_head, receive_into, send_credit, send_tensor
from .node_plan import NodeFifo, NodePlan, Number

Dial = Callable[[str, str, Watch], socket.socket]  # a device, and what the connection is for
Report = Callable[[str, str], None]  # what went wrong, and with which device


class Outside(Protocol):
    """At the gateway: where frames come from and results go."""

    def frame(self, fifo: Number, frame: int) -> memoryview:
        """The bytes of a frame that was admitted."""
        ...

    def place(self, fifo: Number, frame: int) -> memoryview:
        """Where a result is to be written."""
        ...

    def done(self, fifo: Number, frame: int) -> None:
        """A result has been written."""
        ...


class Engine:
    """A plan at work from one frame on, until it is closed."""

    def __init__(
        self,
        plan: NodePlan,
        epoch: int,
        first: int,
        library: Path | None,
        dial: Dial,
        report: Report,
        outside: Outside | None = None,
    ) -> None:
        self.plan, self.epoch = plan, epoch
        self._dial, self._report, self._outside = dial, report, outside
        try:
            self._memory = mmap.mmap(-1, max(1, plan.memory_bytes))  # zeroed, at a page
        except (OSError, ValueError, OverflowError) as error:
            raise InputError(f"the plan takes {plan.memory_bytes} bytes, which this device does not give") from error
        self._bytes = memoryview(self._memory)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._library, self._functions = load_parts(plan, library)
        self._lock = threading.Lock()
        # A thread is woken only when it can go on: waking one costs as much as a message.
        self._may_run, self._may_send, self._has_left = (threading.Condition(self._lock) for _ in range(3))
        self._book = FrameBook(plan, first)
        self._credits: dict[str, queue.SimpleQueue[tuple[Number, int] | None]] = {
            device: queue.SimpleQueue() for device in {fifo.origin for fifo in plan.fifos} - {plan.device}
        }
        self._is_closed = False
        self._connections: set[socket.socket] = set()  # that this device has opened
        self._served: set[socket.socket] = set()  # that others have opened
        self._threads: list[threading.Thread] = []
        self.runs, self.computing_s = 0, 0.0
        self.sent_bytes: Counter[str] = Counter()
        self._began = time.monotonic()

    @property
    def allocated(self) -> int:
        """Bytes of arenas and slots."""
        return len(self._memory)

    def start(self) -> None:
        with self._lock:
            self._tell()
        self._thread("compute", self._compute)
        if any(fifo.sent_to for fifo in self.plan.fifos):
            self._thread("send", self._send)
        for device, told in self._credits.items():
            self._thread(f"credits to {device}", self._send_credits, device, told)

    def admit(self, frames: int) -> None:
        """At the gateway: all frames before this number are there."""
        with self._lock:
            self._book.admit(frames)
            self._tell()

    def close(self) -> None:
        """Ends all threads and connections; a part that is running runs to its end."""
        with self._lock:
            self._is_closed = True
            self._may_run.notify()
            self._may_send.notify()
            connections = (*self._connections, *self._served)
        for told in self._credits.values():
            told.put(None)
        for connection in connections:
            hang_up(connection)
        for thread in self._threads:
            thread.join()
        with self._lock:
            self._has_left.wait_for(lambda: not self._served)
        for connection in self._connections:
            connection.close()
        if self._library is not None:
            _ctypes.dlclose(self._library._handle)
            self._library = None

    def pulse(self, resident: int) -> Pulse:
        """What the device does now."""
        with self._lock:
            waiting = [self._book.waits_for(*self._book.next_of(worker)) for worker in range(len(self.plan.workers))]
            awaited = next((device for device in waiting if device), "") if None not in waiting else ""
            elapsed = time.monotonic() - self._began
            return Pulse(self.epoch, elapsed, self.runs, self.computing_s, dict(self.sent_bytes), awaited, resident)

    # Connections that others have opened; each in a thread of its own

    def take_tensors(self, connection: socket.socket, origin: str) -> None:
        """Receives frames from a device, each into its slot, until the connection ends."""
        with self._attended(connection):
            while True:
                number, frame, size = receive_head(connection)
                with self._lock:
                    if not self._book.is_expected(number, frame, size, origin):
                        raise Disconnected(f"'{origin}' sent FIFO {number}, frame {frame}, {size} bytes; not expected")
                    fifo = self._book.progress[number].fifo
                place = self._place(fifo, frame)
                if fifo.is_short:
                    receive_short(connection, place)
                else:
                    receive_into(connection, place)
                self._came(fifo, frame, place)

    def take_credits(self, connection: socket.socket, device: str) -> None:
        """Learns what a device has room for, until the connection ends."""
        with self._attended(connection):
            while True:
                number, frame, _ = receive_head(connection)
                with self._lock:
                    if not self._book.credited(number, frame, device):
                        raise Disconnected(f"'{device}' has room for FIFO {number}, frame {frame}; not expected")
                    if self._book.sendable():
                        self._may_send.notify()

    # Threads

    def _compute(self) -> None:
        while True:
            with self._lock:
                while not self._is_closed and not (ready := next(self._book.runnable(), None)):
                    self._may_run.wait()
                if self._is_closed or ready is None:
                    return
                worker, number, frame = ready
            began = time.perf_counter()
            self._run(number, frame)
            for each in self.plan.parts[number].writes:
                fifo = self._book.progress[each].fifo
                if fifo.is_result:
                    self._leave(fifo, frame)
            with self._lock:
                self._book.ran(worker)
                self.runs += 1
                self.computing_s += time.perf_counter() - began
                self._tell()

    def _run(self, number: Number, frame: int) -> None:
        part, base = self.plan.parts[number], self._base
        slots = (self._book.slot(each, frame) for each in (*part.reads, *part.writes))
        self._functions[number](*[ctypes.c_void_p(base + start) for start in (*part.arenas, *slots)])

    def _send(self) -> None:
        """Sends one tensor at a time: a device has one cable."""
        opened: dict[str, socket.socket] = {}
        while True:
            with self._lock:
                while not self._is_closed and not (what := self._book.sendable()):
                    self._may_send.wait()
                if self._is_closed:
                    return
            assert what
            fifo, frame, device = what
            content = self._content(fifo, frame)
            if device == self.plan.device:
                place = self._slot(fifo, frame)
                place[:] = content
                self._came(fifo, frame, place)
            else:
                try:
                    if device not in opened:
                        opened[device] = self._opened(device, "tensors")
                    send_tensor(opened[device], fifo.number, frame, short(content) if fifo.is_short else content)
                except (Disconnected, RunError, OSError) as error:
                    self._trouble(str(error), device)
                    return
            with self._lock:
                self._book.sent(fifo.number, frame, device)
                if device != self.plan.device:
                    self.sent_bytes[device] += fifo.wire_bytes
                self._tell()

    def _send_credits(self, device: str, told: queue.SimpleQueue[tuple[Number, int] | None]) -> None:
        try:
            connection = self._opened(device, "credits")
            while (credit := told.get()) is not None:
                send_credit(connection, *credit)
        except (Disconnected, RunError, OSError) as error:
            self._trouble(str(error), device)

    # What the threads share

    def _tell(self) -> None:
        """Wakes the threads that can go on, and grants other devices credits. The caller holds the lock."""
        for fifo, frame in self._book.new_credits():
            if fifo.origin == self.plan.device:
                self._book.credited(fifo.number, frame, fifo.origin)
            else:
                self._credits[fifo.origin].put((fifo.number, frame))
        if next(self._book.runnable(), None):
            self._may_run.notify()
        if self._book.sendable():
            self._may_send.notify()

    def _came(self, fifo: NodeFifo, frame: int, place: memoryview) -> None:
        if fifo.is_result:
            self._leave(fifo, frame, place if fifo.starts else None)
        with self._lock:
            self._book.came(fifo.number, frame)
            self._tell()

    def _leave(self, fifo: NodeFifo, frame: int, written: memoryview | None = None) -> None:
        """Hands out a result: from its slot, unless it was received where it belongs."""
        assert self._outside is not None
        if fifo.starts:
            self._outside.place(fifo.number, frame)[:] = written if written is not None else self._slot(fifo, frame)
        with self._lock:
            if not self._is_closed:  # the next epoch has FIFOs of its own
                self._outside.done(fifo.number, frame)

    def _place(self, fifo: NodeFifo, frame: int) -> memoryview:
        """Where a frame that comes belongs."""
        if fifo.starts:
            return self._slot(fifo, frame)
        assert self._outside is not None
        return self._outside.place(fifo.number, frame)

    def _content(self, fifo: NodeFifo, frame: int) -> memoryview:
        """The bytes of a frame that is sent."""
        if not fifo.is_given:
            return self._slot(fifo, frame)
        assert self._outside is not None
        return self._outside.frame(fifo.number, frame)

    def _slot(self, fifo: NodeFifo, frame: int) -> memoryview:
        start = self._book.slot(fifo.number, frame)
        return self._bytes[start : start + fifo.bytes]

    def _opened(self, device: str, purpose: str) -> socket.socket:
        return self._dial(device, purpose, self._watch)

    def _watch(self, connection: socket.socket) -> None:
        with self._lock:
            if self._is_closed:
                raise Disconnected("the epoch is over")
            self._connections.add(connection)

    @contextmanager
    def _attended(self, connection: socket.socket) -> Iterator[None]:
        """While a connection of another device is served: `close` ends it, and waits for that."""
        with self._lock:
            if self._is_closed:
                raise Disconnected("the epoch is over")
            self._served.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._served.discard(connection)
                self._has_left.notify_all()

    def _trouble(self, what: str, device: str) -> None:
        if not self._is_closed:
            self._report(what, device)

    def _thread(self, name: str, work: Callable[..., None], *given: object) -> None:
        def reported() -> None:
            try:
                work(*given)
            except Exception as error:  # an epoch that stands still without a word would never end
                self._trouble(f"{name} failed: {type(error).__name__}: {error}", "")

        thread = threading.Thread(target=reported, name=f"edgewright-{name}", daemon=True)
        thread.start()
        self._threads.append(thread)


def load_parts(plan: NodePlan, library: Path | None) -> tuple[ctypes.CDLL | None, list[Callable[..., object]]]:
    """The library, and the run function of each part."""
    if not plan.parts:
        return None, []
    assert library is not None
    try:
        loaded = ctypes.CDLL(str(library))
        functions = [loaded[part.function] for part in plan.parts]
    except (OSError, AttributeError) as error:
        raise InputError(f"the library of plan '{plan.name}' cannot be loaded: {error}") from error
    for function in functions:
        function.restype = None
    return loaded, functions  # type: ignore[return-value]


def short(content: memoryview) -> memoryview:
    """Real numbers with 16 bits instead of 32."""
    import numpy as np

    return np.frombuffer(content, np.float32).astype(np.float16).view(np.uint8).data


def receive_short(connection: socket.socket, place: memoryview) -> None:
    """Receives real numbers with 16 bits into memory for 32."""
    import numpy as np

    numbers = np.empty(len(place) // 4, np.float16)
    receive_into(connection, numbers.view(np.uint8).data)
    np.frombuffer(place, np.float32)[:] = numbers
