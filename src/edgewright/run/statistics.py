"""The results of running a pipeline: rates, latencies, worker times, and allocated memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .workers import WorkerTimes


@dataclass(frozen=True)
class MemoryUse:
    """Allocated bytes. Weights are counted once, for any number of replicas."""

    arena_bytes: int
    slot_bytes: int
    weights_bytes: int
    estimated_bytes: int = 0  # of runtimes that allocate by themselves: an estimate by the growth of the process


@dataclass(frozen=True)
class RunStatistics:
    """The statistics of one stream's frames."""

    frames: int
    seconds: float  # wall-clock time from the start of the threads to the end of the last one
    frames_per_s: float  # between the first result and the last
    latency_s: float  # median, from when a worker takes a frame to its result
    latency_spread_s: float  # half the distance between the first and the third quartile
    workers: Mapping[str, WorkerTimes]
    memory: MemoryUse

    @property
    def cores_busy(self) -> float:
        """The average number of busy cores."""
        return sum(times.busy for times in self.workers.values()) / self.seconds if self.seconds else 0.0


class FrameLog:
    """When each finished frame was taken and when it was done."""

    def __init__(self) -> None:
        self._taken: list[float] = []
        self._done: list[float] = []

    def add(self, taken: float, done: float) -> None:
        self._taken.append(taken)
        self._done.append(done)

    def statistics(self, seconds: float, workers: Mapping[str, WorkerTimes], memory: MemoryUse) -> RunStatistics:
        done = np.array(self._done)
        latency, spread = median_and_spread(done - np.array(self._taken))
        between = done.max() - done.min() if done.size > 1 else 0.0
        count = done.size - 1
        if not between:  # one frame, or a clock without progress: the whole run
            between, count = seconds, done.size
        rate = count / between if between else 0.0
        return RunStatistics(int(done.size), seconds, float(rate), latency, spread, workers, memory)


def call_times(run: Callable[[], object], count: int, clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Wall-clock seconds of each of `times` calls."""
    times = []
    for _ in range(count):
        start = clock()
        run()
        times.append(clock() - start)
    return times


def median_and_spread(
    values: Sequence[float] | np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> tuple[float, float]:
    """The median, and half the distance between the first and third quartile; zeros for no values."""
    if not len(values):
        return 0.0, 0.0
    low, middle, high = np.percentile(values, (25, 50, 75))
    return float(middle), float(high - low) / 2
