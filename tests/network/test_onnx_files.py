"""How the ONNX reader handles files and graphs: weights as views, names, free sizes, functions, branches."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from edgewright.errors import InputError, ModelError
from edgewright.network import Array
from edgewright.network.kernels import execute
from edgewright.network.onnx_format import read_onnx
from edgewright.network.onnx_format.wire import SMALL, split
from edgewright.network.operators import Conv2d, Dense, Reshape, Transpose
from tests.network.onnx_models import assert_agrees, model_of, one_node

RNG = np.random.default_rng(3)
X = RNG.standard_normal((1, 4, 6, 5)).astype(np.float32)
W = RNG.standard_normal((8, 4, 3, 3)).astype(np.float32)


def conv_model(weights: Array = W) -> onnx.ModelProto:
    return one_node("Conv", [X, weights])[0]


def conv_weights(model: onnx.ModelProto | Path) -> Array:
    network = read_onnx(model if isinstance(model, Path) else model.SerializeToString())
    return network.constants[network.by_name["node"].inputs[1]]


# Weights


def test_weights_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    big = RNG.standard_normal((64, 4, 8, 8)).astype(np.float32)
    path = tmp_path / "model.onnx"
    path.write_bytes(one_node("Conv", [np.zeros((1, 4, 9, 9), np.float32), big])[0].SerializeToString())
    weights = conv_weights(path)
    np.testing.assert_array_equal(weights, big.transpose(0, 2, 3, 1))
    assert not weights.flags.owndata
    assert not weights.flags.writeable
    base = weights
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base.base, memoryview)  # of the mapped file


def test_reading_copies_no_weights(tmp_path: Path) -> None:
    big = RNG.standard_normal((256, 4, 64, 64)).astype(np.float32)  # 16 MB
    path = tmp_path / "model.onnx"
    path.write_bytes(one_node("Conv", [np.zeros((1, 4, 64, 64), np.float32), big])[0].SerializeToString())
    read_onnx(path)  # imports and caches
    tracemalloc.start()
    network = read_onnx(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert network.weight_bytes == big.nbytes
    assert peak < big.nbytes // 3  # one bool for each element of a chunk, while looking for NaN


def test_skeleton_holds_no_large_tensor() -> None:
    big = RNG.standard_normal((64, 4, 8, 8)).astype(np.float32)
    data = conv_model(big).SerializeToString()
    skeleton = split(memoryview(data))
    assert len(skeleton.data) < len(data) - big.nbytes + 16
    (extent,) = skeleton.extents.values()
    assert data[extent.start : extent.stop] == big.tobytes()


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.integers(1, 3 * SMALL // 4), max_size=4), st.lists(st.integers(1, SMALL // 2), max_size=3))
def test_skeleton_is_the_model_without_large_tensors(initializers: list[int], constants: list[int]) -> None:
    nodes = [
        helper.make_node("Constant", [], [f"c{i}"], value=numpy_helper.from_array(np.full(n, i, np.float32)))
        for i, n in enumerate(constants)
    ]
    arrays = {f"w{i}": np.full(n, i, np.float32) for i, n in enumerate(initializers)}
    model = model_of(nodes, {"x": X}, ["x"], arrays)
    data = model.SerializeToString()
    skeleton = split(memoryview(data))
    parsed = onnx.ModelProto.FromString(skeleton.data)
    for (i, *attribute), extent in skeleton.extents.items():
        tensor = parsed.graph.node[i].attribute[attribute[0]].t if attribute else parsed.graph.initializer[i]
        assert not tensor.raw_data
        tensor.raw_data = data[extent.start : extent.stop]
    assert parsed == model


@pytest.mark.parametrize("kind", ["raw", "float_data", "packed", "float16", "bfloat16", "double"])
def test_weights_in_every_encoding(kind: str) -> None:
    weights = np.round(RNG.standard_normal((32, 4, 3, 3)) * 4).astype(np.float32)  # exact in every type
    weights = weights if kind != "float_data" else weights[:4]
    model = conv_model(weights)
    tensor = model.graph.initializer[0]
    tensor.Clear()
    if kind in ("raw", "float16", "double"):
        narrow = {"raw": np.float32, "float16": np.float16, "double": np.float64}[kind]
        tensor.CopyFrom(numpy_helper.from_array(weights.astype(narrow), "i1"))
    elif kind == "bfloat16":
        high = (weights.view(np.uint32) >> 16).astype(np.uint16)
        tensor.CopyFrom(helper.make_tensor("i1", TensorProto.BFLOAT16, weights.shape, high.tobytes(), raw=True))
    else:
        tensor.CopyFrom(helper.make_tensor("i1", TensorProto.FLOAT, weights.shape, weights.ravel().tolist()))
    np.testing.assert_array_equal(conv_weights(model), weights.transpose(0, 2, 3, 1))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (np.int8, [-128, 0, 127]),
        (np.uint8, [0, 255]),
        (np.int16, [-300]),
        (np.int32, [7, -9]),
        (np.int64, [1 << 40]),
    ],
)
def test_integers_listed_one_by_one(dtype: type, values: list[int]) -> None:
    expected = np.array(values, dtype)
    listed = helper.make_tensor("w", helper.np_dtype_to_tensor_dtype(expected.dtype), [len(values)], values)
    assert not listed.raw_data
    node = helper.make_node("Concat", ["x", "w"], ["y"], axis=0)
    model = model_of([node], {"x": expected}, ["y"])
    model.graph.initializer.append(listed)
    network = read_onnx(model.SerializeToString())
    np.testing.assert_array_equal(execute(network, {"x": expected})["y"], np.concatenate([expected] * 2))


def test_repeated_value_takes_no_memory() -> None:
    shape = numpy_helper.from_array(np.array([4096, 4, 3, 3], np.int64))
    nodes = [
        helper.make_node("Constant", [], ["s"], value=shape),
        helper.make_node("ConstantOfShape", ["s"], ["v"], value=helper.make_tensor("", TensorProto.FLOAT, [1], [0.5])),
        helper.make_node("Reshape", ["v", "s"], ["w"]),
        helper.make_node("Conv", ["x", "w"], ["y"], name="node"),
    ]
    weights = conv_weights(model_of(nodes, {"x": X}, ["y"]))
    assert weights.shape == (4096, 3, 3, 4)
    assert set(weights.strides) == {0}
    assert weights[0, 0, 0, 0] == 0.5


def test_two_layers_share_their_weights() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], [f"y{i}"], name=f"conv{i}") for i in range(2)]
    network = read_onnx(model_of(nodes, {"x": X}, ["y0", "y1"], {"w": W}).SerializeToString())
    assert network.by_name["conv0"].inputs[1] == network.by_name["conv1"].inputs[1]
    assert network.weight_bytes == W.nbytes


def test_external_data(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save_model(conv_model(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    np.testing.assert_array_equal(conv_weights(path), W.transpose(0, 2, 3, 1))


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("missing.bin", "kept in the file 'missing.bin', which is not beside the model"),
        ("../weights.bin", "lies outside the model's folder"),
        ("/etc/passwd", "lies outside the model's folder"),
        ("", "lies outside the model's folder"),
        ("a\0b", "cannot use the external file"),
    ],
)
def test_external_data_out_of_place(tmp_path: Path, location: str, message: str) -> None:
    (tmp_path / "weights.bin").write_bytes(W.tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    model = conv_model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=message):
        read_onnx(folder / "m.onnx")


@pytest.mark.parametrize(("key", "value"), [("offset", "100000"), ("length", "10"), ("length", "-5"), ("offset", "x")])
def test_external_data_of_wrong_extent(tmp_path: Path, key: str, value: str) -> None:
    (tmp_path / "weights.bin").write_bytes(W.tobytes())
    model = conv_model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    tensor.external_data.add(key=key, value=value)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="tensor 'i1'"):
        read_onnx(tmp_path / "m.onnx")


# Graphs


def test_names_of_the_file_are_kept() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["features"], name="conv/first"),
        helper.make_node("Relu", ["features"], ["active"]),
        helper.make_node("Flatten", ["active"], ["flat"], name="flatten"),
        helper.make_node("Gemm", ["flat", "v"], ["y"], name="dense", transB=1),
    ]
    v = RNG.standard_normal((3, 8 * 4 * 3)).astype(np.float32)
    network = assert_agrees(model_of(nodes, {"x": X}, ["y"], {"w": W, "v": v}), {"x": X})
    assert [type(layer.op).__name__ for layer in network.layers] == [
        "Transpose", "Conv2d", "Transpose", "Clamp", "Reshape", "Dense"
    ]  # fmt: skip
    assert [layer.name for layer in network.layers] == [
        "conv/first/nhwc", "conv/first", "conv/first/nchw", "Relu_1", "flatten", "dense"
    ]  # fmt: skip
    assert [layer.output for layer in network.layers][2:] == ["features", "active", "flat", "y"]
    assert network.by_name["conv/first"].inputs[1] == "w"
    assert network.layers[0].op == Transpose((0, 2, 3, 1))
    assert isinstance(network.layers[1].op, Conv2d)
    assert isinstance(network.layers[-1].op, Dense)


def test_helper_tensors_do_not_take_names_of_the_file() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="n"),
        helper.make_node("Relu", ["a"], ["n/nhwc"], name="n/nhwc"),
        helper.make_node("Relu", ["n/nhwc"], ["n"]),
    ]
    network = assert_agrees(model_of(nodes, {"x": X}, ["n"], {"w": W}), {"x": X})
    assert network.outputs == ("n",)


def test_free_batch_becomes_one_with_a_note() -> None:
    model = one_node("Relu", [X])[0]
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    network = read_onnx(model.SerializeToString())
    assert network.tensors["i0"].shape == X.shape
    assert network.notes == ("input 'i0': batch size 'N' set to 1",)


def test_other_free_sizes_must_be_given() -> None:
    model = one_node("Relu", [X])[0]
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[2].dim_param = "height"
    dims[3].Clear()
    data = model.SerializeToString()
    with pytest.raises(ModelError, match=r"an input open: 'i0' is 1x4xheightx\?\. Set .* --shape i0=1,4,224,224$"):
        read_onnx(data)
    assert read_onnx(data, shapes={"i0": (2, 4, 8, 9)}).tensors["o0"].shape == (2, 4, 8, 9)
    with pytest.raises(InputError, match="4 axes"):
        read_onnx(data, shapes={"i0": (2, 4)})
    with pytest.raises(InputError, match="without elements"):
        read_onnx(data, shapes={"i0": (2, 4, 0, 1)})
    with pytest.raises(InputError, match=r"given for 'image', but the inputs of 'model' are \['i0'\]"):
        read_onnx(data, shapes={"image": (2, 4, 8, 9)})


def test_input_without_shape_must_be_given() -> None:
    model = one_node("Relu", [X])[0]
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError, match="no stated shape"):
        read_onnx(model.SerializeToString())


def test_initializers_among_the_inputs_and_unused_inputs() -> None:
    model = conv_model()
    model.graph.input.append(helper.make_tensor_value_info("i1", TensorProto.FLOAT, W.shape))
    model.graph.input.append(helper.make_tensor_value_info("spare", TensorProto.FLOAT, [3]))
    network = read_onnx(model.SerializeToString())
    assert network.inputs == ("i0",)
    assert network.notes == ("input 'spare' is never used and was dropped",)
    assert "spare" not in network.tensors


def test_half_precision_is_read_as_single() -> None:
    model = one_node("Relu", [X.astype(np.float16)])[0]
    network = read_onnx(model.SerializeToString())
    assert network.tensors["o0"].dtype.value == "float32"
    assert network.notes == ("input 'i0': float16 in the file, taken as float32",)


def test_outputs_that_are_the_same_tensor_or_an_input() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Identity", ["x"], ["c"]),
    ]
    network = assert_agrees(model_of(nodes, {"x": X}, ["a", "b", "c"]), {"x": X})
    assert isinstance(network.producers["c"].op, Reshape)


def test_nodes_out_of_order_are_sorted() -> None:
    nodes = [helper.make_node("Relu", ["b"], ["y"]), helper.make_node("Neg", ["x"], ["b"])]
    network = read_onnx(model_of(nodes, {"x": X}, ["y"]).SerializeToString())
    np.testing.assert_array_equal(execute(network, {"x": X})["y"], np.maximum(-X, 0))


def test_arithmetic_on_shapes_is_folded() -> None:
    """Flattening as exporters write it: Reshape to (shape[0], -1), worked out by Shape, Gather, Unsqueeze, Concat."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Unsqueeze", ["n", "axis"], ["n1"]),
        helper.make_node("Mul", ["n1", "one"], ["n2"]),
        helper.make_node("Concat", ["n2", "rest"], ["shape"], axis=0),
        helper.make_node("Cast", ["shape"], ["shape64"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["x", "shape64"], ["y"]),
    ]
    constants = {"zero": np.array(0), "axis": np.array([0]), "rest": np.array([-1]), "one": np.array([1])}
    network = assert_agrees(model_of(nodes, {"x": X}, ["y"], constants), {"x": X})
    assert [layer.op for layer in network.layers] == [Reshape((1, 120))]


def test_range_size_and_where_are_folded() -> None:
    nodes = [
        helper.make_node("Size", ["x"], ["size"]),
        helper.make_node("Range", ["zero", "five", "one"], ["r"]),
        helper.make_node("Less", ["r", "two"], ["c"]),
        helper.make_node("Where", ["c", "size", "r"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    constants = {name: np.array(i) for name, i in (("zero", 0), ("five", 5), ("one", 1), ("two", 2))}
    assert_agrees(model_of(nodes, {"x": X}, ["y"], constants), {"x": X})


def _branch(name: str, op: str) -> onnx.GraphProto:
    node = helper.make_node(op, ["x"], ["inner"])
    return helper.make_graph([node], name, [], [onnx.ValueInfoProto(name="inner")])


@pytest.mark.parametrize("condition", [True, False])
def test_constant_branch_is_inlined(condition: bool) -> None:
    branches = {"then_branch": _branch("a", "Neg"), "else_branch": _branch("b", "Abs")}
    nodes = [
        helper.make_node("If", ["c"], ["first"], name="if1", **branches),
        helper.make_node("If", ["c"], ["y"], name="if2", **branches),
        helper.make_node("Add", ["first", "y"], ["sum"]),
    ]
    model = model_of(nodes, {"x": X}, ["sum"], {"c": np.array(condition)})
    for node in model.graph.node[:2]:
        for attribute in node.attribute:  # onnxruntime wants a type
            attribute.g.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    assert_agrees(model, {"x": X})


def test_functions_are_inlined_with_their_attributes() -> None:
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    inner = helper.make_function("own", "Leak", ["a"], ["b"], [leaky], [helper.make_opsetid("", 17)], ["slope"])
    call = helper.make_node("Leak", ["p"], ["q"], domain="own", slope=0.5)
    outer = helper.make_function(
        "own", "Outer", ["p"], ["r"], [call, helper.make_node("Neg", ["q"], ["r"])],
        [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Outer", ["x"], ["h"], domain="own"),
        helper.make_node("Outer", ["h"], ["y"], domain="own"),
    ]
    network = assert_agrees(model_of(nodes, {"x": X}, ["y"], functions=[inner, outer]), {"x": X})
    assert len(network.layers) == 4


def test_constants_inside_a_function_take_no_name_of_the_main_graph() -> None:
    half = numpy_helper.from_array(np.float32(0.5))
    body = [helper.make_node("Constant", [], ["h"], value=half), helper.make_node("Mul", ["a", "h"], ["b"])]
    halve = helper.make_function("own", "Halve", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("Halve", ["x"], ["c"], domain="own"), helper.make_node("Neg", ["c"], ["h"])]
    assert_agrees(model_of(nodes, {"x": X}, ["h"], functions=[halve]), {"x": X})


def test_every_model_of_the_corpus_is_read() -> None:
    folder = Path(os.environ.get("EDGEWRIGHT_CORPUS", "")) / "models"
    if "EDGEWRIGHT_CORPUS" not in os.environ or not folder.is_dir():
        pytest.skip("EDGEWRIGHT_CORPUS names no folder with models")
    # Multiply-accumulates as published in the corpus.
    rows = [line.split("\t") for line in (folder / "MANIFEST.tsv").read_text().splitlines()]
    column = {name: i for i, name in enumerate(rows[0])}
    expected = {row[0]: int(row[column["MACs"]]) for row in rows[1:] if row[0].endswith(".onnx")}
    assert expected
    assert {name: read_onnx(folder / name).total_macs for name in expected} == expected
