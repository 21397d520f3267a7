"""Operators that users describe: read, planned whole and in parts, compiled, compared; MediaPipe's two as examples."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from onnx import helper

from edgewright.cli.main import main
from edgewright.errors import InputError, ModelError
from edgewright.memory import plan as make_plan
from edgewright.network import Array
from edgewright.network.kernels import execute
from edgewright.network.onnx_format import read_onnx
from edgewright.network.operators import custom
from edgewright.network.tflite import read_tflite
from tests.helpers.emitting import check_emitted
from tests.helpers.tflite_models import Node, Spec, constant, model, options, packed, run_litert, unpacked
from tests.network.onnx_models import model_of

MEDIAPIPE = Path(__file__).parents[2] / "docs" / "mediapipe" / "operators.py"
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _nothing_stays_known(monkeypatch):
    """Each test begins and ends without operators."""
    for name in ("_DEFINED", "_FOLDERS", "_LOADED"):
        monkeypatch.setattr(custom, name, type(getattr(custom, name))())
    monkeypatch.setenv(custom.FILES, "")
    yield
    custom.instance_of.cache_clear()


def floats(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def with_options(content: bytes, data: bytes) -> bytes:
    """The model with these options of its first custom operator."""
    changed = unpacked(content)
    codes = [code.customCode for code in changed.operatorCodes]
    (found,) = (each for each in changed.subgraphs[0].operators if codes[each.opcodeIndex])
    found.customOptions = np.frombuffer(data, np.uint8)
    return packed(changed)


def transposed(kernel: int, stride: int, is_same: bool, size: int = 5) -> tuple[bytes, Array, Array]:
    """A model of a ReLU, a transposed convolution with a bias and a ReLU; its weights and bias."""
    weights, bias = floats(4, kernel, kernel, 3), floats(4)
    pad = max(0, kernel - (size - 1) % stride - 1) if is_same else 0
    out = stride * (size - 1) + kernel - pad
    specs = [
        Spec("x", (1, size, size, 3)), Spec("a", (1, size, size, 3)), constant("w", weights, "float32"),
        constant("b", bias, "float32"), Spec("t", (1, out, out, 4)), Spec("y", (1, out, out, 4)),
    ]  # fmt: skip
    nodes = [
        Node("RELU", ("x",), ("a",)),
        Node("custom Convolution2DTransposeBias", ("a", "w", "b"), ("t",)),
        Node("RELU", ("t",), ("y",)),
    ]
    padding = struct.pack("<3i", 1 if is_same else 2, stride, stride)
    return with_options(model(specs, nodes, ["x"], ["y"]), padding), weights, bias


@pytest.mark.parametrize(("kernel", "stride", "is_same"), [(2, 2, True), (3, 2, True), (4, 2, False), (3, 1, True)])
def test_a_transposed_convolution_is_what_litert_computes_without_the_bias(kernel, stride, is_same):
    custom.load_operators(MEDIAPIPE)
    content, weights, bias = transposed(kernel, stride, is_same)
    network = read_tflite(content)
    x = floats(1, 5, 5, 3)
    found = execute(network, {"x": x})["y"]
    size = found.shape[1]
    specs = [
        constant("s", [1, size, size, 4]), constant("w", weights, "float32"), Spec("x", x.shape),
        Spec("y", (1, size, size, 4)),
    ]  # fmt: skip
    made = options("TransposeConv", padding=0 if is_same else 1, strideH=stride, strideW=stride)
    plain = model(specs, [Node("TRANSPOSE_CONV", ("s", "w", "x"), ("y",), made)], ["x"], ["y"])
    (expected,) = run_litert(plain, [np.maximum(x, 0)])
    np.testing.assert_allclose(found, np.maximum(expected + bias, 0), atol=1e-5)


@pytest.mark.parametrize("phases", [False, True], ids=["whole", "by rows"])
def test_the_c_gives_what_the_reference_gives(phases):
    custom.load_operators(MEDIAPIPE)
    network = read_tflite(transposed(3, 2, True, size=12)[0])
    plan = make_plan(network, phases=phases)
    assert any(len(stage.layers) == 3 for stage in plan.program.stages) == phases
    check_emitted(network, plan=plan)


def test_an_image_that_a_matrix_moves():
    custom.load_operators(MEDIAPIPE)
    specs = [Spec("x", (1, 6, 7, 2)), Spec("m", (1, 4, 4)), Spec("y", (1, 5, 4, 2))]
    node = Node("custom TransformTensorBilinear", ("x", "m"), ("y",))
    content = with_options(model(specs, [node], ["x", "m"], ["y"]), struct.pack("<2i", 5, 4))
    network = read_tflite(content)
    x, matrix = floats(1, 6, 7, 2), np.eye(4, dtype=np.float32)[None]
    matrix[0, :2, 3] = 1, 2  # to the right and down
    np.testing.assert_allclose(execute(network, {"x": x, "m": matrix})["y"][0, :4], x[0, 2:6, 1:5], atol=1e-6)
    check_emitted(network)


SHIFT = """
import numpy as np
from edgewright import CustomOperator

class Shift(CustomOperator):
    name, code, function = "mine.Shift", "shift.c", "ew_shift"

    def shape(self, shapes):
        return shapes[0]

    def compute(self, inputs):
        return inputs[0] + np.float32(self.attributes["by"])

    def numbers(self, shapes):
        return [int(np.prod(shapes[0])), float(self.attributes["by"])]
"""
SHIFT_C = """
void ew_shift(const float *x, float *y, int32_t count, float by)
{
    for (int32_t i = 0; i < count; i++) {
        y[i] = x[i] + by;
    }
}
"""


def shift_model():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Shift", ["a"], ["b"], domain="mine", by=1.5),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    made = model_of(nodes, {"x": floats(2, 8)}, ["y"])
    made.opset_import.append(helper.make_opsetid("mine", 1))
    return made


def test_every_verb_that_reads_a_model_takes_operators(tmp_path):
    (tmp_path / "mine.py").write_text(SHIFT)
    (tmp_path / "shift.c").write_text(SHIFT_C)
    file = tmp_path / "net.onnx"
    file.write_bytes(shift_model().SerializeToString())
    refused = CliRunner().invoke(main, ["inspect", str(file)])
    assert refused.exit_code == 1 and "mine.Shift" in refused.output and "--operators" in refused.output
    given = ["--operators", str(tmp_path / "mine.py"), "--json"]
    layers = json.loads(CliRunner().invoke(main, ["inspect", str(file), *given]).output)["layers"]
    assert [layer["text"] for layer in layers][1] == "Custom mine.Shift"
    result = CliRunner().invoke(main, ["compile", str(file), "-o", str(tmp_path / "out"), *given])
    assert result.exit_code == 0, result.output
    assert "net_shift" in "".join(path.read_text() for path in (tmp_path / "out").rglob("net_kernels.c"))
    planned = CliRunner().invoke(main, ["plan", str(file), "-o", str(tmp_path / "p.json"), *given])
    assert planned.exit_code == 0, planned.output
    again = ["compile", str(file), "--plan", str(tmp_path / "p.json"), "-o", str(tmp_path / "again"), "--no-verify"]
    assert CliRunner().invoke(main, [*again, *given]).exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", "SyntaxError"),
        ("x = 1", "describes no operator"),
        (SHIFT.replace('"shift.c"', '"none.c"'), "'none.c', is not beside it"),
        (SHIFT.replace("ew_shift", "shift"), "call it ew_"),
        (
            SHIFT.replace('name, code, function = "mine.Shift", "shift.c", "ew_shift"', 'code = "shift.c"'),
            "states no name",
        ),
    ],
)
def test_files_that_describe_nothing_are_refused(tmp_path, text, message):
    (tmp_path / "shift.c").write_text(SHIFT_C)
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError, match=message):
        custom.load_operators(tmp_path / "mine.py")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("return shapes[0]", "return (2, 'a')"), "Shift.shape"),
        (("return shapes[0]", "return (2, 0)"), "Shift.shape gives"),
        (('np.float32(self.attributes["by"])', "nothing"), "reference of the custom operator 'mine.Shift' failed"),
        (("return inputs[0] +", "return inputs[0][:1] +"), r"gives \(1, 8\), not \(2, 8\)"),
    ],
)
def test_what_goes_wrong_in_a_description_is_told(tmp_path, change, message):
    (tmp_path / "shift.c").write_text(SHIFT_C)
    (tmp_path / "mine.py").write_text(SHIFT.replace(*change))
    custom.load_operators(tmp_path / "mine.py")
    with pytest.raises(ModelError, match=message):
        execute(read_onnx(shift_model().SerializeToString()), {"x": floats(2, 8)})
