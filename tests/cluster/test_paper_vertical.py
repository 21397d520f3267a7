"""Vertical partitioning (T 4): table 3 by T's rules, T's genetic search, and ours against brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.cluster.paper.balanced import AS_USUAL, nearest_subset, vertical_balanced
from edgewright.cluster.paper.completion import Completion
from edgewright.cluster.paper.layers import LayerKind, PaperLayer, folded_layers, node_layers
from edgewright.cluster.paper.vertical import (
    T_SETTINGS,
    VerticalProblem,
    fullest_bound,
    vertical_costs,
    vertical_genetic,
)
from edgewright.errors import Infeasible, InputError
from edgewright.mapping.paper.genetic import GeneticSettings
from edgewright.network.read import read

EXACT = replace(AS_USUAL, tolerance=0.0)
# Memory saved in T table 3, in percent, on 2 to 10 devices.
TABLE = {
    "yolov2_608": (48.2, 64.1, 68.6, 71.9, 74.3, 74.3, 74.3, 74.3, 74.3),
    "resnet50": (48.1, 63.8, 70.8, 75.3, 79.0, 80.1, 82.1, 84.3, 84.9),
}


@st.composite
def problems(draw):
    costs = tuple(draw(st.lists(st.integers(0, 12), min_size=1, max_size=6)))
    devices = draw(st.integers(1, 4))
    limits = draw(st.none() | st.lists(st.integers(0, 20), min_size=devices, max_size=devices).map(tuple))
    return VerticalProblem(costs, devices, limits)


def loads_of(problem, devices):
    return [sum(c for c, d in zip(problem.costs, devices, strict=True) if d == k) for k in range(problem.devices)]


def least_fullest(problem):
    """By brute force; None if nothing keeps the limits."""
    limits = problem.limits or [10**9] * problem.devices
    found = []
    for devices in product(range(problem.devices), repeat=len(problem.costs)):
        loads = loads_of(problem, devices)
        if all(load <= limit for load, limit in zip(loads, limits, strict=True)):
            found.append(max(loads))
    return min(found, default=None)


@settings(max_examples=120)
@given(problems(), st.sampled_from([0, 100]))
def test_the_fullest_device_equals_brute_force(problem, rounds):
    least, exact = least_fullest(problem), replace(EXACT, rounds=rounds)
    if least is None:
        with pytest.raises(Infeasible, match=r"no partition keeps|bytes short"):
            vertical_balanced(problem, exact)
        return
    partition = vertical_balanced(problem, exact)
    assert partition.loads == tuple(loads_of(problem, partition.devices))
    assert partition.optimal and partition.fullest == least == partition.bound >= fullest_bound(problem)


@given(problems(), st.integers(0, 30))
def test_completion_finds_a_partition_exactly_where_there_is_one(problem, most):
    completion = Completion(problem, steps=10**6)
    devices = completion.within(most)
    least = least_fullest(problem)
    assert not completion.gave_up and (devices is not None) == (least is not None and least <= most)
    if devices is not None:
        loads = loads_of(problem, devices)
        assert max(loads) <= most and all(a <= b for a, b in zip(loads, problem.ceilings, strict=True))


def test_without_steps_nothing_is_called_proven():
    problem = VerticalProblem((5, 5, 4, 4, 3, 3, 3), 2, (13, 14))  # 13 = 5 + 5 + 3 has to be found
    quick = vertical_balanced(problem, replace(AS_USUAL, rounds=0, steps=0))
    assert quick.bound == 14 == quick.fullest
    with pytest.raises(Infeasible, match="no partition was found that keeps"):
        vertical_balanced(VerticalProblem((6, 6, 6), 2, (9, 9)), replace(AS_USUAL, steps=0))
    with pytest.raises(Infeasible, match=r"no partition keeps .* exceeds them by 3 bytes"):
        vertical_balanced(VerticalProblem((6, 6, 6), 2, (9, 9)))
    with pytest.raises(Infeasible, match="18 bytes and 2 devices hold 17: 1 bytes short"):
        vertical_balanced(VerticalProblem((6, 6, 6), 2, (9, 8)))


@given(st.lists(st.integers(0, 30), max_size=9), st.floats(-5, 200))
def test_the_nearest_subset(costs, wanted):
    subsets = [subset for count in range(len(costs) + 1) for subset in combinations(costs, count)]
    nearest = min(abs(sum(subset) - wanted) for subset in subsets)
    assert abs(sum(costs[index] for index in nearest_subset(costs, wanted)) - wanted) == pytest.approx(nearest)


def test_the_genetic_search_minimises_the_sum_of_differences():
    problem = VerticalProblem((9, 7, 6, 5, 4, 2, 1), 3)

    def imbalance(devices):
        return sum(abs(a - b) for a, b in permutations(loads_of(problem, devices), 2))

    quick = GeneticSettings(population=200, epochs=60, patience=60, searches=1)
    partition = vertical_genetic(problem, quick)
    choices = product(range(3), repeat=7)
    assert imbalance(partition.devices) == min(map(imbalance, choices))
    assert partition.loads == tuple(loads_of(problem, partition.devices))


def test_the_rule_counts_weights_inputs_and_outputs():
    layers = [PaperLayer(1, "", LayerKind.CONVOLUTION, 10, 20, 300), PaperLayer(2, "", LayerKind.OTHER, 20, 5)]
    assert vertical_costs(layers) == (1320, 100)
    assert (T_SETTINGS.population, T_SETTINGS.epochs, T_SETTINGS.mutation) == (5000, 100, 0.05)


@pytest.mark.parametrize("count", [node_layers, folded_layers])
@pytest.mark.parametrize("model", TABLE)
def test_table_3_of_real_networks(corpus_folder, model, count):
    costs = vertical_costs(count(read(corpus_folder / "models" / f"{model}.onnx")))
    found = [vertical_balanced(VerticalProblem(costs, n), replace(AS_USUAL, tolerance=1e-3)) for n in range(2, 11)]
    assert all(100 * one.saving >= saved for one, saved in zip(found, TABLE[model], strict=True))
    assert max(one.gap for one in found) <= 0.001


@pytest.mark.parametrize(("count", "saved"), [(node_layers, 47.52), (folded_layers, 39.08)])
def test_one_layer_is_the_wall_of_vgg16(corpus_folder, count, saved):
    costs = vertical_costs(count(read(corpus_folder / "models" / "vgg16.onnx")))
    for devices in (2, 10):
        partition = vertical_balanced(VerticalProblem(costs, devices))
        assert partition.optimal and partition.fullest == max(costs)
        assert round(100 * partition.saving, 2) == saved


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((1,), 0), "over 0 devices"),
        (((), 2), "at least one layer"),
        (((1, -1), 2), "no negative costs"),
        (((1,), 2, (3,)), "2 devices have 1 limits"),
        (((1,), 2, (3, -1)), "a limit of -1"),
    ],
)
def test_bad_problems_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        VerticalProblem(*arguments)
