"""The buffer/throughput front: reference graphs, and tiny graphs of which every capacity is tried."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.dataflow.buffers.minimum import minimum_buffers
from edgewright.dataflow.formats.reader import read_graph
from edgewright.dataflow.graph import Graph
from edgewright.dataflow.throughput import storage
from edgewright.dataflow.throughput.pareto import Pareto, pareto
from edgewright.dataflow.throughput.ratio import cycle_ratio
from edgewright.dataflow.throughput.selftimed import self_timed
from edgewright.errors import ModelError
from tests.dataflow.test_time import reference, sdf
from tests.helpers.random_graphs import live_graphs, tiny_graphs

# The reference stops at 62 and at 1223 tokens.
FURTHER = {
    "cnn_res4_rows": "58:96;60:90;62:52;63:50;65:49;66:48;70:42;71:40;72:38;73:36;74:35;75:34;77:33;78:32",
    "h263decoder": "1224:333466;1225:333316;1226:332907;1227:332757;1228:332348;1229:332198;1230:332046",
}


def told(front: Pareto) -> str:
    return ";".join(f"{point.tokens}:{point.period}" for point in front.points)


@pytest.mark.parametrize(("file", "row"), reference(slow=("cnn_res4_rows", "h263decoder")))
def test_reference_fronts(file, row):
    graph = read_graph(file)
    front = pareto(graph)
    known = row["pareto_exact(size:period)"]
    if row["pareto_status"] == "complete":
        assert told(front) == known
    else:
        assert told(front).startswith(known)
        assert told(front).endswith(FURTHER[row["graph"]])
    assert front.complete
    assert front.best_period == Fraction(row["period_per_iteration"])
    assert (front.points[0].tokens, front.points[0].period) == (
        int(row["min_total_buffer"]),
        Fraction(row["period_at_min"]),
    )
    if sum(map(len, known)) < 200:  # executed too, where that is quick
        assert all(self_timed(graph, point.capacities).period == point.period for point in front.points)


def tried(graph: Graph, most: int) -> dict[int, Fraction]:
    """The front by trying all capacities of up to `most` tokens together, each by execution."""
    first = [channel.tokens for channel in graph.channels]
    best: dict[int, Fraction] = {}
    for more in product(*(range(most - sum(first) + 1) for _ in first)):
        if sum(first) + sum(more) > most:
            continue
        sizes = {c.name: c.tokens + extra for c, extra in zip(graph.channels, more, strict=True)}
        found = self_timed(graph, sizes).period
        if found is not None:
            total = sum(sizes.values())
            best[total] = min(found, best.get(total, found))
    front: dict[int, Fraction] = {}
    for total in sorted(best):
        if not front or best[total] < min(front.values()):
            front[total] = best[total]
    return front


@given(tiny_graphs(times=st.integers(0, 4)))
def test_every_capacity_tried(graph):
    graph = replace(graph, channels=graph.channels[:3])
    front = pareto(graph, most_points=4)
    most = min(front.proven - 1, sum(c.tokens for c in graph.channels) + 9)
    found = {point.tokens: point.period for point in front.points if point.tokens <= most}
    assert found == tried(graph, most)


@given(live_graphs(actors=4, extra=2, times=st.integers(1, 5)))
def test_the_first_point_is_the_minimum(graph):
    front = pareto(graph, most_points=1)
    assert front.points[0].tokens == minimum_buffers(graph).tokens


@given(live_graphs(actors=4, extra=2))
def test_points_have_the_period_they_say(graph):
    front = pareto(graph, most_points=5)
    for point in front.points:
        assert self_timed(graph, point.capacities).period == point.period
        assert point.tokens == sum(point.capacities.values()) == point.bytes
        for name in point.capacities:  # nothing of it is in vain
            if point.capacities[name] > graph.channel[name].tokens:
                less = cycle_ratio(graph, {**point.capacities, name: point.capacities[name] - 1})
                assert less is None or less > point.period
    periods = [point.period for point in front.points]
    assert periods == sorted(set(periods), reverse=True)


@pytest.mark.parametrize("small", [1, 10**9])
def test_cuts_from_parts_are_true_for_the_whole(monkeypatch, small):
    """b and c make eight iterations of their own in one of the graph. Trying every size gives the same front."""
    monkeypatch.setattr(storage, "_SMALL_PART", small)  # every part is used, or none
    channels = [("a", "b", 8, 1, 0), ("b", "c", 1, 1, 0), ("c", "d", 1, 2, 0), *((x, x, 1, 1, 1) for x in "abd")]
    graph = sdf([9, 2, 5, 3], channels)
    assert told(pareto(graph)) == "17:63;18:38;19:36;20:32;21:28;22:25;23:22;24:20;25:19;26:17;28:16"


def test_sizes_in_bytes():
    """The token that comes cheap is the one to have more of: ab or bc may hold the second."""
    channels = [("a", "b", 1, 1, 0), ("b", "c", 1, 1, 0), *((x, x, 1, 1, 1) for x in "abc")]
    graph = sdf([1, 1, 1], channels)
    dear = replace(graph, channels=tuple(replace(c, token_bytes=5 if c.name == "ab0" else 2) for c in graph.channels))
    front = pareto(dear, in_bytes=True)
    assert [(point.bytes, point.period) for point in front.points] == [(19, 2), (26, 1)]
    assert front.complete


def test_a_front_without_end_says_so():
    """With firings that overlap, each further token makes it faster: there is no best size."""
    graph = sdf([3, 4], [("a", "b", 1, 1, 0)])
    front = pareto(graph, most_points=3)
    assert told(front) == "1:7;2:7/2;3:7/3"
    assert not front.complete
    assert (front.best_period, front.proven) == (0, 4)
    assert 3 < len(pareto(graph).points) < 200


def test_effort_ends_with_what_is_proven():
    channels = [("a", "b", 1, 1, 0), ("b", "c", 1, 1, 0), *((x, x, 1, 1, 1) for x in "abc")]
    graph = sdf([1, 2, 3], channels)
    whole = pareto(graph)
    for effort in (0, 50_000, 100_000, 150_000):
        part = pareto(graph, effort=effort)
        assert part.points == whole.points[: len(part.points)]
        assert part.complete == (part == whole)
        assert all(point.tokens >= part.proven for point in whole.points[len(part.points) :])
    assert pareto(graph, effort=0).points == ()


def test_a_deadlock_is_explained():
    graph = sdf([1, 1], [("a", "b", 1, 1, 0), ("b", "a", 1, 1, 0)])
    with pytest.raises(ModelError, match="deadlock"):
        pareto(graph)
