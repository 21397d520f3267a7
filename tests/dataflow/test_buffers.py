"""Minimum buffers against brute force, a liveness check of its own, and published results; schedules and peaks."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle, product
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgewright.dataflow.buffers import sizing
from edgewright.dataflow.buffers.minimum import blocks, minimum_buffers
from edgewright.dataflow.buffers.occupancy import occupancy, peak_occupancy
from edgewright.dataflow.buffers.schedule import Schedule, lazy_schedule
from edgewright.dataflow.checks.consistency import repetitions
from edgewright.dataflow.checks.liveness import blocked
from edgewright.dataflow.formats.reader import read_graph
from edgewright.dataflow.graph import Actor, Channel, Graph, Rates
from edgewright.errors import ModelError, Unsupported
from tests.dataflow.schedule_judge import check_schedule
from tests.helpers.parameters import corpus
from tests.helpers.random_graphs import live_graphs, tiny_graphs

SIZES = st.lists(st.integers(0, 3), min_size=10, max_size=10)
WEIGHTS = st.sampled_from(["tokens", "bytes"])


def references() -> list:
    folder = (corpus() or Path()) / "data" / "csdf"
    if not (folder / "reference.tsv").is_file():
        reason = "set EDGEWRIGHT_CORPUS to a folder with data/csdf to test published graphs"
        return [pytest.param(None, None, marks=pytest.mark.skip(reason=reason), id="no-corpus")]
    with (folder / "reference.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [pytest.param(folder / f"{row['graph']}.xml", row, id=row["graph"]) for row in rows]


@pytest.mark.parametrize(("path", "row"), references())
def test_published_minima(path, row):
    graph = read_graph(path)
    found = minimum_buffers(graph)
    assert found.tokens == int(row["min_total_buffer"])
    assert found.is_optimal
    assert check_schedule(graph, found.capacities, found.schedule) is None


@pytest.mark.parametrize(("path", "row"), references())
def test_peaks_are_not_above_those_of_a_simple_lazy_schedule(path, row):
    graph = read_graph(path)
    found = peak_occupancy(graph)
    assert found.tokens <= int(row["lazy_peak_occupancy"])
    assert found.bound <= found.tokens
    assert check_schedule(graph, None, found.schedule) is None


@given(tiny_graphs(extra=2), SIZES, WEIGHTS)
def test_no_cheaper_capacities_are_live(graph, sizes, weight):
    graph = sized(graph, sizes)
    found = minimum_buffers(graph, weight)
    assert found.is_optimal
    assert blocked(graph, found.capacities) is None
    between = replace(graph, channels=tuple(c for c in graph.channels if not c.is_self_loop))
    prices = {c.name: c.token_bytes if weight == "bytes" else 1 for c in between.channels}
    assume(all(prices.values()))
    assert not any_live_below(between, prices, sum(found.capacities[name] * prices[name] for name in prices))


@given(live_graphs(), SIZES, WEIGHTS)
def test_minima_cannot_be_reduced_and_their_schedules_hold(graph, sizes, weight):
    graph = sized(graph, sizes)
    found = minimum_buffers(graph, weight)
    assert found.is_optimal
    for channel in graph.channels:
        capacity = found.capacities[channel.name]
        assert capacity >= channel.tokens
        if capacity > channel.tokens:
            assert blocked(graph, {**found.capacities, channel.name: capacity - 1}) is not None
    assert check_schedule(graph, found.capacities, found.schedule) is None
    assert all(held <= found.capacities[name] for name, held in most_held(graph, found.schedule).items())


@given(live_graphs(actors=3, initial_phases=0, tokens=2), WEIGHTS, SIZES)
def test_proven_peaks_are_the_least(graph, weight, sizes):
    graph = sized(graph, sizes)
    found = peak_occupancy(graph, weight)
    peak = found.tokens if weight == "tokens" else found.size_bytes
    assert check_schedule(graph, None, found.schedule) is None
    assert found.bound <= peak <= occupancy(graph, lazy_schedule(graph), weight)
    assert found.is_optimal
    assert not reaches_end(graph, weight, peak - 1)


@given(live_graphs())
def test_lazy_schedules_hold_without_limits(graph):
    assert check_schedule(graph, None, lazy_schedule(graph)) is None


def test_minima_of_two_actors_worked_by_hand():
    # with 5 tokens at first 3 are consumed before 2 come: nothing is added to the 5
    pair = graph_of({"a": 1, "b": 1}, [("ab", "a", "b", (2,), (3,), 5)])
    assert minimum_buffers(pair).capacities == {"ab": 5}
    # in the second round the consumer has emptied the channel and waits for 4: 3 come, and then 5 more
    pair = graph_of({"a": 2, "b": 3}, [("ab", "a", "b", (3, 5), (1, 1, 4), 0)])
    assert minimum_buffers(pair).tokens == 8


def test_a_self_loop_holds_old_and_new_tokens_at_once():
    loop = graph_of({"a": 1}, [("self", "a", "a", (1,), (1,), 1)])
    assert minimum_buffers(loop).capacities == {"self": 2}


def residual(count: int, rows: int) -> Graph:
    """Blocks of two 3x3 convolutions by rows, and the sum of their result and their input."""
    window, plain = (2, *[1] * (rows - 2), 0), (1,) * rows
    phases, channels, last = {"in": rows}, [], "in"
    for i in range(count):
        a, b, add = f"a{i}", f"b{i}", f"add{i}"
        phases.update({a: rows, b: rows, add: rows})
        ends = [(last, a, window), (a, b, window), (b, add, plain), (last, add, plain)]
        channels += [(f"{s}_{t}", s, t, plain, taken, 0) for s, t, taken in ends]
        last = add
    return graph_of(phases, channels)


def test_residual_blocks_are_sized_apart():
    graph = residual(5, 16)
    assert len(blocks(graph)) == 5
    found = minimum_buffers(graph)
    assert found.tokens == 5 * 8  # 2 + 2 + 1 and, for the rows the convolutions are behind, 3
    assert found.is_optimal
    assert check_schedule(graph, found.capacities, found.schedule) is None


def detour(rows: int, weights: tuple[int, ...]) -> Graph:
    """Rows wait for the mean of the whole image; on their way they can wait in several channels."""
    plain, ways = (1,) * rows, [f"s{i}" for i in range(len(weights) - 1)]
    path = ["in", *ways, "mul"]
    channels = [(f"w{i}", path[i], path[i + 1], plain, plain, 0, weight) for i, weight in enumerate(weights)]
    channels += [
        ("all", "in", "mean", plain, (rows,), 0, 1),
        ("one", "mean", "mul", (1,), (1, *[0] * (rows - 1)), 0, 1),
    ]
    return graph_of({**dict.fromkeys(path, rows), "mean": 1}, channels)


@pytest.mark.parametrize("weights", [(3, 2, 4), (1, 1, 1)])
def test_rows_wait_where_they_are_smallest(weights):
    found = minimum_buffers(detour(40, weights), "bytes")
    assert found.is_optimal
    # the whole image for the mean, its one result, a place in each channel, and the other 37 rows where it is cheapest
    assert found.size_bytes == 40 + 1 + sum(weights) + 37 * min(weights)


def test_channels_without_bytes_cost_nothing_and_are_still_small():
    free = detour(12, (3, 0, 4))
    found = minimum_buffers(free, "bytes")
    assert (found.size_bytes, found.capacities["w1"], found.is_optimal) == (12 + 1 + 3 + 4, 10, True)


def test_given_up_early_the_capacities_are_live_and_the_bound_honest(monkeypatch):
    monkeypatch.setattr(sizing, "_WORK", 0.0)
    graph = detour(9, (1, 1))
    best = minimum_buffers(graph)
    assert not best.is_optimal
    assert best.bound < best.tokens
    assert blocked(graph, best.capacities) is None
    monkeypatch.undo()
    assert best.bound <= minimum_buffers(graph).tokens <= best.tokens


def test_a_dead_graph_is_told():
    ring = graph_of({"a": 1, "b": 1}, [("ab", "a", "b", (1,), (1,), 0), ("ba", "b", "a", (1,), (1,), 0)])
    with pytest.raises(ModelError, match="deadlocks"):
        minimum_buffers(ring)
    with pytest.raises(ModelError, match="deadlocks"):
        peak_occupancy(ring)


def test_too_many_firings_are_told():
    graph = graph_of({"a": 1, "b": 1}, [("ab", "a", "b", (10**9,), (10**9 + 7,), 0)])
    with pytest.raises(Unsupported, match="common divisor"):
        minimum_buffers(graph)


def test_the_judge_sees_what_is_wrong():
    graph = residual(1, 4)
    good = minimum_buffers(graph)
    runs = good.schedule.again
    tight = {**good.capacities, "in_add0": good.capacities["in_add0"] - 1}
    assert "lacks space on 'in_add0'" in str(check_schedule(graph, tight, good.schedule))
    assert "lacks tokens" in str(check_schedule(graph, None, Schedule((), runs[::-1])))
    assert "times in an iteration" in str(check_schedule(graph, None, Schedule((), runs[:-1])))
    assert "no such actor" in str(check_schedule(graph, None, Schedule((), (("nobody", 1),))))
    loop = graph_of({"a": 1}, [("self", "a", "a", (2,), (2,), 2)])
    assert check_schedule(loop, {"self": 4}, Schedule((), (("a", 1),))) is None
    assert "lacks space on its self-loop" in str(check_schedule(loop, {"self": 3}, Schedule((), (("a", 1),))))


def graph_of(phases: Mapping[str, int], channels: list[tuple]) -> Graph:
    made = [
        Channel(name, source, target, Rates(made), Rates(taken), tokens, *size)
        for name, source, target, made, taken, tokens, *size in channels
    ]
    return Graph("g", tuple(Actor(name, count) for name, count in phases.items()), tuple(made))


def sized(graph: Graph, sizes: list[int]) -> Graph:
    pairs = zip(graph.channels, cycle(sizes), strict=False)
    return replace(graph, channels=tuple(replace(channel, token_bytes=size) for channel, size in pairs))


def any_live_below(graph: Graph, prices: Mapping[str, int], cost: int) -> bool:
    """Whether some capacities that cost less are live, by trying them all.

    Larger capacities are as live: those that leave enough for one place more need not be tried.
    """
    spare = cost - 1 - sum(prices[c.name] * c.tokens for c in graph.channels)
    if spare < 0 or not prices:
        return False
    ranges = [range(c.tokens, c.tokens + spare // prices[c.name] + 1) for c in graph.channels]
    for sizes in product(*ranges):
        capacities = dict(zip(prices, sizes, strict=True))
        left = cost - 1 - sum(prices[name] * size for name, size in capacities.items())
        if 0 <= left < min(prices.values()) and blocked(graph, capacities) is None:
            return True
    return False


def most_held(graph: Graph, schedule: Schedule) -> Mapping[str, int]:
    """What each channel holds at most, firing by firing."""
    held = {channel.name: channel.tokens for channel in graph.channels}
    most = dict(held)
    fired: Counter[str] = Counter()
    for actor, count in (*schedule.first, *schedule.again):
        for _ in range(count):
            for channel in graph.outputs[actor]:
                held[channel.name] += channel.production.at(fired[actor])
                most[channel.name] = max(most[channel.name], held[channel.name])
            for channel in graph.inputs[actor]:
                held[channel.name] -= channel.consumption.at(fired[actor])
            fired[actor] += 1
    return most


def reaches_end(graph: Graph, weight: str, peak: int) -> bool:
    """Whether some order of one iteration never holds more than that, by trying all orders."""
    channels = [channel for channel in graph.channels if not channel.is_self_loop]
    each = {channel.name: 1 if weight == "tokens" else channel.token_bytes for channel in channels}
    goal = repetitions(graph)
    names = list(goal)

    def total(fired: tuple[int, ...], starting: str | None) -> int | None:
        """What is held, while an actor fires for the next time; None where it lacks tokens."""
        done, held = dict(zip(names, fired, strict=True)), 0
        for c in channels:
            there = c.tokens + c.production.upto(done[c.source]) - c.consumption.upto(done[c.target])
            if c.target == starting and there < c.consumption.at(done[c.target]):
                return None
            held += each[c.name] * (there + (c.production.at(done[c.source]) if c.source == starting else 0))
        return held

    start = (0,) * len(names)
    seen, stack = {start}, [start] if (total(start, None) or 0) <= peak else []
    while stack:
        here = stack.pop()
        if all(done == goal[name] for name, done in zip(names, here, strict=True)):
            return True
        for at, name in enumerate(names):
            held = total(here, name) if here[at] < goal[name] else None
            after = (*here[:at], here[at] + 1, *here[at + 1 :])
            if held is not None and held <= peak and after not in seen:
                seen.add(after)
                stack.append(after)
    return False
