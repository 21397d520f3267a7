"""The bytes that a plan touches, turn by turn, from its buffers, views and row windows.

The judge of transitions instead follows the plan byte by byte (`plan_check`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import prod

from ..errors import InputError
from ..network import Region
from ..program import Plan, Stage, Step, sums_name

Hull = tuple[int, int]  # the first byte of a buffer that is touched, and one past the last
Hulls = Mapping[str, Hull]  # by buffer
EMPTY: Hulls = {}


@dataclass(frozen=True, slots=True)
class PlanTurn:
    """The accesses of a plan between two possible interruptions."""

    stage: int
    turn: int
    time: float
    reads: Hulls
    writes: Hulls
    live: Hulls = field(default_factory=dict)  # at its end: bytes with values that are read later


@dataclass(frozen=True)
class PlanTurns:
    """The turns of a plan, independent of the addresses of its buffers."""

    turns: tuple[PlanTurn, ...]
    filled: tuple[str, ...]  # inputs that the caller writes before the first turn

    @classmethod
    def of(
        cls,
        plan: Plan,
        pieces: Sequence[Sequence[float]],
        is_by_rows: bool = True,
        filled: Collection[str] | None = None,
    ) -> PlanTurns:
        """`pieces` are the times of each stage: turn by turn and the rest (`RunPieces.stages`). Whole stages, unless
        `is_by_rows`. The caller fills all inputs, unless others are given, and takes the outputs in the last turn.
        """
        walk = _PlanWalk(plan)
        inputs = [x for x in plan.network.inputs if x in plan.views and x not in plan.pulled]
        copied = tuple(x for x in inputs if filled is None or x in filled)
        results = [x for x in plan.network.outputs if x in plan.views and not plan.is_by_rows(x)]
        stages = range(len(plan.program.stages))
        turns = [turn for stage in stages for turn in walk.turns(stage, pieces[stage], is_by_rows)]
        if not turns:
            raise InputError(f"network '{plan.network.name}' executes nothing: leave it out of the scenarios")
        turns[0] = replace(turns[0], writes=joined((turns[0].writes, *map(walk.whole, copied))))
        turns[-1] = replace(turns[-1], reads=joined((turns[-1].reads, *map(walk.whole, results))))
        written = accumulate((walk.values(turn.writes) for turn in turns), _both)
        read = [*accumulate((turn.reads for turn in reversed(turns[1:])), _both)][::-1]
        lives = map(_common, written, [*read, EMPTY])
        return cls(tuple(replace(turn, live=live) for turn, live in zip(turns, lives, strict=True)), copied)


class _PlanWalk:
    """The bytes that the steps of a plan touch: for each buffer, from the first to the last."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.network = plan, plan.network
        self._values = {view.buffer for view in plan.views.values()}
        sums = {sums_name(layer) for stage in plan.program.stages for layer in plan.program.partial(stage)}
        self._values |= sums & plan.buffer_named.keys()

    def values(self, hulls: Hulls) -> Hulls:
        """The buffers with values; scratch holds nothing between two turns."""
        return {name: hull for name, hull in hulls.items() if name in self._values}

    def turns(self, number: int, pieces: Sequence[float], is_by_rows: bool) -> Iterator[PlanTurn]:
        """The turns of a stage, without their live bytes."""
        stage = self.plan.program.stages[number]
        turns = self._steps(stage)
        if not is_by_rows or len(turns) != len(pieces) - 1:
            turns, times = [[step for turn in turns for step in turn]], [sum(pieces)]
        else:
            times = [*pieces[:-2], pieces[-2] + pieces[-1]]
        work = self._working_memory(number, stage)
        for at, (steps, time) in enumerate(zip(turns, times, strict=True)):
            reads = joined(hulls for step in steps for hulls in self._reads(step))
            writes = joined((work, *(hulls for step in steps for hulls in self._writes(step))))
            yield PlanTurn(number, at, time, joined((reads, self._sums(stage))), writes)

    def _steps(self, stage: Stage) -> list[Sequence[Step]]:
        program = self.plan.program
        if stage.schedule.lanes > 1:
            return [[step for lane in range(stage.schedule.lanes) for step in program.lane_steps(stage, lane)]]
        return [*program.turns(stage)] or [()]

    def _working_memory(self, number: int, stage: Stage) -> Hulls:
        """What a stage may write at any time: its scratch, and its sums with the outputs that they become."""
        held = [b for b in self.plan.buffers if b.first <= number <= b.last and b.name not in self._values]
        return joined(({b.name: (0, b.size) for b in held}, self._sums(stage)))

    def _sums(self, stage: Stage) -> Hulls:
        found: list[Hulls] = []
        for layer in self.plan.program.partial(stage):
            found.append(self.whole(self.network.by_name[layer].output))
            if (buffer := self.plan.buffer_named.get(sums_name(layer))) is not None:
                found.append({buffer.name: (0, buffer.size)})
        return joined(found)

    def _reads(self, step: Step) -> Iterator[Hulls]:
        layer = self.network.by_name[step.layer]
        for name, region in zip(layer.inputs, self.plan.program.needs(step), strict=True):
            if name in self.plan.views and not region.is_empty:
                yield self._hull(name, region)

    def _writes(self, step: Step) -> Iterator[Hulls]:
        layer = self.network.by_name[step.layer]
        yield self._hull(layer.output, step.region)
        for name in layer.inputs:
            if name in self.plan.pulled:  # rows arrive in its window
                yield self.whole(name)

    def whole(self, name: str) -> Hulls:
        return self._hull(name, Region.whole(self.network.tensors[name].shape))

    def _hull(self, name: str, region: Region) -> Hulls:
        """The whole buffer if it holds a rolling window, tiles, or parts of several lanes."""
        view, tensor = self.plan.views[name], self.network.tensors[name]
        buffer = self.plan.buffer_named[view.buffer]
        if view.window is not None or view.tiled or buffer.lanes > 1:
            return {view.buffer: (0, buffer.size)}
        if not prod(region.shape):
            return EMPTY
        ends = [(low * by, (high - 1) * by) for (low, high), by in zip(region.bounds, view.strides, strict=True)]
        low, high = view.offset + sum(end[0] for end in ends), view.offset + sum(end[1] for end in ends)
        return {view.buffer: (low, high + tensor.dtype.bytes)}


def joined(hulls: Iterable[Hulls]) -> Hulls:
    """By buffer, the bounding interval."""
    found: dict[str, Hull] = {}
    for each in hulls:
        for name, (low, high) in each.items():
            before = found.get(name, (low, high))
            found[name] = min(low, before[0]), max(high, before[1])
    return found


def _both(a: Hulls, b: Hulls) -> Hulls:
    return joined((a, b))


def _common(a: Hulls, b: Hulls) -> Hulls:
    found = {name: (max(low, b[name][0]), min(high, b[name][1])) for name, (low, high) in a.items() if name in b}
    return {name: (low, high) for name, (low, high) in found.items() if low < high}
