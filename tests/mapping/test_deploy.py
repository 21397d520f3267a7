"""Mappings as deployments: right and in order in the judge and natively, and as fast as their own graph says."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgewright import read_model, samples
from edgewright.dataflow.deployments.slots import frame_period
from edgewright.mapping.answer import MappingAnswer
from edgewright.mapping.assignment import mapping_of, single_processors
from edgewright.mapping.deploy import deployment_of
from edgewright.mapping.exact import MappingLimits
from edgewright.mapping.goal import MappingGoal, map_for
from edgewright.mapping.profiled import problem_of
from edgewright.mapping.timed_graph import timing_of
from edgewright.network import random_inputs
from edgewright.network.kernels import execute
from edgewright.platform.profile import LayerTime
from edgewright.program.deployment_check import deployment_faults
from edgewright.program.deployment_run import deployment_errors
from edgewright.run.pipeline import pipeline
from tests.helpers.pipelines import allocated
from tests.helpers.profiles import made_up_profile
from tests.helpers.random_networks import networks

LIMITS = (MappingLimits(), MappingLimits(replicas=1), MappingLimits(replicas=2))


@settings(max_examples=12)
@given(networks(most=5), st.integers(0, 2), st.randoms(use_true_random=False))
def test_random_networks_come_out_right_and_in_order(network, which, random):
    assume(is_cuttable(network))
    problem = problem_of(network, made_up_profile(network, cores={"cpu": 3}), "this")
    answer = map_for(problem, MappingGoal(limits=LIMITS[which]))
    _judged(answer, network, random)


@settings(max_examples=8)
@given(networks(most=5), st.randoms(use_true_random=False))
def test_so_do_random_assignments(network, random):
    assume(is_cuttable(network))
    processors = single_processors(problem_of(network, made_up_profile(network, cores={"cpu": 3}), "this"))
    genes = [random.randrange(3) for _ in network.layers]
    mapping = mapping_of(processors, genes, "random")
    _judged(MappingAnswer(mapping, timing_of(mapping), 1.0), network, random)


def is_cuttable(network) -> bool:
    """Whether frames come in and go out through layers."""
    read = all(network.readers[name] for name in network.inputs)
    return bool(network.layers) and read and all(name in network.producers for name in network.outputs)


def _judged(answer: MappingAnswer, network, random: Random) -> None:
    deployment = deployment_of(answer, network, "this")
    assert list(deployment_faults(deployment)) == []
    assert float(_frame_period(answer, deployment)) == pytest.approx(answer.timing.period, rel=5e-3)
    frames = [{network.name: random_inputs(network, seed)} for seed in range(5)]
    assert list(deployment_errors(deployment, frames, seed=random.randrange(1 << 30))) == []


def _frame_period(answer: MappingAnswer, deployment) -> float:
    """What the graph of the deployment itself says, with the same times and slots."""
    times = {}
    for worker in deployment.workers:
        seconds = answer.mapping.stage_of(worker.parts[0]).seconds
        times |= {(worker.name, n): round(s * 1e9) for n, s in zip(worker.parts, seconds, strict=True)}
    return float(frame_period(deployment, times)) / 1e9


@pytest.mark.parametrize("lanes", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_mapping_runs_natively_within_the_memory_that_was_planned(lanes):
    network = read_model(samples.build("lenet5"))
    problem = problem_of(network, made_up_profile(network, cores={"cpu": 2 * lanes}, lanes=[lanes]), "this")
    answer = map_for(problem, MappingGoal(limits=MappingLimits(replicas=1)))
    assert len(answer.mapping.stages) == 2
    deployment = deployment_of(answer, network, "this")
    frames = [random_inputs(network, seed) for seed in range(6)]
    with pipeline(deployment) as running:
        assert allocated(running) == deployment.ram_bytes
        for frame, outputs in zip(frames, running(frames), strict=True):
            for name, value in execute(network, frame).items():
                np.testing.assert_allclose(outputs[name], value, rtol=1e-4, atol=1e-5)


def test_each_part_has_the_executor_that_is_faster_there():
    pytest.importorskip("onnxruntime", reason="half of the layers are for it")
    network = read_model(samples.build("lenet5"))
    made = made_up_profile(network, cores={"cpu": 2})
    half = len(made.layers) // 2
    layers = []
    for number, layer in enumerate(made.layers):
        times = [LayerTime(processor="cpu", seconds=1e-3 if number < half else 4e-3)]
        times.append(LayerTime(processor="cpu", executor="onnxruntime", seconds=5e-3 - times[0].seconds))
        layers.append(layer.model_copy(update={"times": tuple(times)}))
    problem = problem_of(network, made.model_copy(update={"layers": tuple(layers)}), "this")
    answer = map_for(problem)
    assert [stage.execution.executor for stage in answer.mapping.stages] == ["native", "onnxruntime"]
    deployment = deployment_of(answer, network, "this")
    assert [part.plan is None for part in deployment.parts] == [False, True]
    frames = [random_inputs(network, seed) for seed in range(6)]
    with pipeline(deployment) as running:
        for frame, outputs in zip(frames, running(frames), strict=True):
            for name, value in execute(network, frame).items():
                np.testing.assert_allclose(outputs[name], value, rtol=1e-4, atol=1e-5)


def test_the_workers_of_a_deployment_have_cores_of_their_own():
    network = read_model(samples.build("lenet5"))
    problem = problem_of(network, made_up_profile(network, cores={"cpu": 4}), "this")
    deployment = deployment_of(map_for(problem), network, "this")
    cores = [core for worker in deployment.workers for core in worker.cores]
    assert sorted(cores) == [0, 1, 2, 3]
    promised = {prediction.name: prediction.value for prediction in deployment.predictions}
    assert promised["throughput"] == pytest.approx(map_for(problem).throughput)
