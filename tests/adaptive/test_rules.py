"""Decisions about scenarios: precedence, hysteresis, dwell time, cascades, and all against the history replayed."""

from __future__ import annotations

from itertools import pairwise
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.adaptive.description import AdaptiveFile
from edgewright.adaptive.rules import (
    CascadeRule,
    SignalRule,
    SwitchingRules,
    SwitchingState,
    advance,
    due,
    handed_on,
    initial_state,
    margin_of,
    release,
    switching_rules,
    wanted,
    with_request,
    with_signals,
)
from edgewright.errors import InputError
from edgewright.platform.schema import parse_toml

NAMES = ("eco", "mid", "full")
LOW_BATTERY = SignalRule("battery", "eco", 0.25, 0.35, is_below=True)
HOT = SignalRule("temperature", "mid", 80.0, 70.0, is_below=False)
RULES = SwitchingRules(NAMES, "full", "full", (LOW_BATTERY, HOT))

# Events: the values of signals, a request, or None for a release.
Event = dict[str, float] | str | None


def after(rules: SwitchingRules, state: SwitchingState, event: Event) -> SwitchingState:
    if isinstance(event, dict):
        return with_signals(rules, state, event)
    return release(state) if event is None else with_request(rules, state, event)


def wanted_after(*events: Event, rules: SwitchingRules = RULES) -> str:
    state = initial_state(rules)
    for event in events:
        state = after(rules, state, event)
    return wanted(rules, state)


# Precedence.


@pytest.mark.parametrize(
    ("events", "scenario"),
    [
        ([], "full"),
        ([{"battery": 0.2}], "eco"),
        ([{"battery": 0.25}], "full"),  # the bound itself changes nothing
        ([{"battery": 0.2}, {"battery": 0.35}], "eco"),
        ([{"battery": 0.2}, {"battery": 0.36}], "full"),
        ([{"battery": 0.2}, {"battery": nan}], "eco"),
        ([{"battery": nan}], "full"),
        ([{"battery": -inf}, {"battery": inf}], "full"),
        ([{"temperature": 90}], "mid"),
        ([{"temperature": 90}, {"temperature": 75}], "mid"),
        ([{"temperature": 90}, {"temperature": 69}], "full"),
        ([{"temperature": 90, "battery": 0.2}], "eco"),  # the first rule of the file wins
        ([{"temperature": 90, "battery": 0.2}, {"battery": 0.5}], "mid"),
        # A request holds until the rules report something new.
        ([{"battery": 0.2}, "full"], "full"),
        ([{"battery": 0.2}, "full", {"battery": 0.1}], "full"),
        ([{"battery": 0.2}, "full", {"temperature": 90}], "eco"),  # another rule becomes active
        ([{"battery": 0.2}, "mid", {"battery": 0.5}], "full"),  # the first active rule becomes inactive
        ([{"battery": 0.2, "temperature": 90}, "full", {"temperature": 20}], "full"),  # one further down does
        (["mid", "eco"], "eco"),
        ([{"battery": 0.2}, "mid", None], "eco"),
        (["mid", None], "full"),
    ],
)
def test_precedence(events, scenario):
    assert wanted_after(*events) == scenario


def test_the_start_holds_until_the_first_reading():
    rules = SwitchingRules(NAMES, "full", "mid", (LOW_BATTERY,))
    assert wanted_after(rules=rules) == "full"
    assert wanted_after({"battery": nan}, rules=rules) == "full"
    assert wanted_after({"battery": 0.9}, rules=rules) == "mid"
    assert wanted_after({"battery": 0.2}, rules=rules) == "eco"
    assert wanted_after("eco", {"battery": 0.9}, rules=rules) == "eco"  # a request outlives the reading
    assert wanted_after("eco", None, rules=rules) == "full"


def test_unknown_names_are_refused():
    state = initial_state(RULES)
    with pytest.raises(InputError, match=r'"ful" is no scenario; did you mean "full"\? \(scenarios: eco, mid, full\)'):
        with_request(RULES, state, "ful")
    with pytest.raises(InputError, match=r'no rule reads the signal "batery"; did you mean "battery"\?'):
        with_signals(RULES, state, {"batery": 0.5})


def test_the_rules_of_a_file():
    text = """
        [adapt]
        dwell = "5 s"
        fallback = "mid"
        [[network]]
        name = "net"
        file = "net.onnx"
        [[scenario]]
        name = "eco"
        network = "net"
        [[scenario]]
        name = "mid"
        network = "net"
        [[rule]]
        signal = "battery"
        below = 0.25
        until = 0.35
        request = "eco"
        [[rule]]
        scenario = "eco"
        margin_below = 0.2
        request = "mid"
        [[rule]]
        signal = "temperature"
        above = 80
        request = "eco"
    """
    rules = switching_rules(parse_toml(text, "app.toml", AdaptiveFile, "an application"))
    hot = SignalRule("temperature", "eco", 80.0, 80.0, is_below=False)
    cascades = (CascadeRule("eco", "mid", 0.2),)
    assert rules == SwitchingRules(("eco", "mid"), "eco", "mid", (LOW_BATTERY, hot), cascades, 5.0)


# Dwell time.


def test_a_request_within_the_dwell_time_is_carried_out_after_it_and_the_newest_wins():
    rules = SwitchingRules(NAMES, "full", "full", dwell=10)
    state = advance(rules, with_request(rules, initial_state(rules), "eco"), 3)
    assert (state.current, state.switched_at, due(rules, state)) == ("eco", 3, None)
    state = advance(rules, with_request(rules, state, "mid"), 5)
    assert (state.current, due(rules, state)) == ("eco", 13)
    state = advance(rules, with_request(rules, state, "full"), 12.9)
    assert state.current == "eco"
    state = advance(rules, state, 13)
    assert (state.current, state.switched_at, due(rules, state)) == ("full", 13, None)


def test_what_is_over_before_the_dwell_time_is_causes_no_switch():
    rules = SwitchingRules(NAMES, "full", "full", (LOW_BATTERY,), dwell=10)
    state = advance(rules, with_signals(rules, initial_state(rules), {"battery": 0.1}), 0)
    for time, battery in ((2, 0.9), (4, 0.1)):
        state = advance(rules, with_signals(rules, state, {"battery": battery}), time)
    assert advance(rules, state, 100) == state
    assert state.current == "eco"


# Against the history replayed.


@st.composite
def histories(draw: st.DrawFn) -> tuple[SwitchingRules, list[tuple[int, Event]]]:
    """Rules and events at rising times, all numbers small integers so that bounds are met."""
    count = draw(st.integers(0, 4))
    drawn = []
    for _ in range(count):
        threshold, gap, is_below = draw(st.integers(0, 4)), draw(st.integers(0, 2)), draw(st.booleans())
        until = threshold + gap if is_below else threshold - gap
        names = draw(st.sampled_from("ab")), draw(st.sampled_from(NAMES))
        drawn.append(SignalRule(*names, threshold, until, is_below))
    start, fallback = draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))
    rules = SwitchingRules(NAMES, start, fallback, tuple(drawn), dwell=draw(st.integers(0, 6)))
    values = st.one_of(st.integers(-2, 6).map(float), st.just(nan))
    events = st.one_of(st.sampled_from(NAMES), st.none())
    if rules.signals:
        events |= st.dictionaries(st.sampled_from(rules.signals), values)
    history, time = [], 0
    for _ in range(draw(st.integers(0, 30))):
        time += draw(st.integers(0, 4))
        history.append((time, draw(events)))
    return rules, history


def replayed_wanted(rules: SwitchingRules, events: list[Event]) -> str:
    """The wanted scenario from the whole history, without any state: what each rule was last told decides."""

    def is_on(rule: SignalRule, upto: int) -> bool:
        sign = -1 if rule.is_below else 1
        told = [sign * e[rule.signal] for e in events[:upto] if isinstance(e, dict) and rule.signal in e]
        past = [index for index, value in enumerate(told) if value > sign * rule.threshold]
        back = [index for index, value in enumerate(told) if value < sign * rule.until]
        return max(past, default=-1) > max(back, default=-1)

    active = [[is_on(rule, upto) for rule in rules.rules] for upto in range(len(events) + 1)]
    request: str | None = None
    for event, before, now in zip(events, active, active[1:], strict=False):
        if isinstance(event, dict):
            becomes_active = any(b > a for a, b in zip(before, now, strict=True))
            if becomes_active or (True in before and not now[before.index(True)]):
                request = None
        else:
            request = event
    requests = [rule.request for rule, on in zip(rules.rules, active[-1], strict=True) if on]
    is_read = any(value == value for event in events if isinstance(event, dict) for value in event.values())
    return request or (requests or [rules.fallback if is_read else rules.start])[0]


@given(histories())
def test_decisions_follow_the_history(case):
    rules, history = case
    state, switches, done = initial_state(rules), [], []
    clock = 0
    for time, event in [*history, (history[-1][0] + 50 if history else 50, None)]:
        while clock < time:  # polled at every instant, as a runtime does between frames
            before, state = state, advance(rules, state, clock)
            switches += [clock] * (before.current != state.current)
            clock += 1
        if len(done) < len(history):
            done.append(event)
            state = after(rules, state, event)
            assert wanted(rules, state) == replayed_wanted(rules, done)
    assert state.current == wanted(rules, state)  # nothing is lost
    assert all(second - first >= max(1, rules.dwell) for first, second in pairwise(switches))


@given(histories(), st.integers(0, 200))
def test_a_decision_depends_on_its_arguments_alone(case, time):
    rules, history = case
    state = initial_state(rules)
    for _, event in history:
        if isinstance(event, dict):
            backwards = with_signals(rules, state, dict(reversed(event.items())))
            assert backwards == with_signals(rules, state, event)
        state = after(rules, state, event)
    moved = advance(rules, state, time)
    assert advance(rules, state, time) == moved
    assert advance(rules, moved, time) == moved
    ready = due(rules, state)
    assert (moved.current != state.current) == (ready is not None and ready <= time)


@given(st.floats(0.01, 0.1), st.booleans(), st.integers(0, 2**32 - 1))
def test_noise_within_the_hysteresis_never_chatters(gap, is_below, seed):
    """A signal that falls and rises once, with noise of nearly the gap: the rule changes twice."""
    rng = np.random.default_rng(seed)
    clean = np.concatenate([np.linspace(1, 0, 300), np.linspace(0, 1, 300)])
    noisy = clean + rng.uniform(-0.49 * gap, 0.49 * gap, len(clean))
    low, high = 0.5, 0.5 + gap
    rule = SignalRule("x", "eco", low, high, True) if is_below else SignalRule("x", "eco", high, low, False)
    active, changes = not is_below, 0
    for value in noisy:
        before, active = active, rule.is_active(float(value), active)
        changes += active != before
    assert changes == 2


# Cascades.

CASCADE = SwitchingRules(
    NAMES,
    "eco",
    "eco",
    (),
    (CascadeRule("eco", "full", 0.1), CascadeRule("eco", "mid", 0.3), CascadeRule("mid", "full", 0.2)),
)


@pytest.mark.parametrize(
    ("scenario", "margin", "next_one"),
    [
        ("eco", 0.05, "full"),
        ("eco", 0.1, "mid"),
        ("eco", 0.3, None),
        ("mid", 0.1, "full"),
        ("full", 0.0, None),
        ("eco", nan, "full"),
        ("eco", inf, None),
    ],
)
def test_cascades_hand_unsure_results_on(scenario, margin, next_one):
    assert handed_on(CASCADE, scenario, margin) == next_one


@given(st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=20))
def test_margins(scores):
    others = list(scores)
    others.remove(max(scores))
    assert margin_of(scores) == max(scores) - max(others)
    assert margin_of(np.array(scores, np.float32)).dtype == np.float32
    assert np.isnan(margin_of([*scores, nan]))
