"""Upper bounds on response times under the gate of an application, which refuses networks that need the same memory.

A task waits while a task is in progress that does not let it in: one that excludes it, or that it preempts and that is
between two preemption points. For each task, the others are of three kinds. Some *delay* it as often as they come: more
urgent tasks, those that preempt it, and those that overtake it, because the task it waits for lets them in, but not it.
Others *block* it once, from their last preemption point to the next. The rest run on other cores and do neither. The
bound is the longest busy period (Joseph and Pandya 1986, with deferred preemption, Burns 1994): the blocking, and all
runs of tasks that delay. A task that may itself be held up by something that does not block the task in question has
release jitter (Tindell 1994).

A cascade is one job: it begins with its first task, and every later task is released when the task before it ends. It
has a bound if it ends before its first task is released again. A partition of a pipeline is released, with jitter, when
the partitions that it reads from have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import floor, inf

ROUNDS = 10_000  # of a fixed point; tasks that need more do not end within their deadline
PASSES = 100  # over all tasks, until their jitter settles

Path = tuple["TimedTask", ...]  # of a cascade: each task follows the one before


@dataclass(frozen=True, slots=True)
class TimedTask:
    """A network that runs repeatedly. Times in seconds; a higher priority is more urgent."""

    name: str
    priority: float
    period: float | None  # None: it may come at any time after it has ended
    deadline: float | None
    run: float
    # By the task that may interrupt it: the times from one preemption point to the next. Of two tasks that may, the
    # points of one are among those of the other.
    segments: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    anywhere: frozenset[str] = frozenset()  # the tasks that may interrupt it at any time
    beside: frozenset[str] = frozenset()  # those that run on other cores
    after: frozenset[str] = frozenset()  # released when the last of these ends, once for each of their runs
    reads: Mapping[str, int] = field(default_factory=dict)  # partitions before it in a pipeline: the slots between
    tail: float = 0.0  # the time at the end of a run after its slots are released

    @property
    def urgency(self) -> tuple[float, float]:
        return self.priority, -(inf if self.deadline is None else self.deadline)

    @property
    def last(self) -> float:
        """The time at the end of a run during which it cannot be interrupted."""
        if self.anywhere:
            return 0.0
        return min((segments[-1] for segments in self.segments.values()), default=self.run)

    def lets_in(self, other: str) -> float:
        """The number of points in a run at which the other task may start."""
        if other in self.beside or other in self.anywhere:
            return inf
        return len(self.segments.get(other, (self.run,))) - 1

    def is_preempted_by(self, other: str) -> bool:
        return other not in self.beside and self.lets_in(other) > 0

    def blocks(self, other: str) -> float:
        """The longest wait of the other task for a run that has begun."""
        if other in self.beside or other in self.anywhere:
            return 0.0
        return max(self.segments.get(other, (self.run,)))


@dataclass(frozen=True, slots=True)
class Bound:
    """The worst case of a task; infinite if it may never end."""

    worst: float  # from its release to its end
    latency: float  # from the release of the first task of its cascade or pipeline
    blocking: float = 0.0  # by less urgent tasks that have begun
    endless: str = ""  # a task without a period that may run repeatedly before it


@dataclass(frozen=True)
class ResponseBounds:
    """The bounds of all tasks."""

    tasks: Sequence[TimedTask]

    @cached_property
    def by_name(self) -> Mapping[str, TimedTask]:
        return {task.name: task for task in self.tasks}

    @cached_property
    def bounds(self) -> Mapping[str, Bound]:
        """The bound of each task. Jitter depends on bounds: iteration starts with the run times and ends at a fixed
        point."""
        bounds = {task.name: Bound(task.run, self.least(task)) for task in self.tasks}
        for _ in range(PASSES):
            again = {task.name: self._bound(task, bounds) for task in self.tasks}
            if again == bounds:
                return bounds
            bounds = again
        return {name: Bound(inf, inf, one.blocking) for name, one in bounds.items()}

    @cached_property
    def paths(self) -> Mapping[str, tuple[Path, ...]]:
        """By task, its paths through its cascade."""
        return {task.name: tuple(self._paths(task)) for task in self.tasks}

    def _paths(self, task: TimedTask) -> Iterator[Path]:
        for name in sorted(task.after):
            yield from ((*path, task) for path in self._paths(self.by_name[name]))
        if not task.after:
            yield (task,)

    def least(self, task: TimedTask) -> float:
        """The shortest time from the release of the first task of a cascade or pipeline to the end of this one."""
        before = max((self.least(self.by_name[name]) for name in task.reads), default=0.0)
        return before + min(map(_run, self.paths[task.name]))

    def chain(self, task: TimedTask) -> set[str]:
        """The task and all tasks that it follows or reads from, directly or not."""
        return {task.name}.union(*(self.chain(self.by_name[name]) for name in (*task.after, *task.reads)))

    def family(self, root: TimedTask) -> tuple[TimedTask, ...]:
        """The tasks that run only because the root has run."""
        return tuple(
            task for task in self.tasks if task.after and all(path[0] is root for path in self.paths[task.name])
        )

    @cached_property
    def _windows(self) -> Mapping[str, tuple[BusyPeriod, ...]]:
        return {
            task.name: tuple(BusyPeriod(self, path, self.family(path[0])) for path in self.paths[task.name])
            for task in self.tasks
        }

    def _bound(self, task: TimedTask, bounds: Mapping[str, Bound]) -> Bound:
        windows = self._windows[task.name]
        if not all(self._keeps_pace(window, bounds) for window in windows):
            if task.after:  # its input may be overwritten before it has been read
                return Bound(inf, inf, windows[0].blocking)
            windows = (BusyPeriod(self, windows[0].path, ()),)
        return max((window.bound(bounds) for window in windows), key=lambda bound: bound.latency)

    def _keeps_pace(self, window: BusyPeriod, bounds: Mapping[str, Bound]) -> bool:
        """Whether the whole cascade has ended when its first task is released again."""
        period = window.path[0].period or 0.0
        return not window.family or all(bounds[x.name].latency <= period for x in (window.path[0], *window.family))


@dataclass(frozen=True)
class BusyPeriod:
    """The time from the release of the first task of a path, or from the last instant before it at which no task that
    delays it was in progress, to the end of the last task. Most paths have one task.

    `family` holds the tasks that run once because the first task has run. It is empty if a cascade may not have ended
    when the next one begins.
    """

    all: ResponseBounds
    path: Path
    family: tuple[TimedTask, ...]

    @cached_property
    def others(self) -> tuple[TimedTask, ...]:
        return _without(self.all.tasks, self.path)

    @cached_property
    def delaying(self) -> tuple[TimedTask, ...]:
        """The tasks that may start while a task of the path is pending and hold it up, and those that hold up these."""
        names = {one.name for task in self.path for one in self.others if self._delays(one, task)}
        while more := {one.name for one in self.others if one.name not in names and self._holds_up(one, names)}:
            names |= more
        return tuple(one for one in self.others if one.name in names)

    def _delays(self, one: TimedTask, task: TimedTask) -> bool:
        is_beside = one.name in task.beside
        is_more_urgent = one.urgency >= task.urgency and not is_beside
        return (
            is_more_urgent
            or task.is_preempted_by(one.name)
            or any(
                other.lets_in(one.name) > other.lets_in(task.name)  # it overtakes
                and (not is_beside or other.is_preempted_by(one.name))
                for other in self.others
                if other is not one
            )
        )

    def _holds_up(self, one: TimedTask, delaying: Iterable[str]) -> bool:
        """Whether a task preempts one that delays, or starts beside it and then blocks the path."""
        blocks = any(one.name not in task.beside for task in self.path)
        return any(
            self.all.by_name[name].is_preempted_by(one.name) or (blocks and name in one.beside) for name in delaying
        )

    @cached_property
    def blockers(self) -> tuple[TimedTask, ...]:
        return _without(self.others, self.delaying)

    @cached_property
    def blocking(self) -> float:
        """The time of tasks that are in progress when a task of the path is released."""
        first = max((one.blocks(self.path[0].name) for one in _without(self.blockers, self.family)), default=0.0)
        return first + sum(
            max((one.blocks(task.name) for one in self.blockers if one.lets_in(before.name) > 0), default=0.0)
            for before, task in pairwise(self.path)
        )

    @cached_property
    def prompt(self) -> frozenset[str]:
        """The tasks that delay and need no jitter: blockers let them in wherever they let the path's first task in."""
        root = self.path[0]
        names = {
            one.name
            for one in self.delaying
            if one.urgency >= root.urgency
            and all(other.lets_in(one.name) >= other.lets_in(root.name) for other in self.blockers)
        }
        return frozenset(one.name for one in self.delaying if self.all.chain(one) <= names)

    @cached_property
    def interrupting(self) -> tuple[TimedTask, ...]:
        """The tasks that may run while the last task of the path is in progress, and hold it up."""
        task = self.path[-1]
        names = {one.name for one in self.delaying if task.is_preempted_by(one.name)}
        beside = [one for one in self.delaying if one.name in task.beside]
        while more := {
            one.name
            for one in beside
            if one.name not in names and any(self.all.by_name[x].is_preempted_by(one.name) for x in names)
        }:
            names |= more
        return tuple(one for one in self.delaying if one.name in names)

    def bound(self, bounds: Mapping[str, Bound]) -> Bound:
        """The longest of all runs in the busy period, given bounds of the tasks that delay."""
        task, root = self.path[-1], self.path[0]
        endless = [one for one in self.delaying if self._count(one, 0.0, 0, bounds) == inf]
        never = Bound(inf, inf, self.blocking, next((one.name for one in endless if one.period is None), ""))
        load = sum(one.run / one.period for one in (*self.delaying, *self.path) if one.period)
        lag = max((bounds[name].latency for name in root.reads), default=0.0)
        if root.period is None or endless or load > 1 + 1e-9 or lag == inf or self._lacks_slots(bounds):
            return never
        jitter = lag - max((self.all.least(self.all.by_name[name]) for name in root.reads), default=0.0)
        before = _run(self.path[:-1])
        # A task that other cascades trigger too may be pending already.
        pending = sum(one.run for one in self.path[1:] if any(p[0] is not root for p in self.all.paths[one.name]))
        worst = latency = 0.0
        for number in range(ROUNDS):
            work = self.blocking + before + pending + number * task.run
            start = self._settled(work, self.delaying, number, bounds)
            work += task.run - task.last + self._work(_without(self.delaying, self.interrupting), start, number, bounds)
            end = self._settled(work, self.interrupting, number, bounds) + task.last
            if end == inf:
                return never
            worst = max(worst, end - before - max(0.0, number * root.period - jitter))
            latency = max(latency, end + lag - number * root.period)
            if end <= (number + 1) * root.period - jitter:
                return Bound(worst, latency, self.blocking)
            if len(self.path) > 1:
                return never
            if self.family:
                return Bound(worst, latency, self.blocking)
        return never

    def _lacks_slots(self, bounds: Mapping[str, Bound]) -> bool:
        """Whether a partition may have to wait until a later one releases a slot."""
        root = self.path[0]
        return any(
            bounds[one.name].latency - one.tail > one.reads[root.name] * (root.period or 0.0)
            for one in self.all.tasks
            if root.name in one.reads
        )

    def _settled(self, work: float, tasks: Sequence[TimedTask], number: int, bounds: Mapping[str, Bound]) -> float:
        """The time at which the work is done, with all that the tasks add until then."""
        time = work
        for _ in range(ROUNDS):
            again = work + self._work(tasks, time, number, bounds)
            if again <= time + 1e-12 or again == inf:
                return again
            time = again
        return inf

    def _work(self, tasks: Sequence[TimedTask], time: float, number: int, bounds: Mapping[str, Bound]) -> float:
        return sum(self._count(one, time, number, bounds) * one.run for one in tasks)

    def _count(self, one: TimedTask, time: float, number: int, bounds: Mapping[str, Bound]) -> float:
        """The number of runs of a task up to a time of the busy period that holds `number` earlier runs of the path."""
        paths = self.all.paths[one.name]
        if one.after and all(path[0] is self.path[0] for path in paths):  # it runs because the path does
            if self.family:
                return 0 if self.path[-1].name in self.all.chain(one) else 1
            return number + max(map(len, paths)) - 1
        if one.period is None:
            return inf
        jitter = 0.0 if one.name in self.prompt else bounds[one.name].latency - self.all.least(one)
        count = floor((time + jitter) / one.period + 1e-9) + 1 if jitter < inf else inf
        return min(count, *(self._count(self.all.by_name[x], time, number, bounds) + 1 for x in one.after), inf)


def _run(path: Iterable[TimedTask]) -> float:
    return sum(task.run for task in path)


def _without(tasks: Iterable[TimedTask], some: Iterable[TimedTask]) -> tuple[TimedTask, ...]:
    names = {task.name for task in some}
    return tuple(task for task in tasks if task.name not in names)
