"""Feature-then-weight partitioning (S 5.4.1): table 5.1 by both countings, and brute force."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.cluster.paper.layers import Counting, LayerKind, PaperLayer, counted
from edgewright.cluster.paper.switch_point import (
    best_switch,
    sequential_footprint,
    switched_footprint,
    whole_footprint,
)
from edgewright.errors import InputError
from tests.cluster.paper_networks import DARKNETS

# First layer divided by weights; megabytes on one device, on ten, and of the largest layer. S prints three digits, and
# 5.82 for AlexNet's largest layer.
TABLE = {
    "YOLOv2": (13, 255.52, 28.42, 51.76),
    "AlexNet": (3, 16.76, 2.65, 5.83),
    "VGG-16": (8, 84.53, 13.24, 25.84),
    "Extraction": (5, 97.49, 12.21, 20.08),
}
EVERYTHING = {
    "YOLOv2": (262.9, 29.16),
    "AlexNet": (251.3, 26.10),
    "VGG-16": (579.1, 62.70),
    "Extraction": (97.7, 12.21),
}


def megabytes(values, digits=2):
    return round(float(values) * 4e-6, digits)


@pytest.mark.parametrize("name", TABLE)
def test_table_5_1(name):
    layers = counted(DARKNETS[name](), Counting.CONVOLUTIONS)
    switch = best_switch(layers, 10)
    sizes = whole_footprint(layers), switch.footprint, sequential_footprint(layers)
    assert (switch.number(layers), *map(megabytes, sizes)) == TABLE[name]


@pytest.mark.parametrize("name", EVERYTHING)
def test_table_5_1_with_everything_counted(name):
    layers = counted(DARKNETS[name](), Counting.EVERYTHING)
    found = megabytes(whole_footprint(layers), 1), megabytes(best_switch(layers, 10).footprint)
    assert found == EVERYTHING[name]


def test_the_switch_of_deepthings_takes_a_third_more():
    layers = counted(DARKNETS["YOLOv2"](), Counting.CONVOLUTIONS)
    by_hand = switched_footprint(layers, [layer.number for layer in layers].index(17), 10)
    assert megabytes(by_hand) == 37.86
    assert round(float(by_hand / best_switch(layers, 10).footprint), 2) == 1.33


sizes = st.integers(0, 50)


@settings(max_examples=60)
@given(st.lists(st.tuples(sizes, sizes, sizes), max_size=6), st.integers(1, 9))
def test_the_best_switch_equals_brute_force(sizes, devices):
    layers = [PaperLayer(i, "", LayerKind.DENSE, m, k, q) for i, (m, k, q) in enumerate(sizes, start=1)]
    found = []
    for flags in product((0, 1), repeat=len(layers)):
        if any(a > b for a, b in pairwise(flags)):  # eq. 5.14 as it is meant
            continue
        a = [(m + k) * (devices if b else 1) for (m, k, _), b in zip(sizes, flags, strict=True)]
        q = [q * (1 if b else devices) for (*_, q), b in zip(sizes, flags, strict=True)]
        found.append((max(a, default=0) + sum(q), flags.count(0)))
    best = best_switch(layers, devices)
    assert (best.footprint * devices, best.first) == min(found)
    assert (best.number(layers) is None) == (best.first == len(layers))


def test_bad_numbers_are_refused():
    with pytest.raises(InputError, match="over 0 devices"):
        best_switch((), 0)
    with pytest.raises(InputError, match="at layer 1 of 0"):
        switched_footprint((), 1, 2)
