"""The file's own runtime as judge: layouts, differences, and whole models read, cleaned up and written back."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgewright.errors import EdgewrightError, InputError
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.onnx_writer import write_onnx
from edgewright.network.operators import Clamp, Dequantize
from edgewright.network.read import read, read_bytes
from edgewright.network.reference import compare, reference
from edgewright.samples import build
from tests.helpers.parameters import corpus_models
from tests.network.onnx_models import model_of
from tests.network.passes_networks import Literal, ops

MOST_MACS = 3_000_000_000  # more take too long in numpy


# Reading


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file '.*none\.onnx'; give the path"):
        read(tmp_path / "none.onnx")


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        read(tmp_path)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(InputError, match=r"empty\.onnx' is empty"):
        read(tmp_path / "empty.onnx")


@pytest.mark.parametrize("text", [b"just some text, no model at all", b"PK\x03\x04zipped archive", b"\x00" * 64])
def test_no_model(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "model").write_bytes(text)
    with pytest.raises(EdgewrightError):
        read(tmp_path / "model")


def test_the_content_decides_not_the_name(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(build("lenet5").SerializeToString())
    assert read(path).arithmetic is Arithmetic.ONNX


def test_a_model_in_memory() -> None:
    model = build("lenet5")
    assert ops(read(model)) == ops(read_bytes(model.SerializeToString(), "lenet5"))


def batch_free() -> onnx.ModelProto:
    """A convolution with an open batch size, and an input that nobody reads."""
    w = numpy_helper.from_array(np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")],
        "free",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 6, 5]),
            helper.make_tensor_value_info("spare", TensorProto.FLOAT, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4, 4, 3])],
        [w],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_notes_of_reader_and_passes_survive() -> None:
    network = read(batch_free())
    text = "\n".join(network.notes)
    assert "set to 1" in text
    assert "input 'x' is taken as 1x6x5x3 (NHWC); the file has 1x3x6x5" in text


def test_reference_speaks_our_layout() -> None:
    model = batch_free().SerializeToString()
    network = read_bytes(model, "free")
    inputs = random_inputs(network)
    assert inputs["x"].shape == (1, 6, 5, 3)
    expected = reference(model, network).run(inputs)
    assert expected["y"].shape == (1, 4, 3, 4)
    difference = compare(network, execute(network, inputs), expected)
    assert difference.passes
    assert not compare(network, {"y": expected["y"] + 0.01}, expected).passes


def test_reference_wants_every_input() -> None:
    model = batch_free().SerializeToString()
    with pytest.raises(InputError, match="no value for input 'x'"):
        reference(model, read_bytes(model, "free")).run({})


def test_what_the_runtime_cannot_load() -> None:
    model = batch_free()
    network = read(model)
    model.graph.node[0].op_type = "Nonsense"
    with pytest.raises(EdgewrightError, match="onnxruntime cannot run the model"):
        reference(model.SerializeToString(), network)


def test_litert_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    network = replace(read(batch_free()), arithmetic=Arithmetic.TFLITE)
    with pytest.raises(EdgewrightError, match=r"pip install 'edgewright\[reference\]'"):
        reference("model.tflite", network)


# Differences


def stored(arithmetic: Arithmetic) -> Network:
    b = Builder("stored", arithmetic)
    x = b.input("x", (4,), DType.INT8, Quant.of(0.5))
    y = b.layer(Clamp(0.0), [x], "y")
    return b.build([y, b.layer(Dequantize(), [y], "real", dtype=DType.FLOAT32)])


@pytest.mark.parametrize(("arithmetic", "steps", "passes"), [
    (Arithmetic.TFLITE, 0, True),
    (Arithmetic.TFLITE, 1, False),
    (Arithmetic.ONNX, 1, True),
    (Arithmetic.ONNX, 2, False),
])  # fmt: skip
@pytest.mark.parametrize("output", ["y", "real"])
def test_stored_outputs_are_judged_in_steps(arithmetic: Arithmetic, steps: int, passes: bool, output: str) -> None:
    network = stored(arithmetic)
    expected = {"y": np.array([1, 2, 3, 4], np.int8), "real": np.array([0.5, 1, 1.5, 2], np.float32)}
    actual = dict(expected)
    off = np.array([0, 0, steps, 0])
    actual[output] = (expected[output] + off * (1 if output == "y" else 0.5)).astype(expected[output].dtype)
    difference = compare(network, actual, expected)
    assert difference.passes is passes
    assert difference.largest == steps
    if steps == 2:
        assert str(difference) == f"output '{output}': off by 2 steps (1 allowed)"


def test_floats_are_judged_by_their_magnitude() -> None:
    b = Literal()
    network = b.build([b.layer(Clamp(), [b.input("x", (3,))], "y")])
    expected = {"y": np.array([1000.0, 0.0, np.inf], np.float32)}
    near = {"y": np.array([1000.0, 0.09, np.inf], np.float32)}
    assert compare(network, near, expected).passes
    assert compare(network, expected, expected).largest == 0
    for wrong in ([1000.2, 0, np.inf], [1000, 0, 0], [np.nan, 0, np.inf], [1000, 0, -np.inf]):
        assert not compare(network, {"y": np.array(wrong, np.float32)}, expected).passes
    with pytest.raises(InputError, match="has shape"):
        compare(network, {"y": np.zeros(2, np.float32)}, expected)


# Whole models

SMALL = ["lenet5", "ds_cnn", "ds_cnn_int8", "resnet8_int8", "autoencoder_int8", "tiny_inception", "tiny_densenet",
         "tiny_mobilenet_v3", "minakova_example_int8", "text_classifier"]  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_samples_equal_onnxruntime(name: str, tmp_path: Path) -> None:
    """Read and cleaned up, and written back, a sample gives the numbers of the untouched model."""
    model = build(name).SerializeToString()
    network = read_bytes(model, name)
    assert "Transpose" not in ops(network)
    inputs = random_inputs(network)
    expected = reference(model, network).run(inputs)
    assert (difference := compare(network, execute(network, inputs), expected)).passes, difference
    path = write_onnx(network, tmp_path / "again.onnx")
    written = reference(path, network).run(inputs)
    assert (difference := compare(network, written, expected)).passes, difference


def filled(path: Path) -> bytes:
    """The model with seeded weights in place of those that are only given as shapes."""
    model = onnx.load(path)
    rng = np.random.default_rng(1)
    constants = {n.output[0]: n for n in model.graph.node if n.op_type == "ConstantOfShape"}
    shapes = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for name, node in constants.items():
        shape = tuple(int(d) for d in shapes[node.input[0]])
        fan = max(1, int(np.prod(shape[1:])))
        values = rng.standard_normal(shape) * np.sqrt(2 / fan) if len(shape) > 1 else rng.uniform(0.1, 0.3, shape)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
        model.graph.node.remove(node)
    return model.SerializeToString()


LARGER = ("densenet121", "efficientnet_b0", "googlenet", "light_inception_v1", "emotion_ferplus", "mobilenet_v1_timm")


@pytest.mark.parametrize("path", corpus_models("*.onnx", slow=LARGER))
def test_real_models_equal_onnxruntime(path: Path, tmp_path: Path) -> None:
    network = read(path)
    assert "Transpose" not in ops(network)
    if network.total_macs > MOST_MACS or network.weight_bytes > 100_000_000:
        return
    model = filled(path)
    network = read_bytes(model, path.stem)
    inputs = random_inputs(network)
    expected = reference(model, network).run(inputs)
    assert (difference := compare(network, execute(network, inputs), expected)).passes, difference
    if network.weight_bytes < 30_000_000:
        written = reference(write_onnx(network, tmp_path / "again.onnx"), network).run(inputs)
        assert (difference := compare(network, written, expected)).passes, difference


@pytest.mark.parametrize("path", corpus_models("*.tflite"))
def test_real_tflite_models_equal_litert(path: Path) -> None:
    """After the passes still bit by bit."""
    network = read(path)
    if network.total_macs > 300_000_000:
        return
    inputs = random_inputs(network)
    difference = compare(network, execute(network, inputs), reference(path, network).run(inputs))
    assert difference.passes, difference


@pytest.mark.parametrize("ends", ["narrow", "float32"])
@pytest.mark.parametrize("kind", ["FLOAT16", "BFLOAT16", "DOUBLE"])
def test_other_floats_are_compared_in_float32(kind: str, ends: str) -> None:
    """Models whose tensors are float16, bfloat16 or double, with and without casts at their ends."""
    inside = TensorProto.DataType.Value(kind)
    outside = TensorProto.FLOAT if ends == "float32" else inside
    weights = np.random.default_rng(0).standard_normal((8, 3, 3, 3)).astype(helper.tensor_dtype_to_np_dtype(inside))
    nodes = [
        helper.make_node("Cast", ["x"], ["inner"], to=inside),
        helper.make_node("Conv", ["inner", "w"], ["c"]),
        helper.make_node("Cast", ["c"], ["y"], to=outside),
    ]
    shapes = {"x": [1, 3, 9, 9], "y": [1, 8, 7, 7]}
    x, y = (helper.make_tensor_value_info(name, outside, shape) for name, shape in shapes.items())
    graph = helper.make_graph(nodes, "floats", [x], [y], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    data = model.SerializeToString()
    network = read_bytes(data, name="floats")
    inputs = random_inputs(network)
    expected = reference(data, network).run(inputs)["y"]
    assert expected.dtype == np.float32
    np.testing.assert_allclose(execute(network, inputs)["y"], expected, rtol=1e-5, atol=1e-5)


def test_logarithms_of_spectra_are_as_exact_as_sums():
    """onnxruntime's STFT in float32 is not; logarithms of small values show it."""
    rng = np.random.default_rng(5)
    window = np.hanning(400).astype(np.float32)
    inits = {"step": np.int64(160), "window": window, "two": np.float32(2), "little": np.float32(1e-10)}
    nodes = [
        helper.make_node("STFT", ["x", "step", "window"], ["bins"]),
        helper.make_node("Pow", ["bins", "two"], ["powers"]),
        helper.make_node("Add", ["powers", "little"], ["some"]),
        helper.make_node("Log", ["some"], ["y"]),
    ]
    x = rng.normal(size=(1, 16000, 1)).astype(np.float32)
    model = model_of(nodes, {"x": x}, ["y"], inits)
    network = read_bytes(model.SerializeToString(), "spectra")
    found = reference(model.SerializeToString(), network).run({"x": x})["y"]
    frames = np.lib.stride_tricks.sliding_window_view(x[0, :, 0].astype(np.float64), 400)[::160] * window
    bins = np.fft.rfft(frames)
    parts = np.stack([bins.real, bins.imag], -1)[None]
    worst = np.abs(found - np.log(parts**2 + 1e-10)) * np.abs(parts)  # how far a logarithm is off times its argument
    assert worst.max() < 1e-4
