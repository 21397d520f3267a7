"""How TFLite models become networks: names, shapes, constants that fold, and patterns that are read as one layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgewright.errors import ModelError, Unsupported
from edgewright.network import Arithmetic, Network
from edgewright.network.kernels import execute
from edgewright.network.operators import Clamp, Concat, Conv2d, ConvTranspose2d, Dense, Gather, Reshape
from edgewright.network.tflite import read_tflite
from tests.helpers.tflite_models import (
    Array,
    Node,
    Spec,
    constant,
    model,
    options,
    packed,
    run_litert,
    unpacked,
    with_graphs,
)

RNG = np.random.default_rng(5)


def conv_model(**changes: object) -> bytes:
    fields = {"strideH": 1, "strideW": 1, "padding": 0, "fusedActivationFunction": 1}
    specs = [
        changes.get("x", Spec("x", (1, 5, 5, 2))),
        changes.get("w", constant("w", RNG.standard_normal((3, 3, 3, 2)), "float32")),
        constant("b", RNG.standard_normal(3), "float32"),
        Spec("model/relu;model/bn;model/conv", (1, 5, 5, 3)),
    ]
    nodes = [Node("CONV_2D", ("x", "w", "b"), (specs[3].name,), options("Conv2D", **fields))]
    return model(specs, nodes, ["x"], [specs[3].name])


def agrees(content: bytes, network: Network, *inputs: Array, tolerance: float = 1e-5) -> None:
    found = execute(network, dict(zip(network.inputs, inputs, strict=True)))
    for name, wanted in zip(network.outputs, run_litert(content, inputs), strict=True):
        np.testing.assert_allclose(found[name], wanted, rtol=tolerance, atol=tolerance)


def test_a_layer() -> None:
    network = read_tflite(conv_model(), name="tiny")
    assert (network.name, network.arithmetic) == ("tiny", Arithmetic.TFLITE)
    (layer,) = network.layers
    assert layer.op == Conv2d((1, 1), (1, 1), (1, 1, 1, 1), 1, Clamp(0.0))
    assert layer.name == "model/relu"
    assert layer.output == "model/relu;model/bn;model/conv"
    assert layer.inputs == ("x", "w", "b")
    assert network.notes == ()


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tiny.tflite"
    path.write_bytes(conv_model())
    assert read_tflite(path).name == "tiny"
    assert read_tflite(str(path)).layers == read_tflite(conv_model()).layers


def test_an_open_batch_becomes_one() -> None:
    network = read_tflite(conv_model(x=Spec("x", (1, 5, 5, 2), signature=(-1, 5, 5, 2))))
    assert network.tensors["x"].shape == (1, 5, 5, 2)
    assert network.notes == ("input 'x': batch size set to 1",)


def test_a_shape_may_be_given() -> None:
    content = conv_model(x=Spec("x", (1, 1, 1, 2), signature=(-1, -1, -1, 2)))
    network = read_tflite(content, shapes={"x": (2, 8, 6, 2)})
    assert network.tensors[network.outputs[0]].shape == (2, 8, 6, 3)
    assert network.notes == ()


def test_names_need_not_be_unique() -> None:
    specs = [Spec(name, (2, 3)) for name in "xtuy"]
    nodes = [Node("RELU", ("x",), ("t",)), Node("TANH", ("t",), ("u",)), Node("RELU6", ("u",), ("y",))]
    changed = unpacked(model(specs, nodes, ["x"], ["y"]))
    for tensor in changed.subgraphs[0].tensors[1:3]:
        tensor.name = "x"
    network = read_tflite(packed(changed))
    assert [layer.name for layer in network.layers] == ["x_1", "x_2", "y"]
    assert [layer.output for layer in network.layers] == ["x_1", "x_2", "y"]


def test_operators_may_come_in_any_order() -> None:
    specs = [Spec("x", (2, 3)), Spec("t", (2, 3)), Spec("y", (2, 3))]
    nodes = [Node("RELU", ("t",), ("y",)), Node("TANH", ("x",), ("t",))]
    assert [layer.output for layer in read_tflite(model(specs, nodes, ["x"], ["y"])).layers] == ["t", "y"]


def test_shapes_are_computed_while_reading() -> None:
    """The batch size taken from SHAPE, and packed with -1: what TensorFlow writes for Flatten."""
    specs = [
        Spec("x", (1, 4, 3), signature=(-1, 4, 3)),
        Spec("shape", (3,), "int32"),
        constant("zero", [0]),
        constant("one", [1]),
        Spec("batch", (), "int32"),
        constant("rest", -1),
        Spec("packed", (2,), "int32"),
        Spec("y", (1, 12)),
    ]
    nodes = [
        Node("SHAPE", ("x",), ("shape",), options("Shape", outType=2)),
        Node(
            "STRIDED_SLICE",
            ("shape", "zero", "one", "one"),
            ("batch",),
            options("StridedSlice", shrinkAxisMask=1),
        ),
        Node("PACK", ("batch", "rest"), ("packed",), options("Pack", valuesCount=2)),
        Node("RESHAPE", ("x", "packed"), ("y",), options("Reshape")),
    ]
    network = read_tflite(model(specs, nodes, ["x"], ["y"]), shapes={"x": (5, 4, 3)})
    (layer,) = network.layers
    assert layer.op == Reshape((5, 12))
    assert not network.constants


@pytest.mark.parametrize("kind", ["FILL", "RANGE", "ZEROS_LIKE", "RANK"])
def test_constants_are_made_while_reading(kind: str) -> None:
    specs = [
        Spec("x", (6,)),
        constant("size", [6]),
        constant("value", 2.5, "float32"),
        constant("start", 1.0, "float32"),
        constant("limit", 7.0, "float32"),
        constant("step", 1.0, "float32"),
        Spec("c", (6,), "int32" if kind == "RANK" else "float32"),
        Spec("f", (), "float32"),
        Spec("y", (6,)),
    ]
    inputs = {"FILL": ("size", "value"), "RANGE": ("start", "limit", "step")}.get(kind, ("x",))
    made = None if kind == "RANK" else options({"FILL": "Fill", "RANGE": "Range"}.get(kind, "ZerosLike"))
    nodes = [Node(kind, inputs, ("c",), made), Node("ADD", ("x", "c"), ("y",), options("Add"))]
    if kind == "RANK":
        cast = Node("CAST", ("c",), ("f",), options("Cast"))
        nodes = [nodes[0], cast, Node("ADD", ("x", "f"), ("y",), options("Add"))]
    content = model(specs, nodes, ["x"], ["y"])
    network = read_tflite(content)
    assert len(network.layers) == 1
    agrees(content, network, RNG.standard_normal(6).astype(np.float32))


def test_arithmetic_on_shapes() -> None:
    specs = [
        Spec("x", (1, 4, 6)),
        constant("a", [4, 9]),
        constant("b", [2, 4]),
        Spec("q", (2,), "int32"),
        constant("c", [6, 10]),
        Spec("new", (2,), "int32"),
        Spec("y", (12, 2)),
    ]
    nodes = [
        Node("FLOOR_DIV", ("a", "b"), ("q",), options("FloorDiv")),  # 2, 2
        Node("MUL", ("q", "c"), ("new",), options("Mul")),  # 12, 20: not the size of x
        Node("RESHAPE", ("x", "new"), ("y",), options("Reshape")),
    ]
    with pytest.raises(ModelError, match=r"cannot reshape \(1, 4, 6\) to \(12, 20\)"):
        read_tflite(model(specs, nodes, ["x"], ["y"]))


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("padding", [0, 1])
def test_space_to_batch_around_a_convolution_is_dilation(kind: str, padding: int) -> None:
    is_full = kind == "CONV_2D"
    weights = RNG.standard_normal((3, 3, 3, 2) if is_full else (1, 3, 3, 2)).astype(np.float32)
    made = options("Conv2D" if is_full else "DepthwiseConv2D", padding=padding, strideH=1, strideW=1)
    if not is_full:
        made.depthMultiplier = 1
    specs = [
        Spec("x", (1, 9, 10, 2)),
        constant("block", [2, 2]),
        constant("pads", [[2, 3], [2, 2]]),
        Spec("spread", (4, 7, 7, 2)),
        constant("w", weights, "float32"),
        constant("b", RNG.standard_normal(3 if is_full else 2), "float32"),
        Spec("inner", (4, 5, 5, 3)),
        constant("crops", [[0, 1], [0, 0]]),
        Spec("y", (1, 9, 10, 3)),
    ]
    nodes = [
        Node("SPACE_TO_BATCH_ND", ("x", "block", "pads"), ("spread",), options("SpaceToBatchND")),
        Node(kind, ("spread", "w", "b"), ("inner",), made),
        Node("BATCH_TO_SPACE_ND", ("inner", "block", "crops"), ("y",), options("BatchToSpaceND")),
    ]
    content = model(specs, nodes, ["x"], ["y"])
    network = read_tflite(content)
    (layer,) = network.layers
    assert isinstance(layer.op, Conv2d)
    assert layer.op.dilation == (2, 2)
    agrees(content, network, RNG.standard_normal((1, 9, 10, 2)).astype(np.float32), tolerance=1e-4)


def test_half_precision_weights_are_read_as_single() -> None:
    weights = RNG.standard_normal((3, 4)).astype(np.float16)
    specs = [Spec("x", (2, 4)), constant("half", weights, "float16"), Spec("w", (3, 4)), Spec("y", (2, 3))]
    nodes = [
        Node("DEQUANTIZE", ("half",), ("w",), options("Dequantize")),
        Node("FULLY_CONNECTED", ("x", "w"), ("y",), options("FullyConnected")),
    ]
    content = model(specs, nodes, ["x"], ["y"])
    network = read_tflite(content)
    assert [type(layer.op) for layer in network.layers] == [Dense]
    assert network.constants["w"].dtype == np.float32
    agrees(content, network, RNG.standard_normal((2, 4)).astype(np.float32))


def test_eight_bit_weights_of_a_float_layer_stay_as_they_are() -> None:
    """LiteRT quantises the input as it runs, and so do we."""
    w = constant("w", RNG.integers(-127, 128, (3, 3, 3, 2)), "int8", scale=(0.01, 0.02, 0.03), axis=0)
    content = conv_model(w=w)
    network = read_tflite(content)
    assert network.constants["w"].dtype == np.int8
    assert network.tensors["w"].quant is None  # scales are numbers like others here
    x = RNG.standard_normal(network.tensors["x"].shape).astype(np.float32)
    np.testing.assert_array_equal(execute(network, {"x": x})[network.outputs[0]], run_litert(content, [x])[0])


def test_depthwise_weights_are_a_transposed_view() -> None:
    w = constant("w", RNG.integers(-127, 128, (1, 3, 2, 4)), "int8", scale=(0.1, 0.2, 0.3, 0.4), zero=0, axis=3)
    specs = [
        Spec("x", (1, 5, 5, 2), "int8", 0.5),
        w,
        constant("b", [0] * 4, scale=(0.05, 0.1, 0.15, 0.2)),
        Spec("y", (1, 5, 5, 4), "int8", 1.0),
    ]
    made = options("DepthwiseConv2D", strideH=1, strideW=1, depthMultiplier=2)
    content = model(specs, [Node("DEPTHWISE_CONV_2D", ("x", "w", "b"), ("y",), made)], ["x"], ["y"])
    network = read_tflite(content)
    weights = network.tensors["w"]
    assert weights.shape == (4, 3, 2, 1)
    assert weights.quant is not None
    assert weights.quant.axis == 0
    assert network.constants["w"].base is not None
    assert network.layers[0].op == Conv2d((1, 1), (1, 1), (1, 0, 1, 1), 2)


def test_shared_weights_are_one_constant() -> None:
    specs = [
        Spec("x", (1, 4, 4, 2)),
        constant("w", RNG.standard_normal((1, 3, 3, 2)), "float32"),
        constant("b", [0, 0], "float32"),
        Spec("t", (1, 4, 4, 2)),
        Spec("y", (1, 4, 4, 2)),
    ]
    made = options("DepthwiseConv2D", strideH=1, strideW=1, depthMultiplier=1)
    nodes = [Node("DEPTHWISE_CONV_2D", (a, "w", "b"), (b,), made) for a, b in (("x", "t"), ("t", "y"))]
    network = read_tflite(model(specs, nodes, ["x"], ["y"]))
    assert sorted(network.constants) == ["b", "w"]


def test_an_embedding_is_a_gather() -> None:
    specs = [
        Spec("ids", (3,), "int32"),
        constant("table", RNG.standard_normal((5, 2)), "float32"),
        Spec("y", (3, 2)),
    ]
    network = read_tflite(model(specs, [Node("EMBEDDING_LOOKUP", ("ids", "table"), ("y",))], ["ids"], ["y"]))
    assert network.layers[0].op == Gather(0)
    assert network.layers[0].inputs == ("table", "ids")


def test_a_transposed_convolution_may_leave_rows_without_input() -> None:
    """A wanted size above what the input reaches: the rest shows the bias only."""
    specs = [
        constant("size", [1, 9, 9, 1]),
        constant("w", RNG.standard_normal((1, 2, 2, 1)), "float32"),
        Spec("x", (1, 3, 3, 1)),
        constant("b", [0.5], "float32"),
        Spec("y", (1, 9, 9, 1)),
    ]
    made = options("TransposeConv", padding=1, strideH=3, strideW=3)
    content = model(specs, [Node("TRANSPOSE_CONV", ("size", "w", "x", "b"), ("y",), made)], ["x"], ["y"])
    network = read_tflite(content)
    assert isinstance(network.layers[0].op, ConvTranspose2d)
    assert network.layers[0].op.extra == (1, 1)
    agrees(content, network, RNG.standard_normal((1, 3, 3, 1)).astype(np.float32))


def test_an_output_may_be_an_input() -> None:
    specs = [Spec("x", (2,)), Spec("y", (2,))]
    network = read_tflite(model(specs, [Node("RELU", ("x",), ("y",))], ["x"], ["x", "y"]))
    assert network.outputs == ("x", "y")


def _loop(rounds: int, computed: bool = False) -> bytes:
    """A recurrent layer that keeps all its states, as Keras writes it: a loop over a counter that cuts and joins."""
    rng = np.random.default_rng(4)
    x, h, states = Spec("x", (rounds, 1, 3)), Spec("h", (1, 4)), Spec("all", (rounds, 1, 4))
    number = Spec("i", (), "int32")
    limit = Spec("n", (), "int32") if computed else constant("n", rounds)
    zeros = [constant(s.name, np.zeros(s.shape), s.dtype) for s in (number, h, states)]
    given = [x, limit] if computed else [x]
    ends = [Spec(f"{s.name}_end", s.shape, s.dtype) for s in (number, h, states, x, limit)]
    while_ = Node(
        "WHILE",
        ("i", "h", "all", "x", "n"),
        tuple(s.name for s in ends),
        options("While", condSubgraphIndex=1, bodySubgraphIndex=2),
    )
    main = model([x, limit, *zeros, *ends], [while_], [s.name for s in given], ["h_end", "all_end"])
    inside = [number, h, states, x, Spec("n", (), "int32")]
    names = [s.name for s in inside]
    less = Node("LESS", ("i", "n"), ("more",), options("Less"))
    condition = model([*inside, Spec("more", (), "bool")], [less], names, ["more"])
    numbers = [constant("one", 1), constant("first", [0, 0, 0]), constant("rest", [-1, -1]), constant("flat", [1])]
    numbers += [constant("line", [1, 1, 4]), constant("zeros", [0, 0]), constant("all_left", [-1, -1, -1])]
    weights = [
        constant("w", rng.standard_normal((4, 3)), "float32"),
        constant("u", rng.standard_normal((4, 4)), "float32"),
    ]
    made = {"next": (), "xt": (1, 3), "wx": (1, 4), "uh": (1, 4), "sum": (1, 4), "new": (1, 4), "row": (1, 1, 4)}
    lists = {"it": (1,), "size": (3,), "nt": (1,), "begin": (3,)}
    specs = [Spec(k, v, "int32" if k == "next" else "float32") for k, v in made.items()]
    specs += [Spec(k, (1, 1, 4), signature=(-1, 1, 4)) for k in ("before", "after")] + [Spec("joined", states.shape)]
    specs += [Spec(k, v, "int32") for k, v in lists.items()]
    join = options("Concatenation", axis=0)
    nodes = [
        Node("ADD", ("i", "one"), ("next",), options("Add")),
        Node("GATHER", ("x", "i"), ("xt",), options("Gather")),
        Node("FULLY_CONNECTED", ("xt", "w", ""), ("wx",), options("FullyConnected")),
        Node("FULLY_CONNECTED", ("h", "u", ""), ("uh",), options("FullyConnected")),
        Node("ADD", ("wx", "uh"), ("sum",), options("Add")),
        Node("TANH", ("sum",), ("new",)),
        Node("RESHAPE", ("new", "line"), ("row",), options("Reshape")),
        Node("RESHAPE", ("i", "flat"), ("it",), options("Reshape")),
        Node("CONCATENATION", ("it", "rest"), ("size",), join),
        Node("SLICE", ("all", "first", "size"), ("before",), options("Slice")),
        Node("RESHAPE", ("next", "flat"), ("nt",), options("Reshape")),
        Node("CONCATENATION", ("nt", "zeros"), ("begin",), join),
        Node("SLICE", ("all", "begin", "all_left"), ("after",), options("Slice")),
        Node("CONCATENATION", ("before", "row", "after"), ("joined",), join),
    ]
    body = model([*inside, *numbers, *weights, *specs], nodes, names, ["next", "new", "joined", "x", "n"])
    return with_graphs(main, condition, body)


def test_loops_over_a_counter_are_unrolled() -> None:
    content = _loop(5)
    network = read_tflite(content)
    x = np.random.default_rng(1).standard_normal((5, 1, 3)).astype(np.float32)
    expected = run_litert(content, [x])
    for found, wanted in zip(execute(network, {"x": x}).values(), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert sum(isinstance(layer.op, Dense) for layer in network.layers) == 9  # the first state is constant
    assert len({layer.inputs[1] for layer in network.layers if isinstance(layer.op, Dense)}) == 2  # weights are shared
    assert sum(isinstance(layer.op, Concat) for layer in network.layers) == 1  # and lists are joined once


def test_other_loops_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"computed at run time; unroll it when exporting \(unroll=True in Keras\)"):
        read_tflite(_loop(5, computed=True))
    with pytest.raises(Unsupported, match="more than 200 rounds"):
        read_tflite(_loop(201))


def _choice(other_shape: tuple[int, ...] = (1, 3)) -> bytes:
    """IF on what is computed: x in one branch, its sine and a sum in the other."""
    x, limit, more = Spec("x", (1, 3)), constant("limit", 0, "float32"), Spec("more", (), "bool")
    level, y = Spec("level", ()), Spec("y", (1, 3))
    nodes = [
        Node("GREATER", ("level", "limit"), ("more",), options("Greater")),
        Node("IF", ("more", "x"), ("y",), options("If", thenSubgraphIndex=1, elseSubgraphIndex=2)),
    ]
    main = model([x, level, limit, more, y], nodes, ["x", "level"], ["y"])
    then = model([x, Spec("a", (1, 3))], [Node("NEG", ("x",), ("a",))], ["x"], ["a"])
    back = [Node("SIN", ("x",), ("b",)), Node("RESHAPE", ("b", "shape"), ("c",), options("Reshape"))]
    parts = [x, Spec("b", (1, 3)), constant("shape", other_shape), Spec("c", other_shape)]
    return with_graphs(main, then, model(parts, back, ["x"], ["c"]))


def test_a_branch_that_is_chosen_at_run_time() -> None:
    content = _choice()
    network = read_tflite(content)
    x = np.array([[1, -2, 0.5]], np.float32)
    for level in (-1, 1):
        inputs = [x, np.array(level, np.float32)]
        (expected,) = run_litert(content, inputs)
        found = execute(network, dict(zip(("x", "level"), inputs, strict=True)))["y"]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(Unsupported, match=r"computed at run time, and its branches give \(1, 3\) and \(3, 1\)"):
        read_tflite(_choice((3, 1)))
