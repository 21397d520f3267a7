"""Limits and goals of mappings, their latency, slots and energy, and what is said where nothing keeps a limit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

from edgewright.dataflow import blocked, period
from edgewright.errors import Infeasible, InputError
from edgewright.mapping.exact import MappingLimits
from edgewright.mapping.front import mapping_front
from edgewright.mapping.goal import MappingGoal, map_for
from edgewright.mapping.timed_graph import frames_over_time, timed_graph
from edgewright.platform import Power
from edgewright.program.deployment import OUTSIDE
from tests.mapping.cases import chain, faults, mapping_problems


def test_latency_of_a_pipeline_is_what_a_frame_spends_in_it():
    answer = map_for(chain([2.0, 2.0], cores=2), MappingGoal(limits=MappingLimits(replicas=1)))
    assert (answer.throughput, answer.latency) == (pytest.approx(0.5), pytest.approx(4))
    assert [fifo.slots for fifo in answer.timing.fifos if fifo.source and fifo.reading != (OUTSIDE,)] == [2]


def test_a_limit_on_latency_takes_lanes_instead_of_replicas():
    problem = chain([3.0, 5.0], cores=2, lanes=(1, 2))
    slow_lanes = [e if e.lanes == 1 else type(e)("cpu", 2, "native", (2.0, 3.0)) for e in problem.executions]
    problem = type(problem)(problem.name, problem.layers, problem.tensors, problem.pools, tuple(slow_lanes))
    assert map_for(problem).mapping.stages[0].replicas == 2
    limited = map_for(problem, MappingGoal(max_latency=6.0))
    assert limited.latency <= 6.0 and limited.mapping.stages[0].execution.lanes == 2
    assert not limited.mapping.optimal  # faster ones exist that are late


def test_a_limit_that_costs_nothing_leaves_the_proof():
    answer = map_for(chain([4.0, 4.0], cores=2), MappingGoal(max_latency=100.0))
    assert answer.mapping.optimal and answer.throughput == pytest.approx(0.25)


def test_limits_that_cannot_be_met_say_what_is_short():
    problem = chain([4.0, 4.0], cores=2)
    with pytest.raises(Infeasible, match=r"latency of 1000 ms; the nearest has 8000 ms: allow 7e\+03 ms more"):
        map_for(problem, MappingGoal(max_latency=1.0))
    with pytest.raises(Infeasible, match=r"in 16 B; the nearest needs \d+ B: allow \d+ B more"):
        map_for(problem, MappingGoal(ram=16))
    with pytest.raises(Infeasible, match=r"the bound is 0\.25"):
        map_for(problem, MappingGoal(min_throughput=1.0))


def test_what_no_mapping_can_give_is_refused():
    problem = chain([1.0, 1.0])
    with pytest.raises(InputError, match="3 stages are asked for, but network 'chain' has 2 layers"):
        map_for(problem, MappingGoal(limits=MappingLimits(stages=3)))
    with pytest.raises(InputError, match=r"no \[power\] active"):
        map_for(problem, MappingGoal("energy"))
    nobody = type(problem)(problem.name, problem.layers, problem.tensors, problem.pools, ())
    with pytest.raises(Infeasible, match="can run 'l0', 'l1'"):
        map_for(nobody)


def test_energy_weighs_what_is_busy():
    answer = map_for(chain([1.0, 1.0], cores=2), power=Power(idle=1.0, active=3.0))
    assert answer.energy == pytest.approx(3.0)  # both cores all the time, one frame a second
    alone = map_for(chain([1.0, 1.0], cores=2), MappingGoal(limits=MappingLimits(1, 1)), Power(idle=1, active=3))
    assert alone.energy == pytest.approx(4.0)  # one core of two, two seconds a frame


@settings(max_examples=30)
@given(mapping_problems(most_layers=6))
def test_slots_keep_the_period_and_one_less_does_not(problem):
    assume(not problem.impossible())
    answer = map_for(problem)
    assert faults(answer.mapping) == []
    load = answer.mapping.load_period
    if not load or not answer.timing.least:
        return
    unit = load / 1000
    graph = timed_graph(answer.mapping, [replace(fifo, slots=0) for fifo in answer.timing.fifos])
    slots = {fifo.what.tensor: fifo.slots for fifo in answer.timing.fifos}
    full = {channel.name: slots[channel.note] for channel in graph.channels if channel.note in slots}
    kept = period(graph, full)
    assert float(kept) * unit == pytest.approx(answer.timing.period, rel=2e-3)
    for channel in graph.channels:
        alone = sum(other.note == channel.note for other in graph.channels) == 1
        if channel.name in full and alone and full[channel.name] > 1:
            fewer = full | {channel.name: full[channel.name] - 1}
            assert blocked(graph, fewer) or period(graph, fewer) > kept
    limited, run, _ = frames_over_time(answer.mapping, answer.timing, 3)
    assert period(limited) == kept
    assert len(run.firings) == 3 * sum(len(stage.parts) for stage in answer.mapping.stages)


@settings(max_examples=15)
@given(mapping_problems(most_layers=6))
def test_no_point_of_a_front_beats_another_in_everything(problem):
    assume(not problem.impossible())
    front = mapping_front(problem, MappingGoal())
    fastest = map_for(problem)
    assert front and all(faults(one.mapping) == [] for one in front)
    points = [(-one.throughput, one.latency, one.memory_bytes) for one in front]
    for point in points:
        assert not any(other != point and all(a <= b for a, b in zip(other, point, strict=True)) for other in points)
    if fastest.timing.period:
        assert front[0].throughput <= fastest.throughput * (1 + 1e-6)
