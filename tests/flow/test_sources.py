"""Where the points of a flow come from: a search, a front of a task, one model in several widths."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from edgewright.cli import main
from edgewright.errors import EdgewrightError, InputError
from edgewright.flow.design_flow import DesignFlow
from edgewright.flow.fine_tuning import fine_tune
from edgewright.flow.model_data import ModelData
from edgewright.flow.shrinking import shrink
from edgewright.network import random_inputs
from edgewright.network.kernels import execute
from edgewright.network.read import read
from edgewright.samples.builder import ModelBuilder
from edgewright.search.front import read_front
from edgewright.search.outcome import run_search
from tests.cli.test_quantise_verb import SHAPE, small_model
from tests.helpers.searching_cases import Killed
from tests.search.test_outcome import TASK, Assessable, QuickPricer

FLOW = """
application = "none"
manners = ["whole"]
[[selection]]
name = "accurate"
require = {accuracy = 1}
"""


@pytest.fixture
def task(tmp_path, monkeypatch):
    """A folder with a task, whose search trains nothing."""
    monkeypatch.setattr("edgewright.search.outcome.CandidatePricer", QuickPricer)
    random, at = np.random.default_rng(1), np.arange(72)
    np.savez(tmp_path / "moves.npz", x=random.normal(0, 1, (72, 24, 2)), y=at % 3, who=at // 3 % 6)
    (tmp_path / "moves.toml").write_text(TASK)
    (tmp_path / "flow.toml").write_text('task = "moves.toml"' + FLOW)
    return tmp_path


def with_trainer(monkeypatch, trainer):
    search = partial(run_search, trainer_of=lambda _task, _data: trainer)
    monkeypatch.setattr("edgewright.flow.points.run_search", search)


def test_a_search_that_is_killed_goes_on(task, monkeypatch):
    with_trainer(monkeypatch, Assessable())
    whole = DesignFlow(task / "flow.toml", task / "whole", 1).run()
    assert whole.points.points and whole.points.task == "moves" and whole.board == "nucleo-f446re"
    assert whole.selections[0].point.macro_f1 == max(point.macro_f1 for point in whole.points.points)

    with_trainer(monkeypatch, Assessable(4))
    with pytest.raises(Killed):
        DesignFlow(task / "flow.toml", task / "killed", 1).run()
    rest = Assessable()
    with_trainer(monkeypatch, rest)
    resumed = DesignFlow(task / "flow.toml", task / "killed", 1).run()
    assert resumed.points == whole.points and len(rest.jobs) > 0
    with_trainer(monkeypatch, None)  # not asked again
    assert "points" in DesignFlow(task / "flow.toml", task / "killed", 1).run().reused

    (task / "both.toml").write_text('task = "moves.toml"\nfront = "whole/points"' + FLOW)
    assert DesignFlow(task / "both.toml", task / "out", 1).run().points.digest == whole.points.digest
    for old, new, why in (("seed = 2", "", "seed 1, not 2"), ("channels = [4, 12]", "channels = [4, 8]", "other data")):
        text = f"seed = 2\n{TASK}" if not new else TASK.replace(old, new)
        (task / "moves.toml").write_text(text)
        with pytest.raises(InputError, match=f"is not that of the task .*{why}.*; search again"):
            DesignFlow(task / "both.toml", task / "out", 1).run()


def test_torch_is_asked_for_before_a_search(task, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(InputError, match=r"pip install 'edgewright\[search\]'"):
        DesignFlow(task / "flow.toml", task / "out", 1).run()


MODEL_FLOW = 'model = "model.onnx"\ndata = "data.npz"\nboard = "nucleo-f446re"' + FLOW


@pytest.fixture
def model(tmp_path):
    """A folder with a model, and samples with its own classes as labels."""
    onnx.save(small_model(), tmp_path / "model.onnx")
    network = read(tmp_path / "model.onnx")
    x = np.random.default_rng(1).standard_normal((64, *SHAPE), np.float32)
    y = [int(execute(network, {"input": each[None].transpose(0, 2, 3, 1)})["gemm1"].argmax()) for each in x]
    np.savez(tmp_path / "data.npz", x=x, y=np.array(y))
    return tmp_path


def test_a_model_in_several_widths(model):
    (model / "flow.toml").write_text(MODEL_FLOW + "[shrink]\nshares = [0.5, 1.0]\nstep = 2\nepochs = 0\n")
    outcome = DesignFlow(model / "flow.toml", model / "out", 1).run()
    wide, narrow = outcome.augmented.points
    assert (wide.name, narrow.name) == ("w100-whole", "w50-whole")
    assert wide.accuracy > 0.8 and narrow.accuracy <= wide.accuracy
    assert narrow.ram_bytes < wide.ram_bytes and narrow.macs < 0.5 * wide.macs
    assert "w50, 50% of the channels: accuracy" in outcome.notes[1] and "100.00% in float32" in outcome.notes[0]
    assert outcome.selections[0].point == wide
    assert read_front(model / "out/points").metric == "accuracy"


def test_models_that_cannot_be_used(model, monkeypatch):
    (model / "flow.toml").write_text(MODEL_FLOW + "[shrink]\nshares = [0.5]\n")
    with monkeypatch.context() as patched:
        patched.setitem(__import__("sys").modules, "torch", None)
        with pytest.raises(InputError, match=r"trained with PyTorch: pip install 'edgewright\[search\]', or set"):
            DesignFlow(model / "flow.toml", model / "out", 1).run()
    odd = small_model()
    next(node for node in odd.graph.node if node.op_type == "Tanh").op_type = "Wavelet"
    onnx.save(odd, model / "model.onnx")
    with pytest.raises(EdgewrightError, match="Wavelet x1"):
        DesignFlow(model / "flow.toml", model / "out", 1).run()
    assert not (model / "out/points").exists()
    np.savez(model / "data.npz", x=np.full((4, *SHAPE), np.nan))
    onnx.save(small_model(), model / "model.onnx")
    with pytest.raises(InputError, match="480 values that are NaN or infinite"):
        DesignFlow(model / "flow.toml", model / "out", 1).run()


def residual_model() -> onnx.ModelProto:
    """Channels that a sum ties together, a depthwise layer, channels that are joined, a dense layer on pixels."""
    net = ModelBuilder("residual")
    x = net.relu(net.conv(net.input(1, 3, 8, 8), 8, 3, name="first"))
    x = net.add(net.relu(net.depthwise(x, 3, name="depthwise")), net.conv(x, 8, 1, name="side"))
    x = net.concat(net.conv(x, 4, 1, name="left"), net.conv(x, 4, 1, name="right"))
    x = net.relu(net.conv(x, 6, 3, 2, name="last"))
    return net.model(net.dense(net.node("Flatten", x, axis=1), 5, name="classes"))


def test_channels_that_do_nothing_are_removed_without_a_change(tmp_path):
    model = residual_model()
    arrays = {tensor.name: onnx.numpy_helper.to_array(tensor).copy() for tensor in model.graph.initializer}
    for layer, channels in {"first": (1, 2, 5, 6), "side": (1, 2, 5, 6), "last": (0, 2, 3)}.items():
        for part in ("weight", "bias"):
            arrays[f"{layer}.{part}"][list(channels)] = 0
    arrays["depthwise.bias"][[1, 2, 5, 6]] = 0
    for tensor in model.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(arrays[tensor.name], tensor.name))
    onnx.save(model, tmp_path / "model.onnx")
    network = read(tmp_path / "model.onnx")
    narrow = shrink(network, 0.5)
    assert narrow.weight_bytes < 0.6 * network.weight_bytes
    shapes = {layer.name: narrow.tensors[layer.output].shape[-1] for layer in narrow.layers}
    assert (shapes["first"], shapes["last"], shapes["left"], shapes["classes"]) == (4, 3, 4, 5)
    for seed in range(3):
        inputs = random_inputs(network, seed)
        assert np.allclose(execute(narrow, inputs)["classes"], execute(network, inputs)["classes"], atol=1e-5)
    assert shrink(narrow, 0.5, 1, network).weight_bytes == narrow.weight_bytes  # half of the full width


@pytest.mark.slow
def test_training_lowers_the_loss_and_repeats(model):
    pytest.importorskip("torch", reason="PyTorch is an extra")
    network = read(model / "model.onnx")
    random = np.random.default_rng(2)
    samples = [{"input": random.standard_normal((1, 20, 1, 6)).astype(np.float32)} for _ in range(64)]
    targets = [execute(network, sample)["gemm1"] for sample in samples]
    narrow = shrink(network, 0.75)
    data = ModelData(samples, None)

    def error(one):
        return np.mean([np.square(execute(one, s)["gemm1"] - t).mean() for s, t in zip(samples, targets, strict=True)])

    trained = fine_tune(narrow, data, targets, 8, 0.01, 1)
    assert error(trained) < 0.6 * error(narrow)
    again = fine_tune(narrow, data, targets, 8, 0.01, 1)
    assert all(np.array_equal(again.constants[name], values) for name, values in trained.constants.items())
    labelled = ModelData(samples, np.array([int(target.argmax()) for target in targets]))
    better = fine_tune(narrow, labelled, targets, 8, 0.01, 1)
    assert error(better) < error(narrow)


def test_the_page_of_a_plan_is_beside_the_report(model):
    (model / "flow.toml").write_text(MODEL_FLOW)
    done = CliRunner().invoke(main, ["flow", str(model / "flow.toml"), "-o", str(model / "out"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["notes"][0].startswith("w100, 100% of the channels")
    assert 'href="plan-pages/000-w100-whole.html"' in (model / "out/report.html").read_text()
    assert "</html>" in (model / "out/plan-pages/000-w100-whole.html").read_text()
