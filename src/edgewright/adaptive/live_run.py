"""Runs an application on this machine while scenarios are requested: `adapt --run`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Protocol

from ..errors import EdgewrightError
from .deploying import SwitchingApplication
from .measured import MeasuredPair, measure_pairs
from .result_check import FrameSource, ResultCheck
from .runtime import Adaptive


class Requests(Protocol):
    """A source of requests."""

    error: EdgewrightError | None
    count: int

    def feeding(self, running: Adaptive) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class ShownSwitch:
    """A switch as reported: the first frame of the new scenario, and the delay if it was requested."""

    frame: int
    old: str
    new: str
    delay: float | None

    def to_dict(self) -> dict[str, object]:
        return {"frame": self.frame, "from": self.old, "to": self.new, "delay": self.delay}


@dataclass(frozen=True)
class LiveOutcome:
    """The results of a run."""

    switching: SwitchingApplication
    pairs: tuple[MeasuredPair, ...]
    check: ResultCheck
    requests: int
    switches: tuple[ShownSwitch, ...]

    def to_dict(self) -> dict[str, object]:
        return {
            "policy": self.switching.policy.value,
            "arena_bytes": self.switching.layout.arena_bytes,
            "delays": [pair.to_dict() for pair in self.pairs],
            "results": self.check.to_dict(),
            "requests": self.requests,
            "switches": [one.to_dict() for one in self.switches],
        }

    def demand_right(self) -> None:
        """Raises an error if a result is wrong."""
        if not self.check.is_right:
            raise EdgewrightError(f"of {self.check.frames} results: {self.check.said}; please report this")


def run_live(
    switching: SwitchingApplication,
    requests: Requests,
    frames: int | None,
    on_measured: Callable[[tuple[MeasuredPair, ...]], None] = lambda _: None,
    on_switch: Callable[[ShownSwitch], None] = lambda _: None,
) -> LiveOutcome:
    """Measures all switches, then runs `frames` frames while requests come; without a number until interrupted."""
    source = FrameSource(switching.application)
    check = ResultCheck(source)
    with Adaptive(without_rules(switching), switching.layout) as measuring:
        pairs = measure_pairs(measuring, source, check)
    on_measured(pairs)
    switches: list[ShownSwitch] = []
    check.begin()
    with Adaptive(switching, switching.layout) as running, suppress(KeyboardInterrupt), requests.feeding(running):
        current, known = running.current, 0
        for result in running(source.frames(frames)):
            check.take(result)
            if requests.error is not None:
                raise requests.error
            if result.scenario == running.current != current:
                noted = running.switches[known:]
                delay = next((one.delay for one in reversed(noted) if one.scenario == result.scenario), None)
                known = len(running.switches)
                switches.append(ShownSwitch(result.frame, current, result.scenario, delay))
                on_switch(switches[-1])
                current = result.scenario
        if frames is not None:
            check.end(frames)
    if requests.error is not None:
        raise requests.error
    return LiveOutcome(switching, pairs, check, requests.count, tuple(switches))


def without_rules(switching: SwitchingApplication) -> SwitchingApplication:
    """The same plans without rules and dwell time, so that requests alone decide."""
    file = switching.application.file
    free = file.model_copy(update={"rules": (), "adapt": file.adapt.model_copy(update={"dwell": 0.0})})
    return replace(switching, application=replace(switching.application, file=free))
