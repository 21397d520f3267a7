"""A processor for each layer: the example of M 3.5, its phases, and CP-SAT never behind the genetic search."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from edgewright.dataflow.checks.liveness import blocked
from edgewright.errors import Infeasible
from edgewright.mapping.assignment import AssignmentProblem, assign_exact, mapping_of, single_processors
from edgewright.mapping.goal import map_for
from edgewright.mapping.paper.genetic import GeneticSettings, assign_genetic, map_genetic
from edgewright.mapping.problem import CorePool, Execution, JoiningTensor, MappingProblem
from edgewright.mapping.timed_graph import timed_graph, timing_of
from tests.mapping.cases import chain, faults, mapping_problems

QUICK = GeneticSettings(population=60, epochs=40, patience=15)


def paper_example() -> AssignmentProblem:
    """The 23 layers of M fig. 3.2 on five processors, of which the first drives the GPU."""
    edges = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 7), (3, 6), (6, 7), (7, 8), (8, 9), (9, 10), (10, 13), (8, 11)]
    edges += [(11, 12), (12, 13), *((n, n + 1) for n in range(13, 23))]
    readers = {n: tuple(b - 1 for a, b in edges if a == n) for n in range(1, 24)}
    size = {7: 187200, 8: 187200, 12: 22500}
    tensors = [JoiningTensor("x", 4, None, (0,))]
    tensors += [JoiningTensor(f"t{n}", size.get(n, 4), n - 1, readers[n], n == 23) for n in range(1, 24)]
    layers = tuple(f"l{n}" for n in range(1, 24))
    times = (1.0,) * 23
    executions = (Execution("cpu", 1, "native", times), Execution("gpu", 1, "torch", times, "cpu"))
    pools = (CorePool("cpu", 5), CorePool("gpu", 1, True))
    return single_processors(MappingProblem("example", layers, tuple(tensors), pools, executions))


def test_the_phases_of_the_papers_example():
    problem = paper_example()
    assert problem.processors == ("gpu", "cpu1", "cpu2", "cpu3", "cpu4")
    where = {0: range(1, 8), 1: (8, 9, 10, 13), 2: (11, 12), 3: (*range(14, 19), 21, 22, 23), 4: (19, 20)}
    genes = [next(p for p, layers in where.items() if n in layers) for n in range(1, 24)]
    mapping = mapping_of(problem, genes, "by hand")
    phases = [[[layer + 1 for layer in part] for part in stage.parts] for stage in mapping.stages]
    assert phases == [
        [[1, 2, 3, 4, 5, 6, 7]],
        [[8], [9, 10, 13]],
        [[11, 12]],
        [[14, 15, 16, 17, 18], [21, 22, 23]],
        [[19, 20]],
    ]
    graph = timed_graph(mapping, timing_of(mapping).fifos)
    between = [channel for channel in graph.channels if channel.note in problem.problem.bytes_of]
    assert len(between) == 7 and blocked(graph) is None
    assert {c.token_bytes for c in between if c.note in ("t7", "t8")} == {187200}


def test_phases_that_wait_for_others_make_the_period_longer_than_any_load():
    problem = paper_example()
    genes = [0] * 7 + [1, 1, 1, 2, 2, 1] + [3] * 5 + [4, 4] + [3] * 3
    mapping = mapping_of(problem, genes, "by hand")
    timing = timing_of(mapping)
    assert mapping.load_period == 8  # l14-l18 and l21-l23
    assert timing.period == pytest.approx(10)  # and l19, l20, which they wait for


def single_processors_or_reject(problem):
    try:
        return single_processors(problem)
    except Infeasible:
        reject()


@settings(max_examples=60)
@given(mapping_problems(most_layers=7), st.randoms(use_true_random=False))
def test_any_assignment_is_live_and_as_fast_as_its_graph_says(problem, random):
    processors = single_processors_or_reject(problem)
    genes = [random.choice(np.flatnonzero(row).tolist()) for row in np.isfinite(processors.seconds)]
    mapping = mapping_of(processors, genes, "random")
    assert faults(mapping) == []
    timing = timing_of(mapping)
    assert blocked(timed_graph(mapping, timing.fifos)) is None
    assert timing.period >= mapping.load_period * (1 - 1e-9)


@settings(max_examples=25)
@given(mapping_problems(most_layers=5), st.sampled_from(["balance", "slowest"]))
def test_cp_sat_finds_the_best_of_all_assignments(problem, goal):
    processors = single_processors_or_reject(problem)
    every = np.array(list(product(range(len(processors.processors)), repeat=len(problem.layers))))
    best = processors.values(every, goal).min()
    found = assign_exact(processors, goal)
    scale = np.where(np.isfinite(processors.seconds), processors.seconds, 0).sum() + 1
    assert found.value == pytest.approx(best, abs=1e-4 * scale)


@settings(max_examples=10)
@given(mapping_problems(most_layers=8), st.sampled_from(["balance", "slowest"]))
def test_cp_sat_is_never_behind_the_genetic_search(problem, goal):
    processors = single_processors_or_reject(problem)
    assume(len(processors.processors) > 1)
    found = assign_genetic(processors, goal, QUICK)
    scale = np.where(np.isfinite(processors.seconds), processors.seconds, 0).sum() + 1
    assert assign_exact(processors, goal).value <= found.value + 1e-4 * scale
    genetic = timing_of(mapping_of(processors, found.genes, "ga")).period
    assert map_for(problem).timing.period <= genetic * (1 + 2e-3)


def test_the_genetic_search_balances_equal_cores():
    answer = map_genetic(chain([1.0] * 12, cores=4), settings=GeneticSettings(200, 100, patience=20))
    assert answer.mapping.method == "ga" and answer.mapping.load_period == pytest.approx(3)
    assert answer.bound == pytest.approx(1 / 3)


def test_layers_that_have_times_for_two_cores_together_only():
    problem = chain([1.0, 1.0], cores=3, lanes=(2,))
    assert map_for(problem).timing.period == pytest.approx(1)
    with pytest.raises(Infeasible, match="has a time for layer 'l0'; profile it on one core"):
        map_genetic(problem)
