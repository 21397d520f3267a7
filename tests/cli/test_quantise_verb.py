"""`edgewright quantise`: accuracy before and after, what stays real, and every refusal."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from edgewright import compile_model, plan, read_model
from edgewright.cli import main
from edgewright.network.operators import Lrn
from edgewright.samples.builder import ModelBuilder
from tests.helpers import tflite_models as tfl
from tests.helpers.onnx_session import onnx_session

SHAPE = (6, 20, 1)  # channels, height, width: windows of sensor data


def small_model(function: str = "Tanh", **attributes) -> onnx.ModelProto:
    net = ModelBuilder("small")
    x = net.node(function, net.batchnorm(net.conv(net.input(1, *SHAPE), 8, (5, 1))), **attributes)
    x = net.node("AveragePool", net.relu(net.conv(x, 12, (3, 1), (2, 1))), kernel_shape=(2, 1), strides=(2, 1))
    return net.model(net.classifier(x, 4))


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A float model, and samples (n, time, channels) with the classes that it gives as labels."""
    folder = tmp_path_factory.mktemp("given")
    model = small_model()
    onnx.save(model, folder / "model.onnx")
    x = np.random.default_rng(1).standard_normal((90, *SHAPE), np.float32)
    session = onnx_session(model)
    y = np.array([session.run(None, {"input": each[None]})[0].argmax() for each in x])
    np.savez(folder / "data.npz", x=x[..., 0].transpose(0, 2, 1), y=y)
    return folder


def called(folder, *options, model="model.onnx", data="data.npz"):
    words = ["quantise", folder / model, "--data", folder / data, *options]
    return CliRunner().invoke(main, list(map(str, words)))


def test_accuracy_before_and_after(given, tmp_path):
    done = called(given, "-o", tmp_path / "int8.onnx", "--json", "--samples", 30)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["calibration_samples"] == 30 and said["evaluated_samples"] == 60
    assert said["accuracy_before"] == 1  # labels are the model's own classes
    session = onnx_session(tmp_path / "int8.onnx")
    with np.load(given / "data.npz") as data:
        x, y = data["x"].transpose(0, 2, 1)[..., None], data["y"]
    rest = [at for at in range(90) if at % 3]  # every third one gave the ranges
    right = [session.run(None, {"input": x[at : at + 1]})[0].argmax() == y[at] for at in rest]
    assert said["accuracy_after"] == said["same_class"] == pytest.approx(np.mean(right))
    assert said["accuracy_after"] > 0.85 and 0 < said["mean_difference"] < said["largest_difference"] < 0.3


def test_all_layers_are_int8_and_compile(given, tmp_path):
    assert called(given, "-o", tmp_path / "int8.onnx").exit_code == 0
    trained, quantised = read_model(given / "model.onnx"), read_model(tmp_path / "int8.onnx", quantised_input=True)
    assert all(quantised.tensors[layer.output].quant for layer in quantised.layers[:-1])  # the tanh too
    assert plan(quantised).peak_bytes < plan(trained).peak_bytes / 3
    figures = compile_model(tmp_path / "int8.onnx").figures
    assert figures.checks and all(check.passes for check in figures.checks)


def test_without_labels_the_difference_is_said(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(2).standard_normal((1, *SHAPE), np.float32)
    np.save(tmp_path / "one.npy", x)
    done = CliRunner().invoke(main, ["quantise", str(given / "model.onnx"), "--data", "one.npy"])
    assert done.exit_code == 0, done.output
    assert "accuracy" not in done.output and "difference" in done.output and (tmp_path / "model-int8.onnx").exists()
    assert "ranges and figures are from the same 1 sample" in done.output


def test_what_stays_real_is_named(tmp_path):
    onnx.save(small_model("LRN", size=3), tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.random.default_rng(3).standard_normal((9, *SHAPE), np.float32))
    done = called(tmp_path, "-o", tmp_path / "int8.onnx", "--json", data="x.npy")
    assert done.exit_code == 0, done.output
    layers = {layer.name: layer for layer in read_model(tmp_path / "int8.onnx").layers}
    real = json.loads(done.stdout)["real_layers"]
    assert real and all(isinstance(layers[name].op, Lrn) for name in real)


def test_float_tflite_models(tmp_path):
    rng = np.random.default_rng(4)
    weights = tfl.constant("w", rng.standard_normal((3, 3, 3, 2)), "float32")
    specs = [
        tfl.Spec("x", (1, 8, 8, 2)),
        weights,
        tfl.constant("b", np.ones(3), "float32"),
        tfl.Spec("y", (1, 8, 8, 3)),
    ]
    conv = tfl.options("Conv2D", strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1)
    model = tfl.model(specs, [tfl.Node("CONV_2D", ("x", "w", "b"), ("y",), conv)], ["x"], ["y"])
    (tmp_path / "model.tflite").write_bytes(model)
    np.savez(tmp_path / "data.npz", x=rng.standard_normal((20, 8, 8, 2)))
    done = called(tmp_path, "-o", tmp_path / "int8.onnx", "--json", model="model.tflite")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["largest_difference"] < 0.03
    assert read_model(tmp_path / "int8.onnx").tensors["x"].shape == (1, 8, 8, 2)


GOOD = np.zeros((4, *SHAPE), np.float32)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": GOOD}, "has no array 'input' or 'x' for the model's input; it has z"),
        ({"x": GOOD[:0]}, "input has no samples"),
        ({"x": np.zeros((4, 7, 7))}, "input 'input' must have the shape (1, 6, 20, 1) as in the model file"),
        ({"x": np.where(np.arange(4)[:, None, None, None] == 2, np.nan, GOOD)}, "120 values that are NaN or infinite"),
        ({"x": GOOD, "y": np.zeros(3, int)}, "y has the shape (3,); expected one label for each of 4 samples"),
        ({"x": GOOD, "y": np.arange(1, 5)}, "labels are from 1 to 4; the model has 4 outputs, for labels from 0 to 3"),
        ({"x": GOOD, "y": np.array(["a", "b", "a", "c"]), "classes": np.array(["a", "b"])}, "the label 'c' is not in"),
        ({"x": GOOD, "y": np.full(4, 0.5)}, "y holds float64; expected whole numbers"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_bad_data(arrays, message, given, tmp_path):
    np.savez(tmp_path / "data.npz", **arrays)
    done = CliRunner().invoke(main, ["quantise", str(given / "model.onnx"), "--data", str(tmp_path / "data.npz")])
    assert done.exit_code == 1 and message in " ".join(done.output.split()), done.output
    assert not (tmp_path / "model-int8.onnx").exists()


def test_names_of_classes_are_labels(given, tmp_path):
    with np.load(given / "data.npz") as data:
        names = np.array(["walk", "run", "sit", "stand"])
        np.savez(tmp_path / "data.npz", x=data["x"], y=names[data["y"]], classes=names)
    done = called(given, "-o", tmp_path / "int8.onnx", "--json", data=tmp_path / "data.npz")
    assert json.loads(done.stdout)["accuracy_before"] == 1


def test_bad_models(given, tmp_path):
    assert called(given, "-o", tmp_path / "int8.onnx").exit_code == 0
    again = called(tmp_path, model="int8.onnx", data=given / "data.npz")
    assert again.exit_code == 1 and "is quantised already" in again.output
    model = small_model()
    next(node for node in model.graph.node if node.op_type == "Tanh").op_type = "Wavelet"
    onnx.save(model, tmp_path / "odd.onnx")
    odd = called(tmp_path, model="odd.onnx", data=given / "data.npz")
    assert odd.exit_code == 1 and "Wavelet x1" in odd.output
    missing = called(given, data="nothing.npz")
    assert missing.exit_code == 1 and "cannot read the input" in missing.output
    itself = called(given, "-o", given / "model.onnx")
    assert itself.exit_code == 1 and "would be overwritten" in itself.output


def test_a_full_disk_leaves_nothing(given, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "int8.onnx").write_bytes(b"before")
    monkeypatch.setattr("edgewright.files.os.replace", full)
    done = called(given, "-o", tmp_path / "int8.onnx")
    assert done.exit_code == 1 and "No space left on device" in done.output
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"before"]
