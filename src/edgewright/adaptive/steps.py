"""The steps of one frame of a scenario: processor, time and bytes of each.

Transitions, delays and layouts are computed on this model. `planned` builds it from plans.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..errors import InputError

Span = tuple[str, int, int]  # a memory, its first byte and one past the last


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """A layer, a stage of a plan, or a turn of a stage. Bytes are bit masks over the cells of a common arena."""

    name: str
    time: float  # in any unit; integers and fractions stay exact
    processor: int  # logical, from 0
    after: tuple[int, ...]  # earlier steps whose results it needs; on one processor, steps run in the order listed
    reads: int
    writes: int
    buffers: tuple[tuple[str, int], ...] = ()  # accesses by buffer, for messages

    @property
    def touches(self) -> int:
        return self.reads | self.writes

    def buffer_at(self, cells: int) -> str | None:
        """The first of its buffers that has one of these cells."""
        return next((name for name, mask in self.buffers if mask & cells), None)


@dataclass(frozen=True)
class Scenario:
    """The steps of one frame.

    The next frame begins `period` later if the scenario is pipelined, else when the frame has ended. Every frame of a
    pipelined scenario does the same steps on the same bytes, a period after the previous one.
    """

    name: str
    steps: tuple[ScenarioStep, ...]
    period: float | None = None
    # By count of ended steps, for a scenario on one processor: the bytes whose values the rest of the frame reads. None
    # if reads and writes are exact, so that it follows from them.
    known_live: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.steps:
            raise InputError(f"scenario '{self.name}' has no steps: give it at least one layer")
        for at, step in enumerate(self.steps):
            if step.time < 0 or step.processor < 0 or not all(0 <= other < at for other in step.after):
                raise InputError(
                    f"step '{step.name}' of scenario '{self.name}' needs a time and a processor from 0, and may only "
                    "come after earlier steps"
                )
        if self.period is not None and self.period < self.shortest_period:
            raise InputError(
                f"scenario '{self.name}' cannot begin a frame every {self.period}: a processor is in use for "
                f"{self.shortest_period} per frame; give it at least that"
            )

    @cached_property
    def processors(self) -> int:
        return 1 + max(step.processor for step in self.steps)

    @cached_property
    def queues(self) -> tuple[tuple[int, ...], ...]:
        """The steps of each processor, in order."""
        found: list[list[int]] = [[] for _ in range(self.processors)]
        for at, step in enumerate(self.steps):
            found[step.processor].append(at)
        return tuple(map(tuple, found))

    @cached_property
    def starts(self) -> tuple[float, ...]:
        """The start of each step of a frame that begins at 0: as soon as its processor and its inputs are ready."""
        free: list[float] = [0] * self.processors
        starts: list[float] = []
        ends: list[float] = []
        for step in self.steps:
            start = free[step.processor]
            for other in step.after:
                if ends[other] > start:
                    start = ends[other]
            starts.append(start)
            ends.append(start + step.time)
            free[step.processor] = start + step.time
        return tuple(starts)

    @cached_property
    def ends(self) -> tuple[float, ...]:
        return tuple(start + step.time for start, step in zip(self.starts, self.steps, strict=True))

    @cached_property
    def ends_by_count(self) -> tuple[tuple[float, ...], ...]:
        """For each processor and each count of its steps: when that many have ended."""
        return tuple((0, *(self.ends[at] for at in queue)) for queue in self.queues)

    @cached_property
    def latency(self) -> float:
        """From the beginning of a frame to its result."""
        return max(self.ends)

    @cached_property
    def shortest_period(self) -> float:
        """The least period at which each frame runs as if it were alone."""
        queues = (queue for queue in self.queues if queue)
        return max(self.ends[queue[-1]] - self.starts[queue[0]] for queue in queues)

    @property
    def interval(self) -> float:
        """From the beginning of a frame to that of the next."""
        return self.latency if self.period is None else min(self.period, self.latency)

    @cached_property
    def tails(self) -> tuple[float, ...]:
        """The least time from the start of each step to the end of the frame: the longest path that begins with it."""
        tails: list[float] = [0] * len(self.steps)
        following: list[float] = [0] * self.processors
        for at in range(len(self.steps) - 1, -1, -1):
            step = self.steps[at]
            tails[at] = tail = step.time + max(tails[at], following[step.processor])
            following[step.processor] = tail
            for other in step.after:
                tails[other] = max(tails[other], tail)
        return tuple(tails)

    @cached_property
    def writes(self) -> int:
        """All bytes that a frame writes."""
        mask = 0
        for step in self.steps:
            mask |= step.writes
        return mask

    @cached_property
    def remaining(self) -> tuple[tuple[int, ...], ...]:
        """For each processor and each count of its steps: the bytes that the remaining steps touch."""
        found = []
        for queue in self.queues:
            masks = [0]
            for at in reversed(queue):
                masks.append(masks[-1] | self.steps[at].reads | self.steps[at].writes)
            found.append(tuple(reversed(masks)))
        return tuple(found)

    def steps_until_free(self, processor: int, cells: int) -> int:
        """The number of ended steps of the processor from which on none touches these bytes."""
        remaining = self.remaining[processor]
        return bisect_left(remaining, True, key=lambda mask: not mask & cells)

    @cached_property
    def live(self) -> tuple[int, ...]:
        """By count of ended steps, on one processor: the bytes whose values the rest of the frame reads."""
        if self.known_live is not None:
            return self.known_live
        masks = [0]
        for step in reversed(self.steps):
            masks.append(masks[-1] & ~step.writes | step.reads)
        return tuple(reversed(masks))

    @cached_property
    def critical_arrivals(self) -> tuple[float, ...]:
        """The times within the interval at which some step of a frame in progress starts.

        Under each policy the delay only falls from one of them to the next, so the worst case is at one of them.
        """
        interval = self.interval
        return tuple(sorted({start % interval if interval else start for start in (0, *self.starts)}))

    def running_until(self, arrival: float) -> float:
        """When the last step ends that is running at this time, over all frames in progress."""
        until = frame = arrival
        while frame < self.latency:
            for start, end in zip(self.starts, self.ends, strict=True):
                if start <= frame < end:
                    until = max(until, end - frame + arrival)
            frame += self.interval
        return until


@dataclass(frozen=True)
class CellGrid:
    """Memories divided into cells, such that no span begins or ends inside one: masks of spans are small integers."""

    edges: Mapping[str, tuple[int, ...]]  # by memory: cell boundaries

    @classmethod
    def of(cls, spans: Iterable[Span]) -> CellGrid:
        found: dict[str, set[int]] = {}
        for memory, low, high in spans:
            found.setdefault(memory, set()).update((low, high))
        return cls({memory: tuple(sorted(edges)) for memory, edges in found.items()})

    @cached_property
    def _first(self) -> Mapping[str, int]:
        """The number of each memory's first cell."""
        found, count = {}, 0
        for memory, edges in self.edges.items():
            found[memory] = count
            count += max(0, len(edges) - 1)
        return found

    def mask(self, span: Span) -> int:
        """The cells of a span, which must be one of those that the grid was made of."""
        memory, low, high = span
        edges = self.edges[memory]
        start, stop = bisect_left(edges, low), bisect_left(edges, high)
        return ((1 << (stop - start)) - 1) << (self._first[memory] + start)
