"""The steps of real plans: each stage, or each turn of a stage, with its share of the time and the bytes that it takes.

Which bytes those are follows from the plan's own buffers, views and row windows. The judge of transitions follows the
plan byte by byte instead (`plan_check`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod

from ..errors import InputError
from ..network import Region
from ..program import Plan, Stage, Step, sums_name
from ..program.deployment import OUTSIDE, Deployment
from .steps import CellGrid, Scenario, ScenarioStep, Span

Hull = tuple[int, int]  # the first byte of a buffer that is touched, and one past the last
Hulls = Mapping[str, Hull]  # by buffer
Place = tuple[str, int]  # a memory that scenarios share, and the byte where something begins in it
EMPTY: Hulls = {}


@dataclass(frozen=True, slots=True)
class PlanTurn:
    """What a plan does between two points at which it may be interrupted."""

    stage: int
    turn: int
    time: float
    reads: Hulls
    writes: Hulls
    live: Hulls  # at its end: bytes that hold values which are read later


@dataclass(frozen=True)
class PlanTurns:
    """The turns of a plan. They do not depend on where its buffers lie."""

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
        `is_by_rows`. The caller fills all inputs, unless others are given, and takes the outputs in the last turn."""
        walk = _PlanWalk(plan)
        ends = [x for x in plan.network.inputs if x in plan.views and (filled is None or x in filled)]
        copied = tuple(x for x in ends if x not in plan.pulled)
        turns = [
            turn
            for stage in range(len(plan.program.stages))
            for turn in walk.turns(stage, pieces[stage], is_by_rows)
        ]  # fmt: skip
        if not turns:
            raise InputError(f"network '{plan.network.name}' executes nothing: leave it out of the scenarios")
        first = joined((turns[0][3], *(walk.whole(name) for name in copied)))
        last = joined((turns[-1][2], *(walk.whole(name) for name in walk.results)))
        turns[0] = (*turns[0][:3], first)
        turns[-1] = (*turns[-1][:2], last, turns[-1][3])
        written = accumulate((walk.values(turn[3]) for turn in turns), _both)
        read = [*accumulate((turn[2] for turn in reversed(turns[1:])), _both)][::-1]
        lives = (_common(before, after) for before, after in zip(written, [*read, EMPTY], strict=True))
        return cls(
            tuple(
                PlanTurn(*place, time, reads, writes, live)
                for (place, time, reads, writes), live in zip(turns, lives, strict=True)
            ),
            copied,
        )


@dataclass(frozen=True)
class PlannedPart:
    """A plan, and where it runs. Its memories are shared with other scenarios, at the places given or else at 0."""

    name: str
    plan: Plan
    turns: PlanTurns
    processor: int = 0
    after: tuple[int, ...] = ()  # earlier parts whose results it reads
    beside: tuple[int, ...] = ()  # earlier parts from which it takes rows while they run
    places: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)  # of each memory, several for FIFO slots

    def places_of(self, memory: str) -> tuple[Place, ...]:
        if memory in self.places:
            return self.places[memory]
        return () if memory in self.plan.slots else ((memory, 0),)

    def spans(self, hulls: Hulls) -> Iterator[tuple[str, Span]]:
        """The bytes of the common memories, with the buffers that they are of."""
        for name, (low, high) in hulls.items():
            buffer = self.plan.buffer_named[name]
            for memory, base in self.places_of(buffer.memory):
                yield name, (memory, base + buffer.offset + low, base + buffer.offset + high)


@dataclass(frozen=True)
class PlannedScenario:
    """A scenario with the plans that it was made from."""

    scenario: Scenario
    parts: tuple[PlannedPart, ...]
    labels: tuple[tuple[int, int, int], ...]  # of each step: its part, stage and turn

    @property
    def name(self) -> str:
        return self.scenario.name


def planned_scenarios(
    parts: Mapping[str, Sequence[PlannedPart]], periods: Mapping[str, float] | None = None
) -> dict[str, PlannedScenario]:
    """The scenario of each name, all over the cells of one grid. Pipelined ones have a period."""
    grid = CellGrid.of(
        span
        for those in parts.values()
        for part in those
        for turn in part.turns.turns
        for hulls in (turn.reads, turn.writes, turn.live)
        for _, span in part.spans(hulls)
    )
    return {name: _scenario(name, tuple(those), grid, (periods or {}).get(name)) for name, those in parts.items()}


def _scenario(name: str, parts: tuple[PlannedPart, ...], grid: CellGrid, period: float | None) -> PlannedScenario:
    steps: list[ScenarioStep] = []
    labels: list[tuple[int, int, int]] = []
    lives = [0]
    ends: list[tuple[int, int]] = []  # the first and the last step of each part
    for at, part in enumerate(parts):
        first, last = len(steps), len(steps) + len(part.turns.turns) - 1
        ends.append((first, last))
        for turn in part.turns.turns:
            own = dict[str, int]()
            masks = []
            for hulls in (turn.reads, turn.writes):
                named = [(buffer, grid.mask([span])) for buffer, span in part.spans(hulls)]
                for buffer, mask in named:
                    own[buffer] = own.get(buffer, 0) | mask
                masks.append(_union(mask for _, mask in named))
            before = [ends[other][1] for other in part.after] if len(steps) == first else []
            before += [ends[other][0] for other in part.beside] if len(steps) == first else []
            before += [ends[other][1] for other in part.beside] if len(steps) == last else []
            stage = part.plan.program.stages[turn.stage].name
            title = f"{stage}, turn {turn.turn}" if turn.turn else stage
            steps.append(ScenarioStep(title, turn.time, part.processor, tuple(before), *masks, tuple(own.items())))
            labels.append((at, turn.stage, turn.turn))
            lives.append(_union(grid.mask([span]) for _, span in part.spans(turn.live)))
    known_live = tuple(lives) if len(parts) == 1 else None
    return PlannedScenario(Scenario(name, tuple(steps), period, known_live), parts, tuple(labels))


def parts_of_deployment(
    deployment: Deployment, pieces: Mapping[str, Sequence[Sequence[float]]], is_by_rows: bool = True
) -> tuple[PlannedPart, ...]:
    """The parts of a pipeline, each worker a processor, in its arenas. `pieces` are times of stages by part.

    A FIFO with several slots counts as touched in all of them. The outside world brings a frame before the first step
    and takes its results in the last one. Replicas are refused: their frames are not alike.
    """
    processors = {worker.name: at for at, worker in enumerate(deployment.workers)}
    numbers: dict[str, int] = {}
    found: list[PlannedPart] = []
    todo = [part.name for part in deployment.parts]
    while todo:
        name = next(name for name in todo if _sources(deployment, name) <= numbers.keys())
        todo.remove(name)
        plan, workers = deployment.part_named[name].plan, deployment.workers_of[name]
        if plan is None or len(workers) != 1:
            raise InputError(
                f"part '{name}' has {len(workers)} workers and {'no' if plan is None else 'a'} plan; a scenario is made "
                "of parts with one worker and a plan: map it without replicas, to processors that run our own code"
            )
        worker = workers[0]
        places: dict[str, tuple[Place, ...]] = {
            memory: ((f"{worker.device} {memory}", deployment.arenas[worker.device, memory].workers[worker.name]),)
            for memory in plan.arenas
        }
        for own, fifo in (*deployment.reads[name].items(), *deployment.writes[name].items()):
            slots = [
                (f"{device} {memory}", at)
                for (device, memory), layout in deployment.arenas.items()
                if device == worker.device
                for at in layout.slots.get(fifo.what, ())
            ]
            places[f"slot of {own}"] = tuple(slots)
        rings = {fifo.source for fifo in deployment.reads[name].values() if fifo.rows} - {OUTSIDE}
        after = tuple(sorted(numbers[source] for source in _sources(deployment, name) - rings))
        beside = tuple(sorted(numbers[source] for source in rings))
        filled = [own for own, fifo in deployment.reads[name].items() if fifo.source == OUTSIDE]
        turns = PlanTurns.of(plan, pieces[name], is_by_rows, filled)
        numbers[name] = len(found)
        found.append(PlannedPart(name, plan, turns, processors[worker.name], after, beside, places))
    return tuple(found)


def _sources(deployment: Deployment, part: str) -> frozenset[str]:
    """The parts that have to come first: those that make its inputs, and those that its worker runs before it."""
    makers = {fifo.source for fifo in deployment.reads[part].values()} - {OUTSIDE}
    before = {other for w in deployment.workers_of[part] for other in w.parts[: w.parts.index(part)]}
    return frozenset(makers | before)


class _PlanWalk:
    """The bytes that the steps of a plan touch: for each buffer, from the first to the last."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.network = plan, plan.network
        self._values = {view.buffer for view in plan.views.values()}
        self.results = [x for x in self.network.outputs if x in plan.views and not plan.is_by_rows(x)]
        sums = {sums_name(layer) for stage in plan.program.stages for layer in plan.program.partial(stage)}
        self._values |= sums & plan.buffer_named.keys()

    def values(self, hulls: Hulls) -> Hulls:
        """Without scratch, which holds nothing between two turns."""
        return {name: hull for name, hull in hulls.items() if name in self._values}

    def turns(
        self, number: int, pieces: Sequence[float], is_by_rows: bool
    ) -> Iterator[tuple[tuple[int, int], float, Hulls, Hulls]]:
        """(stage, turn), time, reads and writes of each turn of a stage."""
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
            yield (number, at), time, joined((reads, self._sums(stage))), writes

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
            if name in self.plan.pulled:  # rows come into its window
                yield self.whole(name)

    def whole(self, name: str) -> Hulls:
        return self._hull(name, Region.whole(self.network.tensors[name].shape))

    def _hull(self, name: str, region: Region) -> Hulls:
        """All of the buffer where rows or tiles take turns in it, or lanes have parts of it."""
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
    """By buffer, the hull of all."""
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


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
