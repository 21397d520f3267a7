"""Files that are no models, damaged models and hostile ones: one clear sentence, no crash, no large allocation."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from edgewright.errors import EdgewrightError, ModelError, Unsupported
from edgewright.network import Array
from edgewright.network.onnx_format import read_onnx
from edgewright.network.operators.custom import DESCRIBE
from tests.network.onnx_models import model_of, one_node

X = np.ones((1, 4, 6, 5), np.float32)
W = np.ones((8, 4, 3, 3), np.float32)


def read(model: onnx.ModelProto) -> None:
    read_onnx(model.SerializeToString(), name="m")


# Not a model


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "'m' is empty"),
        (b"# a read-me\nwith some text in it, and some more of it\n", "'m' is a text file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS pointer"),
        (b"PK\x03\x04rest of the archive", "'m' is a zip archive"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(64), "'m' is a TensorFlow Lite model"),
        (b"\x89HDF\r\n\x1a\n" + bytes(64), "Keras HDF5"),
        (bytes(64), "'m' is not an ONNX model"),
        (b"\xff" * 64, "not a complete ONNX model"),
        (b"\x08\x07", "holds no graph"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=message):
        read_onnx(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No such file"):
        read_onnx(tmp_path / "nothing.onnx")
    with pytest.raises(ModelError, match="is a folder"):
        read_onnx(tmp_path)
    with pytest.raises(ModelError, match="cannot read"):
        read_onnx("a\0b")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelError, match="not a regular file"):
            read_onnx(tmp_path / "pipe")


def test_truncated_file() -> None:
    big = np.ones((64, 4, 8, 8), np.float32)
    data = one_node("Conv", [np.ones((1, 4, 9, 9), np.float32), big])[0].SerializeToString()
    for size in range(8, len(data), 997):
        with pytest.raises(ModelError, match=r"not a complete|not an ONNX|damaged"):
            read_onnx(data[:size])


# Graphs


def test_cycle_names_its_nodes() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Add", ["a", "d"], ["b"], name="join"),
        helper.make_node("Neg", ["b"], ["c"], name="turn"),
        helper.make_node("Abs", ["c"], ["d"], name="back"),
    ]
    with pytest.raises(ModelError, match="cycle through Add 'join' -> Neg 'turn' -> Abs 'back' -> Add 'join'"):
        read(model_of(nodes, {"x": X}, ["d"]))


def test_tensor_that_nothing_writes() -> None:
    with pytest.raises(ModelError, match="Relu 'r' reads 'nowhere', which nothing writes"):
        read(model_of([helper.make_node("Relu", ["nowhere"], ["y"], name="r")], {"x": X}, ["y"]))
    with pytest.raises(ModelError, match="'z' is read, but nothing writes it"):
        read(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["z"]))


def test_tensor_written_twice() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="r"),
        helper.make_node("Neg", ["x"], ["y"], name="n"),
    ]
    with pytest.raises(ModelError, match="'y' is written twice, the second time by Neg 'n'"):
        read(model_of(nodes, {"x": X}, ["y"]))
    with pytest.raises(ModelError, match="'x' is written twice"):
        read(model_of([helper.make_node("Relu", ["x"], ["x"])], {"x": X}, ["x"]))
    with pytest.raises(ModelError, match="two of the same name"):
        read(model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y", "y"]))


def test_all_unsupported_operators_are_listed_at_once() -> None:
    nodes = [
        helper.make_node("Atan", ["x"], ["a"], name="h1"),
        helper.make_node("Atan", ["a"], ["b"], name="h2"),
        helper.make_node("Relu", ["b"], ["c"], name="fine"),
        helper.make_node("Resize", ["c", "", "s"], ["d"], name="big", mode="lanczos"),
        helper.make_node("Frobnicate", ["x"], ["e"], name="odd", domain="acme"),
        helper.make_node("Resize", ["x", "", "s"], ["f"], name="big2", mode="lanczos"),
        helper.make_node("Sum", ["d", "e", "f"], ["y"]),
    ]
    with pytest.raises(Unsupported) as caught:
        read(model_of(nodes, {"x": X}, ["y"], {"s": np.array([1, 1, 2, 2], np.float32)}))
    assert str(caught.value) == (
        "'m' uses 3 operators in a way that is not supported:\n"
        "  Atan x2 ('h1', 'h2')\n"
        "  Resize x1 ('big2'): mode 'lanczos' is not supported\n"
        f"  acme.Frobnicate x1 ('odd'): {DESCRIBE}"
    )


def test_unsupported_operators_that_lead_nowhere_do_no_harm() -> None:
    nodes = [helper.make_node("Hardmax", ["x"], ["a"]), helper.make_node("Relu", ["x"], ["y"])]
    assert len(read_onnx(model_of(nodes, {"x": X}, ["y"]).SerializeToString()).layers) == 1


def test_second_outputs_are_refused_only_when_used() -> None:
    pool = helper.make_node("MaxPool", ["x"], ["y", "where"], name="p", kernel_shape=[2, 2])
    read(model_of([pool], {"x": X}, ["y"]))
    with pytest.raises(Unsupported, match=r"MaxPool x1 .*output 2"):
        read(model_of([pool], {"x": X}, ["y", "where"]))


def test_attribute_of_a_later_opset_is_not_ignored() -> None:
    with pytest.raises(Unsupported, match="attribute 'twist' is not known"):
        read(one_node("Relu", [X], opset=99, twist=1)[0])
    read(one_node("Relu", [X], opset=99)[0])


def test_flags_are_zero_or_one() -> None:
    """onnxruntime aborts on some others, and is of two minds about the rest."""
    with pytest.raises(ModelError, match="'keepdims' is 3, neither 0 nor 1"):
        read(one_node("ReduceProd", [X], opset=11, keepdims=3)[0])


def test_names_that_are_no_text() -> None:
    data = one_node("Relu", [X])[0].SerializeToString()
    with pytest.raises(ModelError, match=r"damaged: onnx.NodeProto.op_type b'R\\xfflu' is no text"):
        read_onnx(data.replace(b"Relu", b"R\xfflu"))


def test_missing_opset() -> None:
    model = one_node("Relu", [X])[0]
    del model.opset_import[:]
    with pytest.raises(ModelError, match="names no opset"):
        read(model)


def test_constant_output() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["y"])]
    with pytest.raises(ModelError, match="the outputs of 'm' depend on no input"):
        read(model_of(nodes, {"x": X}, ["y"]))


def test_function_that_calls_itself() -> None:
    call = helper.make_node("F", ["a"], ["b"], domain="own")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "F", ["a"], ["b"], [call], opsets)
    with pytest.raises(ModelError, match="function 'F' calls itself"):
        read(model_of([helper.make_node("F", ["x"], ["y"], domain="own")], {"x": X}, ["y"], functions=[function]))


def test_functions_that_double_without_end() -> None:
    """Forty functions that each call the next twice would be 2^40 nodes."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = [
        helper.make_function(
            "own",
            f"F{i}",
            ["a"],
            ["c"],
            [
                helper.make_node(f"F{i + 1}", ["a"], ["b"], domain="own"),
                helper.make_node(f"F{i + 1}", ["b"], ["c"], domain="own"),
            ],
            opsets,
        )
        for i in range(45)
    ]
    call = helper.make_node("F0", ["x"], ["y"], domain="own")
    with pytest.raises(ModelError, match="nested more than"):
        read(model_of([call], {"x": X}, ["y"], functions=functions))


# Tensors


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers(value: float) -> None:
    weights = np.ones((64, 4, 5, 5), np.float32)
    weights[63, 3, 4, 4] = value
    with pytest.raises(ModelError, match="the constant 'i1' holds NaN or infinite values"):
        read(one_node("Conv", [np.ones((1, 4, 9, 9), np.float32), weights])[0])


def test_infinite_bounds_are_no_weights() -> None:
    read(one_node("Clip", [X, np.array(0, np.float32), np.array(np.inf, np.float32)])[0])


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ((10**6, 10**6, 10), "more than 2\\^36 elements"),
        ((8, 4, 3, 4), "needs 384 elements, the file holds 288"),
        ((-8, 4, 3, -3), "negative size"),
        ((2**62, 2**62, 0, 1), "more than 2\\^36"),
    ],
)
def test_tensor_that_claims_another_shape(dims: tuple[int, ...], message: str) -> None:
    model = one_node("Conv", [X, W])[0]
    model.graph.initializer[0].dims[:] = dims
    with pytest.raises(ModelError, match=message):
        read(model)


def test_raw_data_of_odd_length() -> None:
    model = one_node("Conv", [X, W])[0]
    model.graph.initializer[0].raw_data += b"\0"
    with pytest.raises(ModelError, match="do not divide into elements of 4"):
        read(model)


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.STRING, TensorProto.COMPLEX64, 77])
def test_element_types_that_we_lack(kind: int) -> None:
    model = one_node("Conv", [X, W])[0]
    model.graph.initializer[0].data_type = kind
    with pytest.raises(Unsupported, match="element type"):
        read(model)
    model = one_node("Relu", [X])[0]
    model.graph.input[0].type.tensor_type.elem_type = kind
    with pytest.raises(Unsupported, match="element type"):
        read(model)


def _bomb(op: str, *operands: Array, **attributes: object) -> list[onnx.NodeProto]:
    names = [f"k{i}" for i in range(len(operands))]
    return [
        helper.make_node(op, names, ["bomb"], name="bomb", **attributes),
        helper.make_node("Add", ["x", "bomb"], ["y"]),
    ]


HUGE = np.array([10**6, 10**6], np.int64)  # 10^12 elements: 4 TB
ONE = np.ones((1, 1), np.float32)


@pytest.mark.parametrize(
    ("nodes", "operands"),
    [
        (_bomb("ConstantOfShape", HUGE), [HUGE]),
        (_bomb("Expand", ONE, HUGE), [ONE, HUGE]),
        (_bomb("Tile", ONE, HUGE), [ONE, HUGE]),
        (_bomb("Range", *[np.float32(0)] * 3), [np.float32(0), np.float32(1e12), np.float32(1)]),
        (_bomb("Pad", ONE, HUGE), [ONE, np.array([0, 0, 10**6, 10**6])]),
        (_bomb("Resize", ONE, ONE, ONE), [ONE.reshape(1, 1, 1, 1), ONE[0, :0], np.float32([1, 1, 1e6, 1e6])]),
        (_bomb("Add", ONE, ONE), [np.ones((10**5, 1), np.float32), np.ones((1, 10**5), np.float32)]),
        (_bomb("MatMul", ONE, ONE), [np.ones((10**5, 1), np.float32), np.ones((1, 10**5), np.float32)]),
        (_bomb("Gather", ONE, ONE, axis=0), [np.ones((1, 10**5), np.float32), np.zeros(10**5, np.int64)]),
    ],
    ids=lambda value: value[0].op_type if isinstance(value, list) and isinstance(value[0], onnx.NodeProto) else "",
)  # fmt: skip
def test_constants_that_would_fill_the_memory(nodes: list[onnx.NodeProto], operands: list[Array]) -> None:
    """Either refused, or kept as a layer or a view: reading allocates no such tensor."""
    constants = {f"k{i}": np.asarray(operand) for i, operand in enumerate(operands)}
    model = model_of(nodes, {"x": np.ones((1, 1), np.float32)}, ["y"], constants)
    try:
        network = read_onnx(model.SerializeToString())
    except EdgewrightError:
        return
    assert all(constant.nbytes <= 10**7 or 0 in constant.strides for constant in network.constants.values())


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("MaxPool", {"kernel_shape": [0, 2]}),
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [0, 1]}),
        ("MaxPool", {"kernel_shape": [2]}),
        ("MaxPool", {"kernel_shape": [2, 2], "pads": [0, 0, -1, 0]}),
        ("MaxPool", {"kernel_shape": [2, 2], "auto_pad": "MAYBE"}),
        ("MaxPool", {"kernel_shape": [2, 2], "pads": [2**62] * 4}),
        ("MaxPool", {}),
        ("MaxPool", {"kernel_shape": 3}),
        ("LRN", {"size": 0}),
        ("LRN", {"size": 3, "alpha": float("nan")}),
        ("DepthToSpace", {"blocksize": 0}),
        ("DepthToSpace", {"blocksize": 3}),
        ("Softmax", {"axis": 4}),
        ("Transpose", {"perm": [0, 1, 1, 2]}),
        ("Flatten", {"axis": 9}),
        ("Cast", {"to": 99}),
        ("Split", {"axis": 0, "num_outputs": 5}),
        ("Concat", {"axis": 12}),
    ],
)
def test_absurd_attributes(op: str, attributes: dict[str, object]) -> None:
    with pytest.raises(ModelError, match="node"):
        read(one_node(op, [X], **attributes)[0])


@pytest.mark.parametrize(
    ("op", "operands", "attributes"),
    [
        ("Conv", [X, np.ones((8, 3, 3, 3), np.float32)], {}),
        ("Conv", [X, W], {"group": 0}),
        ("Conv", [X, W, np.ones(7, np.float32)], {}),
        ("Conv", [X, W], {"kernel_shape": [2, 2]}),
        ("Conv", [X], {}),
        ("Gemm", [X[0, 0], np.ones((4, 3), np.float32)], {}),
        ("MatMul", [X, np.float32(3)], {}),
        ("Reshape", [X, np.array([7, -1])], {}),
        ("Reshape", [X, np.array([-1, -1])], {}),
        ("Reshape", [X, np.array([0, 0, 0, 0, 0])], {}),
        ("Reshape", [X, np.array([[1, 120]])], {}),
        ("Gather", [X, np.array([9])], {}),
        ("Tile", [X, np.array([2])], {}),
        ("Slice", [X, np.array([0]), np.array([1]), np.array([0]), np.array([0])], {}),
        ("Add", [X, np.ones((3,), np.float32)], {}),
        ("BatchNormalization", [X, *[np.ones(4, np.float32)] * 3, -np.ones(4, np.float32)], {}),
        ("BatchNormalization", [X, *[np.ones(3, np.float32)] * 4], {}),
        ("QuantizeLinear", [X, np.float32(0), np.uint8(0)], {}),
        ("QuantizeLinear", [X, np.ones(9, np.float32), np.zeros(9, np.uint8)], {}),
        ("Expand", [X, np.array([-4])], {}),
        ("Squeeze", [X, np.array([1])], {}),
        ("Unsqueeze", [X, np.array([0, 0])], {}),
    ],
)
def test_operands_that_do_not_fit(op: str, operands: list[Array], attributes: dict[str, object]) -> None:
    with pytest.raises(ModelError, match="node"):
        read(one_node(op, operands, **attributes)[0])


# Noise


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    with pytest.raises(EdgewrightError):
        read_onnx(data)


def _sample() -> bytes:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1], strides=[2, 1], group=1),
        helper.make_node("Shape", ["a"], ["s"]),
        helper.make_node("Slice", ["s", "zero", "one"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["a", "shape"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"], axis=1),
    ]
    constants = {"w": W, "zero": np.array([0]), "one": np.array([1]), "rest": np.array([-1])}
    return model_of(nodes, {"x": X}, ["y"], constants).SerializeToString()


SAMPLE = _sample()


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_mutated_bytes(changes: list[tuple[int, int]]) -> None:
    data = bytearray(SAMPLE)
    for at, byte in changes:
        data[at] = byte
    with contextlib.suppress(EdgewrightError):
        read_onnx(bytes(data))


# Sizes that nobody has


def test_constants_that_repeat_a_value_without_end() -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["ones"]),
        helper.make_node("MatMul", ["x", "ones"], ["y"]),
    ]
    for count, is_refused in ((1 << 28, True), (4, False)):
        model = model_of(nodes, {"x": X}, ["y"], {"shape": np.array([1, count, 5, 2])})
        with pytest.raises(ModelError, match="repeats a value") if is_refused else contextlib.nullcontext():
            read(model)


def test_images_that_are_scaled_beyond_measure() -> None:
    model = one_node("Upsample", [X, np.array([1, 1, 1e7, 1], np.float32)], opset=9)[0]
    with pytest.raises(ModelError, match="rows or columns, more than the"):
        read(model)
