"""Repetition vectors are the smallest that balance; rates that do not fit are named, with rates that would."""

from __future__ import annotations

import csv
from dataclasses import replace
from math import gcd

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgewright.dataflow.checks.consistency import cycles, mismatch, repetitions
from edgewright.dataflow.formats.reader import read_graph
from edgewright.dataflow.graph import Actor, Channel, Graph, Rates
from edgewright.errors import ModelError
from tests.helpers.random_graphs import graphs


def sdf(*channels: tuple[str, str, str, int, int]) -> Graph:
    """A graph of (name, source, target, produced, consumed)."""
    names = dict.fromkeys(name for c in channels for name in c[1:3])
    made = [Channel(name, a, b, Rates((p,)), Rates((c,))) for name, a, b, p, c in channels]
    return Graph("g", tuple(map(Actor, names)), tuple(made))


def components(graph: Graph) -> list[set[str]]:
    found = [{actor.name} for actor in graph.actors]
    for channel in graph.channels:
        touched = [part for part in found if part & {channel.source, channel.target}]
        found = [part for part in found if part not in touched] + [set.union(*touched)]
    return found


@given(graphs())
def test_an_iteration_leaves_every_channel_as_it_was_and_none_is_shorter(graph):
    whole, firings = cycles(graph), repetitions(graph)
    for channel in graph.channels:
        source, target = graph.by_name[channel.source], graph.by_name[channel.target]
        made = channel.production.upto(source.initial_phases + firings[source.name])
        taken = channel.consumption.upto(target.initial_phases + firings[target.name])
        before = sum(channel.production.initial) - sum(channel.consumption.initial)
        assert made - taken == before
    assert all(firings[actor.name] == whole[actor.name] * actor.phases for actor in graph.actors)
    for part in components(graph):
        assert gcd(*(whole[name] for name in part)) == 1


@given(graphs(), st.data())
def test_one_wrong_rate_is_seen_and_a_told_rate_fits(graph, data):
    assume(graph.channels)
    channel = data.draw(st.sampled_from(graph.channels))
    more = (channel.production.cycle[0] + data.draw(st.integers(1, 3)), *channel.production.cycle[1:])
    broken = replaced(graph, replace(channel, production=replace(channel.production, cycle=more)))
    found = mismatch(broken)
    if found is None:
        cycles(broken)  # a bridge: any rate fits
        return
    assert found.product != 1
    assert len({step.channel.name for step in found.steps}) == len(found.steps)
    for step, following in zip(found.steps, (*found.steps[1:], found.steps[0]), strict=True):
        assert step.end == following.start
    assert channel in [graph.channel[step.channel.name] for step in found.steps]
    with pytest.raises(ModelError, match="is inconsistent"):
        repetitions(broken)
    assert any(mismatch(fix.applied(broken)) is None for fix in found.fixes)


def replaced(graph: Graph, channel: Channel) -> Graph:
    return replace(graph, channels=tuple(channel if c.name == channel.name else c for c in graph.channels))


def test_components_have_vectors_of_their_own():
    graph = sdf(("x", "a", "b", 2, 3), ("y", "c", "d", 10, 5))
    assert cycles(graph) == {"a": 3, "b": 2, "c": 1, "d": 2}
    assert cycles(replace(graph, channels=())) == dict.fromkeys("abcd", 1)
    assert cycles(Graph("empty", (), ())) == {}


def test_an_inconsistent_cycle_is_named_with_what_would_fit():
    graph = sdf(("x", "a", "b", 2, 3), ("y", "b", "c", 1, 2), ("z", "a", "c", 1, 4))
    with pytest.raises(ModelError) as caught:
        repetitions(graph)
    assert str(caught.value) == (
        "graph 'g' is inconsistent: around the channels 'y' ('b' → 'c', 1 made : 2 taken), "
        "'z' ('c' ← 'a', 1 made : 4 taken), 'x' ('a' → 'b', 2 made : 3 taken) the rates multiply to 4/3 instead of 1, "
        "so that tokens pile up or run out whatever the order. "
        "Channel 'z' would fit if 'c' consumed 3 tokens per cycle instead of 4; "
        "or channel 'x' would fit if 'b' consumed 4 tokens per cycle instead of 3."
    )


def test_a_change_that_leaves_another_cycle_wrong_is_not_told():
    fan = [("x", "a", "b", 1, 2), *((f"y{i}", "a", "b", 1, 1) for i in range(3))]
    assert {fix.channel.name for fix in mismatch(sdf(*fan)).fixes} == {"x"}


def test_where_no_single_rate_fits_both_are_told():
    with pytest.raises(ModelError, match="'y' would fit if 'b' produced 3 tokens per cycle and 'a' consumed 2"):
        cycles(sdf(("x", "a", "b", 2, 3), ("y", "b", "a", 5, 7)))


def test_a_self_loop_must_give_back_what_it_takes():
    with pytest.raises(ModelError, match="'a' puts 2 tokens into its self-loop 's' in each cycle and takes 3"):
        cycles(sdf(("s", "a", "a", 2, 3)))


def test_channels_that_only_initial_phases_use_put_no_condition():
    actors = (Actor("a", 1, initial_phases=1), Actor("b", 2))
    silent = Channel("x", "a", "b", Rates((0,), (5,)), Rates((0, 0)))
    tied = Channel("y", "a", "b", Rates((3,), (1,)), Rates((1, 0)))
    assert cycles(Graph("g", actors, (silent,))) == {"a": 1, "b": 1}
    assert repetitions(Graph("g", actors, (silent, tied))) == {"a": 1, "b": 6}


def test_the_shortest_of_several_cycles_is_told():
    ring = [(f"c{i}", f"a{i}", f"a{(i + 1) % 40}", 1, 2 if i == 7 else 1) for i in range(40)]
    found = mismatch(sdf(*ring, ("short", "a0", "a3", 1, 3)))
    assert {step.channel.name for step in found.steps} == {"short", "c2", "c1", "c0"}
    with pytest.raises(ModelError, match="… 32 more …"):
        cycles(sdf(*ring))


def test_vectors_without_end_are_refused():
    names = [f"a{i}" for i in range(3000)]
    doubling = sdf(*((f"c{i}", names[i], names[i + 1], 10, 1) for i in range(2999)))
    with pytest.raises(ModelError, match="more than 1,228 digits"):
        cycles(doubling)
    primes = [n for n in range(3, 6000) if all(n % d for d in range(2, int(n**0.5) + 1))]
    star = sdf(*((f"c{n}", "hub", f"leaf{n}", 1, n) for n in primes))
    with pytest.raises(ModelError, match="more than 1,228 digits"):
        cycles(star)


def test_reference_graphs_fire_as_often_as_recorded(corpus_folder):
    folder = corpus_folder / "data" / "csdf"
    with (folder / "reference.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert rows
    for row in rows:
        firings = repetitions(read_graph(folder / f"{row['graph']}.xml"))
        assert sum(firings.values()) == int(row["sum_firings"]), row["graph"]
