"""Sizes that a file leaves open: one message with all inputs, and sizes that suit each of them."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgewright.errors import ModelError
from edgewright.network.onnx_format import read_onnx

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model_of(inputs, nodes=(), weights=None):
    """Bytes of a model with these inputs, (name, element type, shape or None), and of nodes behind the first."""
    values = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    nodes = list(nodes) or [helper.make_node("Relu", [inputs[0][0]], ["y"])]
    output = helper.make_tensor_value_info("y", FLOAT, None)
    tensors = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", values, [output], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def refusal(model: onnx.ModelProto) -> str:
    with pytest.raises(ModelError) as caught:
        read_onnx(model.SerializeToString(), name="net")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "shape", "suggested"),
    [
        (FLOAT, ["batch", "samples"], "1,16000"),
        (FLOAT, [1, None], "1,16000"),
        (INT64, ["batch", "sequence"], "1,100"),
        (INT64, ["batch", None], "1,100"),
        (FLOAT, ["N", 80, "time"], "1,80,100"),
        (FLOAT, [None, None, 40], "1,100,40"),
        (FLOAT, [2, "batch", 128], "2,1,128"),
        (FLOAT, ["b", 1, 40, "t"], "1,1,40,100"),
        (FLOAT, ["b", 3, "h", "w"], "1,3,224,224"),
        (FLOAT, [None, None, None, None], "1,3,224,224"),
        (FLOAT, [1, 1, None, None, None], "1,1,16,16,16"),
    ],
    ids=str,
)
def test_a_suggestion_fits_the_rank(kind, shape, suggested):
    assert refusal(model_of([("x", kind, shape)])).endswith(f"--shape x={suggested}")


def test_all_inputs_are_named_at_once_and_equal_sizes_are_equal():
    inputs = [
        ("audio in", FLOAT, ["batch", "samples"]),
        ("h", FLOAT, [2, "batch", 64]),
        ("m", FLOAT, [1, "samples"]),
    ]
    message = refusal(model_of(inputs))
    assert message == (
        "'net' leaves sizes of 3 inputs open: 'audio in' is batchxsamples, 'h' is 2xbatchx64, 'm' is 1xsamples. "
        "Set them, such as with --shape 'audio in=1,16000' --shape h=2,1,64 --shape m=1,16000"
    )


def test_inputs_that_are_given_or_open_in_the_batch_alone_are_not_asked_for():
    model = model_of([("x", FLOAT, ["n", 4]), ("z", FLOAT, [1, "t"]), ("w", FLOAT, [1, "s"])])
    with pytest.raises(ModelError, match=r"sizes of an input open: 'w' is 1xs\."):
        read_onnx(model.SerializeToString(), shapes={"z": (1, 3)})
    assert read_onnx(model.SerializeToString(), shapes={"z": (1, 3), "w": (1, 3)}).tensors["x"].shape == (1, 4)


@pytest.mark.parametrize(
    ("node", "weights", "suggested"),
    [
        (helper.make_node("Conv", ["x", "w"], ["y"]), (8, 20, 3), "1,20,100"),
        (helper.make_node("Conv", ["x", "w"], ["y"]), (8, 1, 3, 3), "1,1,224,224"),
        (helper.make_node("Conv", ["x", "w"], ["y"], group=6), (6, 1, 3, 3), "1,6,224,224"),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transB=1), (5, 30), "1,30"),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), (30, 5), "1,30"),
    ],
    ids=["1-D", "2-D", "depthwise", "Gemm", "MatMul"],
)
def test_where_nothing_is_stated_the_first_layer_tells(node, weights, suggested):
    model = model_of([("x", FLOAT, None)], [node], {"w": np.zeros(weights, np.float32)})
    assert refusal(model) == (
        f"'net' leaves sizes of an input open: 'x' is of no stated shape. Set them, such as with --shape x={suggested}"
    )


def test_control_flow_is_mentioned():
    inner = helper.make_graph([], "body", [], [helper.make_tensor_value_info("x", FLOAT, None)])
    branch = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    loop = helper.make_node("Loop", ["", "c"], ["z"], body=inner)
    message = refusal(model_of([("x", FLOAT, [1, "t"]), ("c", TensorProto.BOOL, [])], [branch, loop]))
    assert "--shape x=1,100. The file also has control flow (1 If, 1 Loop)" in message
