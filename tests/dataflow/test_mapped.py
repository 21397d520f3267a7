"""CNNs spread over processors: phases that never wait in a circle, as few as can be, and the example of M 3.5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.dataflow.checks.consistency import repetitions
from edgewright.dataflow.checks.liveness import blocked
from edgewright.dataflow.cnn.mapped import mapped_csdf, subnets
from edgewright.errors import ModelError
from edgewright.network import Builder, Network
from edgewright.network.operators import Binary, BinaryKind, Clamp, Concat, Conv2d


def wired(before: Sequence[Sequence[int]]) -> Network:
    """Layers n0, n1, ... that each add up those before it, or read the input; all that nobody reads are outputs."""
    b = Builder("wired")
    x = b.input("x", (1, 2, 2, 1))
    made: list[str] = []
    for i, sources in enumerate(before):
        names = [made[j] for j in sources] or [x]
        op = Concat(3) if len(names) > 1 else Clamp(0.0)
        made.append(b.layer(op, names, f"n{i}"))
    read = {j for sources in before for j in sources}
    return b.build([made[i] for i in range(len(made)) if i not in read])


@st.composite
def mapped_networks(draw, most: int = 12) -> tuple[Network, dict[str, str]]:
    count = draw(st.integers(1, most))
    before = [sorted(draw(st.sets(st.integers(0, i - 1), max_size=3))) if i else [] for i in range(count)]
    processors = draw(st.lists(st.sampled_from(["p0", "p1", "p2", "p3"]), min_size=count, max_size=count))
    return wired(before), {f"n{i}": processor for i, processor in enumerate(processors)}


@given(mapped_networks())
def test_no_mapping_deadlocks(case):
    net, mapping = case
    graph = mapped_csdf(net, mapping)
    assert blocked(graph) is None
    assert repetitions(graph) == {actor.name: actor.phases for actor in graph.actors}


@given(mapped_networks())
def test_every_layer_runs_once_where_it_is_mapped(case):
    net, mapping = case
    found = subnets(net, mapping)
    assert {layer: p for p, runs in found.items() for run in runs for layer in run} == mapping
    assert sum(len(run) for runs in found.values() for run in runs) == len(net.layers)


@given(mapped_networks())
def test_channels_are_the_edges_between_phases(case):
    net, mapping = case
    found = subnets(net, mapping)
    where = {layer: (p, i) for p, runs in found.items() for i, run in enumerate(runs) for layer in run}
    graph = mapped_csdf(net, mapping, serial=False)
    for layer in net.layers:
        for reader in net.readers[layer.output]:
            channel = graph.channel.get(f"{layer.name}->{reader.name}")
            (source, made), (target, used) = where[layer.name], where[reader.name]
            if (source, made) == (target, used):
                assert channel is None
                continue
            size = net.tensors[layer.output].size
            assert (channel.source, channel.target) == (source, target)
            assert channel.production.cycle == tuple(size * (i == made) for i in range(len(found[source])))
            assert channel.consumption.cycle == tuple(size * (i == used) for i in range(len(found[target])))


def fewest_phases(net: Network, mapping: Mapping[str, str]) -> int:
    """By trying every sequence of processors, shortest first."""
    makers = net.producers
    processors = sorted(set(mapping.values()))
    for length in range(1, len(net.layers) + 1):
        for sequence in product(processors, repeat=length):
            done: set[str] = set()
            for processor in sequence:
                for layer in net.layers:
                    waits = {makers[t].name for t in net.activations(layer) if t in makers}
                    if mapping[layer.name] == processor and waits <= done:
                        done.add(layer.name)
            if len(done) == len(net.layers):
                return length
    raise AssertionError("a network always runs")


@given(mapped_networks(most=7))
def test_there_are_no_more_phases_than_needed(case):
    net, mapping = case
    found = sum(len(runs) for runs in subnets(net, mapping).values())
    assert found == fewest_phases(net, mapping)


def test_pieces_that_wait_for_each_other_are_cut():
    """Two processors, each with two unconnected layers, each feeding one of the other's: as printed, a deadlock."""
    net = wired([[], [0], [], [2]])
    mapping = {"n0": "p", "n1": "q", "n2": "q", "n3": "p"}
    found = subnets(net, mapping)
    assert sorted(len(runs) for runs in found.values()) == [1, 2]
    assert blocked(mapped_csdf(net, mapping)) is None


TABLE_3_1 = {
    "cpu1": range(1, 8),
    "cpu2": (8, 9, 10, 13),
    "cpu3": (11, 12),
    "cpu4": (14, 15, 16, 17, 18, 21, 22, 23),
    "cpu5": (19, 20),
}


def example_of_m_3_5() -> Network:
    """23 layers as the text of M 3.5 wires them; where it says nothing, one after the other.

    l8 makes 30x30x208 = 187200 elements and is read by l9 and l11; l12 hands 30x30x25 = 22500 to l13; a4 waits for a5
    in between, so l18 is read by l19, and l20 by l21.
    """
    b = Builder("m35")
    made = {0: b.input("data", (1, 30, 30, 8))}

    def conv(number: int, out: int, source: int) -> None:
        weights = np.zeros((out, 1, 1, b.shape(made[source])[3]), np.float32)
        made[number] = b.layer(Conv2d(), [made[source], b.constant("w", weights)], f"l{number}")

    for number in range(1, 8):
        conv(number, 208 if number == 7 else 8, number - 1)
    conv(8, 208, 7)
    conv(9, 25, 8)
    conv(10, 25, 9)
    conv(11, 25, 8)
    conv(12, 25, 11)
    made[13] = b.layer(Binary(BinaryKind.ADD), [made[10], made[12]], "l13")
    for number in range(14, 24):
        conv(number, 16, number - 1)
    return b.build([made[23]])


def test_example_of_m_3_5():
    net = example_of_m_3_5()
    mapping = {f"l{number}": cpu for cpu, numbers in TABLE_3_1.items() for number in numbers}
    found = subnets(net, mapping)
    assert found["cpu2"] == (("l8",), ("l9", "l10", "l13"))
    assert found["cpu4"] == (("l14", "l15", "l16", "l17", "l18"), ("l21", "l22", "l23"))
    assert [len(found[cpu]) for cpu in ("cpu1", "cpu3", "cpu5")] == [1, 1, 1]
    graph = mapped_csdf(net, mapping)
    assert graph.channel["l7->l8"].production.cycle == (187200,)
    assert graph.channel["l7->l8"].consumption.cycle == (187200, 0)
    assert graph.channel["l8->l11"].production.cycle == (187200, 0)
    assert graph.channel["l12->l13"].consumption.cycle == (0, 22500)
    assert blocked(graph) is None


def test_times_add_up_over_a_subnet():
    net = wired([[], [0], [1]])
    mapping = {"n0": "p", "n1": "p", "n2": "q"}
    graph = mapped_csdf(net, mapping, times={"n0": 1.5, "n1": 2, "n2": Fraction(1, 3)})
    assert graph.by_name["p"].times == (Fraction(7, 2),)
    assert graph.by_name["q"].times == (Fraction(1, 3),)
    assert mapped_csdf(net, mapping).by_name["p"].times == (8,)
    assert graph.by_name["p"].note == "n0, n1"
    assert graph.channel["p.serial"].token_bytes == 0


def test_bad_mappings():
    net = wired([[], [0]])
    with pytest.raises(ModelError, match="layer 'n1' is mapped to no processor"):
        mapped_csdf(net, {"n0": "p"})
    with pytest.raises(ModelError, match="no such layer"):
        mapped_csdf(net, {"n0": "p", "n1": "p", "n2": "p"})
