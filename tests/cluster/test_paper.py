"""Weights over several devices by the equations of S 5: its worked numbers, table 5.2, and brute force."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.cluster.paper.layers import Counting, LayerKind, PaperLayer, counted, folded_layers, node_layers
from edgewright.cluster.paper.weights import (
    WeightScheme,
    communication,
    fan_out_only,
    macs_per_device,
    optimised_weights,
    pipelined,
    weights_per_device,
)
from edgewright.errors import InputError
from edgewright.network.read import read
from edgewright.samples.builder import ModelBuilder
from tests.cluster.paper_networks import DARKNETS, running_example

FAN_OUT, FAN_IN, FIRST, SECOND = WeightScheme


def test_the_running_example():
    layers = running_example()
    assert [weights_per_device(layers, n) for n in (1, 2)] == [240, 120]
    assert [macs_per_device(layers, n) for n in (1, 2)] == [240, 120]
    schemes = {34: [FAN_OUT] * 4, 48: [FAN_IN] * 4, 40: [FIRST, SECOND] * 2}
    assert {communication(layers, those, 2): those for those in schemes.values()} == schemes
    best = optimised_weights(layers, 2)
    assert best.communication == 22 and best.schemes[:3] == (FAN_OUT, FIRST, SECOND)
    assert {communication(layers, (*best.schemes[:3], last), 2) for last in (FAN_OUT, FAN_IN)} == {22}


def test_the_running_example_as_a_pipeline():
    parts = pipelined(running_example(), [2])
    assert (parts.weights, parts.macs, parts.communication) == ((160, 80), 240, 16)


# Megabytes moved by six devices: fan-out only and optimised. S prints the first two of each network, to three digits.
MOVED = {
    "YOLOv2": {17: (83.99, 59.75), 13: (128.35, 89.32)},
    "AlexNet": {1: (9.69, 9.11), 3: (5.63, 5.05)},
    "VGG-16": {1: (202.04, 181.64), 8: (70.58, 66.23)},
    "Extraction": {1: (46.99, 41.79), 5: (35.29, 30.08)},
}


@pytest.mark.parametrize(("name", "first"), [(name, first) for name in MOVED for first in MOVED[name]])
def test_table_5_2(name, first):
    layers = [layer for layer in counted(DARKNETS[name](), Counting.CONVOLUTIONS) if layer.number >= first]
    ways = fan_out_only(layers, 6), optimised_weights(layers, 6)
    assert tuple(round(float(way.communication) * 4e-6, 2) for way in ways) == MOVED[name][first]
    assert communication(layers, ways[1].schemes, 6) == ways[1].communication


def test_the_darknet_networks_have_the_papers_layers():
    assert {name: len(build()) for name, build in DARKNETS.items()} == {
        "YOLOv2": 32,
        "AlexNet": 14,
        "VGG-16": 25,
        "Extraction": 27,
    }


@st.composite
def layer_lists(draw):
    """Up to six layers, of which some do not read the one before, or only a part of its outputs."""
    layers = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        reads = bool(layers) and draw(st.sampled_from([True, True, True, False]))
        inputs = layers[-1].outputs if reads else draw(st.integers(1, 40))
        previous = number - 1 if reads else None
        layers.append(PaperLayer(number, "", LayerKind.DENSE, inputs, draw(st.integers(1, 40)), previous=previous))
    return layers


def printed_communication(layers, letters, devices):
    """Eq. 5.16 written out with S's letters, or None where 5.19 to 5.21 forbid it; times `devices`, in integers."""
    joins = [True] + [b.previous == a.number for a, b in pairwise(layers)] + [False]
    total, count, n = 0, len(layers), devices
    for at, letter in enumerate(letters):
        if letter == "f" and (at + 1 == count or letters[at + 1] != "s" or not joins[at + 1]):
            return None
        if letter == "s" and (at == 0 or letters[at - 1] != "f"):
            return None
        before = at > 0 and joins[at] and letters[at - 1] == "o" and letter in "of"
        after = at + 1 < count and joins[at + 1] and letter == "o" and letters[at + 1] in "of"
        m, k = layers[at].inputs, layers[at].outputs
        fan_out = (1 - before) * m * (n - 1) * n + after * k * (n - 1) * n + (1 - after) * k * (n - 1)
        fan_in = m * (n - 1) + k * (n - 1) * n
        pair = (1 - before) * m * (n - 1) * n, k * (n - 1) * n
        total += {"o": fan_out, "i": fan_in, "f": pair[0], "s": pair[1]}[letter]
    return total


@settings(max_examples=60)
@given(layer_lists(), st.integers(1, 7))
def test_the_optimum_equals_brute_force(layers, devices):
    tried = {
        letters: printed_communication(layers, letters, devices) for letters in product("oifs", repeat=len(layers))
    }
    best = optimised_weights(layers, devices)
    assert best.communication * devices == min(total for total in tried.values() if total is not None)
    letters = tuple("oifs"[list(WeightScheme).index(scheme)] for scheme in best.schemes)
    assert tried[letters] == best.communication * devices == communication(layers, best.schemes, devices) * devices


def test_bad_numbers_are_refused():
    with pytest.raises(InputError, match="over 0 devices"):
        optimised_weights(running_example(), 0)
    with pytest.raises(InputError, match=r"cuts \[2, 2\] do not divide 4 layers"):
        pipelined(running_example(), [2, 2])


def branching_network():
    net = ModelBuilder("branching")
    x = net.relu(net.conv(net.input(1, 3, 8, 8), 4, 3))
    y = net.conv(net.relu(net.conv(x, 4)), 4)
    return read(net.model(net.classifier(net.add(x, y), 10)))


def test_layers_of_a_network_by_node_and_folded():
    network = branching_network()
    nodes, folded = node_layers(network), folded_layers(network)
    image = 4 * 8 * 8
    assert [layer.kind for layer in folded[:3]] == [LayerKind.CONVOLUTION] * 3
    assert [layer.previous for layer in folded[:4]] == [None, None, 2, None]  # two layers read the first one's output
    assert (folded[0].inputs, folded[0].outputs, folded[0].weights) == (3 * 64, image, 3 * 4 * 9)
    assert folded[3].inputs == 2 * image and folded[3].weights == 0
    activations = [layer for layer in nodes if layer.name.endswith("activation")]
    assert [layer.values for layer in activations] == [2 * image] * 2
    assert len(nodes) == len(folded) + 2 + sum(type(layer.op).__name__ == "Reshape" for layer in network.layers)
    assert sum(layer.macs for layer in nodes) == network.total_macs == sum(layer.macs for layer in folded)


TOTALS = {  # megabytes of all layers by T's rule: by node, folded
    "yolov2_608": (815.1, 537.1),
    "resnet50": (336.7, 259.8),
    "vgg16": (783.5, 674.9),
}


@pytest.mark.parametrize("model", TOTALS)
def test_totals_of_real_networks(corpus_folder, model):
    network = read(corpus_folder / "models" / f"{model}.onnx")
    found = (sum(layer.values for layer in count(network)) * 4e-6 for count in (node_layers, folded_layers))
    assert tuple(round(total, 1) for total in found) == TOTALS[model]
