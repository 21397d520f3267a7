"""Workers: threads that run parts when their inputs hold a frame and their outputs have a free slot."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import EdgewrightError, RunError
from ..program.deployment import Part, Worker
from .executors import Executor
from .machine import pin
from .ring import FrameSlot, Ring, StreamEnd, StreamState

Starts = dict[int, float]  # when a worker first took each frame in progress


@dataclass
class WorkerTimes:
    """How a worker spent its time, in wall-clock seconds."""

    busy: float = 0.0  # computing
    waiting: float = 0.0  # for a frame to read
    blocked: float = 0.0  # for a slot to write to
    frames: int = 0
    is_pinned: bool = False

    def plus(self, other: WorkerTimes) -> WorkerTimes:
        """The sum of both."""
        return WorkerTimes(
            self.busy + other.busy,
            self.waiting + other.waiting,
            self.blocked + other.blocked,
            self.frames + other.frames,
            other.is_pinned,
        )


@dataclass(frozen=True)
class BoundPart:
    """A part of one worker: its executor, and the rings that it reads and writes."""

    part: Part
    executor: Executor
    reads: tuple[Ring, ...]
    writes: tuple[Ring, ...]


class WorkerThread(threading.Thread):
    """A thread that processes its frames in order until the last one, or until the stream is stopped."""

    def __init__(self, worker: Worker, parts: Sequence[BoundPart], state: StreamState, starts: Starts) -> None:
        super().__init__(name=f"edgewright-{worker.name}", daemon=True)
        self.worker, self.times = worker, WorkerTimes()
        self._parts, self._state, self._starts = parts, state, starts

    def run(self) -> None:
        self.times.is_pinned = pin(self.worker.cores)
        frame, step = self.worker.replica
        try:
            while True:
                for bound in self._parts:
                    self._fire(bound, frame)
                self.times.frames += 1
                frame += step
        except StreamEnd:
            pass
        except BaseException as error:  # whatever ends this thread ends the stream
            self._state.stop(error)

    def _fire(self, bound: BoundPart, frame: int) -> None:
        times, clock = self.times, time.perf_counter
        began = clock()
        with self._state.lock:
            inputs = [ring.wait_for_frame(frame) for ring in bound.reads]
            there = clock()
            self._starts.setdefault(frame, there)
            outputs = [ring.wait_for_slot(frame) for ring in bound.writes]
        ready = clock()
        try:
            bound.executor.run(inputs, outputs)
        except Exception as error:
            text = str(error).strip() or type(error).__name__
            said = text if isinstance(error, EdgewrightError) else f"{type(error).__name__}: {text}"
            raise RunError(f"frame {frame} failed in {bound.part.where}: {said[:500]}") from error
        done = clock()
        with self._state.lock:
            for ring in bound.writes:
                ring.put(frame)
            for ring in bound.reads:
                ring.release(frame)
        times.waiting += there - began
        times.blocked += ready - there
        times.busy += done - ready


class Feeder(threading.Thread):
    """Puts frames from outside into the rings as slots become free.

    A source that blocks forever cannot be interrupted: its thread ends when it returns its next frame.
    """

    def __init__(
        self,
        state: StreamState,
        rings: Sequence[Ring],
        frames: Iterator[Any],
        write: Callable[[int, Any, list[FrameSlot]], None],
    ) -> None:
        super().__init__(name="edgewright-source", daemon=True)
        self._state, self._rings, self._frames, self._write = state, rings, frames, write

    def run(self) -> None:
        frame = 0
        try:
            while True:
                self._slots(frame)  # no frame is taken before there is a slot for it
                try:
                    value = next(self._frames)
                except StopIteration:
                    self._state.finish(frame)
                    return
                # Checked again, because the stream may have been stopped meanwhile.
                self._write(frame, value, self._slots(frame))
                with self._state.lock:
                    for ring in self._rings:
                        ring.put(frame)
                frame += 1
        except StreamEnd:
            pass
        except BaseException as error:
            self._state.stop(error)

    def _slots(self, frame: int) -> list[FrameSlot]:
        with self._state.lock:
            return [ring.wait_for_slot(frame) for ring in self._rings]
