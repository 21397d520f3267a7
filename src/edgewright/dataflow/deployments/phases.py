"""The times of a part, and its phases: stages and turns merged where no one waits in between."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ...errors import Infeasible
from ...program import ROWS, Plan, Step
from ..cnn.durations import exact_time
from ..graph import Time

GivenTime = int | float | Fraction


@dataclass(frozen=True)
class PartTimes:
    """The time of a part's run per frame, and the rows that it takes from one ring and puts into another."""

    stages: tuple[tuple[GivenTime, ...], ...]  # the turns of each stage
    pulled: tuple[int, ...] = ()  # rows that each turn of the first stage takes at its start
    pushed: tuple[int, ...] = ()  # rows that each turn of the last stage has made at its end

    @property
    def run(self) -> GivenTime:
        return sum(map(sum, self.stages))

    def turns(self) -> Iterator[tuple[Time, int, int, int | None]]:
        """The time of each turn, the rows it takes and makes, and the stage it ends, if any."""
        last = len(self.stages) - 1
        for stage, times in enumerate(self.stages):
            none, ended = (0,) * len(times), (None,) * (len(times) - 1) + (stage,)
            pulled = (self.pulled if stage == 0 else ()) or none
            pushed = (self.pushed if stage == last else ()) or none
            yield from zip(map(exact_time, times), pulled, pushed, ended, strict=True)


@dataclass(frozen=True)
class PartPhases:
    """A part cut into phases, with rows by phase.

    Rows leave a ring at the start of a turn, so a phase without time precedes the turn.
    """

    times: tuple[Time, ...]
    ends: Mapping[int | None, int] = field(default_factory=dict)  # of stages that others wait for; -1: the beginning
    pulls: Mapping[int, int] = field(default_factory=dict)
    claims: Mapping[int, int] = field(default_factory=dict)  # places in the ring that a phase waits for
    pushes: Mapping[int, int] = field(default_factory=dict)


def part_phases(times: PartTimes, awaited: Collection[int | None] = ()) -> PartPhases:
    """The phases of a part; `awaited` are the stages whose ends others wait for, -1 for the beginning."""
    phases: list[Time] = []
    ends: dict[int | None, int] = {-1: 0}
    pulls, claims, pushes = dict[int, int](), dict[int, int](), dict[int, int]()
    is_open = False
    for time, pulled, pushed, stage in times.turns():
        start = len(phases)
        if pulled or (not phases and -1 in awaited):
            phases.append(0)
        if pulled:
            pulls[start] = pulled
        if pushed:
            claims[start] = pushed
        if is_open and start == len(phases) and not pushed:
            phases[-1] += time
        else:
            phases.append(time)
        is_awaited = stage is not None and stage in awaited
        if is_awaited:
            ends[stage] = len(phases) - 1
        if pushed:
            pushes[len(phases) - 1] = pushed
        is_open = not pushed and not is_awaited
    return PartPhases(tuple(phases), ends, pulls, claims, pushes)


def turn_shares(plan: Plan, stage: int) -> tuple[float, ...]:
    """The share of each turn in the time of its stage: by its MACs and the elements it writes."""
    work = []
    for turn in plan.program.turns(plan.program.stages[stage]):
        layers = [plan.network.by_name[step.layer] for step in turn]
        macs = (layer.op.macs(s.region, plan.network.shapes(layer)) for s, layer in zip(turn, layers, strict=True))
        work.append(sum(macs) + sum(step.region.size for step in turn))
    return tuple(part / max(1, sum(work)) for part in work)


def pushed_rows(plan: Plan, tensor: str) -> tuple[int, ...]:
    """The rows of an output made by each turn of the last stage."""
    maker = plan.network.producers[tensor].name
    return _new_rows(plan, -1, lambda step: step.region.bounds[ROWS][1] if step.layer == maker else 0)


def pulled_rows(plan: Plan, tensor: str) -> tuple[int, ...]:
    """The rows of an input that each turn of the first stage reads first; an error if some are unread."""

    def end(step: Step) -> int:
        layer = plan.network.by_name[step.layer]
        needs = zip(layer.inputs, plan.program.needs(step), strict=True)
        return max((region.bounds[ROWS][1] for name, region in needs if name == tensor), default=0)

    rows = _new_rows(plan, 0, end)
    if sum(rows) != plan.network.tensors[tensor].shape[ROWS]:
        raise Infeasible(f"rows of '{tensor}' are left unread: it cannot cross in a ring")
    return rows


def _new_rows(plan: Plan, stage: int, end: Callable[[Step], int]) -> tuple[int, ...]:
    """How much further each turn reaches than those before it."""
    reached, rows = 0, []
    for turn in plan.program.turns(plan.program.stages[stage]):
        last = max((end(step) for step in turn), default=0)
        rows.append(max(0, last - reached))
        reached = max(reached, last)
    return tuple(rows)
