"""Response times of an application: whether every network meets its deadline, and the latency of cascades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from .. import text
from ..errors import Infeasible, InputError
from ..fusion.timing import TimedPlan, Timing
from ..platform.chip_time import ERROR, assumed_instruction_time, least_instruction_time
from ..platform.target import Target
from ..program import Plan
from ..program.deployment import Deployment, Part, RelationKind
from .draft import Application
from .preemption_points import RunPieces
from .response_bound import Bound, ResponseBounds, TimedTask


@dataclass(frozen=True, slots=True)
class WorstResponse:
    """The worst case of a task."""

    task: TimedTask
    blocking: float  # by less urgent tasks that have begun
    worst: float | None  # None: it may never end
    endless: str = ""  # a network without a period that may run again and again before it

    @property
    def waits_said(self) -> str:
        return _said(self.blocking)

    @property
    def worst_said(self) -> str:
        return _said(self.worst)

    @property
    def is_met(self) -> bool:
        return self.worst is not None and (self.task.deadline is None or self.worst <= self.task.deadline)


@dataclass(frozen=True, slots=True)
class CascadeLatency:
    """The longest time from the release of a cascade's first network to the end of its last."""

    networks: tuple[str, ...]
    worst: float | None  # None: a network may lose its input, or never end

    @property
    def name(self) -> str:
        return " → ".join(self.networks)

    @property
    def said(self) -> str:
        return _said(self.worst)


def _said(seconds: float | None) -> str:
    return "no bound" if seconds is None or seconds == inf else text.duration(seconds)


def tasks_of(application: Application, deployment: Deployment, is_least: bool = False) -> tuple[TimedTask, ...]:
    """The planned parts as tasks, the most urgent first: by priority, or else by deadline. Empty if none has a period.
    With `is_least`, times are lower bounds of the core."""
    if all(entry.period is None for entry in application.file.networks):
        return ()
    after = _sources(application)
    tasks = [_task(application, deployment, part, after, is_least) for part in deployment.parts]
    return tuple(sorted(tasks, key=lambda task: (*(-x for x in task.urgency), task.name)))


def _task(
    application: Application, deployment: Deployment, part: Part, after: Mapping[str, frozenset[str]], is_least: bool
) -> TimedTask:
    assert part.plan is not None, "only planned parts have times"
    name, entry = part.name, application.file.network(part.name)
    pieces = timed_pieces(application, name, part.plan, is_least)
    by = {one.parts[0]: one.points for one in deployment.preemptions if one.parts[1] == name}
    fifos = [fifo for fifo in deployment.queues if name in fifo.reading]
    released = [deployment.release_stage(fifo, name) for fifo in fifos]
    sources = after.get(name, frozenset())
    period = _period(application, name, after)
    return TimedTask(
        name,
        _priority(application, name, after),
        period,
        (entry.deadline or entry.period) if period is not None else None,
        pieces.total,
        {high: pieces.between(points) for high, points in by.items() if points is not None},
        frozenset(high for high, points in by.items() if points is None),
        frozenset(other.name for other in deployment.parts if deployment.are_parallel(other.name, name)),
        sources if all(_period(application, each, after) is not None for each in sources) else frozenset(),
        {fifo.source: fifo.slots for fifo in fifos},
        sum(map(sum, pieces.stages[max(released) + 1 :])) if released else 0.0,
    )


def _sources(application: Application) -> Mapping[str, frozenset[str]]:
    """For each triggered network, those that make its inputs, or bring the frame that it reads too."""
    file, draft = application.file, application.deployment
    pairs = [(one.networks[0], one.networks[1]) for one in file.related(RelationKind.AFTER)]
    pairs += [(one.networks[0], name) for one in file.related(RelationKind.SAME_INPUT) for name in one.networks[1:]]
    apart = [(a, b) for a, b in pairs if not draft.may_meet(a, b)]
    return {name: frozenset(a for a, b in apart if b == name) for _, name in apart}


def _period(application: Application, name: str, after: Mapping[str, frozenset[str]]) -> float | None:
    """The shortest time between two runs: a triggered network runs no more often than those that trigger it."""
    own = application.file.network(name).period
    periods = [_period(application, source, after) for source in after.get(name, ())]
    known = [period for period in periods if period is not None]
    return max(*known, own or 0.0) if known and len(known) == len(periods) else own


def _priority(application: Application, name: str, after: Mapping[str, frozenset[str]]) -> float:
    """The priority; without one, by the network's deadline, or by that of what triggers it."""
    entry = application.file.network(name)
    if entry.priority is not None:
        return entry.priority
    if entry.period is not None:
        return -round((entry.deadline or entry.period) * 1e6)
    return max((_priority(application, source, after) for source in after.get(name, ())), default=-inf)


def timed_pieces(application: Application, part: str, plan: Plan, is_least: bool = False) -> RunPieces:
    """Seconds of a run by its instructions, estimated or measured; with `is_least`, a lower bound for the core."""
    entry = application.file.network(part)
    board = application.board
    if board is None:
        raise InputError(f"nobody knows how fast the processor is that runs '{entry.name}': name a board")
    timed, pieces = _timed(application.target, PlanIdentity(plan))
    measured = entry.instructions / max(1.0, timed.total) if entry.instructions is not None else 1.0
    scale = measured * (
        least_instruction_time(board) if is_least else assumed_instruction_time(board, plan.network.is_real)
    )
    return RunPieces(tuple(tuple(piece * scale for piece in stage) for stage in pieces.stages))


class PlanIdentity:
    """A plan as a cache key, compared by identity."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __hash__(self) -> int:
        return id(self.plan)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlanIdentity) and self.plan is other.plan


@lru_cache(maxsize=64)  # a search repeats queries for the plans that it keeps
def _timed(target: Target, key: PlanIdentity) -> tuple[TimedPlan, RunPieces]:
    timed = TimedPlan(key.plan, Timing(target).costs(key.plan.network))
    return timed, RunPieces.of(timed, 1.0)


def responses(tasks: Sequence[TimedTask]) -> tuple[WorstResponse, ...]:
    """The worst response of each task with a deadline, the most urgent first."""
    bounds = ResponseBounds(tasks).bounds
    return tuple(_response(task, bounds[task.name]) for task in tasks if task.deadline is not None)


def _response(task: TimedTask, bound: Bound) -> WorstResponse:
    return WorstResponse(task, bound.blocking, bound.worst if bound.worst < inf else None, bound.endless)


def cascade_latencies(tasks: Sequence[TimedTask]) -> tuple[CascadeLatency, ...]:
    """The latency of each path through a cascade, from a network that nothing triggers to one that triggers nothing."""
    all_bounds = ResponseBounds(tasks)
    inner = frozenset[str]().union(*(task.after for task in tasks))
    return tuple(
        CascadeLatency(tuple(task.name for task in path), None if latency == inf else latency)
        for end in tasks
        if end.after and end.name not in inner
        for path in all_bounds.paths[end.name]
        for latency in (all_bounds.bounds[end.name].latency,)
    )


def check_deadlines(application: Application, deployment: Deployment) -> tuple[WorstResponse, ...]:
    """The responses of all networks with a period.

    Cycles of instructions are estimated: an error names the first network that would be late even if every instruction
    took the fewest cycles that the core permits.
    """
    for name, plan in deployment.plans.items():
        rate = application.file.network(name).throughput
        if rate is None or application.board is None:  # without one it is measured, by `app --run`
            continue
        run = timed_pieces(application, name, plan, is_least=True).total
        if run * rate > 1:
            raise Infeasible(
                f"'{name}' is to run {rate:g} times a second, and one run takes {text.duration(run)}: at most "
                f"{1 / run:.3g} are possible; ask for fewer, or give it more RAM"
            )
    tasks = tasks_of(application, deployment, is_least=True)
    for one in responses(tasks):
        if one.worst is None:
            raise Infeasible(f"cannot be scheduled: '{one.task.name}' may never end, since {_why_endless(one, tasks)}")
        if not one.is_met:
            late = one.worst - (one.task.deadline or 0.0)
            raise Infeasible(
                f"cannot be scheduled: even if no instruction waits for memory, '{one.task.name}' ends after "
                f"{text.duration(one.worst)} at worst, {text.duration(late)} after its deadline; for "
                f"{text.duration(one.blocking)} it waits for less urgent networks. Let it preempt them, or give it "
                "more time"
            )
    return responses(tasks_of(application, deployment))


def lateness_notes(responses: Sequence[WorstResponse]) -> Iterator[str]:
    """A note for each network that may be late; only certain misses are errors."""
    for one in responses:
        if not one.is_met:
            ends = "it may never end" if one.worst is None else f"it ends after {text.duration(one.worst)} at worst"
            yield (
                f"'{one.task.name}' may miss its deadline of {text.duration(one.task.deadline or 0.0)}: by estimated "
                f"cycles (± {ERROR:.0%}) {ends}; measure it on the board, or give it more time"
            )


def _why_endless(one: WorstResponse, tasks: Sequence[TimedTask]) -> str:
    if one.endless:
        return (
            f"'{one.endless}' has no period and may run again and again before that; give '{one.endless}' a period, or "
            f"let '{one.task.name}' preempt everything that '{one.endless}' may interrupt or run beside"
        )
    busy = sum(task.run / task.period for task in tasks if task.period)
    if busy <= 1 and one.task.after:
        return "the network before it may come again first and overwrite its input; make periods longer"
    return f"networks keep the processor busy for {busy:.0%} of the time; make periods longer, or networks smaller"
