"""All that may happen under the gate of an application, for tasks with whole times: independent of the bounds.

Jobs are released whenever their periods allow it. At every release, at every end and at every preemption point, waiting
tasks are tried, the most urgent first, and each starts if everything in progress lets it in. What happens at the same
instant may happen in any order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from edgewright.application.response_bound import TimedTask

IDLE = -1
WAITING = 2  # releases of one task that wait at most: more are not tried


class Job(NamedTuple):
    """Ages since its release, and since the release of the first task of its cascade."""

    age: int
    latency: int


class TaskState(NamedTuple):
    since: int  # the last release
    waiting: tuple[Job, ...] = ()
    at: int = IDLE  # the time that its run has had
    job: Job = Job(0, 0)
    stands: bool = False  # at a preemption point
    due: bool = False  # an end, or a preemption point, has been reached


State = tuple[TaskState, ...]


@dataclass
class GateSimulation:
    """Searches reachable states, as many as are allowed; `worst` and `latency` hold the longest times seen."""

    tasks: Sequence[TimedTask]
    timed: frozenset[str]  # whose times are measured
    most: int  # states
    seed: int = 0

    def __post_init__(self) -> None:
        self.worst = dict.fromkeys((task.name for task in self.tasks), 0)
        self.latency = dict(self.worst)
        self.is_complete = True

    @cached_property
    def order(self) -> list[int]:
        return sorted(range(len(self.tasks)), key=lambda n: self.tasks[n].priority, reverse=True)

    @cached_property
    def points(self) -> list[Mapping[str, frozenset[int]]]:
        return [
            {name: frozenset(map(int, list(accumulate(parts))[:-1])) for name, parts in task.segments.items()}
            for task in self.tasks
        ]

    def run(self) -> None:
        rng = random.Random(self.seed)
        first: State = tuple(TaskState(int(task.period or 0)) for task in self.tasks)
        seen, stack = {first}, [first]
        while stack:
            following = list(dict.fromkeys(self.following(stack.pop())))
            rng.shuffle(following)
            for state in following:
                if state not in seen:
                    if len(seen) >= self.most:
                        self.is_complete = False
                        return
                    seen.add(state)
                    stack.append(state)

    def following(self, state: State) -> Iterator[State]:
        is_due = False
        for n, one in enumerate(state):
            if one.due:
                is_due = True
                yield self.reached(list(state), n)
            if self.may_come(n, one):
                states = list(state)
                states[n] = one._replace(since=0, waiting=(*one.waiting, Job(0, 0)))
                yield self.tried(states)
        if not is_due:
            yield self.later(state)

    def may_come(self, n: int, one: TaskState) -> bool:
        task = self.tasks[n]
        if task.after or task.reads:
            return False
        if task.period is None:
            return not one.waiting and one.at == IDLE
        return one.since >= task.period and len(one.waiting) < WAITING

    def reached(self, states: list[TaskState], n: int) -> State:
        """A task that has come to an end, or to a preemption point."""
        task, one = self.tasks[n], states[n]
        if one.at < task.run:
            states[n] = one._replace(due=False, stands=True)
            return self.tried(states)
        self.worst[task.name] = max(self.worst[task.name], one.job.age)
        self.latency[task.name] = max(self.latency[task.name], one.job.latency)
        states[n] = one._replace(due=False, stands=False, at=IDLE, job=Job(0, 0))
        for m, other in enumerate(self.tasks):
            if task.name in other.after and not states[m].waiting:  # one that waits reads the newer input
                states[m] = states[m]._replace(waiting=(Job(0, one.job.latency),))
            if task.name in other.reads:
                states[m] = states[m]._replace(waiting=(*states[m].waiting, Job(0, one.job.latency)))
        return self.tried(states)

    def tried(self, states: list[TaskState]) -> State:
        """All waiting tasks try to start; then everything that nobody interrupts leaves its preemption point."""
        while any(self.starts(states, n) for n in self.order):
            pass
        for n, one in enumerate(states):
            if one.stands and not self.is_interrupted(states, n):
                states[n] = one._replace(stands=False)
        return tuple(states)

    def starts(self, states: list[TaskState], n: int) -> bool:
        one = states[n]
        if not one.waiting or one.at != IDLE:
            return False
        if not all(self.lets_in(m, other, self.tasks[n]) for m, other in enumerate(states) if other.at != IDLE):
            return False
        if any(self.holds_back(other, states[m], self.tasks[n]) for m, other in enumerate(self.tasks)):
            return False
        states[n] = one._replace(at=0, job=one.waiting[0], waiting=one.waiting[1:])
        return True

    def lets_in(self, n: int, one: TaskState, other: TimedTask) -> bool:
        task = self.tasks[n]
        if other.name in task.beside or other.name in task.anywhere:
            return True
        return one.stands and one.at in self.points[n].get(other.name, ())

    def holds_back(self, reader: TimedTask, one: TaskState, task: TimedTask) -> bool:
        """Whether the frames that a partition has not read leave no slot, or exclude the task."""
        frames = len(one.waiting) + (one.at != IDLE)
        if task.name in reader.reads:
            return frames >= reader.reads[task.name]
        together = {reader.name, *reader.segments, *reader.anywhere, *reader.beside}
        return bool(reader.reads) and frames > 0 and task.name not in together and not task.lets_in(reader.name)

    def is_interrupted(self, states: Sequence[TaskState], n: int) -> bool:
        task = self.tasks[n]
        by = task.segments.keys() | task.anywhere
        return any(one.at != IDLE and self.tasks[m].name in by for m, one in enumerate(states))

    def later(self, state: State) -> State:
        """One unit of time later."""
        states = []
        for n, one in enumerate(state):
            task = self.tasks[n]
            waiting = tuple(self.older(task, job) for job in one.waiting)
            at, due = one.at, False
            if at != IDLE and not self.is_interrupted(state, n):
                at += 1
                due = at == task.run or any(at in places for places in self.points[n].values())
            job = self.older(task, one.job) if at != IDLE else one.job
            one = TaskState(min(one.since + 1, int(task.period or 0)), waiting, at, job, one.stands, due)
            states.append(one)
        return tuple(states)

    def older(self, task: TimedTask, job: Job) -> Job:
        return Job(job.age + 1, job.latency + 1) if task.name in self.timed else job


def random_tasks(rng: random.Random) -> tuple[TimedTask, ...]:
    """Two to four tasks with random relations: preemption at points or anywhere, other cores, cascades, no period."""
    count = rng.choice((2, 3, 3, 4))
    names = [f"t{n}" for n in range(count)]
    order = rng.sample(range(count), count) if rng.random() < 0.3 else list(range(count))
    runs = {name: rng.randint(1, 4) for name in names}
    kinds = {(a, b): rng.choice(KINDS) for n, a in enumerate(names) for b in names[n + 1 :]}
    after, reads = dict[str, str](), dict[str, dict[str, int]]()
    for n, name in enumerate(names[1:], 1):
        before, parts = names[n - 1], {*reads, *(x for one in reads.values() for x in one)}
        if rng.random() < 0.2 and (whole := [x for x in names[:n] if x not in parts]):
            after[name] = rng.choice(whole)
            kinds[after[name], name] = "exclusive"
        elif rng.random() < 0.15 and before not in {*after, *after.values(), *parts}:
            reads[name] = {before: rng.choice((1, 2))}
            kinds |= {(x, name): kinds[x, before] for x in names[: n - 1]} | {(before, name): "parallel"}
            kinds |= {(name, x): kinds[before, x] for x in names[n + 1 :]}
            order[n] = order[n - 1]
    tasks = dict[str, TimedTask]()
    for n, name in enumerate(names):
        run, source = runs[name], after.get(name, next(iter(reads.get(name, ())), None))
        places = sorted(rng.sample(range(1, run), rng.randint(0, run - 1)))
        few = sorted(rng.sample(places, rng.randint(0, len(places))))
        by = {a: kind for (a, b), kind in kinds.items() if b == name}
        beside = {x for pair, kind in kinds.items() if kind == "parallel" and name in pair for x in pair} - {name}
        period = None if rng.random() < 0.2 else float(rng.randint(run + 1, 4 * sum(runs.values())))
        period = tasks[source].period if source is not None else period
        tasks[name] = TimedTask(
            name,
            -order[n] if period is not None or rng.random() < 0.1 else -10,
            period,
            period,
            run,
            {a: _parts(few if kind == "stages" else places, run) for a, kind in by.items() if kind in POINTS},
            frozenset(a for a, kind in by.items() if kind == "anywhere"),
            frozenset(beside),
            frozenset((after[name],)) if name in after and period is not None else frozenset(),
            reads.get(name, {}),
        )
    return tuple(sorted(tasks.values(), key=lambda task: -task.priority))


POINTS = ("stages", "rows")
KINDS = (*POINTS, "stages", "rows", "anywhere", "parallel", "exclusive", "exclusive", "exclusive")


def _parts(places: Sequence[int], run: int) -> tuple[int, ...]:
    ends = (*places, run)
    return tuple(b - a for a, b in zip((0, *places), ends, strict=True))
