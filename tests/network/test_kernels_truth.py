"""Whole operators on real numbers against onnxruntime, one node at a time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from edgewright.errors import InputError
from edgewright.network import Builder
from edgewright.network.kernels import execute
from edgewright.network.kernels.activations import erf
from edgewright.network.operators import (
    ArgMax,
    AvgPool2d,
    BatchNorm,
    Binary,
    BinaryKind,
    Cast,
    Clamp,
    Compare,
    CompareKind,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Coordinates,
    Dense,
    DepthToSpace,
    Dequantize,
    DynamicProduct,
    DynamicQuantize,
    DynamicRange,
    Elu,
    Expand,
    Gather,
    GatherElements,
    HardSigmoid,
    L2Normalize,
    LeakyRelu,
    LogSoftmax,
    Lrn,
    LstmPart,
    LstmStep,
    MatMul,
    MaxPool2d,
    NearestMode,
    NonMaxSuppression,
    Pad,
    PadMode,
    PRelu,
    Quantize,
    Reduce,
    Reshape,
    Resize,
    ResizeMode,
    Select,
    Slice,
    Softmax,
    SpaceToDepth,
    Tile,
    TopK,
    Transpose,
    Unary,
    UnaryKind,
)
from edgewright.network.region import Region
from edgewright.network.tensor import Array, DType, Tensor
from tests.helpers.kernel_cases import CASES, Case, cases, result_for, run, tensors_for
from tests.helpers.onnx_session import onnx_session

NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


def onnx_run(nodes: list[onnx.NodeProto], feeds: dict[str, Array], opset: int = 20) -> Array:
    """The output "y" of a graph of these nodes."""
    feeds = {name: np.asarray(value) for name, value in feeds.items()}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    outputs = [onnx.ValueInfoProto(name="y")]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=9,
    )
    result: Array = onnx_session(model).run(["y"], feeds)[0]
    return result


def node(kind: str, feeds: dict[str, Array], **attributes: Any) -> Array:
    """The result of one node that reads all `feeds` in order."""
    return onnx_run([helper.make_node(kind, list(feeds), ["y"], **attributes)], feeds)


def images(values: list[Array]) -> dict[str, Array]:
    """Values as ONNX wants them: an image and its weights channels first, the rest as it is."""
    turned = [value.transpose(NCHW) if value.ndim == 4 else value for value in values]
    return dict(zip("xwb", turned, strict=False))


def conv(op: Conv2d, values: list[Array]) -> Array:
    assume(min(op.pads) >= 0)
    feeds = images(values)
    return node("Conv", feeds, pads=op.pads, strides=op.stride, dilations=op.dilation, group=op.groups).transpose(NHWC)


def conv_transpose(op: ConvTranspose2d, values: list[Array]) -> Array:
    """ONNX keeps these weights as (C, O / groups, kh, kw)."""
    feeds = images(values)
    outputs, kh, kw, depth = values[1].shape
    grouped = values[1].reshape(op.groups, outputs // op.groups, kh, kw, depth)
    feeds["w"] = grouped.transpose(0, 4, 1, 2, 3).reshape(op.groups * depth, -1, kh, kw)
    attributes = {"strides": op.stride, "dilations": op.dilation, "group": op.groups}
    return node("ConvTranspose", feeds, pads=op.pads, output_padding=op.extra, **attributes).transpose(NHWC)


def pool(op: MaxPool2d | AvgPool2d, values: list[Array]) -> Array:
    attributes = {"kernel_shape": op.kernel, "strides": op.stride, "pads": op.pads}
    if isinstance(op, AvgPool2d):
        return node("AveragePool", images(values), count_include_pad=op.count_pads, **attributes).transpose(NHWC)
    return node("MaxPool", images(values), dilations=op.dilation, **attributes).transpose(NHWC)


def dense(op: Dense, values: list[Array]) -> Array:
    x, w, *bias = values
    product = node("MatMul", {"x": x, "w": w.reshape(w.shape[0], -1).T})
    return product + bias[0] if bias else product


def matmul(op: MatMul, values: list[Array]) -> Array:
    a, b = values
    turned = [np.swapaxes(v, -1, -2) if t else v for v, t in ((a, op.transpose_a), (b, op.transpose_b))]
    return node("MatMul", {"a": turned[0], "b": turned[1]})


def batch_norm(op: BatchNorm, values: list[Array]) -> Array:
    feeds = images(values) | {"mean": np.zeros_like(values[1]), "variance": np.ones_like(values[1])}
    return node("BatchNormalization", feeds, epsilon=0.0).transpose(NHWC)


def lrn(op: Lrn, values: list[Array]) -> Array:
    assume(op.size % 2)  # onnxruntime refuses even sizes
    attributes = {"size": op.size, "alpha": op.alpha, "beta": op.beta, "bias": op.bias}
    return node("LRN", images(values), **attributes).transpose(NHWC)


def lstm_step(op: LstmStep, values: list[Array]) -> Array:
    """The cell of an LSTM of one step whose weights are ones on a diagonal; what it shows, by its definition."""
    gates, c = values
    size, count = c.shape[-1], c.size // c.shape[-1]
    given, kept, new, shown = (v.reshape(count, size) for v in np.split(gates, 4, axis=-1))
    if op.part is LstmPart.HIDDEN:
        nodes = [helper.make_node("Sigmoid", ["o"], ["s"]), helper.make_node("Tanh", ["c"], ["t"])]
        nodes += [helper.make_node("Mul", ["s", "t"], ["y"])]
        return onnx_run(nodes, {"o": shown.reshape(c.shape), "c": c})
    feeds = {"x": np.concatenate([given, shown, kept, new], axis=1)[None]}  # in ONNX's order
    feeds |= {"w": np.eye(4 * size, dtype=np.float32)[None], "r": np.zeros((1, 4 * size, size), np.float32)}
    feeds |= {"h": np.zeros((1, count, size), np.float32), "c": c.reshape(1, count, size)}
    made = helper.make_node("LSTM", ["x", "w", "r", "", "", "h", "c"], ["", "", "y"], hidden_size=size)
    cell = onnx_run([made], feeds).reshape(c.shape)
    return cell if op.clip is None else np.clip(cell, -op.clip, op.clip)


def unary(op: Unary, values: list[Array]) -> Array:
    feeds = {"x": values[0]}
    match op.kind:
        case UnaryKind.RSQRT:
            nodes = [helper.make_node("Sqrt", ["x"], ["r"]), helper.make_node("Reciprocal", ["r"], ["y"])]
        case UnaryKind.SILU:
            nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["x", "s"], ["y"])]
        case UnaryKind.SQUARE:
            nodes = [helper.make_node("Mul", ["x", "x"], ["y"])]
        case UnaryKind.GELU_TANH:
            nodes = [helper.make_node("Gelu", ["x"], ["y"], approximate="tanh")]
        case _:
            nodes = [helper.make_node(op.kind.value.title().replace("_", ""), ["x"], ["y"])]
    return onnx_run(nodes, feeds)


def binary(op: Binary, values: list[Array]) -> Array:
    feeds = dict(zip("ab", values, strict=True))
    if op.kind is BinaryKind.SQUARED_DIFFERENCE:
        return np.square(node("Sub", feeds))
    return node(op.kind.value.title(), feeds)


def compare(op: Compare, values: list[Array]) -> Array:
    feeds = dict(zip("ab", values, strict=True))
    if op.kind is CompareKind.NOT_EQUAL:
        return ~node("Equal", feeds)
    return node(op.kind.value.title().replace("_", "Or"), feeds)


def elu(op: Elu, values: list[Array]) -> Array:
    return node("Selu", {"x": values[0]}, alpha=op.alpha, gamma=op.gamma)


def pad(op: Pad, values: list[Array]) -> Array:
    """ONNX has no symmetric mode (numpy has), and onnxruntime does not crop and mirror in one node."""
    assume(op.mode is PadMode.CONSTANT or min(*op.before, *op.after) >= 0)
    if op.mode is PadMode.SYMMETRIC:
        return np.pad(values[0], list(zip(op.before, op.after, strict=True)), "symmetric")
    feeds = {"x": values[0], "pads": np.array((*op.before, *op.after)), "value": np.float32(op.value)}
    return node("Pad", feeds, mode=op.mode.value)


def slice_(op: Slice, values: list[Array]) -> Array:
    ends = [a + n * s for a, n, s in zip(op.starts, op.sizes, op.steps, strict=True)]
    far = [-(10**6) if end < 0 else end for end in ends]  # a negative end would count from the back
    feeds = {"x": values[0], "a": np.array(op.starts), "b": np.array(far)}
    return node("Slice", feeds | {"axes": np.arange(len(far)), "steps": np.array(op.steps)})


def resize(op: Resize, values: list[Array]) -> Array:
    n, _, _, c = values[0].shape
    nodes = [
        helper.make_node(
            "Resize",
            ["x", "", "", "sizes"],
            ["y"],
            mode=op.mode.value,
            coordinate_transformation_mode=op.coordinates.value,
            nearest_mode=op.rounding.value,
        )
    ]
    return onnx_run(nodes, images(values) | {"sizes": np.array([n, c, *op.size])}).transpose(NHWC)


def reduce(op: Reduce, values: list[Array]) -> Array:
    name = "Reduce" + op.kind.value.title().replace("_", "")
    return node(name, {"x": values[0], "axes": np.array(op.axes)}, keepdims=op.keep)


def arg_max(op: ArgMax, values: list[Array]) -> Array:
    name = "ArgMin" if op.least else "ArgMax"
    return node(name, {"x": values[0]}, axis=op.axes[0], keepdims=op.keep, select_last_index=op.last)


def top_k(op: TopK, values: list[Array]) -> Array:
    x = helper.make_node("TopK", ["x", "k"], ["values", "y"], axis=op.axis, largest=int(not op.least))
    return onnx_run([x], {"x": values[0], "k": np.array([op.count])})


def non_max_suppression(op: NonMaxSuppression, values: list[Array]) -> Array:
    names = ["boxes", "scores", "count", "overlap", "least"]
    feeds = {"boxes": values[0][None], "scores": values[1][None, None], "count": np.array([op.count])}
    feeds |= {"overlap": np.float32([op.iou_threshold]), "least": np.float32([op.score_threshold])}
    found = onnx_run([helper.make_node("NonMaxSuppression", names, ["y"])], feeds)[:, 2]
    return np.append(found, np.full(op.count - len(found), -1)).astype(np.int32)


def moved(kind: str, **attributes: Callable[[Any], Any]) -> Callable[[Any, list[Array]], Array]:
    """A node whose attributes are read off the operator, on values that keep their axes."""

    def expected(op: Any, values: list[Array]) -> Array:
        feeds = {f"i{i}": value for i, value in enumerate(values)}
        return node(kind, feeds, **{name: get(op) for name, get in attributes.items()})

    return expected


def shaped(kind: str, get: Callable[[Any], Any]) -> Callable[[Any, list[Array]], Array]:
    """A node whose second input says a shape."""
    return lambda op, values: node(kind, {"x": values[0], "shape": np.array(get(op))})


def blocks(kind: str) -> Callable[[Any, list[Array]], Array]:
    def expected(op: Any, values: list[Array]) -> Array:
        mode = {"mode": "CRD" if op.channel_major else "DCR"} if isinstance(op, DepthToSpace) else {}
        return node(kind, images(values), blocksize=op.block, **mode).transpose(NHWC)

    return expected


TRUTH: Mapping[type, Callable[[Any, list[Array]], Array]] = {
    Conv2d: conv,
    ConvTranspose2d: conv_transpose,
    MaxPool2d: pool,
    AvgPool2d: pool,
    Dense: dense,
    MatMul: matmul,
    BatchNorm: batch_norm,
    Lrn: lrn,
    LstmStep: lstm_step,
    Clamp: lambda op, values: node("Clip", {"x": values[0], "low": np.float32(op.low), "high": np.float32(op.high)}),
    LeakyRelu: moved("LeakyRelu", alpha=lambda op: op.alpha),
    Elu: elu,
    HardSigmoid: moved("HardSigmoid", alpha=lambda op: op.alpha, beta=lambda op: op.beta),
    Unary: unary,
    Binary: binary,
    PRelu: moved("PRelu"),
    Compare: compare,
    Select: moved("Where"),
    Cast: moved("Cast", to=lambda op: helper.np_dtype_to_tensor_dtype(op.dtype.numpy)),
    Softmax: moved("Softmax", axis=lambda op: op.axis),
    LogSoftmax: moved("LogSoftmax", axis=lambda op: op.axis),
    L2Normalize: moved("LpNormalization", axis=lambda op: op.axis, p=lambda op: 2),
    Reduce: reduce,
    ArgMax: arg_max,
    TopK: top_k,
    NonMaxSuppression: non_max_suppression,
    Reshape: shaped("Reshape", lambda op: op.shape),
    Transpose: moved("Transpose", perm=lambda op: op.perm),
    Concat: moved("Concat", axis=lambda op: op.axis),
    Slice: slice_,
    Pad: pad,
    Expand: shaped("Expand", lambda op: op.shape),
    Tile: shaped("Tile", lambda op: op.repeats),
    SpaceToDepth: blocks("SpaceToDepth"),
    DepthToSpace: blocks("DepthToSpace"),
    Gather: moved("Gather", axis=lambda op: op.axis),
    GatherElements: moved("GatherElements", axis=lambda op: op.axis),
    Resize: resize,
}


def test_every_operator_on_real_numbers_has_a_truth() -> None:
    by_litert = {DynamicProduct, DynamicQuantize, DynamicRange}  # no node of ONNX: test_dynamic
    assert set(TRUTH) == set(CASES) - {Quantize, Dequantize} - by_litert


@pytest.mark.parametrize("kind", TRUTH, ids=lambda kind: kind.__name__)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_equals_onnxruntime(kind: type, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    if hasattr(case.op, "activation"):
        case = replace(case, op=replace(case.op, activation=None))
    values = case.values()
    expected = TRUTH[kind](case.op, values)
    actual = run(case.op, case.whole, values, tensors_for(values), result_for(case))
    # Float32 has 7 digits; sums of up to a hundred products of numbers near 4 lose one or two of them.
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


def test_even_lrn_windows_reach_further_up() -> None:
    """Krizhevsky 2012 sums i - n/2 .. i + n/2; ONNX: floor((n - 1) / 2) channels below, ceil((n - 1) / 2) above."""
    x = np.arange(1.0, 6.0, dtype=np.float32)[None]
    squares = np.array([1 + 4, 4 + 9, 9 + 16, 16 + 25, 25])
    actual = evaluate(Lrn(2, 2.0, 1.0, 1.0), x)
    np.testing.assert_allclose(actual[0], x[0] / (1 + squares), rtol=1e-6)


def evaluate(op: Any, *values: Array) -> Array:
    case = Case(op, tuple(value.shape for value in values))
    result = result_for(case)
    if values[0].dtype.kind != "f" and result.dtype is DType.FLOAT32:
        result = replace(result, dtype=DType(values[0].dtype.name))
    return run(op, case.whole, list(values), tensors_for(list(values)), result)


def test_negative_pads_crop() -> None:
    """A convolution with negative pads is the convolution of the cropped image (M 2.1)."""
    rng = np.random.default_rng(0)
    x, w = (
        rng.standard_normal((1, 7, 8, 2)).astype(np.float32),
        rng.standard_normal((3, 3, 3, 2)).astype(np.float32),
    )
    cropped = evaluate(Conv2d(pads=(0, 1, 1, 0)), x[:, 1:, :-2], w)
    np.testing.assert_allclose(evaluate(Conv2d(pads=(-1, 1, 1, -2)), x, w), cropped, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("extent", "size", "coordinates", "rounding"),
    [
        (7, 2, Coordinates.ASYMMETRIC, NearestMode.HALF_UP),
        (30, 9, Coordinates.HALF_PIXEL, NearestMode.HALF_UP),
        (28, 19, Coordinates.HALF_PIXEL, NearestMode.HALF_DOWN),
    ],
)
def test_places_that_float32_moves_off_a_tie(
    extent: int, size: int, coordinates: Coordinates, rounding: NearestMode
) -> None:
    """Exactly half-way between two pixels, but not quite so in float32: still a tie."""
    x = np.arange(extent, dtype=np.float32).reshape(1, 1, extent, 1)
    op = Resize((1, size), ResizeMode.NEAREST, coordinates, rounding)
    np.testing.assert_array_equal(evaluate(op, x), resize(op, [x]))


def test_mirrored_pads_after_a_crop() -> None:
    x = np.arange(5)
    assert evaluate(Pad((-1,), (2,), PadMode.REFLECT), x).tolist() == [1, 2, 3, 4, 3, 2]
    assert evaluate(Pad((2,), (-1,), PadMode.SYMMETRIC), x).tolist() == [1, 0, 0, 1, 2, 3]
    assert evaluate(Pad((3,), (-2,), PadMode.EDGE), x).tolist() == [0, 0, 0, 0, 1, 2]


@pytest.mark.parametrize("size", [5, 6, 7, 8])
@pytest.mark.parametrize("count_pads", [False, True])
def test_ceil_mode_never_counts_what_it_adds(size: int, count_pads: bool) -> None:
    """Windows of ceil_mode hang over the padded image: `uncounted` says by how much."""
    kernel, stride, pad_ = 3, 2, 1
    x = np.random.default_rng(size).standard_normal((1, size, size, 2)).astype(np.float32)
    windows = -(-(size + 2 * pad_ - kernel) // stride) + 1
    if (windows - 1) * stride >= size + pad_:
        windows -= 1  # a window may not start in the padding below
    more = max(0, (windows - 1) * stride + kernel - size - 2 * pad_)
    pads = (pad_, pad_, pad_ + more, pad_ + more)
    op = AvgPool2d((kernel, kernel), (stride, stride), (1, 1), pads, None, count_pads, (more, more))
    expected = node(
        "AveragePool",
        images([x]),
        kernel_shape=[kernel] * 2,
        strides=[stride] * 2,
        pads=[pad_] * 4,
        ceil_mode=1,
        count_include_pad=count_pads,
    ).transpose(NHWC)
    np.testing.assert_allclose(evaluate(op, x), expected, rtol=1e-5, atol=1e-6)


def test_integers_stay_integers() -> None:
    a, b = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    assert evaluate(Binary(BinaryKind.DIV), a, b).tolist() == [3, -3, -3, 3]  # towards zero, as in C
    assert evaluate(Binary(BinaryKind.POW), a, np.array([2])).tolist() == [49, 49, 49, 49]
    assert evaluate(Clamp(0.0), a).tolist() == [7, 0, 7, 0]
    large = np.array([[1 << 40, 1]])
    assert evaluate(Reduce((1,)), large).dtype == np.int64
    assert evaluate(Binary(BinaryKind.ADD), large, large)[0, 0] == 1 << 41
    odd = np.array([1, 2], np.int32).reshape(1, 1, 2, 1)
    assert evaluate(Resize((1, 4), ResizeMode.LINEAR), odd).ravel().tolist() == [
        1,
        1,
        1,
        2,
    ]  # cut, as onnxruntime
    assert evaluate(MaxPool2d((1, 2)), np.array([-5, -3]).reshape(1, 1, 2, 1)).item() == -3


def test_erf_to_eleven_digits() -> None:
    x = np.linspace(-7, 7, 10001)
    exact = np.array([math.erf(v) for v in x])
    np.testing.assert_allclose(erf(x), exact, rtol=0, atol=1e-11)


def test_no_warnings_where_the_limit_is_right() -> None:
    """Overflow on the way to a limit (sigmoid of -1000 is 0) is no reason to warn."""
    x = np.array([-1e4, 1e4, 0], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in UnaryKind:
            evaluate(Unary(kind), x)
        evaluate(Elu(), x)
        evaluate(Binary(BinaryKind.DIV), x, np.zeros(1, np.float32))
    assert evaluate(Unary(UnaryKind.SIGMOID), x).tolist() == [0, 1, 0.5]


def test_float16_is_computed_in_float32() -> None:
    x = np.array([60000.0, 60000.0, -60000.0], np.float16)
    mean = evaluate(Reduce((0,)), x)
    assert mean == pytest.approx(20000, abs=16)


def test_an_index_outside_is_named() -> None:
    with pytest.raises(InputError, match="reach from 0 to 9, but axis 0 of 'i0' has 4 elements"):
        evaluate(Gather(0), np.zeros((4, 2), np.float32), np.array([0, 9]))


def tiny() -> Any:
    b = Builder("tiny")
    x = b.input("x", (1, 4))
    h = b.layer(Clamp(0.0), [x], "relu")
    w = b.constant("w", np.ones((2, 4), np.float32))
    return b.build([b.layer(Dense(), [h, w], "fc")])


def test_execute_gives_outputs_and_what_is_kept() -> None:
    x = np.array([[1, -2, 3, -4]], np.float32)
    assert execute(tiny(), {"x": x})["fc"].tolist() == [[4, 4]]
    kept = execute(tiny(), {"x": x}, keep=["relu"])
    assert kept["relu"].tolist() == [[1, 0, 3, 0]]
    assert set(kept) == {"fc", "relu"}


def test_execute_checks_its_inputs() -> None:
    with pytest.raises(InputError, match="no value for input 'x'"):
        execute(tiny(), {})
    with pytest.raises(InputError, match=r"must be float32 of shape \(1, 4\), got float64"):
        execute(tiny(), {"x": np.zeros((1, 4))})


def test_an_empty_region_is_empty() -> None:
    empty = Region(((0, 1), (2, 2)))
    y = Tensor("y", (1, 4), DType.FLOAT32)
    values = [np.ones((1, 4), np.float32)]
    assert run(Clamp(0.0), empty, values, tensors_for(values), y).shape == (1, 0)
