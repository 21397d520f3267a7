"""What the ONNX reader makes of each operator, against onnxruntime and the ONNX project's own node tests."""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from edgewright.errors import ModelError, Unsupported
from edgewright.network import Array, Quant
from edgewright.network.kernels import execute
from edgewright.network.onnx_format import read_onnx
from edgewright.network.onnx_format.table import MICROSOFT, STANDARD
from edgewright.network.operators import Dequantize
from tests.helpers.onnx_node_cases import node_suite
from tests.network.onnx_models import assert_agrees, model_of, one_node

RNG = np.random.default_rng(7)
THOROUGH = bool(os.environ.get("EDGEWRIGHT_THOROUGH"))
FEW = settings(max_examples=25, deadline=None, derandomize=True)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> Array:
    return RNG.uniform(0.2, 3.0, shape).astype(np.float32)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


IMAGE = normal(2, 6, 7, 5)
SMALL_INTS = np.array([[3, -7, 0], [12, 5, -1]], np.int32)

# Operator, operands, attributes; "opset" and "computed" are for `one_node`, the others for the operator.
CASES: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    *((op, [IMAGE], {}) for op in ["Abs", "Neg", "Exp", "Floor", "Ceil", "Round", "Sin", "Cos", "Sign"]),
    *((op, [IMAGE / 3], {}) for op in ["Tan", "Sinh", "Cosh"]),
    ("GridSample", [IMAGE[:1], normal(1, 4, 3, 2)], {"opset": 16}),
    ("GridSample", [IMAGE[:1], normal(1, 4, 3, 2)], {"opset": 16, "padding_mode": "border", "align_corners": 1}),
    *((op, [IMAGE], {}) for op in ["Sigmoid", "Tanh", "Erf", "Softplus", "Softsign", "Relu", "HardSwish"]),
    *((op, [IMAGE], {}) for op in ["LeakyRelu", "Elu", "Selu", "HardSigmoid"]),
    *((op, [positive(2, 3, 4)], {}) for op in ["Log", "Sqrt", "Reciprocal"]),
    *((op, [SMALL_INTS], {}) for op in ["Abs", "Neg"]),
    ("Mish", [IMAGE], {"opset": 18}),
    ("Gelu", [IMAGE], {"opset": 20}),
    ("Gelu", [IMAGE], {"opset": 20, "approximate": "tanh"}),
    ("LeakyRelu", [IMAGE], {"alpha": 0.3}),
    ("Elu", [IMAGE], {"alpha": 0.7}),
    ("Selu", [IMAGE], {"alpha": 1.5, "gamma": 1.2}),
    ("HardSigmoid", [IMAGE], {"alpha": 0.4, "beta": 0.3}),
    ("PRelu", [IMAGE, normal(6, 1, 1)], {}),
    ("PRelu", [IMAGE, normal(1)], {}),
    ("Clip", [IMAGE, floats(-0.5).reshape(()), floats(0.7).reshape(())], {}),
    ("Clip", [IMAGE, None, floats(0.7).reshape(())], {}),
    ("Clip", [IMAGE, floats(0.7).reshape(()), floats(-0.5).reshape(())], {}),
    ("Clip", [IMAGE], {"opset": 6, "min": 0.0, "max": 6.0}),
    ("Clip", [SMALL_INTS, np.array(-2, np.int32), np.array(4, np.int32)], {}),
    *((op, [IMAGE, normal(6, 1, 5)], {}) for op in ["Add", "Sub", "Mul", "Div"]),
    *((op, [normal(3, 1), normal(2, 1, 4)], {"computed": (0, 1)}) for op in ["Add", "Sub", "Mul", "Div"]),
    *((op, [SMALL_INTS, np.array([[2], [-3]], np.int32)], {}) for op in ["Add", "Sub", "Mul", "Div"]),
    ("Sub", [normal(1, 4), normal(3, 1)], {"computed": (1,)}),
    ("Pow", [positive(2, 3), floats(2.5)], {}),
    ("Pow", [IMAGE, ints(2)], {}),
    ("Pow", [IMAGE, floats(2.0)], {}),
    ("Pow", [IMAGE, floats(3.0)], {}),
    ("Pow", [positive(2, 3), floats(0.5)], {}),
    ("Clip", [IMAGE, floats(-0.5).reshape(()), normal(1).reshape(())], {"computed": (0, 2)}),
    *((op, [normal(2, 3), normal(3), normal(2, 1)], {"computed": (0, 1)}) for op in ["Min", "Max", "Sum", "Mean"]),
    *((op, [normal(2, 3)], {}) for op in ["Min", "Max", "Sum", "Mean"]),
    *((op, [np.round(IMAGE), np.round(IMAGE[:1, :, :1])], {}) for op in ["Equal", "Greater", "Less"]),
    *((op, [SMALL_INTS, SMALL_INTS[:1]], {"computed": (0, 1)}) for op in ["GreaterOrEqual", "LessOrEqual"]),
    *((op, [SMALL_INTS > 2, SMALL_INTS[:1] > 0], {"computed": (0, 1)}) for op in ["And", "Or", "Xor"]),
    ("Not", [SMALL_INTS > 2], {}),
    ("Where", [IMAGE[0, :, :1] > 0, IMAGE, floats(-100).reshape(())], {"computed": (1,)}),
    ("Where", [IMAGE > 0, normal(5), IMAGE], {"computed": (0, 1, 2)}),
    ("Trilu", [normal(2, 4, 5)], {}),
    ("Trilu", [normal(3, 5), ints(-1).reshape(())], {"upper": 0}),
    ("Cast", [IMAGE * 10], {"to": onnx.TensorProto.INT32}),
    ("Cast", [SMALL_INTS], {"to": onnx.TensorProto.FLOAT}),
    ("Cast", [SMALL_INTS], {"to": onnx.TensorProto.BOOL}),
    ("Identity", [IMAGE], {}),
    ("Dropout", [IMAGE], {}),
    ("Conv", [normal(1, 4, 9), normal(6, 4, 3), normal(6)], {"strides": [2], "pads": [1, 0], "dilations": [2]}),
    ("Conv", [normal(1, 4, 6, 6), normal(6, 4, 3, 3)], {"computed": (0, 1)}),
    ("ConvTranspose", [normal(1, 4, 9), normal(4, 2, 3), normal(2)], {"strides": [2], "pads": [1, 0]}),
    ("ConvTranspose", [normal(1, 4, 5, 4), normal(4, 3, 3, 2)], {"strides": [2, 3], "output_shape": [10, 11]}),
    ("ConvTranspose", [normal(1, 4, 5, 4), normal(4, 3, 3, 2)], {"strides": [2, 3], "output_shape": [12, 13]}),
    ("MaxPool", [normal(1, 3, 9)], {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    ("AveragePool", [normal(1, 3, 9)], {"kernel_shape": [4], "strides": [2], "pads": [1, 1]}),
    ("MaxPool", [RNG.integers(-128, 128, (1, 2, 5, 5)).astype(np.int8)], {"kernel_shape": [2, 2]}),
    ("GlobalAveragePool", [IMAGE], {}),
    ("GlobalMaxPool", [IMAGE], {}),
    ("GlobalAveragePool", [normal(2, 3, 4)], {}),
    ("BatchNormalization", [IMAGE, normal(6), normal(6), normal(6), positive(6)], {"epsilon": 1e-3}),
    ("BatchNormalization", [normal(3, 4), normal(4), normal(4), normal(4), positive(4)], {}),
    ("BatchNormalization", [normal(3, 4, 5), normal(4), normal(4), normal(4), positive(4)], {"momentum": 0.8}),
    ("InstanceNormalization", [IMAGE, normal(6), normal(6)], {"epsilon": 1e-3}),
    ("LayerNormalization", [IMAGE, normal(5), normal(5)], {}),
    ("LayerNormalization", [IMAGE, normal(6, 7, 5)], {"axis": 1, "epsilon": 1e-2}),
    ("GroupNormalization", [IMAGE, normal(6), normal(6)], {"opset": 21, "num_groups": 3}),
    ("LRN", [IMAGE], {"size": 3, "alpha": 0.2, "beta": 0.5, "bias": 1.5}),
    ("LRN", [IMAGE], {"size": 5}),
    ("Softmax", [IMAGE], {}),
    ("Softmax", [IMAGE], {"axis": 1}),
    ("Softmax", [IMAGE], {"axis": 1, "opset": 11}),
    ("Softmax", [IMAGE], {"axis": 3, "opset": 11}),
    ("Softmax", [normal(2, 5, 1, 1)], {"opset": 11}),
    ("LogSoftmax", [IMAGE], {"axis": 2, "opset": 11}),
    ("LogSoftmax", [IMAGE], {"axis": -2}),
    ("Gemm", [normal(2, 5), normal(5, 4), normal(4)], {}),
    ("Gemm", [normal(5, 2), normal(4, 5), normal(1, 4)], {"transA": 1, "transB": 1, "beta": 0.5}),
    ("Gemm", [normal(2, 5), normal(5, 4), normal(2, 1)], {"alpha": 0.3, "beta": 2.0}),
    ("Gemm", [normal(2, 5), normal(5, 4), normal(1)], {}),
    ("Gemm", [normal(2, 5), normal(5, 4)], {"alpha": 0.3}),
    ("Gemm", [normal(2, 5), normal(4, 5), normal(2, 4)], {"computed": (0, 1, 2), "transB": 1, "beta": 0.25}),
    ("Gemm", [normal(2, 5), normal(5, 4), normal(4)], {"beta": 0.0}),
    ("MatMul", [normal(2, 3, 5), normal(5, 4)], {}),
    ("MatMul", [normal(2, 3, 5), normal(2, 5, 4)], {"computed": (0, 1)}),
    ("MatMul", [normal(2, 3, 5), normal(2, 5, 4)], {}),
    ("MatMul", [normal(3, 5), normal(5, 4)], {"computed": (1,)}),
    ("MatMul", [normal(5), normal(5, 4)], {}),
    ("MatMul", [normal(2, 3, 5), normal(5)], {}),
    ("Einsum", [normal(2, 3, 4), normal(2, 4, 5)], {"equation": "bij,bjk->bik", "computed": (0, 1)}),
    ("Einsum", [normal(2, 3, 4), normal(5, 4, 2)], {"equation": "bhd, kdb -> khb", "computed": (0, 1)}),
    ("Einsum", [normal(2, 3), normal(4, 5)], {"equation": "ij,kl->likj"}),
    ("Einsum", [normal(2, 3, 4), normal(3)], {"equation": "abc,b"}),
    ("Einsum", [normal(2, 3, 4)], {"equation": "abc->ca"}),
    ("CumSum", [normal(2, 3, 4), ints(1).reshape(())], {}),
    ("CumSum", [normal(2, 3, 4), ints(-1).reshape(())], {"exclusive": 1, "reverse": 1}),
    ("Concat", [IMAGE, normal(2, 1, 7, 5), normal(2, 3, 7, 5)], {"axis": 1, "computed": (0, 2)}),
    ("Concat", [IMAGE], {"axis": -1}),
    ("Transpose", [IMAGE], {"perm": [3, 0, 2, 1]}),
    ("Transpose", [IMAGE], {}),
    ("Reshape", [IMAGE, ints(0, -1, 5)], {}),
    ("Reshape", [IMAGE, ints(12, 35)], {}),
    ("Flatten", [IMAGE], {"axis": 2}),
    ("Flatten", [IMAGE], {"axis": 0}),
    ("Flatten", [IMAGE], {"axis": -1}),
    ("Squeeze", [normal(2, 1, 3, 1), ints(1)], {}),
    ("Squeeze", [normal(2, 1, 3, 1)], {}),
    ("Squeeze", [normal(2, 1, 3, 1)], {"opset": 11, "axes": [3]}),
    ("Unsqueeze", [normal(2, 3), ints(0, -1)], {}),
    ("Unsqueeze", [normal(2, 3)], {"opset": 11, "axes": [1]}),
    ("Expand", [normal(3, 1), ints(2, 1, 4)], {}),
    ("Tile", [normal(2, 3), ints(2, 3)], {}),
    ("Pad", [IMAGE, ints(0, 1, -1, 2, 0, 0, 2, 1), floats(1.5).reshape(())], {}),
    ("Pad", [IMAGE, ints(0, 0, 2, 1, 0, 0, 3, 2)], {"mode": "reflect"}),
    ("Pad", [IMAGE, ints(0, 0, 2, 1, 0, 0, 3, 2)], {"mode": "edge"}),
    ("Pad", [IMAGE, ints(1, 2), floats(1.5).reshape(()), ints(3)], {"opset": 18}),
    ("Pad", [IMAGE], {"opset": 2, "pads": [0, 0, 1, 1, 0, 0, 2, 2], "value": 0.5}),
    ("Slice", [IMAGE, ints(1, -1), ints(5, -6), ints(1, 3), ints(2, -2)], {}),
    ("Slice", [IMAGE, ints(1), ints(100)], {}),
    ("Slice", [IMAGE], {"opset": 9, "starts": [1, 2], "ends": [-1, 100], "axes": [1, 2]}),
    ("Split", [IMAGE], {"axis": 1, "outputs": 3}),
    ("Split", [IMAGE, ints(1, 5)], {"axis": 1, "outputs": 2}),
    ("Split", [IMAGE], {"axis": 3, "outputs": 2, "opset": 11, "split": [2, 3]}),
    ("Split", [IMAGE], {"axis": 3, "outputs": 2, "opset": 18, "num_outputs": 2}),
    ("Gather", [IMAGE, ints(3).reshape(())], {"axis": 1}),
    ("Gather", [IMAGE, ints(-1)], {"axis": 2}),
    ("Gather", [IMAGE, ints(0, 2, 2).reshape(1, 3)], {"axis": 3}),
    ("Gather", [normal(10, 4), ints(3, 1, 0)], {"computed": (1,)}),
    ("GatherElements", [normal(3, 4), ints(1, -1, 0, 2).reshape(2, 2)], {"axis": 1}),
    ("GatherND", [normal(3, 4, 2), ints(1, -1, 0, 2).reshape(2, 2)], {}),
    ("GatherND", [normal(3, 4, 2), ints(1, -1, 0, 2).reshape(2, 2)], {"computed": (0, 1)}),
    ("ScatterElements", [normal(3, 4), ints(1, 3, 0, -1).reshape(2, 2), normal(2, 2)], {"axis": 1, "computed": (0, 2)}),
    ("ScatterND", [normal(3, 4), ints(1, 3, 0, 1).reshape(2, 2), normal(2)], {"computed": (0, 2)}),
    ("ScatterND", [normal(4, 3, 2), ints(1, 2).reshape(2, 1), normal(2, 3, 2)], {"computed": (0, 2)}),
    ("ScatterND", [normal(2, 3), ints(0, 1, 0, 2, 1, 1, 1, 2).reshape(2, 2, 2), normal(2, 2)], {"computed": (0,)}),
    ("ArgMax", [IMAGE], {"axis": 1}),
    ("ArgMax", [np.round(IMAGE)], {"axis": -1, "keepdims": 0, "select_last_index": 1}),
    ("ArgMin", [IMAGE], {"axis": 2}),
    ("TopK", [IMAGE, ints(3)], {"axis": 1, "outputs": 2}),
    ("TopK", [np.round(IMAGE), ints(2)], {"outputs": 2, "largest": 0, "sorted": 1}),
    ("TopK", [IMAGE], {"outputs": 2, "opset": 9, "k": 2, "axis": 2}),
    ("GatherElements", [normal(3, 4), ints(1, -1, 0, 2).reshape(2, 2)], {"axis": 1, "computed": (0, 1)}),
    ("Mod", [ints(7, -7, 7, -7, 6), ints(3, 3, -3, -3, 3)], {}),
    ("Mod", [np.array((-50000, 50000), np.int32), np.array((70000, -70000), np.int32)], {}),
    ("Mod", [ints(7, -7, 7, -7, 6), ints(3, 3, -3, -3, 3)], {"fmod": 1}),
    ("Mod", [normal(3, 4), floats(0.7)], {"fmod": 1}),
    ("IsNaN", [IMAGE], {}),
    ("OneHot", [ints(1, -1, 0, 3).reshape(2, 2), ints(4), floats(-1, 2)], {}),
    ("OneHot", [ints(1, -1, 0, 3).reshape(2, 2), ints(4), ints(0, 5)], {"axis": 1}),
    ("Hardmax", [np.round(IMAGE)], {"axis": 1}),
    ("LpNormalization", [IMAGE], {"axis": 1}),
    ("LpNormalization", [IMAGE], {"axis": 2, "p": 1}),
    ("STFT", [normal(2, 40), ints(8)[0], floats(*range(1, 17))], {}),
    ("STFT", [normal(1, 40, 1), ints(10)[0], None, ints(12)[0]], {"onesided": 0}),
    ("Compress", [IMAGE, np.array([True, False, True])], {"axis": 1}),
    ("Compress", [normal(2, 3), np.array([False, True, True, False, True])], {}),
    ("ReverseSequence", [normal(4, 3, 2), ints(4, 1, 2)], {}),
    ("ReverseSequence", [normal(3, 4), ints(1, 4, 3)], {"time_axis": 1, "batch_axis": 0}),
    ("SpaceToDepth", [normal(1, 3, 4, 6)], {"blocksize": 2}),
    ("DepthToSpace", [normal(1, 12, 2, 3)], {"blocksize": 2}),
    ("DepthToSpace", [normal(1, 12, 2, 3)], {"blocksize": 2, "mode": "CRD"}),
    ("Upsample", [IMAGE, floats(1, 1, 2, 3)], {"opset": 9}),
    ("Upsample", [IMAGE], {"opset": 7, "scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"}),
    ("Resize", [IMAGE, floats(1, 1, 1.7, 1.2)], {"opset": 10}),
    ("Resize", [IMAGE, floats(1, 1, 0.7, 0.6)], {"opset": 10}),
    ("Resize", [IMAGE, floats(1, 1, 2, 2)], {"opset": 10, "mode": "linear"}),
    ("Resize", [normal(1, 2, 9), None, floats(1, 1, 2)], {"mode": "linear"}),
    ("Resize", [IMAGE, None, None, ints(5, 9)], {"opset": 18, "axes": [3, 2]}),
    *(
        (f"Reduce{kind}", [positive(2, 3, 4)], {"opset": opset, "axes": [0, -1], "keepdims": keep})
        for kind in ["Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "SumSquare"]
        for opset, keep in ((11, 1), (11, 0))
    ),
    *((f"Reduce{kind}", [IMAGE, ints(2, 3)], {"opset": 18}) for kind in ["Mean", "Max", "L2"]),
    ("ReduceLogSumExp", [positive(2, 3, 4, 2)], {"axes": [1, 3]}),
    ("ReduceSum", [IMAGE, ints(1)], {"opset": 13, "keepdims": 0}),
    ("ReduceSum", [IMAGE], {"opset": 13}),
    ("ReduceSum", [IMAGE], {"opset": 13, "noop_with_empty_axes": 1}),
    ("ReduceMax", [SMALL_INTS], {"opset": 13, "axes": [1]}),
    # withdrawn
    ("Affine", [IMAGE], {"opset": 8, "alpha": 0.5, "beta": -2.0}),
    ("Crop", [IMAGE], {"opset": 8, "border": [1, 2, 1, 0]}),
    ("Crop", [IMAGE], {"opset": 8, "border": [1, 2, 0, 0], "scale": [3, 2]}),
    ("ImageScaler", [IMAGE], {"opset": 8, "scale": 2.0, "bias": [float(i) for i in range(IMAGE.shape[1])]}),
    ("ScaledTanh", [IMAGE], {"opset": 8, "alpha": 1.5, "beta": 0.25}),
]  # fmt: skip


def _case_id(case: tuple[str, list[Array | None], dict[str, Any]]) -> str:
    op, _, attributes = case
    return "-".join([op, *(f"{key}={value}" for key, value in attributes.items())])[:80]


@pytest.mark.parametrize("case", CASES, ids=_case_id)
def test_operator_agrees_with_onnxruntime(case: tuple[str, list[Array | None], dict[str, Any]]) -> None:
    op, operands, attributes = case
    assert_agrees(*one_node(op, operands, **attributes))


def test_every_operator_has_a_case() -> None:
    elsewhere = {"CastLike", "Constant", "ConstantOfShape", "EyeLike", "Shape", "Size", "Range"}  # give constants
    elsewhere |= {
        "LSTM",
        "GRU",
        "RNN",
        "DynamicQuantizeLinear",
        "ConvInteger",
        "MatMulInteger",
        "QLinearConv",
        "QLinearMatMul",
        "QuantizeLinear",
        "DequantizeLinear",
    }
    assert set(STANDARD) == {op for op, _, _ in CASES} | elsewhere


@pytest.mark.parametrize(("axis", "shape"), [(1, (6, 1, 1)), (None, (7, 5)), (-2, (7, 1)), (0, (2, 6, 1, 1))])
def test_broadcasting_before_opset_7(axis: int | None, shape: tuple[int, ...]) -> None:
    """The second operand's first axis stands at `axis` of the first (Add, opset 6); onnxruntime has no kernel."""
    b = normal(*shape)
    squeezed = b.reshape([n for n in shape if n != 1])
    attributes = {} if axis is None else {"axis": axis}
    model, feeds = one_node("Add", [IMAGE, squeezed], opset=6, broadcast=1, **attributes)
    network = read_onnx(model.SerializeToString())
    np.testing.assert_array_equal(execute(network, feeds)["o0"], IMAGE + b)


# Attributes at random


@st.composite
def windows(draw: st.DrawFn) -> dict[str, Any]:
    def pair(low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(2)]

    auto_pad = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    kernel = pair(1, 3)
    window: dict[str, Any] = {"kernel_shape": kernel, "strides": pair(1, 3), "auto_pad": auto_pad}
    if auto_pad == "NOTSET":
        window["pads"] = [draw(st.integers(0, k - 1)) for k in kernel * 2]
    return window


@FEW
@given(windows(), st.integers(5, 9), st.integers(5, 9), st.sampled_from([1, 2, 4]), st.integers(1, 2))
def test_conv(window: dict[str, Any], h: int, w: int, groups: int, dilation: int) -> None:
    if window["auto_pad"] in ("NOTSET", "VALID"):
        window["dilations"] = [dilation, 1]
    weights = normal(8, 4 // groups, *window["kernel_shape"])
    assert_agrees(*one_node("Conv", [normal(1, 4, h, w), weights, normal(8)], group=groups, **window))


@FEW
@given(windows(), st.integers(2, 5), st.integers(2, 5), st.sampled_from([1, 2]), st.data())
def test_conv_transpose(window: dict[str, Any], h: int, w: int, groups: int, data: st.DataObject) -> None:
    extra = [data.draw(st.integers(0, stride - 1)) for stride in window["strides"]]
    if window["auto_pad"] == "NOTSET":
        window["output_padding"] = extra
    weights = normal(4, 3, *window["kernel_shape"])
    model, feeds = one_node("ConvTranspose", [normal(1, 4, h, w), weights, normal(3 * groups)], group=groups, **window)
    sizes = [
        (size - 1) * stride + kernel - sum(window.get("pads", [0, 0, 0, 0])[i::2])
        for i, (size, stride, kernel) in enumerate(zip((h, w), window["strides"], window["kernel_shape"], strict=True))
    ]
    assume(min(sizes) > 0)
    assert_agrees(model, feeds)


@FEW
@given(windows(), st.integers(5, 9), st.integers(5, 9), st.booleans(), st.integers(1, 2))
def test_max_pool(window: dict[str, Any], h: int, w: int, ceil: bool, dilation: int) -> None:
    if window["auto_pad"] == "NOTSET":
        window.update(ceil_mode=int(ceil), dilations=[dilation, 1])
    elif window["auto_pad"].startswith("SAME"):  # onnxruntime refuses windows with gaps between them
        window["strides"] = [min(k, s) for k, s in zip(window["kernel_shape"], window["strides"], strict=True)]
    assert_agrees(*one_node("MaxPool", [normal(1, 3, h, w)], opset=12, **window))


@FEW
@given(windows(), st.integers(5, 9), st.integers(5, 9), st.booleans(), st.booleans())
def test_average_pool(window: dict[str, Any], h: int, w: int, ceil: bool, include: bool) -> None:
    if window["auto_pad"] == "NOTSET":
        window.update(ceil_mode=int(ceil))
    window.update(count_include_pad=int(include))
    assert_agrees(*one_node("AveragePool", [normal(1, 3, h, w)], opset=19, **window))


@FEW
@given(
    st.sampled_from([("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2)]),
    st.sampled_from(["forward", "reverse", "bidirectional"]),
    st.integers(1, 4),
    st.integers(1, 2),
    st.booleans(),
    st.data(),
)
def test_recurrent(
    kind: tuple[str, int, int], direction: str, steps: int, batch: int, biased: bool, data: st.DataObject
) -> None:
    op, gates, outputs = kind
    directions, hidden = 1 + (direction == "bidirectional"), 3
    x, w, r = normal(steps, batch, 2), normal(directions, gates * hidden, 2), normal(directions, gates * hidden, hidden)
    operands = [x, w, r, normal(directions, 2 * gates * hidden) if biased else None]
    computed = [0]
    if data.draw(st.booleans()):
        operands.append(np.full(batch, steps, np.int32) if data.draw(st.booleans()) else None)
        operands += [normal(directions, batch, hidden) for _ in range(outputs - 1)]
        computed += data.draw(st.sampled_from([[], [5]]))
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attributes["linear_before_reset"] = data.draw(st.integers(0, 1))
    if data.draw(st.booleans()):
        attributes["clip"] = 0.7
    if data.draw(st.booleans()):
        functions = {"LSTM": ["HardSigmoid", "Relu", "Softsign"], "GRU": ["HardSigmoid", "LeakyRelu"], "RNN": ["Relu"]}
        attributes["activations"] = functions[op] * directions
    network = assert_agrees(*one_node(op, operands, computed=computed, outputs=outputs, **attributes))
    stored = sum(network.constants[name].size for name in network.constants)
    assert stored <= w.size + r.size + 3 * directions * gates * hidden + 4 * directions * batch * hidden


def dynamic_model(
    kind: str, channels: int, weights: type, groups: int, batch: int, is_line: bool = False
) -> tuple[onnx.ModelProto, Array]:
    """A product as onnxruntime's dynamic quantisation writes it."""
    info = np.iinfo(weights)
    if kind == "ConvInteger" and is_line:
        x, shape = normal(batch, 4, 9), (channels, 4 // groups, 3)
    elif kind == "ConvInteger":
        x, shape = normal(batch, 4, 6, 5), (channels, 4 // groups, 3, 2)
    else:
        x, shape = normal(batch, 3, 4), (4, channels)
    zero = 0 if weights is np.int8 else int(RNG.integers(90, 160))
    constants = {
        "w": RNG.integers(info.min + (weights is np.int8), info.max + 1, shape).astype(weights),
        "wz": np.array(zero, weights),
        "ws": floats(0.01).reshape(()),
    }
    window: dict[str, Any] = {"pads": [1, 0], "strides": [2]} if is_line else {"pads": [1, 0, 1, 1], "strides": [2, 1]}
    attributes = {**window, "group": groups} if kind == "ConvInteger" else {}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node(kind, ["q", "w", "z", "wz"], ["sum"], **attributes),
        helper.make_node("Cast", ["sum"], ["real"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "ws"], ["scale"]),
        helper.make_node("Mul", ["real", "scale"], ["y"]),
    ]
    return model_of(nodes, {"x": x}, ["y", "q", "s", "z"], constants), x


@FEW
@given(
    st.sampled_from(["ConvInteger", "MatMulInteger"]),
    st.sampled_from([4, 8]),
    st.sampled_from([np.uint8, np.int8]),
    st.sampled_from([1, 4]),
    st.integers(1, 2),
    st.booleans(),
)
def test_dynamic_quantisation(kind: str, channels: int, weights: type, groups: int, batch: int, is_line: bool) -> None:
    assume(kind == "MatMulInteger" or weights is np.uint8)  # onnxruntime convolves no others
    model, x = dynamic_model(kind, channels, weights, groups, batch, is_line)
    network = assert_agrees(model, {"x": x})
    assert all(network.constants[name].dtype == np.int8 for name in network.constants if name.endswith("/w"))


def test_integer_products_of_other_numbers_are_refused() -> None:
    operands = [X8, _quantised_operand((6, 4, 3, 3)), np.array(3, np.uint8), np.array(3, np.uint8)]
    with pytest.raises(Unsupported, match="comes from no DynamicQuantizeLinear"):
        read_onnx(one_node("ConvInteger", operands)[0].SerializeToString())
    model, _ = dynamic_model("ConvInteger", 4, np.uint8, 1, 1)
    again = [
        helper.make_node("QuantizeLinear", ["y", "ws", "wz"], ["stored"]),
        helper.make_node("ConvInteger", ["stored", "w", "wz", "wz"], ["more"]),
    ]
    model.graph.node.extend(again)
    model.graph.output.append(onnx.ValueInfoProto(name="more"))
    with pytest.raises(Unsupported, match="comes from no DynamicQuantizeLinear"):
        read_onnx(model.SerializeToString())


def test_sequences_that_end_early_are_refused() -> None:
    operands = [normal(3, 2, 2), normal(1, 3, 2), normal(1, 3, 3), None, np.array([3, 2], np.int32)]
    model, _ = one_node("RNN", operands, hidden_size=3)
    with pytest.raises(Unsupported, match=r"sequences of \[3, 2\] steps"):
        read_onnx(model.SerializeToString())


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Celu", {"alpha": 0.7}),
        ("Shrink", {"lambd": 1.2, "bias": 0.3}),
        ("ThresholdedRelu", {"alpha": 0.9}),
        ("MeanVarianceNormalization", {}),
        ("ReduceLogSum", {"opset": 18}),
    ],
)
def test_operators_that_the_standard_defines_by_others(op: str, attributes: dict[str, Any]) -> None:
    assert op not in STANDARD
    assert_agrees(*one_node(op, [positive(2, 3, 4, 2)], **attributes))


def test_weights_that_are_standardised_are_constants() -> None:
    """Normalised by their own mean and variance, as scaled weight standardisation is exported."""
    names = ["w", "gain", "bias", "mean", "one"]
    nodes = [
        helper.make_node("BatchNormalization", names, ["ws", "found", "variance"], training_mode=1, epsilon=1e-6),
        helper.make_node("Reshape", ["ws", "shape"], ["weights"]),
        helper.make_node("Conv", ["x", "weights"], ["y"]),
    ]
    x = normal(1, 2, 6, 6)
    constants = {"w": normal(1, 4, 18), "gain": positive(4), "bias": normal(4), "mean": normal(4), "one": positive(4)}
    network = assert_agrees(model_of(nodes, {"x": x}, ["y"], {**constants, "shape": ints(4, 2, 3, 3)}), {"x": x})
    assert not any(type(layer.op).__name__ == "BatchNorm" for layer in network.layers)


@FEW
@given(
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from(["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]),
    st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
    st.sampled_from([(1, 1), (4, 10), (3, 5), (12, 7), (6, 2)]),
    st.booleans(),
)
def test_resize(mode: str, coordinates: str, nearest: str, size: tuple[int, int], by_scale: bool) -> None:
    x = normal(1, 2, 6, 5)
    scales = floats(1, 1, size[0] / 6, size[1] / 5)
    operands: list[Array | None] = [x, None, scales] if by_scale else [x, None, None, ints(1, 2, *size)]
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        attributes["nearest_mode"] = nearest
    if mode == "cubic" and size[0] > 1:
        attributes.update(cubic_coeff_a=-0.5, exclude_outside=int(nearest == "floor"))
    assert_agrees(*one_node("Resize", operands, opset=13, **attributes))


@FEW
@given(st.data())
def test_slice(data: st.DataObject) -> None:
    x = normal(5, 6)
    cuts = []
    for size in x.shape:
        first, last = sorted(data.draw(st.lists(st.integers(0, size), min_size=2, max_size=2, unique=True)))
        step = data.draw(st.sampled_from([-3, -1, 1, 2]))
        start, end = (first, last) if step > 0 else (last - 1, first - 1)
        # Any index may be written from the end, and those past an end stand for it.
        choices = [(start, size + 9 if step > 0 else -size - 9)]
        choices += [(start, end)] * (end >= 0) + [(start - size, end - size)] * (end < size)
        cuts.append((*data.draw(st.sampled_from(choices)), step))
    starts, ends, steps = zip(*cuts, strict=True)
    assert_agrees(*one_node("Slice", [x, ints(*starts), ints(*ends), ints(0, 1), ints(*steps)]))


# Quantised operators: within one step of onnxruntime, whose kernels round in float32


def _quantised_operand(shape: tuple[int, ...], dtype: type = np.uint8) -> Array:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


S, Z = floats(0.02).reshape(()), np.array(121, np.uint8)
S2, Z2 = floats(0.013).reshape(()), np.array(3, np.uint8)
SY, ZY = floats(0.05).reshape(()), np.array(100, np.uint8)
X8 = _quantised_operand((1, 4, 6, 5))
W8 = _quantised_operand((6, 4, 3, 3), np.int8)
SW, ZW = positive(6) * np.float32(0.01), np.zeros(6, np.int8)
A8 = _quantised_operand((3, 4))
B32 = RNG.integers(-900, 900, 6).astype(np.int32)

QUANTISED: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("QLinearConv", [X8, S, Z, W8, SW, ZW, SY, ZY, B32], {"pads": [1, 1, 1, 1]}),
    ("QLinearConv", [X8, S, Z, W8[:, :2], SW[0], ZW[0], SY, ZY], {"group": 2, "strides": [2, 1]}),
    ("QLinearMatMul", [_quantised_operand((3, 5)), S, Z, _quantised_operand((5, 4)), S2, Z2, SY, ZY], {}),
    ("QuantizeLinear", [IMAGE, SY, ZY], {}),
    ("QuantizeLinear", [IMAGE, positive(6), np.arange(6, dtype=np.uint8)], {"axis": 1}),
    ("QuantizeLinear", [IMAGE, SY], {}),
    ("DequantizeLinear", [X8, S, Z], {}),
    ("DequantizeLinear", [X8, positive(4), np.arange(4, dtype=np.uint8)], {"axis": 1}),
    ("DequantizeLinear", [B32, S], {}),
    ("QLinearAdd", [X8, S, Z, _quantised_operand((4, 1, 5)), S2, Z2, SY, ZY], {}),
    ("QLinearMul", [X8, S, Z, _quantised_operand((4, 1, 5)), S2, Z2, SY, ZY], {"computed": (0, 3)}),
    ("QLinearSigmoid", [X8, S, Z, floats(1 / 256).reshape(()), np.array(0, np.uint8)], {}),
    ("QLinearLeakyRelu", [X8, S, Z, SY, ZY], {"alpha": 0.1}),
    ("QLinearSoftmax", [X8, S, Z, floats(1 / 256).reshape(()), np.array(0, np.uint8)], {"axis": 1, "opset_": 13}),
    ("QLinearGlobalAveragePool", [X8, S, Z, SY, ZY], {}),
    ("QLinearAveragePool", [X8, S, Z, SY, ZY], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ("QLinearConcat", [SY, ZY, X8, S, Z, X8, S2, Z2], {"axis": 1, "computed": (2, 5)}),
    ("QGemm", [A8, S, Z, W8[:4, :, 0, 0], S2, ZW[0], B32[:4], SY, ZY], {"transB": 1}),
    ("QGemm", [A8, S, Z, W8[:4, :, 0, 0], SW[:4], ZW[:4], None, SY, ZY], {}),
]  # fmt: skip


@pytest.mark.parametrize("case", QUANTISED, ids=_case_id)
def test_quantised_operator_agrees_with_onnxruntime(
    case: tuple[str, list[Array | None], dict[str, Any]],
) -> None:
    op, operands, attributes = case
    domain = "com.microsoft" if op in MICROSOFT and op not in STANDARD else ""
    model, feeds = one_node(op, operands, domain=domain, **attributes)
    for attribute in model.graph.node[0].attribute:
        attribute.name = attribute.name.rstrip("_")  # "opset" is an argument of ours too
    assert_agrees(model, feeds, steps=1)


def test_quantised_weights_keep_their_scales_after_reordering() -> None:
    model, _ = one_node("QLinearConv", [X8, S, Z, W8, SW, ZW, SY, ZY])
    network = read_onnx(model.SerializeToString())
    conv = network.by_name["node"]
    weights = network.tensors[conv.inputs[1]]
    assert weights.shape == (6, 3, 3, 4)
    assert weights.quant == Quant(tuple(map(float, SW)), (0,) * 6, 0)
    assert network.tensors[conv.output].quant == Quant.of(float(SY), 100)
    assert network.tensors["i0"].quant == Quant.of(float(S), 121)  # stated where it is read, noted where it is


def _dequantize(x: str, y: str) -> onnx.NodeProto:
    return helper.make_node("DequantizeLinear", [x, "s", "z"], [y])


def test_scale_is_noted_wherever_the_elements_of_an_input_went() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("MaxPool", ["x"], ["pooled"], kernel_shape=[2, 2]),
        _dequantize("t", "y"),
    ]
    model = model_of(nodes, {"x": X8}, ["pooled", "y"], {"s": S, "z": Z})
    network = assert_agrees(model, {"x": X8})
    assert {network.tensors[name].quant for name in ("x", "t", "pooled")} == {Quant.of(float(S), 121)}


def test_integers_that_are_read_as_such_are_not_taken_as_quantised() -> None:
    x = RNG.integers(-50, 50, (2, 3)).astype(np.int32)
    nodes = [
        helper.make_node("Add", ["x", "x"], ["sum"]),
        helper.make_node("DequantizeLinear", ["x", "s"], ["y"]),
    ]
    network = assert_agrees(model_of(nodes, {"x": x}, ["sum", "y"], {"s": S}), {"x": x})
    assert network.tensors["x"].quant is None
    with pytest.raises(Unsupported, match="stored integers"):
        read_onnx(model_of(nodes[::-1], {"x": x}, ["sum", "y"], {"s": S}).SerializeToString())


def test_dequantized_weights_stay_quantised_constants() -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wf"], axis=0),
        helper.make_node("Conv", ["x", "wf"], ["y"], name="conv"),
    ]
    model = model_of(nodes, {"x": normal(1, 4, 6, 5)}, ["y"], {"w": W8, "sw": SW, "zw": ZW})
    network = assert_agrees(model, {"x": normal(1, 4, 6, 5)})
    dequantize = network.producers[network.by_name["conv"].inputs[1]]
    assert isinstance(dequantize.op, Dequantize)
    assert np.shares_memory(network.constants[dequantize.inputs[0]], network.constants[dequantize.inputs[0]].base)
    assert network.tensors[dequantize.inputs[0]].quant == Quant(tuple(map(float, SW)), (0,) * 6, 0)


# The ONNX project's own tests

# Slow to generate (half a minute); pools are compared with onnxruntime above.
SLOW_MODULES = frozenset({"averagepool", "maxpool", "lppool"})
# One of five is tried by `make test`; the expanded ones are operators written out as others.
HUNDREDS = ("_expanded", "test_attention_", "test_sce_")
# Where onnxruntime, which is our reference, differs from the ONNX project's expectation, or float16 would be rounded.
DIFFERENT = {f"test_resize_downsample_scales_{mode}_align_corners" for mode in ("linear", "cubic")}


def _array(value: Any) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def _with_parameters_baked(case: Any) -> onnx.ModelProto | None:
    """The model with all inputs but the first as initializers, since exported CNNs keep parameters there."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    inputs = list(model.graph.input)
    for info, value in zip(inputs[1:], case.data_sets[0][0][1:], strict=True):
        if value is None or isinstance(value, list | dict):
            return None
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value)))
        tensor.name = info.name
        model.graph.initializer.append(tensor)
    del model.graph.input[1:]
    return model


@pytest.mark.filterwarnings("ignore")
def test_onnx_node_tests_are_right_or_refused() -> None:
    right: set[str] = set()
    wrong: list[str] = []
    for case in node_suite(SLOW_MODULES):
        if not case.data_sets or not case.model.graph.input:
            continue
        if any(kind in case.name for kind in ("bfloat16", "BFLOAT16", "bf16", "FLOAT16")) or case.name in DIFFERENT:
            continue
        if not THOROUGH and any(kind in case.name for kind in HUNDREDS) and zlib.crc32(case.name.encode()) % 5:
            continue
        for model in (case.model, _with_parameters_baked(case)):
            if model is None:
                continue
            try:
                network = read_onnx(model.SerializeToString(), name=case.name)
            except (ModelError, Unsupported):
                continue
            values = dict(zip((i.name for i in case.model.graph.input), case.data_sets[0][0], strict=True))
            feeds = {n: _array(values[n]).astype(network.tensors[n].dtype.numpy) for n in network.inputs}
            if not all(value.size for value in feeds.values()):
                continue
            actual = execute(network, feeds)
            pairs = [
                (actual[o.name], _array(expected))
                for o, expected in zip(model.graph.output, case.data_sets[0][1], strict=True)
            ]
            if all(_close(a, e, case) for a, e in pairs):
                right.add(model.graph.node[0].op_type)
            else:
                wrong.append(case.name)
    assert not wrong, " ".join(wrong)
    missing = set(STANDARD) - right
    # Without a test there, giving constants (which are no network), slow to generate, with outputs we lack, withdrawn.
    assert missing <= {
        "AveragePool", "MaxPool", "ConvInteger", "MatMulInteger", "Constant", "ConstantOfShape", "Range", "Shape",
        "Size", "LayerNormalization", "EyeLike", "Affine", "Crop", "ImageScaler", "ScaledTanh",
    }  # fmt: skip


def _close(actual: Array, expected: Array, case: Any) -> bool:
    if actual.shape != expected.shape:
        return False
    rtol = case.rtol if expected.dtype == np.float32 else 1e-3
    return np.allclose(
        actual.astype(np.float64),
        expected.astype(np.float64),
        rtol=rtol,
        atol=max(case.atol, 1e-5),
        equal_nan=True,
    )


def _loop(rounds: Array, is_computed: bool = False) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """h = tanh(h + x[i]), and all of them."""
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["x", "i"], ["xi"], axis=0),
            helper.make_node("Add", ["h", "xi"], ["sum"]),
            helper.make_node("Tanh", ["sum"], ["new"]),
            helper.make_node("Identity", ["goes_on"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("goes_on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, [3]),
        ],
        [
            helper.make_tensor_value_info("still", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("new", onnx.TensorProto.FLOAT, [3]),
            helper.make_tensor_value_info("new", onnx.TensorProto.FLOAT, [3]),
        ],
    )
    node = helper.make_node("Loop", ["n", "yes", "h0"], ["last", "every"], body=body, name="loop")
    feeds = {"x": normal(6, 3), "h0": normal(3)}
    constants = {"n": rounds, "yes": np.array(True)}
    if is_computed:
        feeds["n"] = constants.pop("n")
    return model_of([node], feeds, ["last", "every"], constants, 17), feeds


def test_loops_of_known_length_are_unrolled() -> None:
    network = assert_agrees(*_loop(np.array(4, np.int64)))
    assert network.tensors["every"].shape == (4, 3)


@pytest.mark.parametrize(
    ("rounds", "is_computed", "message"),
    [(4, True, "must be constant; export the model with fixed"), (201, False, "200 rounds")],
)
def test_other_loops_are_refused(rounds: int, is_computed: bool, message: str) -> None:
    model, _ = _loop(np.array(rounds, np.int64), is_computed)
    if rounds > 6:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = rounds
    with pytest.raises(Unsupported, match=message):
        read_onnx(model.SerializeToString())


def test_what_is_refused_comes_with_advice() -> None:
    model, _ = one_node("NonZero", [normal(2, 3)])
    with pytest.raises(Unsupported, match=r"the size of its result depends on the data: cut the model before it"):
        read_onnx(model.SerializeToString())


FUSED: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("FusedConv", [IMAGE, normal(4, IMAGE.shape[1], 3, 3), normal(4)], {"activation": "Relu"}),
    ("FusedConv", [IMAGE, normal(4, IMAGE.shape[1], 1, 1)], {"activation": "LeakyRelu", "activation_params": [0.2]}),
    (
        "FusedConv",
        [IMAGE, normal(4, IMAGE.shape[1], 1, 1), normal(4)],
        {"activation": "Clip", "activation_params": [0.0, 1.0]},
    ),
    (
        "FusedConv",
        [IMAGE, normal(*IMAGE.shape[1:2] * 2, 1, 1), None, IMAGE],
        {"activation": "Sigmoid", "computed": (0, 3)},
    ),
    (
        "FusedGemm",
        [normal(2, 5), normal(3, 5), normal(3)],
        {"transB": 1, "activation": "LeakyRelu", "activation_alpha": 0.1},
    ),
    ("FusedMatMul", [normal(2, 3, 4), normal(2, 3, 5)], {"transA": 1, "alpha": 0.5, "computed": (0, 1)}),
    ("FusedMatMul", [normal(2, 3, 4), normal(5, 4)], {"transB": 1}),
    ("BiasGelu", [normal(2, 5), normal(5)], {}),
    ("FastGelu", [normal(2, 5), normal(5)], {}),
    ("QuickGelu", [normal(2, 5)], {}),
    (
        "SkipLayerNormalization",
        [normal(1, 4, 5), normal(1, 4, 5), normal(5), normal(5), normal(5)],
        {"computed": (0, 1)},
    ),
]


@pytest.mark.parametrize("case", FUSED, ids=_case_id)
def test_what_onnxruntime_fuses(case: tuple[str, list[Array | None], dict[str, Any]]) -> None:
    op, operands, attributes = case
    assert_agrees(*one_node(op, operands, domain="com.microsoft", **attributes))
