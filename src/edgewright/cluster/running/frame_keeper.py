"""The frames under way, kept until their results are there, and the results as they come together."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping

import numpy as np

from ...errors import InputError
from ...network.parts import TensorRegion
from ...network.tensor import Array, Tensor
from ..node.node_plan import Number
from .prepared_plan import PreparedPlan

REMEMBERED = 10_000  # frames whose times are known
Frame = Mapping[str, Array] | Array


class FrameKeeper:
    """The outside world of the gateway: it survives epochs, which number FIFOs each in their own way."""

    def __init__(self, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.changed = threading.Condition()
        self.admitted = self.finished = 0  # the next frame that has not come, and the first without its result
        self.taken = 0  # results that were handed over
        self.most_kept = 0  # bytes of frames under way, at any time so far
        self.first_finished: float | None = None  # when the first result came since the coordinator set it to None
        self._frames: dict[int, dict[str, Array]] = {}
        self._results: dict[int, dict[str, Array]] = {}
        self._left: dict[int, set[Number]] = {}  # results that are still to come
        self._pieces: dict[tuple[Number, int], Array] = {}  # of results that are not whole tensors
        self._given: Mapping[Number, TensorRegion] = {}
        self._expected: Mapping[Number, TensorRegion] = {}
        self.came: dict[int, float] = {}  # when each frame was admitted
        self.latencies: deque[float] = deque(maxlen=REMEMBERED)
        self.finish_times: deque[float] = deque(maxlen=REMEMBERED)

    # Used by the source of frames and the reader of results

    def admit(self, values: Frame) -> None:
        frame = self._checked(values)
        with self.changed:
            self._frames[self.admitted] = frame
            kept = sum(value.nbytes for each in self._frames.values() for value in each.values())
            self.most_kept = max(self.most_kept, kept)
            self._left[self.admitted] = set(self._expected)
            self.came[self.admitted] = time.monotonic()
            self.admitted += 1
            self.changed.notify_all()

    def take(self) -> dict[str, Array]:
        """The result of the next frame, which is there."""
        with self.changed:
            result = self._results.pop(self.taken)
            self.taken += 1
            self.changed.notify_all()
        return result

    def _checked(self, values: Frame) -> dict[str, Array]:
        number, names = self.admitted, list(self.inputs)
        if not isinstance(values, Mapping):
            if len(names) != 1:
                raise InputError(f"frame {number} is one array; expected a mapping with {', '.join(names)}")
            values = {names[0]: values}
        found = {}
        for name, tensor in self.inputs.items():
            value = np.asarray(values[name]) if name in values else None
            if value is None or value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
                got = "nothing" if value is None else f"{value.dtype} of shape {value.shape}"
                raise InputError(
                    f"frame {number}: input '{name}' must be {tensor.dtype.value} of shape {tensor.shape}, got {got}"
                )
            found[name] = np.array(value, order="C")  # a copy: the caller may use his array again
        return found

    # Used by the coordinator

    def begin(self, plan: PreparedPlan) -> int:
        """A new epoch: the frame that it begins with, the first without a result."""
        with self.changed:
            self._given, self._expected = plan.given, plan.results
            self._pieces.clear()
            for frame in range(self.finished, self.admitted):
                self._results.pop(frame, None)
                self._left[frame] = set(plan.results)
            return self.finished

    # Used by the engine (`Outside`)

    def frame(self, fifo: Number, frame: int) -> memoryview:
        what = self._given[fifo]
        return _bytes(np.ascontiguousarray(self._frames[frame][what.tensor][what.region.slices]))

    def place(self, fifo: Number, frame: int) -> memoryview:
        with self.changed:
            what = self._expected[fifo]
            tensor = self.outputs[what.tensor]
            whole = self._results.setdefault(frame, {})
            if what.tensor not in whole:
                whole[what.tensor] = np.empty(tensor.shape, tensor.dtype.numpy)
            if what.region.shape == tensor.shape:
                return _bytes(whole[what.tensor])
            piece = self._pieces.setdefault((fifo, frame), np.empty(what.region.shape, tensor.dtype.numpy))
            return _bytes(piece)

    def done(self, fifo: Number, frame: int) -> None:
        with self.changed:
            what = self._expected[fifo]
            piece = self._pieces.pop((fifo, frame), None)
            if piece is not None:
                self._results[frame][what.tensor][what.region.slices] = piece
            self._left[frame].discard(fifo)
            while self.finished < self.admitted and not self._left[self.finished]:
                self._finish()

    def _finish(self) -> None:
        number = self.finished
        now = time.monotonic()
        self.latencies.append(now - self.came.pop(number))
        self.finish_times.append(now)
        self.first_finished = self.first_finished or now
        del self._frames[number], self._left[number]
        self.finished += 1
        self.changed.notify_all()


def _bytes(value: Array) -> memoryview:
    return value.reshape(-1).view(np.uint8).data
