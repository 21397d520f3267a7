"""Rare things in ONNX files: withdrawn operators, uint16, If on what is computed, infinite constants, odd places.

What onnxruntime knows is compared with it, and what runs is compiled as well: C must give what the network gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from edgewright.errors import ModelError, Unsupported
from edgewright.network import Array, DType
from edgewright.network.kernels import execute
from edgewright.network.onnx_format import read_onnx
from edgewright.network.reference import reference
from tests.helpers.emitting import check_emitted
from tests.network.onnx_models import assert_agrees, model_of, one_node

RNG = np.random.default_rng(40)
IMAGE = RNG.normal(size=(1, 3, 7, 6)).astype(np.float32)
FLOAT = onnx.TensorProto.FLOAT


def numbers(*values: float) -> Array:
    return np.array(values, np.float32)


# Operators that were withdrawn


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("Crop", {"border": [4, 0, 4, 0]}), ("Crop", {"border": [0, 0]}), ("ImageScaler", {"bias": [1.0, 2.0]})],
)
def test_withdrawn_operators_that_do_not_fit(op: str, attributes: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=r"do not fit|biases for an image"):
        read_onnx(one_node(op, [IMAGE], opset=8, **attributes)[0].SerializeToString())


def test_products_of_old_opsets_state_that_a_bias_broadcasts() -> None:
    x, w, c = (RNG.normal(size=size).astype(np.float32) for size in ((2, 5), (5, 4), (4,)))
    model, _ = one_node("Gemm", [x, w, c], opset=6, broadcast=1)
    new, _ = one_node("Gemm", [x, w, c], opset=13)
    assert read_onnx(model.SerializeToString()).layers == read_onnx(new.SerializeToString()).layers


# Places of a resized image


@pytest.mark.parametrize("size", [(1, 1), (4, 10), (3, 5), (14, 18), (6, 2), (9, 7)])
@pytest.mark.parametrize("nearest", ["floor", "round_prefer_floor"])
def test_places_as_old_tensorflow_counted_them(size: tuple[int, int], nearest: str) -> None:
    where = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": nearest}
    sizes = np.array([1, 3, *size], np.int64)
    assert_agrees(*one_node("Resize", [IMAGE, numbers(), numbers(), sizes], opset=11, mode="nearest", **where))


# Sixteen bits without a sign


@pytest.mark.parametrize(("zero", "kind"), [(32768, np.int8), (0, np.int8), (1000, np.uint16)])
def test_uint16_is_what_int16_stands_for(zero: int, kind: type) -> None:
    x = RNG.uniform(-1, 3, (1, 4, 6, 6)).astype(np.float32)
    point = 0 if kind is np.int8 else 30000
    weights = (point + RNG.integers(-120, 120, (5, 4, 3, 3))).astype(kind)
    constants = {
        "xs": np.float32(5e-5), "xz": np.uint16(zero), "w": weights, "ws": np.float32(0.01), "wz": kind(point),
        "ys": np.float32(1e-3), "yz": np.uint16(zero),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"]),
        helper.make_node("Conv", ["xr", "wr"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "ys", "yz"], ["y"]),
    ]
    model = model_of(nodes, {"x": x}, ["y"], constants, opset=21)
    model.ir_version = 10
    network = assert_agrees(model, {"x": x})
    assert network.tensors["xq"].dtype is DType.INT16
    if zero == 1000:
        check_emitted(network)


# If


def chosen(condition: onnx.NodeProto, then: onnx.NodeProto, other: onnx.NodeProto) -> onnx.ModelProto:
    graphs = [
        helper.make_graph([node], "branch", [], [onnx.ValueInfoProto(name=node.output[0])]) for node in (then, other)
    ]
    choice = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=graphs[0], else_branch=graphs[1])
    constants = {"limit": np.float32(0), "two": np.float32(2), "axes": np.array([2, 3], np.int64)}
    return model_of([condition, choice], {"x": IMAGE, "level": np.float32(0)}, ["y"], constants, opset=13)


@pytest.mark.parametrize("level", [-1.0, 1.0])
def test_an_if_on_what_is_computed_takes_one_of_both(level: float) -> None:
    model = chosen(
        helper.make_node("Greater", ["level", "limit"], ["c"]),
        helper.make_node("Mul", ["x", "two"], ["a"]),
        helper.make_node("Tanh", ["x"], ["b"]),
    )
    network = assert_agrees(model, {"x": IMAGE, "level": np.array(level, np.float32)})
    if level > 0:
        check_emitted(network)


def test_an_if_whose_branches_differ_in_shape_is_refused() -> None:
    model = chosen(
        helper.make_node("Greater", ["level", "limit"], ["c"]),
        helper.make_node("ReduceMax", ["x"], ["a"], axes=[2, 3]),
        helper.make_node("Tanh", ["x"], ["b"]),
    )
    with pytest.raises(Unsupported, match=r"branches give .*1x3x1x1.* and .*1x3x7x6.*make the input .* an initializer"):
        read_onnx(model.SerializeToString())


def test_a_branch_that_these_sizes_forbid_is_not_taken() -> None:
    """As of two rates of a sound, of which a frame of one size suits one; the reference takes the same branch."""
    broken = helper.make_node("MatMul", ["x", "square"], ["b"])
    model = chosen(
        helper.make_node("Equal", ["level", "two"], ["c"]), helper.make_node("Mul", ["x", "two"], ["a"]), broken
    )
    model.graph.initializer.append(numpy_helper.from_array(np.ones((5, 5), np.float32), "square"))
    for axis, size in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
        size.dim_param = f"n{axis}"  # onnxruntime checks the branches of models whose sizes it knows
    network = read_onnx(model.SerializeToString(), shapes={"x": IMAGE.shape})
    assert network.inputs == ("x",)
    assert any("'choice' does not take its else_branch" in note for note in network.notes)
    theirs = reference(model.SerializeToString(), network).run({"x": IMAGE})
    np.testing.assert_array_equal(theirs["y"], 2 * IMAGE)
    np.testing.assert_array_equal(execute(network, {"x": IMAGE})["y"], 2 * IMAGE)


def test_an_if_without_a_possible_branch_is_refused() -> None:
    broken = [helper.make_node("MatMul", ["x", "limit"], [name]) for name in "ab"]
    with pytest.raises(ModelError):
        read_onnx(chosen(helper.make_node("Greater", ["level", "limit"], ["c"]), *broken).SerializeToString())


@pytest.mark.parametrize(("opset", "keepdims"), [(11, 1), (13, 0), (18, 0)])
def test_logarithms_of_sums_of_powers(opset: int, keepdims: int) -> None:
    x = (100 * RNG.standard_normal((2, 3, 4, 5))).astype(np.float32)  # whose powers are no finite numbers
    axes = {"axes": [1, -1]} if opset < 18 else {}
    operands = [x] if opset < 18 else [x, np.array([1, -1], np.int64)]
    model, feeds = one_node("ReduceLogSumExp", operands, opset=opset, keepdims=keepdims, **axes)
    assert_agrees(model, feeds)


# Constants that are no finite numbers


INF = np.inf


@pytest.mark.parametrize(
    ("op", "other"),
    [
        ("Max", numbers(-INF, 0, INF, 1, -INF, 0)),
        ("Min", np.float32(INF)),
        ("Add", np.triu(np.full((7, 6), -INF, np.float32), 1)),
        ("Sub", np.float32(INF)),
    ],
    ids=["Max", "Min", "Add", "Sub"],
)
def test_infinities_that_mean_something(op: str, other: Array) -> None:
    network = assert_agrees(*one_node(op, [IMAGE, other]))
    if op == "Max":
        check_emitted(network)


def test_places_that_a_softmax_leaves_out() -> None:
    mask = np.zeros((1, 1, 6, 6), bool)
    mask[..., 3:] = True
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Where", ["mask", "least", "a"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"], axis=-1),
    ]
    weights = RNG.normal(size=(6, 6)).astype(np.float32)
    constants = {"w": weights, "mask": mask[:, :, :1], "least": np.array(-INF, np.float32)}
    network = assert_agrees(model_of(nodes, {"x": IMAGE}, ["y"], constants), {"x": IMAGE})
    check_emitted(network)


@pytest.mark.parametrize(("op", "value"), [("Mul", INF), ("Max", np.nan), ("Add", np.nan)])
def test_other_constants_that_are_no_numbers_are_refused(op: str, value: float) -> None:
    with pytest.raises(ModelError, match="the constant 'i1' holds NaN"):
        read_onnx(one_node(op, [IMAGE, np.float32(value)])[0].SerializeToString())


def test_an_initializer_broadcasts_as_later_opsets_have_it() -> None:
    """Before opset 7 an axis said where the second operand stands; some converters write operands that fit anyway."""
    scale = np.arange(1, 4, dtype=np.float32).reshape(1, 3, 1, 1)
    for operands, axis in (([IMAGE, scale], 1), ([IMAGE, scale[0]], 2)):
        model, feeds = one_node("Mul", operands, opset=6, broadcast=1, axis=axis)
        network = read_onnx(model.SerializeToString())
        np.testing.assert_array_equal(execute(network, feeds)["o0"], IMAGE * scale)
    model, _ = one_node("Mul", [scale, IMAGE], computed=(1,), opset=6, broadcast=1)  # the initializer comes first
    network = read_onnx(model.SerializeToString())
    np.testing.assert_array_equal(execute(network, {"i1": IMAGE})["o0"], IMAGE * scale)


@pytest.mark.parametrize("read_by", ["Cast", "Identity"])
def test_uint16_as_such_is_refused(read_by: str) -> None:
    reader = helper.make_node(read_by, ["q"], ["y"], **({"to": FLOAT} if read_by == "Cast" else {}))
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), reader]
    model = model_of(nodes, {"x": IMAGE}, ["y"], {"s": np.float32(0.1), "z": np.uint16(5)}, opset=21)
    with pytest.raises(Unsupported, match=r"put a DequantizeLinear behind it|the stored integers of"):
        read_onnx(model.SerializeToString())
