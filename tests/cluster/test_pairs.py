"""Fused pairs (S 5.3.4): taken where nobody else reads what lies between, and refused where a plan would be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from edgewright.cluster.costs import DivisionCosts
from edgewright.cluster.deploying import deployed
from edgewright.cluster.devices import equal_devices
from edgewright.cluster.division import DivisionSegment, SegmentSplit
from edgewright.cluster.goal import ClusterGoal
from edgewright.cluster.hybrid import UnitChoice, division_of
from edgewright.cluster.judge import cluster_errors
from edgewright.cluster.strategies import Strategies
from edgewright.network import Builder, Network
from edgewright.network.operators import Conv2d
from tests.helpers.random_deployments import frames_of

CLUSTER = equal_devices(3)
DEVICES = tuple(CLUSTER.device_named)
WIDE = 64


def widened(reader: str) -> Network:
    """A wide tensor, which pays to leave where it is computed, and who reads it."""
    b, rng = Builder(reader), np.random.default_rng(0)

    def conv(name: str, source: str, before: int, after: int, groups: int = 1) -> str:
        w = rng.standard_normal((after, 1, 1, before // groups)).astype(np.float32)
        return b.layer(Conv2d(groups=groups), [source, b.constant(f"{name}.w", w)], name)

    wide = conv("widen", b.input("x", (1, 8, 8, 4)), 4, WIDE)
    match reader:
        case "one":
            return b.build([conv("narrow", wide, WIDE, 4)])
        case "two":
            return b.build([conv("narrow", wide, WIDE, 4), conv("again", wide, WIDE, 4)])
        case "outside":
            return b.build([conv("narrow", wide, WIDE, 4), wide])
        case _:
            return b.build([conv("depthwise", wide, WIDE, WIDE, WIDE)])


def planned(network: Network, division: tuple[DivisionSegment, ...]) -> set[str]:
    """The tensors that go from part to part of a plan, which is right to the byte."""
    made = deployed(DivisionCosts(network, CLUSTER), division)
    for order in range(3):
        assert list(cluster_errors(made, CLUSTER.gateway, frames_of(network, 3), order)) == []
    return {fifo.what.tensor for fifo in made.deployment.fifos if fifo.source}


def test_nothing_is_sent_within_a_fused_pair():
    network = widened("one")
    choices = [UnitChoice(SegmentSplit.CHANNELS, DEVICES), UnitChoice(SegmentSplit.SUMS, DEVICES, is_joined=True)]
    pair = division_of(choices)
    assert pair == (DivisionSegment(0, 2, SegmentSplit.SUMS, DEVICES),)
    assert planned(network, pair) == {"narrow"}
    assert tuple(Strategies(DivisionCosts(network, CLUSTER), ClusterGoal()).by_weights(0)) == pair


@pytest.mark.parametrize("reader", ["two", "outside", "depthwise"])
def test_a_pair_is_refused_where_others_need_what_lies_between_or_the_second_layer_does_not_sum(reader: str):
    network = widened(reader)
    costs = DivisionCosts(network, CLUSTER)
    pair = DivisionSegment(0, 2, SegmentSplit.SUMS, DEVICES)
    assert costs.sketcher.sketch(pair) is None
    rest = tuple(DivisionSegment(n, n + 1, SegmentSplit.CHANNELS, DEVICES) for n in range(2, len(costs.sketcher.units)))
    assert costs.cost((pair, *rest)) is None
    found = tuple(Strategies(costs, ClusterGoal()).by_weights(0))
    assert found[0] == DivisionSegment(0, 1, SegmentSplit.CHANNELS, DEVICES)
    assert "widen" in planned(network, found)


def test_layers_share_data_only_with_the_one_that_nobody_else_reads():
    """As S has it: `previous` is the layer that is read, where no other one reads it."""
    previous = {
        reader: [layer.previous for layer in Strategies(DivisionCosts(widened(reader), CLUSTER), ClusterGoal()).layers]
        for reader in ("one", "two", "outside", "depthwise")
    }
    assert previous == {"one": [None, 1], "two": [None] * 3, "outside": [None] * 2, "depthwise": [None, 1]}
