"""The reference multiplies 8-bit integers exactly on every processor, also on those without VNNI."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgewright.network.onnx_format.exact_products import has_inexact_products, make_products_exact
from edgewright.network.read import read
from edgewright.network.reference import reference
from tests.helpers.onnx_session import onnx_session

DEPTH = 72  # products of one sum
WEIGHTS = np.repeat(np.array([[127, 1, -128]], np.int8), DEPTH, axis=0)
STEP = 9 * DEPTH * 128  # of the quantised results


def matmul(form: str, x_type: type) -> onnx.ModelProto:
    """Integers x with the weights: as one operator, or as one on real numbers between DequantizeLinear."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(x_type))
    values = {"one": np.float32(1), "step": np.float32(STEP), "zero": x_type(0), "w_zero": np.int8(0), "w": WEIGHTS}
    y_type = TensorProto.INT32 if form == "MatMulInteger" else kind
    match form:
        case "MatMulInteger":
            nodes = [helper.make_node(form, ["x", "w", "zero"], ["y"])]
        case "QLinearMatMul":
            nodes = [helper.make_node(form, ["x", "one", "zero", "w", "one", "w_zero", "step", "zero"], ["y"])]
        case _:
            nodes = [
                helper.make_node("DequantizeLinear", ["x", "one", "zero"], ["xr"]),
                helper.make_node("DequantizeLinear", ["w", "one"], ["wr"]),
                helper.make_node("MatMul", ["xr", "wr"], ["yr"]),
                helper.make_node("QuantizeLinear", ["yr", "step", "zero"], ["y"]),
            ]
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, [2, DEPTH])],
        [helper.make_tensor_value_info("y", y_type, [2, WEIGHTS.shape[1]])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items() if name in used],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def expected(form: str, x_type: type) -> np.ndarray:
    """Results for the largest inputs."""
    sums = np.iinfo(x_type).max * WEIGHTS.sum(axis=0, dtype=np.int64)
    if form != "MatMulInteger":
        sums = np.clip(np.round(sums / STEP), np.iinfo(x_type).min, np.iinfo(x_type).max)
    return np.stack([sums, sums])


@pytest.mark.parametrize("form", ["MatMulInteger", "QLinearMatMul", "MatMul"])
@pytest.mark.parametrize("x_type", [np.uint8, np.int8])
def test_largest_products_do_not_saturate(form: str, x_type: type) -> None:
    model = matmul(form, x_type)
    assert has_inexact_products(model) == (x_type is np.uint8 or form == "MatMul")  # whose zero point is not stated
    x = np.full((2, DEPTH), np.iinfo(x_type).max, x_type)
    for is_optimised in (False, True):
        [y] = onnx_session(model, is_optimised).run(None, {"x": x})
        np.testing.assert_array_equal(y, expected(form, x_type))
    make_products_exact(model)
    assert not has_inexact_products(model)
    onnx.checker.check_model(model)


def test_weights_stay_whose_scale_is_computed() -> None:
    """The shape of their zero point is unknown."""
    model = matmul("MatMul", np.uint8)
    scale = helper.make_node("Identity", ["one"], ["scale"])
    model.graph.node.insert(0, scale)
    weights = next(node for node in model.graph.node if node.input[0] == "w")
    weights.input[1] = "scale"
    before = model.SerializeToString()
    make_products_exact(model)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("form", ["QLinearMatMul", "MatMul"])
@pytest.mark.parametrize("x_type", [np.uint8, np.int8])
def test_the_reference_is_exact(form: str, x_type: type) -> None:
    content = matmul(form, x_type).SerializeToString()
    network = read(content)
    runtime = reference(content, network)
    x = {name: np.full((2, DEPTH), np.iinfo(x_type).max, x_type) for name in network.inputs}
    for results in (runtime.run(x), runtime.trace(x)):
        np.testing.assert_array_equal(results[network.outputs[0]], expected(form, x_type))
