"""Which scenario applies: rules on signals, explicit requests, dwell time, confidence cascade.

Everything here is a value or a pure function: the simulation, the Python runtime and the C code make the same
decisions. Precedence, from strong to weak:

1. Dwell time. After a switch the scenario stays for at least `dwell`. Requests during this time are not lost: when it
   is over, the application switches to the scenario that is wanted then, unless that is the current one.
2. An explicit request. The last one wins. It holds until the rules report something new: a rule becomes active, or the
   first active rule becomes inactive. A later rule that becomes inactive changes nothing. `release` ends a request
   early.
3. Rules, in the order of the file. The first active one decides.
4. The fallback, while no rule is active. Before the first reading of a signal it is the start scenario.

A cascade is not a switch: it computes single frames again, without changing the dwell time or the current scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan

from ..errors import InputError
from ..platform.schema import suggestion
from ..program.switching import CascadeRule, SignalRule, SwitchingRules
from .description import AdaptiveFile


@dataclass(frozen=True, slots=True)
class SwitchingState:
    """The state that decisions depend on, besides the rules."""

    current: str
    active: tuple[bool, ...]  # of each rule
    requested: str | None = None  # explicit request in force
    has_reading: bool = False  # of any signal
    switched_at: float | None = None  # the last switch; the start does not count


def switching_rules(file: AdaptiveFile) -> SwitchingRules:
    """The rules of an application's file."""
    signals, cascades = [], []
    for one in file.rules:
        if one.scenario is not None and one.margin_below is not None:
            cascades.append(CascadeRule(one.scenario, one.request, one.margin_below))
        elif one.signal is not None and one.threshold is not None and one.end is not None:
            signals.append(SignalRule(one.signal, one.request, one.threshold, one.end, one.below is not None))
    names, dwell = file.scenario_names, file.adapt.dwell
    return SwitchingRules(names, file.start, file.fallback, tuple(signals), tuple(cascades), dwell)


def initial_state(rules: SwitchingRules) -> SwitchingState:
    """The state at the start: no signal has a value yet, so no rule is active."""
    return SwitchingState(rules.start, (False,) * len(rules.rules))


def with_signals(rules: SwitchingRules, state: SwitchingState, values: Mapping[str, float]) -> SwitchingState:
    """The state after these signals changed at once; others keep their values."""
    for name in values:
        if name not in rules.signals:
            known = ", ".join(rules.signals) or "none, since there are no rules"
            raise InputError(f'no rule reads the signal "{name}"{suggestion(name, rules.signals)} (signals: {known})')
    active = tuple(
        rule.is_active(values[rule.signal], was) if rule.signal in values else was
        for rule, was in zip(rules.rules, state.active, strict=True)
    )
    is_news = any(now and not was for now, was in zip(active, state.active, strict=True))
    is_news |= _first(active) != _first(state.active)
    has_reading = state.has_reading or not all(map(isnan, values.values()))
    return replace(state, active=active, has_reading=has_reading, requested=None if is_news else state.requested)


def with_request(rules: SwitchingRules, state: SwitchingState, scenario: str) -> SwitchingState:
    """The state after an explicit request, which replaces an earlier one."""
    if scenario not in rules.scenarios:
        near = suggestion(scenario, rules.scenarios)
        raise InputError(f'"{scenario}" is no scenario{near} (scenarios: {", ".join(rules.scenarios)})')
    return replace(state, requested=scenario)


def release(state: SwitchingState) -> SwitchingState:
    """The state after the explicit request was withdrawn, so that rules decide again."""
    return replace(state, requested=None)


def wanted(rules: SwitchingRules, state: SwitchingState) -> str:
    """The scenario that applies, ignoring dwell time."""
    if state.requested is not None:
        return state.requested
    first = _first(state.active)
    if first is not None:
        return rules.rules[first].request
    return rules.fallback if state.has_reading else rules.start


def due(rules: SwitchingRules, state: SwitchingState) -> float | None:
    """The earliest time of a switch to the wanted scenario; None if that is the current one."""
    if wanted(rules, state) == state.current:
        return None
    return -inf if state.switched_at is None else state.switched_at + rules.dwell


def advance(rules: SwitchingRules, state: SwitchingState, time: float) -> SwitchingState:
    """The state at this time, switched to the wanted scenario if that is due. A runtime calls this between frames."""
    ready = due(rules, state)
    if ready is None or time < ready:
        return state
    return replace(state, current=wanted(rules, state), switched_at=time)


def handed_on(rules: SwitchingRules, scenario: str, margin: float) -> str | None:
    """The scenario that recomputes the frame after a result with this margin; None if the result stands.

    The first cascade rule that applies decides. A NaN margin counts as below every threshold.
    """
    for rule in rules.cascades:
        if rule.scenario == scenario and not margin >= rule.margin_below:
            return rule.request
    return None


def margin_of(scores: Sequence[float]) -> float:
    """The lead of the best class over the second, in real values: integers are dequantised first.

    The result has the type of the scores, so that float32 scores give the same value as in C. It is NaN if a score is.
    """
    assert len(scores) >= 2, "a cascade needs two classes or more"
    second, best = sorted(scores)[-2:]
    return nan if any(map(isnan, scores)) else best - second


def _first(active: Sequence[bool]) -> int | None:
    return next((index for index, one in enumerate(active) if one), None)
