"""Pipelines of stages, lanes and replicas: the exact solver against every pipeline there is, and against the bound."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import assume, given, settings

from edgewright.errors import Infeasible
from edgewright.mapping.bound import throughput_bound
from edgewright.mapping.downsets import find_cuts
from edgewright.mapping.exact import MappingLimits, PipelineSolver, latency, map_exact
from tests.mapping.cases import all_pipelines, chain, faults, mapping_problems


def test_replicas_share_a_layer_that_no_cut_divides():
    mapping = map_exact(chain([1, 6, 1], cores=2))
    assert [(stage.layers, stage.replicas) for stage in mapping.stages] == [((0, 1, 2), 2)]
    assert mapping.load_period == 4 and mapping.optimal


def test_without_replicas_the_chain_is_cut_where_the_slowest_stage_is_fastest():
    mapping = map_exact(chain([3, 1, 2, 2], cores=2), MappingLimits(replicas=1))
    assert [stage.layers for stage in mapping.stages] == [(0, 1), (2, 3)]
    assert mapping.load_period == 4


def test_lanes_are_taken_where_nothing_else_is_allowed():
    mapping = map_exact(chain([3, 1], cores=4, lanes=(1, 2, 4)), MappingLimits(stages=1, replicas=1))
    assert mapping.stages[0].execution.lanes == 4 and mapping.load_period == 1


def test_of_equal_throughputs_the_least_latency_is_taken():
    mapping = map_exact(chain([2, 2], cores=2, lanes=(1, 2)))
    assert mapping.load_period == 2 and sum(sum(stage.seconds) for stage in mapping.stages) == 2


@settings(max_examples=60)
@given(mapping_problems(most_layers=4))
def test_no_pipeline_is_faster(problem):
    assume(not problem.impossible())
    best = min((one.load_period for one in all_pipelines(problem) if not faults(one)), default=inf)
    found = map_exact(problem)
    assert faults(found) == []
    assert found.load_period == pytest.approx(best, abs=1e-9)
    assert found.optimal


@settings(max_examples=60)
@given(mapping_problems(most_layers=4))
def test_limits_are_kept_and_nothing_better_keeps_them(problem):
    assume(not problem.impossible())
    kept = [
        one.load_period
        for one in all_pipelines(problem)
        if len(one.stages) <= 2 and all(s.replicas == 1 and s.execution.lanes <= 2 for s in one.stages)
    ]
    limits = MappingLimits(stages=2, replicas=1, lanes=2)
    if min(kept, default=inf) == inf:
        with pytest.raises(Infeasible):
            map_exact(problem, limits)
        return
    found = map_exact(problem, limits)
    assert found.load_period == pytest.approx(min(kept), abs=1e-9)
    assert len(found.stages) <= 2 and all(stage.replicas == 1 for stage in found.stages)


@settings(max_examples=60)
@given(mapping_problems(most_layers=8))
def test_the_bound_holds_for_every_mapping(problem):
    assume(not problem.impossible())
    found = map_exact(problem)
    assert faults(found) == []
    if found.load_period:
        assert 1 / found.load_period <= throughput_bound(problem) * (1 + 1e-6)


def test_the_bound_of_equal_cores_is_their_number_over_the_work():
    assert throughput_bound(chain([1, 6, 1], cores=4)) == pytest.approx(0.5)


@settings(max_examples=40)
@given(mapping_problems(most_layers=4))
def test_no_pipeline_of_that_period_has_less_latency(problem):
    assume(not problem.impossible())
    full = {pool.name: pool.cores for pool in problem.pools}
    solver = PipelineSolver(problem.slowed(full))
    period = float(solver.periods()[-1])
    stages = solver.cheapest(period, latency)
    at_most = [
        sum(sum(stage.seconds) for stage in one.stages)
        for one in all_pipelines(solver.problem)
        if one.load_period <= period * (1 + 1e-9)
    ]
    slowed = any(len(pool.slowdown) > 1 for pool in problem.pools)
    if not slowed:  # the tried ones are slowed by the cores that they use, the solver's by all
        assert sum(sum(stage.seconds) for stage in stages) == pytest.approx(min(at_most), abs=1e-9)


def test_a_family_of_cuts_stands_for_too_many():
    wide = mapping_of_branches(12)
    cuts = find_cuts(wide, most=100)
    assert not cuts.complete and len(cuts.sets) < 100
    assert PipelineSolver(wide, cuts=cuts).fastest()


def mapping_of_branches(count):
    from edgewright.mapping.problem import CorePool, Execution, JoiningTensor, MappingProblem

    tensors = [JoiningTensor("x", 1, None, tuple(range(count)))]
    tensors += [JoiningTensor(f"t{i}", 1, i, (count,)) for i in range(count)]
    names = tuple(f"l{i}" for i in range(count + 1))
    executions = (Execution("cpu", 1, "native", (1.0,) * (count + 1)),)
    return MappingProblem("wide", names, tuple(tensors), (CorePool("cpu", 2),), executions)
