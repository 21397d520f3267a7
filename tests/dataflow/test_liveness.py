"""Deadlocks are found exactly when a plain execution stops, with the cycle that blocks and what would end it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.dataflow.checks import demand
from edgewright.dataflow.checks.consistency import repetitions
from edgewright.dataflow.checks.liveness import blocked
from edgewright.dataflow.graph import Actor, Channel, Graph, Rates
from edgewright.errors import InputError, Unsupported
from tests.helpers.random_graphs import graphs, live_graphs


def channel(name, source, target, made=1, taken=1, tokens=0, **more) -> Channel:
    def rates(what):
        return what if isinstance(what, Rates) else Rates(what if isinstance(what, tuple) else (what,))

    return Channel(name, source, target, rates(made), rates(taken), tokens, **more)


def graph(*channels: Channel, **phases: int) -> Graph:
    names = dict.fromkeys(name for c in channels for name in (c.source, c.target))
    return Graph("g", tuple(Actor(name, phases.get(name, 1)) for name in names), channels)


def runs_on(g: Graph, capacities: dict[str, int]) -> bool:
    """Whether a plain execution, whoever can fire fires, gets far beyond what any dead graph of these sizes does."""
    fired = {actor.name: 0 for actor in g.actors}
    firings = repetitions(g)
    first = {actor.name: actor.initial_phases for actor in g.actors}

    def may_fire(name: str) -> bool:
        def there(c: Channel) -> int:
            return c.tokens + c.production.upto(fired[c.source]) - c.consumption.upto(fired[c.target])

        lacks = any(there(c) < c.consumption.at(fired[name]) for c in g.inputs[name])
        full = any(there(c) + c.production.at(fired[name]) > capacities.get(c.name, 10**9) for c in g.outputs[name])
        return not lacks and not full and fired[name] < first[name] + 40 * firings[name]

    while ready := [name for name in fired if may_fire(name)]:
        for name in ready:
            while may_fire(name):
                fired[name] += 1
    return all(fired[name] >= first[name] + 20 * firings[name] for name in fired)


@st.composite
def graphs_and_capacities(draw):
    g = draw(st.one_of(graphs(), live_graphs()))
    bounded = [c for c in g.channels if draw(st.booleans())]
    return g, {c.name: c.tokens + draw(st.integers(0, 7)) for c in bounded}


@given(graphs_and_capacities())
def test_blocks_where_a_plain_execution_stops(case):
    g, capacities = case
    assert (blocked(g, capacities) is None) == runs_on(g, capacities)


@given(live_graphs())
def test_graphs_made_live_are_live(g):
    assert blocked(g) is None


@given(graphs_and_capacities())
def test_waits_go_round_and_fixes_are_least(case):
    g, capacities = case
    deadlock = blocked(g, capacities)
    if deadlock is None:
        return
    assert all(wait.missing > 0 for wait in deadlock.waits)
    assert set(deadlock.cycle) <= set(deadlock.waits)
    for wait, following in zip(deadlock.cycle, (*deadlock.cycle[1:], deadlock.cycle[0]), strict=True):
        assert wait.other == following.actor
    for fix in deadlock.fixes:
        if fix.is_enough:
            assert blocked(*changed(g, capacities, fix, fix.wanted)) is None
            assert blocked(*changed(g, capacities, fix, fix.wanted - 1)) is not None


def changed(g, capacities, fix, value):
    name = fix.channel.name
    if fix.is_room:
        return g, {**capacities, name: value}
    channels = tuple(replace(c, tokens=value) if c.name == name else c for c in g.channels)
    room = value - fix.channel.tokens
    return replace(g, channels=channels), {n: c + room * (n == name) for n, c in capacities.items()}


def test_a_cycle_without_tokens():
    g = graph(channel("x", "a", "b", 2, 3), channel("y", "b", "a", 3, 2, tokens=1))
    assert str(blocked(g)) == (
        "graph 'g' deadlocks: 'a' waits for 'b': channel 'y' holds 1 token, 'a' needs 2: 1 missing; "
        "'b' waits for 'a': channel 'x' holds 0 tokens, 'b' needs 3: 3 missing, which closes the cycle. "
        "To try: 4 initial tokens on channel 'y' instead of 1 would make it live; "
        "or 3 initial tokens on channel 'x' instead of 0 would make it live."
    )


def test_a_skip_connection_that_is_too_narrow():
    layers = (Actor("conv_1", note="Conv2d 3×3"), Actor("conv_2"), Actor("add_3", 2, note="Add"))
    skip = channel("skip", "conv_1", "add_3", 1, (2, 2), note="skip connection")
    rows = (channel("x", "conv_1", "conv_2", 1, 4), channel("y", "conv_2", "add_3", 2, (1, 1)), skip)
    deadlock = blocked(Graph("net", layers, rows), {"skip": 3})
    assert str(deadlock) == (
        "graph 'net' deadlocks: 'conv_1' (Conv2d 3×3) waits for 'add_3' to make room in channel 'skip' (skip "
        "connection): of its 3 places 0 are free, 'conv_1' needs 1: 1 missing; "
        "'add_3' (Add) waits for 'conv_2': channel 'y' holds 0 tokens, 'add_3' needs 1: 1 missing; "
        "'conv_2' waits for 'conv_1': channel 'x' holds 3 tokens, 'conv_2' needs 4: 1 missing, which "
        "closes the cycle. To try: a capacity of 4 on channel 'skip' instead of 3 would make it live."
    )


def test_a_self_loop_without_tokens():
    g = graph(channel("x", "a", "b"), channel("again", "b", "b"))
    assert str(blocked(g)) == (
        "graph 'g' deadlocks: actor 'b' waits for itself: its self-loop 'again' holds 0 tokens and a firing needs 1: "
        "1 missing. To try: 1 initial token on channel 'again' instead of 0 would make it live."
    )


def test_a_self_loop_claims_room_before_it_frees_any():
    g = graph(channel("again", "a", "a", tokens=1))
    assert "needs 1 more, since the room of tokens taken is free only when the firing ends" in str(
        blocked(g, {"again": 1})
    )
    assert blocked(g, {"again": 2}) is None


def test_phases_without_rates_are_no_obstacle():
    g = graph(channel("x", "a", "b", (0, 2), (0, 2)), channel("y", "b", "a", (1, 0), (1, 0)), a=2, b=2)
    assert blocked(g) is None  # 'b' makes what 'a' needs in a phase that takes nothing
    g = graph(channel("x", "a", "b", (0, 2), (2, 0)), channel("y", "b", "a", (1, 0), (1, 0)), a=2, b=2)
    assert blocked(g) is not None


def test_every_actor_held_up_is_named():
    g = graph(channel("x", "a", "b"), channel("y", "b", "a"), channel("z", "b", "c"), channel("u", "c", "b", tokens=1))
    deadlock = blocked(g)
    assert {wait.actor for wait in deadlock.waits} == {"a", "b", "c"}
    assert {wait.actor for wait in deadlock.cycle} == {"a", "b"}
    assert "1 more actor waits behind." in str(deadlock)


def test_tokens_that_only_initial_phases_make():
    actors = (Actor("a", initial_phases=1), Actor("b", initial_phases=2))
    x = channel("x", "a", "b", Rates((0,), (2,)), Rates((0,), (1, 2)))
    assert str(blocked(Graph("g", actors, (x,)))) == (
        "graph 'g' deadlocks: 'b' waits for 'a': channel 'x' holds 1 token, 'b' needs 2: 1 missing, and only the "
        "initial phases of 'a' make any."
    )
    assert blocked(Graph("g", actors, (replace(x, tokens=1),))) is None
    assert blocked(Graph("g", actors, (replace(x, tokens=1),)), {"x": 1}) is not None
    assert blocked(Graph("g", actors, (replace(x, tokens=1),)), {"x": 2}) is None


def test_initial_phases_that_take_more_than_they_make():
    actors = (Actor("a"), Actor("b", initial_phases=1))
    x = channel("x", "a", "b", 1, Rates((1,), (3,)))
    assert blocked(Graph("g", actors, (x,))) is None  # 'a' runs ahead
    assert blocked(Graph("g", actors, (x,)), {"x": 2}) is not None
    assert blocked(Graph("g", actors, (x, channel("y", "b", "a", Rates((1,), (1,)), 1, 2)))) is not None
    assert blocked(Graph("g", actors, (x, channel("y", "b", "a", Rates((1,), (1,)), 1, 3)))) is None


def test_a_long_cycle_is_cut_short():
    names = [f"actor_{i}" for i in range(500)]
    ring = [channel(f"c{i}", names[i], names[(i + 1) % 500]) for i in range(500)]
    words = str(blocked(graph(*ring)))
    assert "492 more in between" in words and len(words) < 2000


def test_capacities_that_cannot_be_used():
    g = graph(channel("x", "a", "b", tokens=3))
    with pytest.raises(InputError, match="'x' holds 3 tokens at first, more than its capacity 2"):
        blocked(g, {"x": 2})
    with pytest.raises(InputError, match="no channel 'y' to give a capacity to"):
        blocked(g, {"y": 2})


def test_too_many_firings_are_refused(monkeypatch):
    huge = 10**12
    chain = graph(channel("x", "a", "b", huge, 1), channel("y", "b", "c", 1, huge))
    assert blocked(chain) is None  # nothing waits for each other: no firing is needed
    loop = channel("again", "b", "b", tokens=1)
    assert blocked(graph(*chain.channels, loop)) is None  # one firing of 'b' shows all
    ring = graph(*chain.channels, channel("z", "c", "a", 1, 1, tokens=1))
    monkeypatch.setattr(demand, "MOST_FIRINGS", 1000)
    with pytest.raises(Unsupported, match="only after more than 1,000 firings"):
        blocked(ring)
