"""How fast a pipeline goes: its partitions on a core each, simulated for a few frames.

Whole frames cross in slots, which a partition gives back at the end of a stage; rows cross in rings, whose two ends
wait for each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from ..errors import Infeasible
from ..program import ROWS, Plan, Step
from ..program.deployment import Fifo
from .members import fifo_name, frame_rows

FRAMES = 8  # of a simulation for each partition, at least three; the second half counts
NEVER = float("inf")


@dataclass(frozen=True)
class RowSteps:
    """The turns of a stage at one end of a ring: the time of each, and the rows produced, or needed, up to its end."""

    times: tuple[float, ...]
    rows: tuple[int, ...]

    @property
    def largest(self) -> int:
        """The most rows that come at once."""
        return max(b - a for a, b in zip((0, *self.rows), self.rows, strict=False))


def pushed_steps(plan: Plan, tensor: str, time: float) -> RowSteps:
    """The producer's last stage: rows made after each turn, none where it makes none."""
    maker = plan.network.producers[tensor].name
    return _steps(
        plan,
        len(plan.program.stages) - 1,
        time,
        lambda step: step.region.bounds[ROWS][1] if step.layer == maker else 0,
    )


def pulled_steps(plan: Plan, tensor: str, time: float) -> RowSteps:
    """The reader's first stage: rows that each turn wants. An error where it does not want all of them."""

    def wanted(step: Step) -> int:
        layer = plan.network.by_name[step.layer]
        needs = zip(layer.inputs, plan.program.needs(step), strict=True)
        return max((region.bounds[ROWS][1] for name, region in needs if name == tensor), default=0)

    found = _steps(plan, 0, time, wanted)
    if found.rows[-1] != plan.network.tensors[tensor].shape[ROWS]:
        raise Infeasible(f"rows of '{tensor}' are left unread: it cannot cross in a ring")
    return found


def _steps(plan: Plan, stage: int, time: float, rows: Callable[[Step], int]) -> RowSteps:
    """Each turn takes its share of the stage's time: by its multiply-accumulates and what it writes."""
    work, ends = [], []
    for turn in plan.program.turns(plan.program.stages[stage]):
        layers = [plan.network.by_name[step.layer] for step in turn]
        macs = (layer.op.macs(s.region, plan.network.shapes(layer)) for s, layer in zip(turn, layers, strict=True))
        work.append(sum(macs) + sum(step.region.size for step in turn))
        ends.append(max((rows(step) for step in turn), default=0))
    return RowSteps(tuple(time * part / max(1, sum(work)) for part in work), tuple(accumulate(ends, max)))


@dataclass(frozen=True)
class PacedMember:
    """A partition as the simulation knows it: the time of each stage, and the rows of its first and of its last."""

    name: str
    times: tuple[float, ...]
    pulled: RowSteps | None = None
    pushed: RowSteps | None = None

    @property
    def run(self) -> float:
        return sum(self.times)

    def slower(self, factor: float) -> PacedMember:
        return replace(self, times=tuple(time * factor for time in self.times))

    def steps(self) -> Iterator[tuple[float, int, int, int]]:
        """The time of each step, the rows that it wants and makes, and the stage that it ends, or else -1."""
        last = len(self.times) - 1
        for stage, time in enumerate(self.times):
            pulled = self.pulled if stage == 0 else None
            pushed = self.pushed if stage == last else None
            ends = pulled or pushed
            shares = ends.times if ends is not None else (1.0,)
            total, count = sum(shares) or 1.0, len(shares)
            for turn, share in enumerate(shares):
                wanted, made = (rows.rows[turn] if rows is not None else 0 for rows in (pulled, pushed))
                yield time * share / total, wanted, made, stage if turn == count - 1 else -1


@dataclass(frozen=True)
class PipelinePace:
    """The partitions of a pipeline, producers first, and what crosses between them.

    `freed` is the stage at whose end a reader lets its producers begin the frame that takes the place of the one that
    it reads; -1 where they may as soon as it has begun.
    """

    members: tuple[PacedMember, ...]
    fifos: tuple[Fifo, ...]
    freed: Mapping[str, int]

    @cached_property
    def rings(self) -> tuple[Fifo, ...]:
        return tuple(fifo for fifo in self.fifos if fifo.rows)

    @property
    def slowest(self) -> float:
        """The time of the slowest partition, which no pipeline beats."""
        return max(member.run for member in self.members)

    def member(self, name: str) -> PacedMember:
        return next(member for member in self.members if member.name == name)

    def with_fifo(self, old: Fifo, new: Fifo) -> PipelinePace:
        return replace(self, fifos=tuple(new if fifo == old else fifo for fifo in self.fifos))

    def giving_back(self, reader: str, stage: int) -> PipelinePace:
        """The pipeline in which a reader gives its slots, or its ring, back at the end of this stage."""
        return replace(self, freed={**self.freed, reader: stage})

    def period(self) -> float:
        """Time between two frames in the long run; infinite where the pipeline deadlocks."""
        return _Simulation(self).period()


class _Simulation:
    """The pipeline simulated step by step: when each partition reached what."""

    def __init__(self, pace: PipelinePace) -> None:
        self.pace = pace
        names = [member.name for member in pace.members]
        self.clock = dict.fromkeys(names, 0.0)
        self.at = dict.fromkeys(names, (0, 0))  # frame and step of each partition
        self.ends: dict[tuple[str, int], float] = {}  # of a partition's frame
        self.freed: dict[tuple[str, int], float] = {}
        # By ring and frame: when each number of rows was reached.
        self.made, self.taken = (defaultdict[tuple[str, int], list[float]](lambda: [0.0]) for _ in range(2))

    def period(self) -> float:
        members = self.pace.members
        frames = FRAMES if self.pace.rings else FRAMES * max(3, len(members))
        steps = {member.name: list(member.steps()) for member in members}
        is_moving = True
        while is_moving:
            is_moving = False
            for member in members:
                while self.at[member.name][0] < frames and self._advance(member.name, steps[member.name]):
                    is_moving = True
        if any(frame < frames for frame, _ in self.at.values()):
            return NEVER
        half = frames // 2
        return max((self.ends[m.name, frames - 1] - self.ends[m.name, half - 1]) / (frames - half) for m in members)

    def _advance(self, name: str, steps: list[tuple[float, int, int, int]]) -> bool:
        """Whether the next step of a partition could be carried out."""
        frame, number = self.at[name]
        time, wanted, made, stage = steps[number]
        causes = list(self._causes(name, frame, number, wanted, made))
        if None in causes:
            return False
        start = max((self.clock[name], *(cause for cause in causes if cause is not None)))
        end = self.clock[name] = start + time
        freed = self.pace.freed.get(name, len(steps))
        if freed < 0 and number == 0:
            self.freed[name, frame] = start
        if stage >= 0 and stage == freed:
            self.freed[name, frame] = end
        for ring in self.pace.rings:
            if name == ring.source:
                _extend(self.made[fifo_name(ring), frame], made, end)
            elif name in ring.reading:
                _extend(self.taken[fifo_name(ring), frame], wanted, start)
        is_last = number + 1 == len(steps)
        if is_last:
            self.ends[name, frame] = end
            self.freed.setdefault((name, frame), end)
        self.at[name] = (frame + 1, 0) if is_last else (frame, number + 1)
        return True

    def _causes(self, name: str, frame: int, number: int, wanted: int, made: int) -> Iterator[float | None]:
        """When each thing that a step waits for has come about; None where that is not known."""
        for one in self.pace.fifos:
            readers = one.reading
            if name == one.source:
                if number == 0 and frame >= one.slots:
                    yield from (self.freed.get((reader, frame - one.slots)) for reader in readers)
                if one.rows and made:
                    yield self._room(one, frame, made)
            elif name in readers and one.rows:
                rows = self.made[fifo_name(one), frame]
                yield rows[wanted] if wanted < len(rows) else None
            elif name in readers and number == 0:
                yield self.ends.get((one.source, frame))

    def _room(self, ring: Fifo, frame: int, made: int) -> float | None:
        """When so many rows fit: the ring holds no more than it has, and none of the frame before."""
        if made < len(self.made[fifo_name(ring), frame]):
            return 0.0  # they are there
        wanted = made - ring.rows
        if wanted <= 0:
            before = self.taken[fifo_name(ring), frame - 1]
            return 0.0 if frame == 0 else before[-1] if len(before) > frame_rows(ring) else None
        taken = self.taken[fifo_name(ring), frame]
        return taken[wanted] if wanted < len(taken) else None


def _extend(moments: list[float], rows: int, at: float) -> None:
    """Notes the moment for each row that was not there before."""
    moments += [at] * (rows + 1 - len(moments))
