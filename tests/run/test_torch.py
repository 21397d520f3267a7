"""Parts in torch: what they compute is what numpy computes, beside our own code in one deployment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from edgewright import read_model, samples
from edgewright.errors import InputError
from edgewright.mapping.deploy import deployment_of
from edgewright.mapping.exact import MappingLimits
from edgewright.mapping.goal import MappingGoal, map_for
from edgewright.mapping.profiled import problem_of
from edgewright.network import Builder, DType, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import ArgMax, Clamp, UnaryKind
from edgewright.program.deployment_file import load_deployment, save_deployment
from edgewright.run.build import build_pipeline, whole_network
from edgewright.run.executors.torch_layers import TORCH_OPERATORS
from edgewright.run.executors.torch_part import TorchNetwork, load_torch, read_torch_part, write_torch_part
from edgewright.run.pipeline import pipeline
from edgewright.run.torch_times import gpu_times
from tests.helpers.kernel_cases import cases
from tests.helpers.profiles import made_up_profile


def torch_deployment(network):
    found = whole_network(network, None)
    return replace(found, parts=tuple(replace(part, runtime="torch") for part in found.parts))


def test_what_torch_lacks_is_refused_before_anything_runs(tmp_path):
    builder = Builder("argmax")
    x = builder.input("x", (1, 4, 4, 3))
    best = builder.layer(ArgMax((3,)), [x], "best", dtype=DType.INT64)
    with pytest.raises(InputError, match="layer 'best' is a ArgMax, which the torch executor lacks"):
        build_pipeline(torch_deployment(builder.build([best])), tmp_path)


def test_an_unknown_runtime_is_refused(tmp_path):
    network = read_model(samples.build("lenet5"))
    found = whole_network(network, None)
    other = replace(found, parts=tuple(replace(part, runtime="abacus") for part in found.parts))
    with pytest.raises(InputError, match="runtime 'abacus'; known are onnxruntime and torch"):
        build_pipeline(other, tmp_path)


def test_the_file_of_a_part_is_read_as_it_was_written(tmp_path):
    network = read_model(samples.build("lenet5"))
    path = tmp_path / "part.npz"
    write_torch_part(network, path)
    again = read_torch_part(path)
    assert again.layers == network.layers
    assert all(np.array_equal(again.constants[name], value) for name, value in network.constants.items())
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="is no part for torch"):
        read_torch_part(path)


def test_the_runtime_is_kept_in_the_folder(tmp_path):
    save_deployment(torch_deployment(read_model(samples.build("lenet5"))), tmp_path)
    assert load_deployment(tmp_path).parts[0].runtime == "torch"


@pytest.mark.parametrize("kind", sorted(TORCH_OPERATORS, key=lambda kind: kind.__name__))
def test_every_operator_computes_what_numpy_computes(kind):
    torch = pytest.importorskip("torch", reason="parts for a GPU run in torch")

    @settings(max_examples=20)
    @given(cases(kind))
    def check(case):
        values = case.values()
        if getattr(case.op, "kind", None) in (UnaryKind.CEIL, UnaryKind.FLOOR, UnaryKind.ROUND, UnaryKind.SIGN):
            values = [value.round(1) for value in values]
        builder = Builder("one")
        inputs = [builder.input(f"i{i}", value.shape) for i, value in enumerate(values)]
        network = builder.build([builder.layer(case.op, inputs, "y")])
        frame = {name: value for name, value in zip(inputs, values, strict=True) if name in network.inputs}
        loaded = TorchNetwork(torch, network, "cpu")
        for name, value in frame.items():
            loaded.inputs[name].copy_(torch.from_numpy(value))
        loaded.compute()
        with np.errstate(all="ignore"):
            expected = execute(network, frame)["y"]
        np.testing.assert_allclose(loaded.outputs["y"].numpy(), expected, rtol=1e-4, atol=1e-4)

    check()


def test_layers_the_frame_and_moves_have_times():
    pytest.importorskip("torch", reason="parts for a GPU run in torch")
    builder = Builder("two")
    clamped = builder.layer(Clamp(0.0), [builder.input("x", (1, 4, 4, 3))], "relu")
    network = builder.build([builder.layer(ArgMax((3,)), [clamped], "best", dtype=DType.INT64)])
    found = gpu_times(network, ["cpu"], 2, "cpu")
    assert found.layers["relu"][0].seconds > 0 and found.layers["best"] == [] and found.frames == ()
    assert {(move.source, move.target) for move in found.transfers} == {("cpu", "gpu"), ("gpu", "cpu")}
    lenet = read_model(samples.build("lenet5"))
    assert gpu_times(lenet, ["cpu"], 1, "cpu").frames[0].executor == "torch"


def test_a_mapping_over_cores_and_a_gpu_runs_right_and_in_order():
    pytest.importorskip("torch", reason="parts for a GPU run in torch")
    load_torch("this test")
    network = read_model(samples.build("lenet5"))
    problem = problem_of(network, made_up_profile(network, cores={"cpu": 2}, gpu=2.0), "this")
    answer = map_for(problem, MappingGoal(limits=MappingLimits(replicas=1)))
    deployment = deployment_of(answer, network, "this")
    assert {part.runtime for part in deployment.parts if part.plan is None} == {"torch"}
    assert any(part.plan for part in deployment.parts)
    frames = [random_inputs(network, seed) for seed in range(12)]
    with pipeline(deployment) as running:
        for frame, outputs in zip(frames, running(frames), strict=True):
            for name, value in execute(network, frame).items():
                np.testing.assert_allclose(outputs[name], value, rtol=1e-4, atol=1e-5)
