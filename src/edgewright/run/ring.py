"""Rings: bounded FIFOs whose slots are the buffers that parts read and write; nothing is copied.

Frame f lies in slot f mod the number of slots, whoever computes it, so replicas need no restoring of order. Whoever
writes frame f waits until frame f - slots has been read by all readers: that is the back-pressure.
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
    """Nothing more will come: the last frame is through, or the run has been stopped."""


@dataclass(frozen=True)
class FrameSlot:
    """Memory for one tensor of one frame."""

    array: Array
    address: int


class MemoryBlock:
    """Zeroed memory from the system, at a page; given back as a whole."""

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
    """What rings and workers of a stream share: a lock, how many frames there are, whether it was stopped, and why."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    frames: int | None = None  # None until the source has ended
    stopped: bool = False
    error: BaseException | None = None
    _rings: list[Ring] = field(default_factory=list)

    def finish(self, frames: int) -> None:
        """There are so many frames, and no more."""
        with self.lock:
            self.frames = frames
            self._wake()

    def stop(self, error: BaseException | None = None) -> None:
        """Everybody ends now. The first error is the one that counts."""
        with self.lock:
            if not self.stopped and error is not None:
                self.error = error
            self.stopped = True
            self._wake()

    def check(self, frame: int) -> None:
        """Called with the lock held: ends whoever waits for a frame that will not come."""
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
    """A bounded FIFO, by frame numbers. All methods are called with the stream's lock held."""

    def __init__(self, state: StreamState, slots: Sequence[FrameSlot], readers: int) -> None:
        self._state, self._slots, self._readers = state, slots, readers
        self.readable, self.writable = threading.Condition(state.lock), threading.Condition(state.lock)
        self._written = [-1] * len(slots)  # the frame that lies in each slot, complete
        self._awaited = list(range(len(slots)))  # the frame that each slot is free for, or will be
        self._left = [0] * len(slots)  # readers who have not read it
        self._done = [0.0] * len(slots)  # when it was complete

    def wait_for_frame(self, frame: int) -> FrameSlot:
        """The slot in which the frame lies, once it does."""
        index = frame % len(self._slots)
        while self._written[index] != frame or self._state.stopped:
            self._state.check(frame)
            self.readable.wait()
        return self._slots[index]

    def wait_for_slot(self, frame: int) -> FrameSlot:
        """The slot that the frame may be written to, once all have read what lay there."""
        index = frame % len(self._slots)
        while self._left[index] or self._awaited[index] != frame or self._state.stopped:
            self._state.check(frame)
            self.writable.wait()
        return self._slots[index]

    def put(self, frame: int) -> None:
        """The frame is complete: all readers may read it."""
        index = frame % len(self._slots)
        assert self._awaited[index] == frame and not self._left[index], f"frame {frame} was put twice"
        self._written[index], self._left[index] = frame, self._readers
        self._awaited[index] = frame + len(self._slots)
        self._done[index] = time.perf_counter()
        self.readable.notify_all()

    def release(self, frame: int) -> None:
        """One reader has read the frame. When all have, its slot is free."""
        index = frame % len(self._slots)
        assert self._written[index] == frame and self._left[index], f"frame {frame} was released too often"
        self._left[index] -= 1
        if not self._left[index]:
            self.writable.notify_all()

    def done(self, frame: int) -> float:
        """When the frame was complete; it must still lie in its slot."""
        return self._done[frame % len(self._slots)]
