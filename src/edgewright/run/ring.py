"""Rings: bounded FIFOs whose slots are the buffers that parts read and write, without copies.

Frame f lies in slot f mod the number of slots, whichever worker computes it, so replicas need no reordering. The writer
of frame f waits until all readers have read frame f - slots: that is the back-pressure.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError
from ..network.tensor import Array, Tensor


class StreamEnd(Exception):
    """No more frames: the last one is done, or the run was stopped."""


@dataclass(frozen=True)
class FrameSlot:
    """Memory for one tensor of one frame."""

    array: Array
    address: int


class MemoryBlock:
    """Zeroed, page-aligned memory from the system; released as a whole."""

    def __init__(self, size: int) -> None:
        self.size = size
        try:
            self._memory = mmap.mmap(-1, max(size, 1))
        except (OSError, OverflowError, ValueError) as error:
            raise InputError(f"slots and arenas take {size} bytes, which this machine does not give") from error
        self._bytes = np.frombuffer(self._memory, np.uint8)

    def piece(self, start: int, size: int) -> Array:
        assert 0 <= start <= start + size <= self.size, "the block was made for less"
        return self._bytes[start : start + size]

    def slot(self, start: int, tensor: Tensor) -> FrameSlot:
        """The bytes from `start` on as a tensor."""
        piece, kind = self.piece(start, tensor.bytes), tensor.dtype.numpy
        array = np.ndarray(tensor.shape, kind, piece.data) if piece.size else np.empty(tensor.shape, kind)
        return FrameSlot(array, array.ctypes.data)


@dataclass
class StreamState:
    """The state shared by rings and workers of a stream: a lock, the number of frames, whether it was stopped, and
    why."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    frames: int | None = None  # None until the source has ended
    stopped: bool = False
    error: BaseException | None = None
    _rings: list[Ring] = field(default_factory=list)

    def finish(self, frames: int) -> None:
        """Sets the final number of frames."""
        with self.lock:
            self.frames = frames
            self._wake()

    def stop(self, error: BaseException | None = None) -> None:
        """Stops all threads; the first error is kept."""
        with self.lock:
            if not self.stopped and error is not None:
                self.error = error
            self.stopped = True
            self._wake()

    def check(self, frame: int) -> None:
        """Ends a thread that waits for a frame that will not come. Needs the lock."""
        if self.stopped or (self.frames is not None and frame >= self.frames):
            raise StreamEnd

    def _wake(self) -> None:
        for ring in self._rings:
            ring.readable.notify_all()
            ring.writable.notify_all()

    def ring(self, slots: Sequence[FrameSlot], readers: int) -> Ring:
        made = Ring(self, slots, readers)
        self._rings.append(made)
        return made


class Ring:
    """A bounded FIFO, by frame numbers. All methods need the stream's lock."""

    def __init__(self, state: StreamState, slots: Sequence[FrameSlot], readers: int) -> None:
        self._state, self._slots, self._readers = state, slots, readers
        self.readable, self.writable = threading.Condition(state.lock), threading.Condition(state.lock)
        self._written = [-1] * len(slots)  # the complete frame in each slot
        self._awaited = list(range(len(slots)))  # the frame that each slot is, or will be, free for
        self._left = [0] * len(slots)  # number of readers that have not read it
        self._done = [0.0] * len(slots)  # time of completion

    def wait_for_frame(self, frame: int) -> FrameSlot:
        """Waits for the frame and returns its slot."""
        index = frame % len(self._slots)
        while self._written[index] != frame or self._state.stopped:
            self._state.check(frame)
            self.readable.wait()
        return self._slots[index]

    def wait_for_slot(self, frame: int) -> FrameSlot:
        """Waits until the frame's slot is free and returns it."""
        index = frame % len(self._slots)
        while self._left[index] or self._awaited[index] != frame or self._state.stopped:
            self._state.check(frame)
            self.writable.wait()
        return self._slots[index]

    def put(self, frame: int) -> None:
        """Marks the frame as complete, so that readers may read it."""
        index = frame % len(self._slots)
        assert self._awaited[index] == frame and not self._left[index], f"frame {frame} was put twice"
        self._written[index], self._left[index] = frame, self._readers
        self._awaited[index] = frame + len(self._slots)
        self._done[index] = time.perf_counter()
        self.readable.notify_all()

    def release(self, frame: int) -> None:
        """Marks the frame as read by one reader; after the last one its slot is free."""
        index = frame % len(self._slots)
        assert self._written[index] == frame and self._left[index], f"frame {frame} was released too often"
        self._left[index] -= 1
        if not self._left[index]:
            self.writable.notify_all()

    def done(self, frame: int) -> float:
        """The time at which the frame, which must still be in its slot, was complete."""
        return self._done[frame % len(self._slots)]
