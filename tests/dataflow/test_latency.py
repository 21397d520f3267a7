"""Latency against plain definitions, worked by hand and by the firings of self-timed execution."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.dataflow.checks.consistency import repetitions
from edgewright.dataflow.checks.liveness import blocked
from edgewright.dataflow.graph import Actor, Channel, Graph, Rates
from edgewright.dataflow.throughput.latency import latency
from edgewright.dataflow.throughput.selftimed import self_timed
from edgewright.errors import ModelError, Unsupported
from tests.helpers.random_graphs import live_graphs

ONE = Rates((1,))


def chain(*times: int) -> Graph:
    """Actors that each fire once per iteration and do not overlap with themselves."""
    names = "abcdef"[: len(times)]
    actors = tuple(Actor(name, times=(time,)) for name, time in zip(names, times, strict=True))
    loops = [Channel(f"self_{name}", name, name, ONE, ONE, tokens=1) for name in names]
    links = [Channel(a + b, a, b, ONE, ONE) for a, b in pairwise(names)]
    return Graph("chain", actors, (*links, *loops))


def test_a_chain_takes_the_sum_of_its_times():
    found = latency(chain(2, 5, 3))
    assert (found.first, found.sources, found.sinks) == (10, ("a",), ("c",))
    assert found.steady is None  # 'a' runs ahead of 'b' without end


def test_room_keeps_a_fast_source_from_running_ahead():
    room = {"ab": 1, "bc": 1, "self_a": 2, "self_b": 2, "self_c": 2}
    # 'a' starts when 'b' ends, which is when 'c' starts; 'b' waits for 'c' to end: 3 + 5 + 3
    assert latency(chain(2, 5, 3), room).steady == 11
    # 'a' starts again as soon as 'b' has freed a place: one iteration waits in the channel while another is in 'b'
    assert latency(chain(2, 5, 3), {**room, "ab": 2, "bc": 2}).steady == 13


def test_a_cycle_counts_every_actor():
    graph = chain(2, 5, 3)
    ring = replace(graph, channels=(*graph.channels, Channel("ca", "c", "a", ONE, ONE, tokens=1)))
    found = latency(ring)
    assert (found.first, found.steady, found.sources) == (10, 10, ("a", "b", "c"))


def test_initial_phases_belong_to_the_first_iteration():
    a = Actor("a", times=(1,))
    b = Actor("b", times=(7, 1), initial_phases=1)
    serial = Channel("s", "a", "a", ONE, ONE, tokens=1)
    ab = Channel("ab", "a", "b", ONE, Rates((1,), (3,)))
    # 'b' begins at 3 with three tokens of 'a', and its first repeated phase runs beside the initial one
    assert latency(Graph("g", (a, b), (serial, ab))).first == 10


def test_a_sink_that_initial_tokens_let_run_ahead():
    links = (Channel("x", "a", "b", ONE, ONE, tokens=1), Channel("y", "b", "c", ONE, ONE, tokens=1))
    graph = Graph("g", tuple(Actor(name, times=(1,)) for name in "abc"), links)
    # no room for 'a' before 'b' has ended, nor for 'b' before 'c' has: 'a' starts at 2, 'c' ended at 1
    assert latency(graph, {"x": 1, "y": 1}).first == -1


@given(live_graphs(initial_phases=0))
def test_the_first_iteration_is_that_of_self_timed_execution(graph):
    found = latency(graph)
    firings = self_timed(graph, iterations=1).firings
    start = min(firing.start for firing in firings if firing.actor in found.sources)
    assert found.first == max(firing.end for firing in firings if firing.actor in found.sinks) - start


@given(live_graphs(actors=4), st.data())
def test_the_regime_repeats_as_told(graph, data):
    capacities = {c.name: c.tokens + data.draw(st.integers(0, 8)) for c in graph.channels}
    if blocked(graph, capacities):
        with pytest.raises(ModelError, match="deadlocks"):
            latency(graph, capacities)
        return
    found = latency(graph, capacities)
    if found.steady is not None:
        assert max(lengths(graph, capacities, found, 90)[60:]) == found.steady


def lengths(graph, capacities, found, iterations) -> list[Fraction]:
    """The latency of each iteration, from a list of all firings."""
    counts = repetitions(graph)
    starts: dict[int, list[Fraction]] = {}
    ends: dict[int, list[Fraction]] = {}
    for firing in self_timed(graph, capacities, iterations).firings:
        iteration = (firing.index - graph.by_name[firing.actor].initial_phases) // counts[firing.actor]
        if firing.actor in found.sources:
            starts.setdefault(iteration, []).append(firing.start)
        if firing.actor in found.sinks:
            ends.setdefault(iteration, []).append(firing.end)
    # of the last ones, initial phases may keep some actors from the end
    return [max(ends[iteration]) - min(starts[iteration]) for iteration in range(iterations - 10)]


def test_times_are_needed_and_a_dead_graph_has_no_latency():
    graph = chain(1, 1)
    with pytest.raises(ModelError, match="no execution time"):
        latency(replace(graph, actors=(replace(graph.actors[0], times=None), graph.actors[1])))
    with pytest.raises(ModelError, match="deadlocks"):
        latency(graph, {"self_a": 1})
    assert latency(Graph("empty", (), ())).first == 0


def test_too_many_firings_are_refused_before_any_is_made(monkeypatch):
    graph = Graph(
        "many",
        (Actor("a", times=(1,)), Actor("b", times=(1,))),
        (Channel("ab", "a", "b", Rates((9,)), Rates((1,)), 0),),
    )
    monkeypatch.setattr("edgewright.dataflow.throughput.latency.MOST_FIRINGS", 9)
    monkeypatch.setattr("edgewright.dataflow.throughput.latency.blocked", None)
    with pytest.raises(Unsupported, match="shows only after 10 firings; we look at 9"):
        latency(graph)
