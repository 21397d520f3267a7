"""Quantised layers against onnxruntime's quantised kernels: equal, ties included, unless a test says otherwise.

Its QLinearAdd multiplies and adds in one rounding on x86 with AVX2, and otherwise elsewhere: a tie may differ there.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from edgewright.network.kernels import Operand, compute
from edgewright.network.network import Arithmetic
from edgewright.network.operators import (
    AvgPool2d,
    Binary,
    BinaryKind,
    Clamp,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    Dequantize,
    LeakyRelu,
    MatMul,
    MaxPool2d,
    Op,
    Pad,
    PadMode,
    Quantize,
    Reduce,
    Resize,
    ResizeMode,
    Softmax,
    Unary,
    UnaryKind,
)
from edgewright.network.region import Region
from edgewright.network.tensor import Array, DType, Quant, Tensor
from tests.helpers.onnx_session import onnx_session

NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)
# Round numbers, so that sums fall on ties often: where rounding rules differ, it shows.
SCALES = [0.02, 0.03, 0.04, 0.05, 0.1, 0.2, 0.0173, 0.3341]
Stored = tuple[Array, Quant]


def session(
    nodes: list[onnx.NodeProto], feeds: dict[str, Array], constants: dict[str, Any], optimised: bool = True
) -> Array:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")], tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    result: Array = onnx_session(model, optimised).run(["y"], feeds)[0]
    return result


def ours(
    op: Op,
    operands: list[tuple[Array, Quant | None]],
    quant: Quant | None,
    dtype: Any,
    arithmetic: Arithmetic = Arithmetic.QLINEAR,
) -> Array:
    tensors = [Tensor(f"i{i}", v.shape, DType(v.dtype.name), q) for i, (v, q) in enumerate(operands)]
    shapes = [tensor.shape for tensor in tensors]
    result = Tensor("y", op.output_shape(shapes), DType(np.dtype(dtype).name), quant)
    whole = Region.whole(result.shape)
    parts = [
        Operand(value[region.slices], region, tensor)
        for (value, _), region, tensor in zip(operands, op.needs(whole, shapes), tensors, strict=True)
    ]
    return compute(op, whole, parts, result, arithmetic)


class Numbers:
    """Random stored numbers and scales of one element type."""

    def __init__(self, draw: Any, scales: Sequence[float] = SCALES) -> None:
        self.scales = scales
        self.dtype = draw(st.sampled_from([np.uint8, np.int8]))
        self.rng = np.random.default_rng(draw(st.integers(0, 10**6)))
        self.info = np.iinfo(self.dtype)

    def quant(self) -> Quant:
        zero = self.rng.integers(self.info.min, self.info.max + 1)
        return Quant.of(float(np.float32(self.rng.choice(self.scales))), int(zero))

    def array(self, *shape: int) -> Array:
        return self.rng.integers(self.info.min, self.info.max + 1, shape).astype(self.dtype)

    def constants(self, **quants: Quant) -> dict[str, Any]:
        """Scale "sN" and zero point "zN" for each name N."""
        found: dict[str, Any] = {}
        for name, quant in quants.items():
            found[f"s{name}"] = np.float32(quant.scale[0]) if len(quant.scale) == 1 else np.float32(quant.scale)
            zero = np.array(quant.zero, self.dtype)
            found[f"z{name}"] = zero[0] if len(zero) == 1 else zero
        return found


def contrib(kind: str, inputs: list[str], **attributes: Any) -> list[onnx.NodeProto]:
    return [helper.make_node(kind, inputs, ["y"], domain="com.microsoft", **attributes)]


def assert_same_sums(actual: Array, expected: Array) -> None:
    steps = np.abs(actual.astype(int) - expected)
    assert steps.max() <= (0 if platform.machine() in ("x86_64", "AMD64") else 1)


EXAMPLES = settings(max_examples=25, deadline=None)


@EXAMPLES
@given(data=st.data())
def test_conv(data: st.DataObject) -> None:
    """QLinearConv: per tensor or per channel, any groups; with a clamp on what is stored folded in."""
    n = Numbers(data.draw)
    groups, depth = data.draw(st.sampled_from([(1, 1), (1, 5), (4, 1), (2, 3)]))
    outputs = groups * data.draw(st.integers(1, 3))
    kernel = data.draw(st.sampled_from([(1, 1), (3, 3), (2, 3)]))
    stride = data.draw(st.sampled_from([(1, 1), (2, 2), (1, 2)]))
    pads = data.draw(st.sampled_from([(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 1, 0)]))
    x, w = n.array(1, 7, 8, groups * depth), n.array(outputs, *kernel, depth)
    bias = n.rng.integers(-500, 500, outputs).astype(np.int32)
    scales = tuple(float(np.float32(s)) for s in n.rng.choice(SCALES, outputs))
    zeros = (0,) * outputs if n.dtype is np.int8 else (128,) * outputs  # all that onnxruntime takes
    qx, qy = n.quant(), Quant.of(float(np.float32(n.rng.choice([1.0, 4.0, 3.3]))), n.quant().zero[0])
    qw = data.draw(st.sampled_from([Quant(scales, zeros, 0), Quant.of(scales[0], zeros[0])]))
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"]
    node = helper.make_node("QLinearConv", names, ["y"], pads=pads, strides=stride, group=groups)
    constants = n.constants(x=qx, w=qw, y=qy) | {"w": w.transpose(NCHW), "b": bias}
    expected = session([node], {"x": x.transpose(NCHW)}, constants).transpose(NHWC)
    op = Conv2d(stride, (1, 1), pads, groups)
    np.testing.assert_array_equal(ours(op, [(x, qx), (w, qw), (bias, None)], qy, n.dtype), expected)
    clamped = Conv2d(stride, (1, 1), pads, groups, Clamp(0.0, 6.0))
    low, high = (np.clip(np.rint(v / qy.scale[0]) + qy.zero[0], n.info.min, n.info.max) for v in (0, 6))
    actual = ours(clamped, [(x, qx), (w, qw), (bias, None)], qy, n.dtype)
    np.testing.assert_array_equal(actual, np.clip(expected, low, high))


@EXAMPLES
@given(data=st.data())
def test_dense_and_matmul(data: st.DataObject) -> None:
    """QLinearMatMul, and QGemm with its bias."""
    n = Numbers(data.draw)
    a, b = n.array(5, 11), n.array(11, 4)
    qa, qb, qy = n.quant(), n.quant(), Quant.of(4.0, n.quant().zero[0])
    constants = n.constants(a=qa, b=qb, y=qy)
    node = helper.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["y"])
    expected = session([node], {"a": a}, constants | {"b": b})
    np.testing.assert_array_equal(ours(MatMul(), [(a, qa), (b, qb)], qy, n.dtype), expected)
    np.testing.assert_array_equal(ours(Dense(), [(a, qa), (b.T, qb)], qy, n.dtype), expected)
    bias = n.rng.integers(-500, 500, 4).astype(np.int32)
    gemm = contrib("QGemm", ["a", "sa", "za", "b", "sb", "zb", "c", "sy", "zy"])
    expected = session(gemm, {"a": a}, constants | {"b": b, "c": bias})
    np.testing.assert_array_equal(ours(Dense(), [(a, qa), (b.T, qb), (bias, None)], qy, n.dtype), expected)


@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.MUL])
@EXAMPLES
@given(data=st.data())
def test_add_and_mul(kind: BinaryKind, data: st.DataObject) -> None:
    """QLinearAdd and QLinearMul, thousands of pairs of stored numbers, and a broadcast."""
    n = Numbers(data.draw)
    every = np.arange(n.info.min, n.info.max + 1).astype(n.dtype)
    a, b = (v.reshape(1, -1) for v in np.meshgrid(every, every[:: data.draw(st.integers(3, 9))]))
    if data.draw(st.booleans()):
        b = n.array(1, 1)
    qa, qb, qy = n.quant(), n.quant(), n.quant()
    names = ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"]
    nodes = contrib(f"QLinear{kind.value.title()}", names)
    expected = session(nodes, {"a": a, "b": b}, n.constants(a=qa, b=qb, y=qy))
    assert_same_sums(ours(Binary(kind), [(a, qa), (b, qb)], qy, n.dtype), expected)


def qdq(nodes: list[onnx.NodeProto], count: int) -> list[onnx.NodeProto]:
    """Nodes that turn r0, r1 ... into r: with a DequantizeLinear before each, and a QuantizeLinear behind."""
    names = "abc"[:count]
    unpack = [helper.make_node("DequantizeLinear", [f"q{n}", f"s{n}", f"z{n}"], [f"r{i}"]) for i, n in enumerate(names)]
    return [*unpack, *nodes, helper.make_node("QuantizeLinear", ["r", "sy", "zy"], ["y"])]


@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL])
@EXAMPLES
@given(data=st.data())
def test_pairs_between_scales(kind: BinaryKind, data: st.DataObject) -> None:
    """QDQ files say: real numbers, one operation, stored. Without its optimisations onnxruntime computes just that."""
    n = Numbers(data.draw, [*SCALES, 1 / 32, 1 / 64, 1 / 128])
    every = np.arange(n.info.min, n.info.max + 1).astype(n.dtype)
    a, b = (v.reshape(1, -1) for v in np.meshgrid(every, every))
    qa, qb, qy = n.quant(), n.quant(), n.quant()
    relu = data.draw(st.booleans())
    nodes = [helper.make_node(kind.value.title(), ["r0", "r1"], ["sum" if relu else "r"])]
    nodes += [helper.make_node("Relu", ["sum"], ["r"])] if relu else []
    expected = session(qdq(nodes, 2), {"qa": a, "qb": b}, n.constants(a=qa, b=qb, y=qy), optimised=False)
    op = Binary(kind, Clamp(0.0) if relu else None)
    np.testing.assert_array_equal(ours(op, [(a, qa), (b, qb)], qy, n.dtype, Arithmetic.ONNX), expected)


@EXAMPLES
@given(data=st.data())
def test_averages_between_scales(data: st.DataObject) -> None:
    """With one scale for both ends, averages of an even count are ties but for the float's last bit."""
    n = Numbers(data.draw, [*SCALES, 1 / 32, 1 / 64])
    x, qx = n.array(1, 9, 9, 4), n.quant()
    qy = data.draw(st.sampled_from([qx, n.quant()]))
    kernel, stride, pads = data.draw(
        st.sampled_from(
            [((2, 2), (2, 2), (0, 0, 0, 0)), ((3, 2), (2, 1), (1, 0, 1, 1)), ((4, 4), (1, 3), (0, 0, 0, 0))]
        )
    )
    node = helper.make_node("AveragePool", ["r0"], ["r"], kernel_shape=kernel, strides=stride, pads=pads)
    constants = n.constants(a=qx, y=qy)
    expected = session(qdq([node], 1), {"qa": x.transpose(NCHW)}, constants, optimised=False)
    op = AvgPool2d(kernel, stride, (1, 1), pads)
    actual = ours(op, [(x, qx)], qy, n.dtype, Arithmetic.ONNX)
    np.testing.assert_array_equal(actual, expected.transpose(NHWC))


@pytest.mark.parametrize(
    "quants",
    [
        (Quant.of(0.03, 184), Quant.of(0.1, 224), Quant.of(0.1, 147)),
        (Quant.of(0.04, 163), Quant.of(0.03, 216), Quant.of(0.1, 206)),
    ],
)
def test_sums_on_ties(quants: tuple[Quant, Quant, Quant]) -> None:
    """Scales for which thousands of sums of QLinearAdd are ties: one rounding more or less would show."""
    qa, qb, qy = quants
    a, b = (v.astype(np.uint8).reshape(1, -1) for v in np.meshgrid(np.arange(256), np.arange(256)))
    constants = {"sa": np.float32(qa.scale[0]), "za": np.uint8(qa.zero[0]), "sb": np.float32(qb.scale[0])}
    constants |= {"zb": np.uint8(qb.zero[0]), "sy": np.float32(qy.scale[0]), "zy": np.uint8(qy.zero[0])}
    nodes = contrib("QLinearAdd", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"])
    expected = session(nodes, {"a": a, "b": b}, constants)
    assert_same_sums(ours(Binary(BinaryKind.ADD), [(a, qa), (b, qb)], qy, np.uint8), expected)


@EXAMPLES
@given(data=st.data())
def test_pools(data: st.DataObject) -> None:
    """QLinearAveragePool, QLinearGlobalAveragePool, and MaxPool on stored numbers."""
    n = Numbers(data.draw)
    x, qx, qy = n.array(1, 9, 9, 4), n.quant(), n.quant()
    feeds, constants = {"x": x.transpose(NCHW)}, n.constants(x=qx, y=qy)
    names = ["x", "sx", "zx", "sy", "zy"]
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    count = data.draw(st.booleans())
    nodes = contrib("QLinearAveragePool", names, count_include_pad=count, **window)
    expected = session(nodes, feeds, constants).transpose(NHWC)
    op = AvgPool2d((3, 2), (2, 1), (1, 1), (1, 0, 1, 1), None, count)
    np.testing.assert_array_equal(ours(op, [(x, qx)], qy, n.dtype), expected)
    nodes = contrib("QLinearGlobalAveragePool", names, channels_last=0)
    expected = session(nodes, feeds, constants).transpose(NHWC)
    np.testing.assert_array_equal(ours(Reduce((1, 2)), [(x, qx)], qy, n.dtype), expected)
    expected = session([helper.make_node("MaxPool", ["x"], ["y"], **window)], feeds, {}).transpose(NHWC)
    pool = MaxPool2d((3, 2), (2, 1), (1, 1), (1, 0, 1, 1))
    np.testing.assert_array_equal(ours(pool, [(x, qx)], qx, n.dtype), expected)


@EXAMPLES
@given(data=st.data())
def test_activations_concat_softmax(data: st.DataObject) -> None:
    """QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax, QLinearConcat."""
    n = Numbers(data.draw)
    x = np.arange(n.info.min, n.info.max + 1).astype(n.dtype).reshape(16, 16)
    qx, qy = n.quant(), n.quant()
    unit = Quant.of(1 / 256, n.info.min)
    names = ["x", "sx", "zx", "sy", "zy"]
    cases: list[tuple[Op, Quant, list[onnx.NodeProto]]] = [
        (LeakyRelu(0.25), qy, contrib("QLinearLeakyRelu", names, alpha=0.25)),
        (Unary(UnaryKind.SIGMOID), unit, contrib("QLinearSigmoid", names)),
        (Softmax(-1), unit, contrib("QLinearSoftmax", names, axis=-1, opset=13)),
    ]
    for op, quant, nodes in cases:
        expected = session(nodes, {"x": x}, n.constants(x=qx, y=quant))
        np.testing.assert_array_equal(ours(op, [(x, qx)], quant, n.dtype), expected)
    other, qz = n.array(16, 3), n.quant()
    joined = contrib("QLinearConcat", ["sy", "zy", "x", "sx", "zx", "z", "sz", "zz"], axis=1)
    expected = session(joined, {"x": x, "z": other}, n.constants(x=qx, y=qy, z=qz))
    np.testing.assert_array_equal(ours(Concat(1), [(x, qx), (other, qz)], qy, n.dtype), expected)


@EXAMPLES
@given(data=st.data())
def test_quantize_and_dequantize(data: st.DataObject) -> None:
    """QuantizeLinear and DequantizeLinear, per tensor and per axis, ties included."""
    n = Numbers(data.draw)
    quants = [n.quant() for _ in range(3)]
    per_axis = Quant(tuple(q.scale[0] for q in quants), tuple(q.zero[0] for q in quants), 1)
    quant = data.draw(st.sampled_from([quants[0], per_axis]))
    steps = n.rng.integers(-700, 700, (40, 3)).astype(np.float32) / 2
    real = steps * np.float32(quant.scale)
    for op, kind, values, source, target in (
        (Quantize(), "QuantizeLinear", real, None, quant),
        (Dequantize(), "DequantizeLinear", n.array(40, 3), quant, None),
    ):
        node = helper.make_node(kind, ["x", "sq", "zq"], ["y"], axis=1)
        expected = session([node], {"x": values}, n.constants(q=quant))
        actual = ours(op, [(values, source)], target, np.float32 if target is None else n.dtype)
        np.testing.assert_array_equal(actual, expected)


def between_scales(kind: str, names: list[str], **attributes: Any) -> list[onnx.NodeProto]:
    """DequantizeLinear, a float operator, QuantizeLinear: as onnxruntime keeps it where it has no quantised kernel."""
    return [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["real"]),
        helper.make_node(kind, ["real", *names], ["done"], **attributes),
        helper.make_node("QuantizeLinear", ["done", "sy", "zy"], ["y"]),
    ]


@EXAMPLES
@given(data=st.data())
def test_in_float_between_scales(data: st.DataObject) -> None:
    """Operators without a quantised kernel: at most one step apart, since float32 sums may differ in a bit."""
    n = Numbers(data.draw)
    x, qx, qy = n.array(1, 6, 6, 4), n.quant(), n.quant()
    feeds = {"x": x.transpose(NCHW)}
    cases: list[tuple[Op, list[onnx.NodeProto], dict[str, Any], Quant]] = [
        (Unary(UnaryKind.TANH), between_scales("Tanh", []), {}, qy),
        (
            Clamp(0.0, 1.0),
            between_scales("Clip", ["l", "h"]),
            {"l": np.float32(0), "h": np.float32(1)},
            qx,
        ),
        (
            Resize((12, 9), ResizeMode.LINEAR),
            between_scales("Resize", ["", "", "size"], mode="linear"),
            {"size": np.array([1, 4, 12, 9])},
            qx,
        ),
        (
            Pad((0, 1, 2, 0), (0, 0, 1, 0), PadMode.CONSTANT, 0.1),
            between_scales("Pad", ["pads", "value"]),
            {"pads": np.array([0, 0, 1, 2, 0, 0, 0, 1]), "value": np.float32(0.1)},
            qx,
        ),
    ]
    for op, nodes, constants, quant in cases:
        expected = session(nodes, feeds, n.constants(x=qx, y=quant) | constants).transpose(NHWC)
        actual = ours(op, [(x, qx)], quant, n.dtype)
        steps = np.abs(actual.astype(int) - expected)
        assert steps.max() <= 1, op
        assert (steps > 0).mean() < 0.02, op


def test_transposed_convolution_is_at_most_a_step_off() -> None:
    """onnxruntime has no quantised kernel and adds floats; ours adds integers."""
    rng = np.random.default_rng(0)
    x, w = (
        rng.integers(0, 256, (1, 9, 9, 8)).astype(np.uint8),
        rng.integers(-127, 128, (3, 4, 4, 8)).astype(np.int8),
    )
    qx, qw, qy = Quant.of(0.05, 120), Quant((0.01, 0.02, 0.03), (0, 0, 0), 0), Quant.of(0.5, 100)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "sw"], ["wr"], axis=1),
        helper.make_node("ConvTranspose", ["xr", "wr"], ["yr"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("QuantizeLinear", ["yr", "sy", "zy"], ["y"]),
    ]
    constants = {"sx": np.float32(0.05), "zx": np.uint8(120), "w": w.transpose(3, 0, 1, 2)}
    constants |= {"sw": np.float32(qw.scale), "sy": np.float32(0.5), "zy": np.uint8(100)}
    expected = session(nodes, {"x": x.transpose(NCHW)}, constants).transpose(NHWC)
    actual = ours(ConvTranspose2d((2, 2), pads=(1, 1, 1, 1)), [(x, qx), (w, qw)], qy, np.uint8)
    steps = np.abs(actual.astype(int) - expected)
    assert steps.max() <= 1
    assert (steps > 0).mean() < 0.02


def test_an_activation_that_integers_cannot_do_is_done_in_float() -> None:
    rng = np.random.default_rng(1)
    x, w = (
        rng.integers(-128, 128, (1, 4, 4, 3)).astype(np.int8),
        rng.integers(-128, 128, (2, 1, 1, 3)).astype(np.int8),
    )
    qx, qw, qy = Quant.of(0.05, 3), Quant.of(0.02), Quant.of(1 / 128, 0)
    bias = np.array([100, -100], np.int32)
    actual = ours(Conv2d(activation=Unary(UnaryKind.TANH)), [(x, qx), (w, qw), (bias, None)], qy, np.int8)
    sums = np.einsum("nhwc,oc->nhwo", x.astype(int) - 3, w[:, 0, 0].astype(int)) + bias
    np.testing.assert_array_equal(actual, np.clip(np.rint(np.tanh(sums * 0.001) * 128), -128, 127))


def test_not_a_number_is_stored_as_the_least() -> None:
    """As onnxruntime does on x86; what matters is that it is always the same."""
    x = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    assert ours(Quantize(), [(x, None)], Quant.of(0.1, 5), np.int8).tolist() == [-128, 127, -128, 127]
