"""Scenarios made from real plans: each stage, or each turn of a stage, is a step with its share of the time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate
from operator import and_, or_

from ..errors import InputError
from ..program import Plan
from ..program.deployment import OUTSIDE, Deployment
from .plan_turns import Hulls, PlanTurns
from .steps import CellGrid, Scenario, ScenarioStep, Span

Place = tuple[str, int]  # a memory that scenarios share, and a byte in it


@dataclass(frozen=True)
class PlannedPart:
    """A plan, and where it runs. Its memories are shared with other scenarios, at the given places or else at 0."""

    name: str
    plan: Plan
    turns: PlanTurns
    processor: int = 0
    after: tuple[int, ...] = ()  # earlier parts whose results it reads
    beside: tuple[int, ...] = ()  # earlier parts whose rows it takes while they run
    places: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)  # of each memory, several for FIFO slots

    def places_of(self, memory: str) -> tuple[Place, ...]:
        if memory in self.places:
            return self.places[memory]
        return () if memory in self.plan.slots else ((memory, 0),)

    def spans(self, hulls: Hulls) -> Iterator[tuple[str, Span]]:
        """The bytes of the common memories, with their buffers."""
        for name, (low, high) in hulls.items():
            buffer = self.plan.buffer_named[name]
            for memory, base in self.places_of(buffer.memory):
                yield name, (memory, base + buffer.offset + low, base + buffer.offset + high)


@dataclass(frozen=True)
class PlannedScenario:
    """The steps of a scenario, and the plans of its parts from which they follow."""

    scenario: Scenario
    parts: tuple[PlannedPart, ...]
    labels: tuple[tuple[int, int, int], ...]  # of each step: its part, stage and turn

    @property
    def name(self) -> str:
        return self.scenario.name


def planned_scenarios(
    parts: Mapping[str, Sequence[PlannedPart]], periods: Mapping[str, float] | None = None
) -> dict[str, PlannedScenario]:
    """The scenario of each name, over the cells of one common grid. Pipelined ones have a period."""
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
            read, written = (_masks(part, hulls, grid) for hulls in (turn.reads, turn.writes))
            touched = {name: read.get(name, 0) | written.get(name, 0) for name in {**read, **written}}
            before = [ends[other][1] for other in part.after] if len(steps) == first else []
            before += [ends[other][0] for other in part.beside] if len(steps) == first else []
            before += [ends[other][1] for other in part.beside] if len(steps) == last else []
            stage = part.plan.program.stages[turn.stage].name
            title = f"{stage}, turn {turn.turn}" if turn.turn else stage
            masks = reduce(or_, read.values(), 0), reduce(or_, written.values(), 0)
            steps.append(ScenarioStep(title, turn.time, part.processor, tuple(before), *masks, tuple(touched.items())))
            labels.append((at, turn.stage, turn.turn))
            lives.append(reduce(or_, _masks(part, turn.live, grid).values(), 0))
    known_live = tuple(lives) if len(parts) == 1 else _written_and_read(steps)
    return PlannedScenario(Scenario(name, tuple(steps), period, known_live), parts, tuple(labels))


def _written_and_read(steps: Sequence[ScenarioStep]) -> tuple[int, ...]:
    """By count of steps, an upper bound of the live bytes: those written by some step and read by a later one."""
    written = accumulate((step.writes for step in steps), or_, initial=0)
    read = [*accumulate((step.reads for step in reversed(steps)), or_, initial=0)][::-1]
    return tuple(map(and_, written, read))


def _masks(part: PlannedPart, hulls: Hulls, grid: CellGrid) -> dict[str, int]:
    """The cells of each buffer."""
    found: dict[str, int] = {}
    for name, span in part.spans(hulls):
        found[name] = found.get(name, 0) | grid.mask(span)
    return found


def parts_of_deployment(
    deployment: Deployment, pieces: Mapping[str, Sequence[Sequence[float]]], is_by_rows: bool = True
) -> tuple[PlannedPart, ...]:
    """The parts of a pipeline, each worker a processor, in its arenas. `pieces` are times of stages by part.

    A FIFO with several slots counts as touched in all of them. A frame arrives before the first step and its results
    are taken in the last one. Replicas are refused, since their frames differ.
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
                f"part '{name}' has {len(workers)} workers and {'no' if plan is None else 'a'} plan; a scenario is "
                "made of parts with one worker and a plan: map it without replicas, to processors that run our own code"
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
    """The parts that must come first: those that make its inputs, and earlier ones of its worker."""
    makers = {fifo.source for fifo in deployment.reads[part].values()} - {OUTSIDE}
    before = {other for w in deployment.workers_of[part] for other in w.parts[: w.parts.index(part)]}
    return frozenset(makers | before)
