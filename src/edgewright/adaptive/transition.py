"""Switching from one scenario to another: when each new step may start, and the delay under each policy.

The delay of a switch is the time from the request to the first output of the new scenario. A request comes at a time
within the interval of the old scenario: after the start of the last frame, before the next one would start. No frame of
the old scenario begins after it. Frames in progress end normally, except under `ABORT` and `OVERTAKE`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..errors import InputError
from ..program.switching import SwitchPolicy
from .steps import Scenario


@dataclass(frozen=True, slots=True)
class StepWait:
    """Why a new step waits for an old one."""

    new_step: int
    old_step: int
    buffer: str | None  # of the old scenario, overwritten by the new step; None: both need one processor


@dataclass(frozen=True, slots=True)
class StepRun:
    """One execution of a step."""

    is_new: bool
    step: int
    processor: int  # physical
    start: float
    end: float


@dataclass(frozen=True)
class Timeline:
    """The course of a switch requested at `arrival`; the last frame of the old scenario begins at 0."""

    transition: Transition
    arrival: float
    runs: tuple[StepRun, ...]  # by start; of those that take no time, in the order of execution

    @property
    def delay(self) -> float:
        return max(run.end for run in self.runs if run.is_new) - self.arrival


@dataclass(frozen=True)
class Transition:
    """A pair of scenarios under a policy.

    `needs[i][p]` says how many steps of the old processor p must have ended, in the last frame that began, before step
    i of the new scenario may start under `OVERLAP`. Let R be the old steps that have not ended when the request comes.
    Step i then waits for (a) the new steps it comes after, (b) all steps in R of its physical processor, (c) all steps
    in R that touch a byte which it writes.

    No hazard. Whatever step i writes, no step of R touches later, by (c). Whatever it reads, an earlier new step j
    wrote, and step i comes after j by (a) or by the order of its processor; by (c) for j, all of R that touch that byte
    had ended when j started. So no step of the old scenario loses a value, and none destroys one of the new scenario.

    Pipelined scenarios. All frames do the same steps on the same bytes, and each processor does them frame by frame. So
    the last step of R on a processor that touches a byte is one of the last frame, and `needs` counts in that frame
    alone. Later frames of the new scenario follow its first one on each processor, so (b) and (c) hold for them too.

    Never slower than `FINISH`. By (b) no old step waits for a new one, so all of R has ended when the old scenario ends
    under `FINISH`, at E. By induction over the new steps in the order listed, each starts no later than E plus its
    start in a frame alone: by then R has ended, and all steps that it waits for by (a) have too.

    The other policies never run steps of both scenarios at the same time. Under `FINISH` and `ABORT` no step of the old
    scenario runs after one of the new, so nothing is lost. Under `OVERTAKE` the rest of the old frame does: it reads
    what it writes itself before, and the values that are live at the switch point, none of which the new scenario
    writes. `points` ends with the end of the frame, so both start the new scenario no later than `FINISH`.
    """

    old: Scenario
    new: Scenario
    policy: SwitchPolicy
    processors: int
    rotation: int = 0  # the new scenario's processor q is the old one's (q + rotation) mod processors
    needs: tuple[tuple[int, ...], ...] = field(default=(), repr=False)  # of `OVERLAP`
    # Of `OVERTAKE`: counts of old steps after which the new scenario overwrites nothing that the old frame still reads.
    points: tuple[int, ...] = ()

    @cached_property
    def completion(self) -> float:
        """When the first output comes under `OVERLAP`, unless the new scenario itself takes longer.

        Each pair of a new step i and k old steps of processor p that it waits for delays the output to E_p(k) + R(i):
        from the end of these steps, along the longest path from step i. What has ended before the request at a time a
        delays it to a + R(i) at most, and a + R(i) <= a + (latency of the new scenario).
        """
        ends, tails = self.old.ends_by_count, self.new.tails
        return max(
            ends[processor][count] + tail if count else 0
            for counts, tail in zip(self.needs, tails, strict=True)
            for processor, count in enumerate(counts)
        )

    def delay(self, arrival: float) -> float:
        """The delay of a request at this time of the old frame."""
        if self.policy is SwitchPolicy.OVERLAP:
            return max(self.new.latency, self.completion - arrival)
        return self._start(arrival) - arrival + self.new.latency

    @cached_property
    def worst_delay(self) -> float:
        """The longest delay of any request. Delays only fall between starts of old steps."""
        return max(self.delay(arrival) for arrival in self.old.critical_arrivals)

    def _start(self, arrival: float) -> float:
        """When the new scenario starts, under all policies except `OVERLAP`."""
        if self.policy is SwitchPolicy.ABORT:
            return self.old.running_until(arrival)
        if self.policy is SwitchPolicy.OVERTAKE:
            return self.old.ends_by_count[0][self._point(arrival)]
        return self.old.latency

    def _point(self, arrival: float) -> int:
        """The next switch point under `OVERTAKE`, as a count of old steps; steps that have begun end before it."""
        begun = bisect_right(self.old.starts, arrival)
        return self.points[bisect_left(self.points, begun)]

    def starts(self, arrival: float) -> tuple[float, ...]:
        """When each step of the new scenario starts."""
        if self.policy is not SwitchPolicy.OVERLAP:
            begin = self._start(arrival)
            return tuple(begin + start for start in self.new.starts)
        ended = self.old.ends_by_count
        free: list[float] = [arrival] * self.new.processors
        starts: list[float] = []
        for step, counts in zip(self.new.steps, self.needs, strict=True):
            start = free[step.processor]
            for other in step.after:
                start = max(start, starts[other] + self.new.steps[other].time)
            for processor, count in enumerate(counts):
                start = max(start, ended[processor][count])
            starts.append(start)
            free[step.processor] = start + step.time
        return tuple(starts)

    def timeline(self, arrival: float) -> Timeline:
        """All runs of old and new steps for a request at this time, including earlier frames in progress."""
        everything = range(len(self.old.steps))
        point = self._point(arrival) if self.policy is SwitchPolicy.OVERTAKE else len(everything)
        before: list[StepRun] = []
        age: float = 0  # of a frame, when the last one begins
        while age == 0 or age + arrival < self.old.latency:
            before += self._old_runs(everything[:point], -age)
            age += self.old.interval
            if not age:
                break
        if self.policy is SwitchPolicy.ABORT:
            before = [run for run in before if run.start <= arrival]
        new = [
            StepRun(True, at, self.physical(step.processor), start, start + step.time)
            for at, (step, start) in enumerate(zip(self.new.steps, self.starts(arrival), strict=True))
        ]
        runs = (*before, *new, *self._old_runs(everything[point:], self.new.latency))
        return Timeline(self, arrival, tuple(sorted(runs, key=lambda run: (run.start, run.end))))

    def _old_runs(self, steps: Iterable[int], begin: float) -> Iterator[StepRun]:
        """The steps of an old frame that begins at this time."""
        for at in steps:
            start = begin + self.old.starts[at]
            yield StepRun(False, at, self.old.steps[at].processor, start, start + self.old.steps[at].time)

    def physical(self, processor: int) -> int:
        """The old scenario's number of a processor of the new one."""
        return (processor + self.rotation) % self.processors

    @cached_property
    def waits(self) -> tuple[StepWait | None, ...]:
        """For each new step, the last old step that it waits for under `OVERLAP`, and why."""
        return tuple(map(self._wait, range(len(self.needs))))

    def _wait(self, new_step: int) -> StepWait | None:
        counts, writes = self.needs[new_step], self.new.steps[new_step].writes
        last = max(range(len(counts)), key=lambda p: self.old.ends_by_count[p][counts[p]])
        if not counts[last]:
            return None
        old_step = self.old.queues[last][counts[last] - 1]
        step = self.old.steps[old_step]
        shared = step.touches & writes
        return StepWait(new_step, old_step, (step.buffer_at(shared) or step.name) if shared else None)


def transition(old: Scenario, new: Scenario, policy: SwitchPolicy, processors: int = 1) -> Transition:
    """The transition from the old to the new scenario; under `OVERLAP` with the rotation that ends first."""
    needed = max(old.processors, new.processors)
    if processors < needed:
        raise InputError(
            f"scenarios '{old.name}' and '{new.name}' take {needed} processors, and there are {processors}; "
            f"give processors = {needed} or more"
        )
    plain = Transition(old, new, policy, processors)
    match policy:
        case SwitchPolicy.OVERLAP if processors < 2:
            raise InputError(
                'policy "overlap" gains nothing on one processor, where the new scenario can only run when the old one '
                'does not; give processors = 2 or more, or choose "finish", "overtake" or "abort"'
            )
        case SwitchPolicy.OVERLAP:
            byte_needs = _byte_needs(old, new)
            rotated = [replace(plain, rotation=rotation) for rotation in range(processors)]
            trials = [replace(trial, needs=_with_processors(trial, byte_needs)) for trial in rotated]
            return min(trials, key=lambda trial: trial.completion)
        case SwitchPolicy.OVERTAKE:
            if old.processors > 1:
                raise InputError(
                    f"policy \"overtake\" interrupts scenarios on one processor, and '{old.name}' runs on "
                    f'{old.processors}; choose "finish", "overlap" or "abort"'
                )
            last = len(old.steps)
            free = (count for count in range(1, last) if not old.live[count] & new.writes)
            return Transition(old, new, policy, processors, points=(*free, last))
    return plain


def _byte_needs(old: Scenario, new: Scenario) -> list[tuple[int, ...]]:
    """By new step and old processor: the steps that must have ended so that no remaining one touches what the step
    writes."""
    processors = range(old.processors)
    return [tuple(old.steps_until_free(p, step.writes) for p in processors) for step in new.steps]


def _with_processors(trial: Transition, byte_needs: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """The needs including those of each step's physical processor: all its old steps."""
    sizes = [len(queue) for queue in trial.old.queues]
    found = []
    for step, counts in zip(trial.new.steps, byte_needs, strict=True):
        own = trial.physical(step.processor)
        found.append((*counts[:own], sizes[own], *counts[own + 1 :]) if own < len(sizes) else counts)
    return tuple(found)
