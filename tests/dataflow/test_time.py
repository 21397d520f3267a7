"""Throughput three ways: by execution, by cycles and in closed form; they must come to the same."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Collection
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgewright.dataflow.checks.consistency import repetitions
from edgewright.dataflow.checks.liveness import blocked
from edgewright.dataflow.formats.reader import read_graph
from edgewright.dataflow.graph import Actor, Channel, Graph, Rates
from edgewright.dataflow.throughput import event_simulation, precedence, selftimed
from edgewright.dataflow.throughput.ratio import cycle_ratio, period
from edgewright.dataflow.throughput.selftimed import Firing, SelfTimed, self_timed
from edgewright.errors import InputError, ModelError, Unsupported
from tests.helpers.random_graphs import graphs, live_graphs


def sdf(times, channels, name="small") -> Graph:
    """Actors a, b, … of one phase; channels as source, target, production, consumption, tokens."""
    actors = tuple(Actor(letter, 1, (time,)) for letter, time in zip("abcdef", times, strict=False))
    made = [Channel(f"{s}{t}{i}", s, t, Rates((p,)), Rates((c,)), d) for i, (s, t, p, c, d) in enumerate(channels)]
    return Graph(name, actors, tuple(made))


def serial(actor: Actor) -> Channel:
    ones = Rates((1,) * actor.phases, (1,) * actor.initial_phases)
    return Channel(f"self_{actor.name}", actor.name, actor.name, ones, ones, 1)


@st.composite
def sized(draw, strategy):
    """A graph with capacities for most of its channels, or for none."""
    graph = draw(strategy)
    if draw(st.booleans()):
        return graph, None
    chosen = [channel for channel in graph.channels if draw(st.integers(0, 3))]
    return graph, {channel.name: channel.tokens + draw(st.integers(0, 8)) for channel in chosen}


def reference(slow: Collection[str] = ()) -> list:
    root = os.environ.get("EDGEWRIGHT_CORPUS")
    table = Path(root) / "data" / "csdf" / "reference.tsv" if root else None
    if table is None or not table.exists():
        reason = "set EDGEWRIGHT_CORPUS to a folder with data/csdf to test reference graphs"
        return [pytest.param(None, None, marks=pytest.mark.skip(reason=reason), id="no-corpus")]
    rows = csv.DictReader(table.read_text().splitlines(), delimiter="\t")
    marks = dict.fromkeys(slow, pytest.mark.slow)
    return [
        pytest.param(table.parent / f"{row['graph']}.xml", row, id=row["graph"], marks=marks.get(row["graph"], ()))
        for row in rows
    ]


@pytest.mark.parametrize(("file", "row"), reference())
def test_reference_periods(file, row):
    graph = read_graph(file)
    expected = Fraction(row["period_per_iteration"])
    assert (self_timed(graph).period, cycle_ratio(graph), period(graph)) == (expected,) * 3


@given(sized(graphs()))
def test_execution_and_cycles_agree(case):
    graph, capacities = case
    executed = self_timed(graph, capacities).period
    assert executed == cycle_ratio(graph, capacities)
    assert (executed is None) == (blocked(graph, capacities) is not None)
    if executed is None:
        with pytest.raises(ModelError):
            period(graph, capacities)
    else:
        assert executed == period(graph, capacities)


@given(live_graphs(initial_phases=0), st.data())
def test_larger_capacities_are_never_slower(graph, data):
    small = {c.name: c.tokens + data.draw(st.integers(0, 8)) for c in graph.channels}
    large = {name: size + data.draw(st.integers(0, 3)) for name, size in small.items()}
    slow, fast, free = cycle_ratio(graph, small), cycle_ratio(graph, large), cycle_ratio(graph)
    assume(slow is not None)
    assert free <= fast <= slow


@given(sized(graphs(times=st.integers(0, 4))), st.integers(1, 3))
def test_firings_keep_to_tokens_and_capacities(case, iterations):
    """Judged by replaying the firings: tokens and room at each moment, by a count over the firings so far."""
    graph, capacities = case
    counts = repetitions(graph)
    found = self_timed(graph, capacities, iterations)
    fired = Counter(firing.actor for firing in found.firings)
    for actor in graph.actors:
        own = [firing for firing in found.firings if firing.actor == actor.name]
        assert [firing.index for firing in own] == list(range(len(own)))
        assert all(before.start <= after.start for before, after in pairwise(own))
        assert all(firing.end - firing.start == actor.time(firing.index) for firing in own)
        if found.period is not None:
            assert fired[actor.name] >= actor.initial_phases + iterations * counts[actor.name]
    for channel in graph.channels:
        room = None if capacities is None else capacities.get(channel.name)
        check_channel(channel, room, found.firings)


def check_channel(channel: Channel, capacity: int | None, firings: tuple[Firing, ...]) -> None:
    for moment in {firing.start for firing in firings}:
        made = [f for f in firings if f.actor == channel.source and f.end <= moment]
        begun = [f for f in firings if f.actor == channel.source and f.start <= moment]
        taken = [f for f in firings if f.actor == channel.target and f.start <= moment]
        freed = [f for f in firings if f.actor == channel.target and f.end <= moment]
        there = channel.tokens + sum(channel.production.at(f.index) for f in made)
        assert there >= sum(channel.consumption.at(f.index) for f in taken)
        claimed = channel.tokens + sum(channel.production.at(f.index) for f in begun)
        if capacity is not None:
            assert claimed - sum(channel.consumption.at(f.index) for f in freed) <= capacity


def test_two_actors_share_two_tokens():
    graph = sdf([3, 4], [("a", "b", 1, 1, 0), ("b", "a", 1, 1, 2)])
    assert self_timed(graph) == SelfTimed(Fraction(7, 2), Fraction(0), Fraction(2))
    shown = self_timed(graph, iterations=3).firings
    at_zero = (Firing("a", 0, Fraction(0), Fraction(3)), Firing("a", 1, Fraction(0), Fraction(3)))
    assert shown[:3] == (*at_zero, Firing("b", 0, Fraction(3), Fraction(7)))


def test_room_is_free_only_at_the_end_of_the_consuming_firing():
    graph = sdf([3, 4], [("a", "b", 1, 1, 0)])
    assert [cycle_ratio(graph, {"ab0": size}) for size in (1, 2, 7)] == [7, Fraction(7, 2), 1]
    assert self_timed(graph, {"ab0": 1}).period == 7


def test_a_self_loop_holds_its_token_twice_while_it_fires():
    graph = sdf([5], [("a", "a", 1, 1, 1)])
    assert self_timed(graph, {"aa0": 1}).period is None
    assert cycle_ratio(graph, {"aa0": 1}) is None
    assert cycle_ratio(graph, {"aa0": 2}) == self_timed(graph, {"aa0": 2}).period == 5


def test_nothing_limits_an_acyclic_graph_without_self_loops():
    graph = sdf([3, 4], [("a", "b", 2, 3, 0)])
    assert (self_timed(graph).period, cycle_ratio(graph), period(graph)) == (0, 0, 0)
    assert len(self_timed(graph, iterations=2).firings) == 10


def test_cycles_that_take_no_time():
    graph = sdf([0, 0], [("a", "b", 1, 1, 0), ("b", "a", 1, 1, 1)])
    assert (self_timed(graph).period, cycle_ratio(graph), period(graph)) == (0, 0, 0)
    stuck = sdf([0, 0], [("a", "b", 1, 1, 0), ("b", "a", 1, 1, 0)])
    assert self_timed(stuck).period is None
    assert cycle_ratio(stuck) is None


def test_later_firings_do_not_overtake_in_a_queue():
    """The second phase is done at once, but what it leaves comes after what the first leaves."""
    slow = Actor("a", 2, (10, 0))
    back = Channel("back", "b", "a", Rates((1, 1)), Rates((1, 1)), 2)
    forth = Channel("forth", "a", "b", Rates((1, 1)), Rates((1, 1)))
    graph = Graph("queue", (slow, Actor("b", 2, (1, 1))), (back, forth))
    starts = [(f.actor, f.index, f.start) for f in self_timed(graph, iterations=1).firings]
    assert starts == [("a", 0, 0), ("a", 1, 0), ("b", 0, 10), ("b", 1, 10)]
    assert self_timed(graph).period == cycle_ratio(graph) == 11


def test_initial_phases_count_for_the_transient_only():
    actor = Actor("a", 1, (100, 7), 1)
    graph = Graph("begins", (actor,), (serial(actor),))
    assert self_timed(graph).period == cycle_ratio(graph) == period(graph) == 7
    assert self_timed(graph).transient == 100


def test_the_busiest_layer_sets_the_period():
    """391 layers of 512 rows: in closed form, since looking at each firing would take long."""
    actors = [Actor(f"l{i}", 512, (Fraction(i % 7, 3),) * 512) for i in range(391)]
    ones = Rates((1,) * 512)
    rows = [Channel(f"c{i}", f"l{i}", f"l{i + 1}", ones, ones) for i in range(390)]
    graph = Graph("long", tuple(actors), (*rows, *map(serial, actors)))
    assert period(graph) == 1024


def test_parts_keep_the_iteration_of_the_whole():
    """Alone, b and c would make three iterations where the graph makes one."""
    channels = [("a", "b", 3, 1, 0), ("b", "c", 1, 1, 0), ("c", "b", 1, 1, 1), ("a", "a", 1, 1, 1)]
    graph = sdf([5, 1, 2], channels)
    assert (self_timed(graph).period, cycle_ratio(graph), period(graph)) == (9, 9, 9)
    assert self_timed(graph).iterations == Fraction(1, 3)


def test_numbers_beyond_64_bits_stay_exact():
    long = 10**17 + 1
    graph = sdf([long, 1], [("a", "b", 1, 1, 0), ("b", "a", 1, 1, 3)])
    assert cycle_ratio(graph) == self_timed(graph).period == Fraction(long + 1, 3)


def test_missing_times_are_named():
    graph = Graph("g", (Actor("a"), Actor("b", 1, (1,))), ())
    for analysis in (self_timed, cycle_ratio, period):
        with pytest.raises(ModelError, match="no execution time is given for 1 of its 2 actors, first 'a'"):
            analysis(graph)


def test_bad_capacities():
    graph = sdf([1, 1], [("a", "b", 1, 1, 2)])
    for analysis in (self_timed, cycle_ratio, period):
        with pytest.raises(InputError, match="no channel 'x'"):
            analysis(graph, {"x": 3})
        with pytest.raises(InputError, match="holds 2 tokens at first"):
            analysis(graph, {"ab0": 1})


def test_work_is_bounded(monkeypatch):
    graph = sdf([3, 4], [("a", "b", 1, 1, 0), ("b", "a", 1, 1, 2000)])
    with pytest.raises(InputError, match="-1 iterations"):
        self_timed(graph, iterations=-1)
    monkeypatch.setattr(selftimed, "MOST_SHOWN", 100)
    with pytest.raises(Unsupported, match="102 firings in 51 iterations"):
        self_timed(graph, iterations=51)
    monkeypatch.setattr(selftimed, "MOST_WORK", 1000)
    with pytest.raises(Unsupported, match="after 1,000 steps"):
        self_timed(graph)
    monkeypatch.setattr(event_simulation, "MOST_AT_ONCE", 1000)
    with pytest.raises(Unsupported, match="more than 1,000 firings start at one moment"):
        self_timed(graph)
    monkeypatch.setattr(precedence, "MOST_FIRINGS", 1)
    with pytest.raises(ModelError, match="makes 2 firings in one iteration"):
        cycle_ratio(graph)
