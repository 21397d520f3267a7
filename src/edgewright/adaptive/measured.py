"""Switching delays on this machine, predicted and measured.

Predictions use the transitions, the request time, and the step times on this machine. The shares of steps in a frame
are measured once, and the frame time just before each request, because other load changes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, permutations
from statistics import median
from threading import Thread

import numpy as np

from ..errors import EdgewrightError
from ..program.switching import SwitchPolicy
from .result_check import FrameSource, ResultCheck
from .runtime import Adaptive, AdaptiveResult
from .steps import Scenario
from .transition import Transition, transition

REPEATS = 5  # requests for each pair of scenarios
ROUNDS = 5  # frames whose median step times are used
WARM_UP = 6  # frames of each scenario before a request; all but the first are timed
PATIENCE = 60.0  # seconds to wait for a switch


@dataclass(frozen=True, slots=True)
class MeasuredDelay:
    """The result of one request, in seconds."""

    predicted: float
    measured: float
    worst_predicted: float  # for a request at the worst time


@dataclass(frozen=True)
class MeasuredPair:
    """A switch that was requested several times, at random times of a frame."""

    old: str
    new: str
    predicted: tuple[float, ...]  # of each request
    measured: tuple[float, ...]
    worst_predicted: float  # over all request times

    def to_dict(self) -> dict[str, object]:
        return {
            "from": self.old,
            "to": self.new,
            "requests": len(self.measured),
            "predicted": median(self.predicted),
            "measured": median(self.measured),
            "worst_predicted": self.worst_predicted,
            "worst_measured": max(self.measured),
        }


def measure_pairs(
    running: Adaptive, source: FrameSource, check: ResultCheck, repeats: int = REPEATS, seed: int = 1
) -> tuple[MeasuredPair, ...]:
    """All pairs of an application without rules and dwell time; every result is checked."""
    meter, rng = SwitchMeter(running, source, check), np.random.default_rng(seed)
    found = []
    for old, new in permutations(running.scenarios, 2):
        trials = [meter.measure(old, new, float(rng.random())) for _ in range(repeats)]
        predicted, measured = (tuple(getattr(one, what) for one in trials) for what in ("predicted", "measured"))
        found.append(MeasuredPair(old, new, predicted, measured, median(one.worst_predicted for one in trials)))
    return tuple(found)


@dataclass(frozen=True)
class SwitchMeter:
    """Measures switches of an application without rules and dwell time, one request at a time."""

    running: Adaptive
    source: FrameSource
    check: ResultCheck

    @cached_property
    def _scenarios(self) -> dict[str, Scenario]:
        """The scenarios with median step times of this machine."""
        return {name: self._as_measured(name) for name in self.running.scenarios}

    def _as_measured(self, name: str) -> Scenario:
        rounds = [self.running.step_times(name, self.source.frame(n)) for n in range(ROUNDS)]
        planned = self.running.layout.scenarios[name].scenario
        times = np.median(rounds, axis=0)
        if len(times) != len(planned.steps):  # only the frame time is known; steps share it as estimated
            return _with_latency(planned, float(times.sum()))
        steps = (replace(step, time=float(t)) for step, t in zip(planned.steps, times, strict=True))
        return replace(planned, steps=tuple(steps))

    @cached_property
    def _transitions(self) -> dict[tuple[str, str], Transition]:
        policy, processors = self.running.policy, self.running.application.file.adapt.processors
        pairs = permutations(self._scenarios.values(), 2)
        return {(old.name, new.name): transition(old, new, policy, processors) for old, new in pairs}

    def measure(self, old: str, new: str, share: float) -> MeasuredDelay:
        """Requests a switch after this share of an old frame. Frames of both scenarios are timed before."""
        one, stream = self._transitions[old, new], self.running(self.source.frames())
        results: list[AdaptiveResult] = []
        self.check.begin()
        try:
            after = self._frame_time(stream, results, new)
            before = self._frame_time(stream, results, old)
            asking = Thread(target=self._ask, args=(new, share * before))
            count = len(self.running.switches)
            asking.start()
            try:
                self._await(stream, results, lambda: len(self.running.switches) > count)
            finally:
                asking.join()
        finally:
            stream.close()
        switch = self.running.switches[-1]
        now = replace(one, old=_with_latency(one.old, before), new=_with_latency(one.new, after))
        pause = _pause(self.running.policy, results)
        predicted = _predicted(now, results, switch.requested) + pause
        return MeasuredDelay(predicted, switch.delay, now.worst_delay + pause)

    def _frame_time(
        self, stream: Generator[AdaptiveResult, None, None], results: list[AdaptiveResult], scenario: str
    ) -> float:
        """The median frame time of a scenario once it is in use."""
        self.running.request(scenario)
        self._await(stream, results, lambda: all(one.scenario == scenario for one in results[-WARM_UP:]), WARM_UP)
        last = list(zip(_begins(results), results, strict=True))[1 - WARM_UP :]
        return median(result.ended - begin for begin, result in last)

    def _await(
        self,
        stream: Generator[AdaptiveResult, None, None],
        results: list[AdaptiveResult],
        has_come: Callable[[], bool],
        least: int = 1,
    ) -> None:
        """Takes and checks results until the condition holds."""
        begun = time.perf_counter()
        for taken, result in enumerate(stream, start=1):
            self.check.take(result)
            results.append(result)
            if taken >= least and has_come():
                return
            if time.perf_counter() - begun > PATIENCE:
                raise EdgewrightError(f"no switch from '{result.scenario}' in {PATIENCE:g} s; please report this")

    def _ask(self, scenario: str, delay: float) -> None:
        time.sleep(delay)
        self.running.request(scenario)


def _with_latency(scenario: Scenario, seconds: float) -> Scenario:
    """The scenario with this frame time; its steps keep their shares."""
    factor = seconds / (scenario.latency or 1.0)
    return replace(scenario, steps=tuple(replace(step, time=step.time * factor) for step in scenario.steps))


def _pause(policy: SwitchPolicy, results: Sequence[AdaptiveResult]) -> float:
    """The time between frames if Python passes frames during a switch; none if C continues by itself."""
    if policy in (SwitchPolicy.OVERLAP, SwitchPolicy.ABORT):
        return 0.0
    gaps = [after.started - before.ended for before, after in pairwise(results[:-1])]
    return max(0.0, median(gaps))


def _predicted(one: Transition, results: Sequence[AdaptiveResult], requested: float) -> float:
    """The delay for the request's time in the current frame; between frames, the new scenario's own."""
    for begin, result in zip(_begins(results), results, strict=True):
        if begin <= requested < result.ended:
            return one.delay(min(requested - begin, one.old.latency * (1 - 1e-9)))
    return one.new.latency


def _begins(results: Sequence[AdaptiveResult]) -> Iterator[float]:
    """When frames were begun: a thread may wait with one until the frame before has ended."""
    ended = float("-inf")
    for result in results:
        yield max(result.started, min(ended, result.ended))
        ended = result.ended
