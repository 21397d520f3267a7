"""Switching delays on this machine, predicted and measured.

Predictions are those of the transitions, for the times that steps take here and the moment at which a request came.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
ROUNDS = 5  # frames of which the median step times are taken
WARM_UP = 3  # frames of the old scenario before a request
PATIENCE = 60.0  # seconds for a switch to come


@dataclass(frozen=True)
class MeasuredPair:
    """A switch that was requested several times, at random moments of a frame."""

    old: str
    new: str
    predicted: tuple[float, ...]  # of each request
    measured: tuple[float, ...]
    worst_predicted: float  # over all moments

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
    scenarios = {name: _as_measured(running, name, source) for name in running.scenarios}
    processors = running.application.file.adapt.processors
    rng = np.random.default_rng(seed)
    found = []
    for old, new in permutations(running.scenarios, 2):
        one = transition(scenarios[old], scenarios[new], running.policy, processors)
        trials = [_trial(running, source, check, one, float(rng.random())) for _ in range(repeats)]
        predicted, measured, pauses = zip(*trials, strict=True)
        found.append(MeasuredPair(old, new, predicted, measured, one.worst_delay + median(pauses)))
    return tuple(found)


def _as_measured(running: Adaptive, name: str, source: FrameSource) -> Scenario:
    """The scenario with the median times that its steps take here."""
    rounds = [running.step_times(name, source.frame(n)) for n in range(ROUNDS)]
    planned = running.layout.scenarios[name].scenario
    times = np.median(rounds, axis=0)
    if len(times) != len(planned.steps):  # the time of a frame is known, and steps share it as estimated
        times = np.array([step.time for step in planned.steps]) * (times.sum() / (planned.latency or 1.0))
    steps = (replace(step, time=float(t)) for step, t in zip(planned.steps, times, strict=True))
    return replace(planned, steps=tuple(steps))


def _trial(
    running: Adaptive, source: FrameSource, check: ResultCheck, one: Transition, share: float
) -> tuple[float, float, float]:
    """The predicted and the measured delay of a request at a random moment of a frame of the old scenario, and the
    time between frames that the prediction counts in."""
    running.request(one.old.name)
    results: list[AdaptiveResult] = []
    stream = running(source.frames())
    check.begin()
    count, begun = len(running.switches), time.perf_counter()
    asking: Thread | None = None
    try:
        for result in stream:
            check.take(result)
            results.append(result)
            if asking is None and _has_settled(results, one.old.name):
                count = len(running.switches)
                asking = Thread(target=_ask_later, args=(running, one.new.name, share * one.old.latency))
                asking.start()
            if asking is not None and len(running.switches) > count:
                break
            if time.perf_counter() - begun > PATIENCE:
                raise EdgewrightError(
                    f"no switch from '{one.old.name}' to '{one.new.name}' in {PATIENCE:g} s; please report this"
                )
    finally:
        if asking is not None:
            asking.join()
        stream.close()
    switch = running.switches[-1]
    pause = _pause(running.policy, results)
    return _predicted(one, results, switch.requested) + pause, switch.delay, pause


def _has_settled(results: Sequence[AdaptiveResult], scenario: str) -> bool:
    return len(results) >= WARM_UP and all(one.scenario == scenario for one in results[-WARM_UP:])


def _ask_later(running: Adaptive, scenario: str, delay: float) -> None:
    time.sleep(delay)
    running.request(scenario)


def _pause(policy: SwitchPolicy, results: Sequence[AdaptiveResult]) -> float:
    """The time between frames, where Python hands frames over during a switch: not where C goes on by itself."""
    if policy in (SwitchPolicy.OVERLAP, SwitchPolicy.ABORT):
        return 0.0
    gaps = [after.started - before.ended for before, after in pairwise(results[:WARM_UP])]
    return max(0.0, median(gaps))


def _predicted(one: Transition, results: Sequence[AdaptiveResult], requested: float) -> float:
    """The delay for the moment in the frame that was under way; between frames, that of the new scenario alone."""
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
