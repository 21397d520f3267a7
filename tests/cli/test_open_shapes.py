"""Sizes that a file leaves open: one message with all inputs, and sizes that suit each of them."""

import shlex

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from edgewright.cli.main import main
from edgewright.errors import ModelError, OpenSizes
from edgewright.network.onnx_format import read_onnx
from edgewright.network.read import read as read_model

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
        (FLOAT, ["batch_size", "N"], "1,16000"),
        (INT64, ["batch", "sequence"], "1,100"),
        (INT64, ["batch", None], "1,100"),
        (FLOAT, ["N", 80, "time"], "1,80,100"),
        (FLOAT, [None, None, 40], "1,100,40"),
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
        "'net' leaves sizes of 2 inputs open: 'audio in' is batchxsamples, 'm' is 1xsamples. "
        "Set them, such as with --shape 'audio in=1,16000' --shape m=1,16000"
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


def read(model: onnx.ModelProto, **shapes):
    return read_onnx(model.SerializeToString(), name="net", shapes=shapes)


def notes_and_shape(model: onnx.ModelProto):
    network = read(model)
    return network.notes, network.tensors["x"].shape


def test_a_batch_is_one_wherever_it_stands():
    notes, shape = notes_and_shape(model_of([("x", FLOAT, [2, "batch", 64])]))
    assert shape == (2, 1, 64) and notes == ("input 'x': batch size 'batch' set to 1",)
    two = model_of([("x", FLOAT, [4, "n"]), ("z", FLOAT, ["n", 4])], [helper.make_node("MatMul", ["x", "z"], ["y"])])
    assert read(two).tensors["x"].shape == (4, 1)  # called as the first size of another


INTEGERS = np.array([1, 400], np.int64)


@pytest.mark.parametrize(
    ("shape", "nodes", "weights", "found", "where"),
    [
        (
            ["n", "t", 8],
            [helper.make_node("Reshape", ["x", "s"], ["y"], name="flat")],
            {"s": INTEGERS},
            (1, 50, 8),
            "flat",
        ),
        (
            [1, "t", 8],
            [helper.make_node("Concat", ["x", "c"], ["y"], axis=2, name="joined")],
            {"c": np.ones((1, 30, 2), np.float32)},
            (1, 30, 8),
            "joined",
        ),
        (
            [1, 8, "t"],  # ends of a convolution: 2 * 30 + 1 and 2 * 30 + 2 give as much; a sum behind tells which
            [
                helper.make_node("Conv", ["x", "w"], ["a"], kernel_shape=[3]),
                helper.make_node("Add", ["a", "c"], ["y"], name="biased"),
            ],
            {"w": np.ones((4, 8, 3), np.float32), "c": np.ones((4, 20), np.float32)},
            (1, 8, 22),
            "biased",
        ),
        (
            [1, None],
            [helper.make_node("MatMul", ["x", "w"], ["y"], name="fc")],
            {"w": np.ones((30, 5), np.float32)},
            (1, 30),
            "fc",
        ),
    ],
    ids=["Reshape", "Concat", "Add behind Conv", "MatMul"],
)
def test_a_size_that_a_node_determines_is_not_asked_for(shape, nodes, weights, found, where):
    notes, read_as = notes_and_shape(model_of([("x", FLOAT, shape)], nodes, weights))
    assert read_as == found
    assert any(note.endswith(f"as {node.op_type} '{where}' needs it") for node in nodes for note in notes)


def test_a_suggestion_is_one_that_the_model_takes():
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Flatten", ["a"], ["b"]),
        helper.make_node("Gemm", ["b", "w"], ["y"], transB=1),
    ]
    model = model_of([("x", FLOAT, ["n", 3, "h", "w_"])], nodes, {"w": np.ones((5, 3 * 12 * 12), np.float32)})
    assert refusal(model).endswith("--shape x=1,3,48,48")
    assert read(model, x=(1, 3, 48, 48)).tensors["y"].shape == (1, 5)


@pytest.mark.parametrize(
    ("shape", "node", "kernel", "suggested"),
    [
        (["n", 3, None, None], "Conv", (4, 3, 44, 3), "1,3,224,224"),
        (["n", 3, None, None], "Conv", (4, 3, 300, 3), "1,3,640,640"),
        (["n", 1, "sequence"], "Conv", (4, 1, 300), "1,1,576"),
        (["n", "a", "b", 3], "MatMul", (3, 4), "1,224,224,3"),
    ],
    ids=str,
)
def test_sizes_are_suggested_that_can_be_read(shape, node, kernel, suggested, tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node(node, ["a", "w"], ["y"])]
    file = tmp_path / "net.onnx"
    file.write_bytes(model_of([("x", FLOAT, shape)], nodes, {"w": np.ones(kernel, np.float32)}).SerializeToString())
    with pytest.raises(OpenSizes) as caught:
        read_model(file)
    assert caught.value.options == f"--shape x={suggested}"
    assert read_model(file, shapes=caught.value.shapes).inputs == ("x",)


def test_sizes_of_one_name_are_given_once():
    add = helper.make_node("Add", ["x", "z"], ["y"])
    model = model_of([("x", FLOAT, [1, "t"]), ("z", FLOAT, [1, "t"])], [add])
    network = read(model, z=(1, 7))
    assert network.tensors["x"].shape == (1, 7)
    assert "input 'x': 't' set to 7, as that of 'z'" in network.notes


def test_the_command_line_gives_the_whole_command(tmp_path):
    file = tmp_path / "a net.onnx"
    file.write_bytes(model_of([("x", FLOAT, [1, "t"])]).SerializeToString())
    result = CliRunner().invoke(main, ["inspect", str(file), "--json"])
    assert result.exit_code == 1
    command = result.output.splitlines()[-1].strip()
    assert command == f"edgewright inspect '{file}' --json --shape x=1,100"
    assert CliRunner().invoke(main, shlex.split(command)[1:]).exit_code == 0


def test_control_flow_is_mentioned():
    inner = helper.make_graph([], "body", [], [helper.make_tensor_value_info("x", FLOAT, None)])
    branch = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    loop = helper.make_node("Loop", ["", "c"], ["z"], body=inner)
    message = refusal(model_of([("x", FLOAT, [1, "t"]), ("c", TensorProto.BOOL, [])], [branch, loop]))
    assert "--shape x=1,100. The file also has control flow (1 If, 1 Loop)" in message
