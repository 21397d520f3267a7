"""The data of code that switches between scenarios: the policy, when steps may start, the rules.

A scenario is a part of a deployment that computes whole frames. All of them lie in one arena.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class SwitchPolicy(Enum):
    """The treatment of the current frame when another scenario is requested."""

    FINISH = "finish"  # it ends, then the new scenario starts
    OVERLAP = "overlap"  # it goes on while the new scenario starts on another processor, where memory is free
    OVERTAKE = "overtake"  # the new scenario runs first, where the memory of the old frame survives
    ABORT = "abort"  # the new scenario computes it instead


@dataclass(frozen=True, slots=True)
class SignalRule:
    """Requests a scenario from when a signal passes `threshold` to when it is back beyond `until`.

    With `is_below` the rule becomes active below the threshold and inactive above `until`; else the other way round.
    A value that equals either bound, or is not a number, leaves the rule as it is.
    """

    signal: str
    request: str
    threshold: float
    until: float
    is_below: bool

    def is_active(self, value: float, was_active: bool) -> bool:
        """Whether the rule is active once its signal has this value."""
        if self.is_below:
            return not value > self.until if was_active else value < self.threshold
        return not value < self.until if was_active else value > self.threshold


@dataclass(frozen=True, slots=True)
class CascadeRule:
    """Hands frames of `scenario` whose margin is below `margin_below` on to the scenario `request`."""

    scenario: str
    request: str
    margin_below: float


@dataclass(frozen=True, slots=True)
class SwitchingRules:
    """The rules of an application file that choose scenarios. All times have the same unit."""

    scenarios: tuple[str, ...]
    start: str
    fallback: str
    rules: tuple[SignalRule, ...] = ()
    cascades: tuple[CascadeRule, ...] = ()
    dwell: float = 0.0

    @property
    def signals(self) -> tuple[str, ...]:
        """The signals that rules read, each once."""
        return tuple(dict.fromkeys(rule.signal for rule in self.rules))


@dataclass(frozen=True)
class SwitchSchedule:
    """When steps may run during a switch. A step is a stage, or a turn of one that can be interrupted between rows."""

    policy: SwitchPolicy
    steps: Mapping[str, tuple[int, ...]]  # of each scenario: the number of steps of each stage
    # By (old, new), of `OVERLAP`: for each step of the new scenario, how many of the old one must have ended.
    needs: Mapping[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    # Of `OVERTAKE`: by count of ended steps, the scenarios that overwrite nothing that the frame still needs.
    overtakers: Mapping[str, tuple[frozenset[str], ...]] = field(default_factory=dict)
