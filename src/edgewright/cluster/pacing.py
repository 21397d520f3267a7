"""The period of pipeline stages that share devices: while one frame waits for data, the devices compute another.

A few frames are simulated. A device or a port serves who comes first. All that serve the same stages count as one,
which takes as long as the slowest of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from .devices import Port

COUNTED, LAST = 4, 1  # frames whose time counts, and those after them
FRAMES = COUNTED + LAST + 2  # simulated, and one more for each stage


@dataclass(frozen=True, slots=True)
class StageStep:
    """Seconds for which a step of a stage takes each device, by its name, or port."""

    seconds: Mapping[str, float] | Mapping[Port, float]
    is_waited_for: bool = True  # before the stage goes on


def shared_period(stages: Sequence[Sequence[StageStep]], slots: int) -> float:
    """Seconds from frame to frame, with this number of slots between two stages."""
    return _Pacing(_merged(stages), slots).period(len(stages) + FRAMES)


MergedStep = tuple[tuple[tuple[int, float], ...], bool]


def _merged(stages: Sequence[Sequence[StageStep]]) -> list[list[MergedStep]]:
    """Steps with one number for all devices, or ports, that serve the same stages."""
    serves: dict[Hashable, list[int]] = defaultdict(list)
    for number, steps in enumerate(stages):
        for who in dict.fromkeys(who for step in steps for who in step.seconds):
            serves[who].append(number)
    numbers: dict[tuple[bool, tuple[int, ...]], int] = {}
    group = {
        who: numbers.setdefault((isinstance(who, str), tuple(where)), len(numbers)) for who, where in serves.items()
    }
    return [[(_slowest(step, group), step.is_waited_for) for step in steps if step.seconds] for steps in stages]


def _slowest(step: StageStep, group: Mapping[Hashable, int]) -> tuple[tuple[int, float], ...]:
    found: dict[int, float] = {}
    for who, seconds in step.seconds.items():
        if seconds > found.get(group[who], 0.0):
            found[group[who]] = seconds
    return tuple(found.items())


class _Pacing:
    """Stages on their way through some frames."""

    def __init__(self, stages: Sequence[Sequence[MergedStep]], slots: int) -> None:
        self.stages, self.slots = stages, slots
        self.finished = [0] * len(stages)  # frames
        self.runs = [False] * len(stages)
        self.events: list[tuple[float, int, int]] = []  # time, stage, its next step

    def period(self, frames: int) -> float:
        """The mean of the middle frames: stages have settled, and the first ones still work."""
        self._begin(0, 0.0, frames)
        results: list[float] = []
        last = len(self.stages) - 1
        free: dict[int, float] = defaultdict(float)  # when a device or port is next free
        while self.events:
            now, stage, number = heappop(self.events)
            steps = self.stages[stage]
            if number < len(steps):
                uses, is_waited_for = steps[number]
                end = now
                for who, seconds in uses:
                    taken = free[who] = (now if now > free[who] else free[who]) + seconds
                    end = taken if taken > end else end
                heappush(self.events, (end if is_waited_for else now, stage, number + 1))
                continue
            self.finished[stage] += 1
            self.runs[stage] = False
            if stage == last:
                results.append(now)
            for other in (stage - 1, stage, stage + 1):
                if 0 <= other <= last:
                    self._begin(other, now, frames)
        return (results[-1 - LAST] - results[-1 - LAST - COUNTED]) / COUNTED

    def _begin(self, stage: int, now: float, frames: int) -> None:
        """Starts a stage's next frame, if it is there and there is a slot for its results."""
        done = self.finished
        is_given = done[stage] < (done[stage - 1] if stage else frames)
        has_slot = stage + 1 == len(done) or done[stage] - done[stage + 1] < self.slots
        if is_given and has_slot and not self.runs[stage]:
            self.runs[stage] = True
            heappush(self.events, (now, stage, 0))
