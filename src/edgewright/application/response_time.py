"""Response times under fixed priorities: whether every network meets its deadline, whatever the others do.

Networks are tasks with a period, a deadline and a run time. A task of higher priority may be blocked by one of lower
priority until its next preemption point, or for its whole run where it does not preempt it (Joseph and Pandya 1986,
with the blocking of deferred preemption, Burns 1994). Networks on other cores, which run in parallel, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .. import text
from ..errors import Infeasible, InputError
from ..fusion.timing import TimedPlan, Timing
from ..program import Plan
from .conflicts import JointProblem
from .description import PreemptionPoints
from .members import Application
from .preemption_points import RunPieces

ROUNDS = 10_000  # of the fixed point; what needs more does not end within its deadline


@dataclass(frozen=True, slots=True)
class TimedTask:
    """A network that comes again and again. Times in seconds; a higher priority is more urgent."""

    name: str
    priority: int
    period: float
    deadline: float
    run: float
    # By the task that may interrupt it: the times from one preemption point to the next.
    segments: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    anywhere: frozenset[str] = frozenset()  # the tasks that may interrupt it at any time
    beside: frozenset[str] = frozenset()  # those that run on other cores

    @property
    def last(self) -> float:
        """The time at the end of a run during which it cannot be interrupted."""
        if self.anywhere:
            return 0.0
        return min((segments[-1] for segments in self.segments.values()), default=self.run)

    def blocks(self, other: str) -> float:
        """How long a more urgent task may have to wait for it."""
        if other in self.beside or other in self.anywhere:
            return 0.0
        return max(self.segments.get(other, (self.run,)))


@dataclass(frozen=True, slots=True)
class WorstResponse:
    """The worst that can happen to a task."""

    task: TimedTask
    blocking: float  # by a less urgent task that has just begun what cannot be interrupted
    worst: float | None  # None: it may never end

    @property
    def is_met(self) -> bool:
        return self.worst is not None and self.worst <= self.task.deadline


def tasks_of(problem: JointProblem) -> tuple[TimedTask, ...]:
    """The networks that have a period, the most urgent first: by priority, or else by deadline."""
    application, relations = problem.application, problem.relations
    found = []
    for member in application.members:
        if member.entry.period is None:
            continue
        deadline = member.entry.deadline or member.entry.period
        pieces = timed_pieces(application, member.name, problem.plans[member.name])
        by = {p.high: p.points for p in relations.preemptions.values() if p.low == member.name}
        found.append(
            TimedTask(
                member.name,
                member.entry.priority if member.entry.priority is not None else -round(deadline * 1e6),
                member.entry.period,
                deadline,
                pieces.total,
                {
                    high: pieces.between(problem.allowed(member.name, kind))
                    for high, kind in by.items()
                    if kind is not PreemptionPoints.ANYWHERE
                },
                frozenset(high for high, kind in by.items() if kind is PreemptionPoints.ANYWHERE),
                frozenset(m.name for m in application.members if relations.are_parallel(m.name, member.name)),
            )
        )
    return tuple(sorted(found, key=lambda task: (-task.priority, task.deadline, task.name)))


def timed_pieces(application: Application, member: str, plan: Plan) -> RunPieces:
    """A run in seconds: instructions, estimated or as measured, at one in a cycle of the first processor."""
    entry = application.by_name[member].entry
    if application.board is None:
        raise InputError(f"nobody knows how fast the processor is that runs '{entry.name}': name a board")
    timed = TimedPlan(plan, Timing(application.target).costs(plan.network))
    measured = entry.instructions / max(1.0, timed.total) if entry.instructions is not None else 1.0
    return RunPieces.of(timed, measured / application.board.processors[0].clock)


def responses(tasks: Sequence[TimedTask]) -> tuple[WorstResponse, ...]:
    """The worst response of each task; the most urgent come first."""
    return tuple(_response(tasks, n) for n in range(len(tasks)))


def _response(tasks: Sequence[TimedTask], n: int) -> WorstResponse:
    """The longest of all runs in the busy period that begins when everybody more urgent comes at once."""
    task = tasks[n]
    higher = [one for one in tasks[:n] if one.name not in task.beside]
    blocking = max((one.blocks(task.name) for one in tasks[n + 1 :]), default=0.0)
    worst = 0.0
    if sum(one.run / one.period for one in (*higher, task)) > 1:
        return WorstResponse(task, blocking, None)
    for number in range(ROUNDS):
        start = _latest_start(blocking + (number + 1) * task.run - task.last, higher)
        if start is None:
            break
        worst = max(worst, start + task.last - number * task.period)
        if start + task.last <= (number + 1) * task.period:
            return WorstResponse(task, blocking, worst)
    return WorstResponse(task, blocking, None)


def _latest_start(work: float, higher: Sequence[TimedTask]) -> float | None:
    """When the end of a run that cannot be interrupted begins at the latest: all work before it is done by then."""
    found = work
    for _ in range(ROUNDS):
        again = work + sum((int(found / one.period + 1e-9) + 1) * one.run for one in higher)
        if again <= found + 1e-12:
            return found
        found = again
    return None


def check_deadlines(problem: JointProblem) -> tuple[WorstResponse, ...]:
    """The responses of all networks with a period; an error names the first that is too late, and by how much."""
    for member in problem.application.members:
        rate = member.entry.throughput
        if rate is None or problem.application.board is None:  # without one it is measured, by `app --run`
            continue
        run = timed_pieces(problem.application, member.name, problem.plans[member.name]).total
        if run * rate > 1:
            raise Infeasible(
                f"'{member.name}' is to run {rate:g} times a second, and one run takes {text.duration(run)}: at most "
                f"{1 / run:.3g} are possible; ask for fewer, or give it more RAM"
            )
    found = responses(tasks_of(problem))
    for one in found:
        if one.worst is None:
            busy = sum(other.task.run / other.task.period for other in found)
            raise Infeasible(
                f"cannot be scheduled: '{one.task.name}' may never end, since networks keep the processor busy for "
                f"{busy:.0%} of the time; make periods longer, or networks smaller"
            )
        if not one.is_met:
            raise Infeasible(
                f"cannot be scheduled: '{one.task.name}' ends after {text.duration(one.worst)} at worst, "
                f"{text.duration(one.worst - one.task.deadline)} after its deadline; for {text.duration(one.blocking)} "
                "it waits for less urgent networks. Let it preempt them, or give it more time"
            )
    return found
