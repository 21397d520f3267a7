"""QDQ into quantised layers: where it fires, where it must not, and that numbers stay those of onnxruntime."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgewright.network import Arithmetic, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.onnx_writer import to_onnx
from edgewright.network.operators import (
    ArgMax,
    AvgPool2d,
    BinaryKind,
    Clamp,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    Dequantize,
    Elu,
    Gather,
    LeakyRelu,
    MatMul,
    MaxPool2d,
    Pad,
    Reduce,
    Reshape,
    Resize,
    ResizeMode,
    Slice,
    Softmax,
    Transpose,
    Unary,
    UnaryKind,
)
from edgewright.network.passes import PASSES, run
from edgewright.network.passes.quantise import quantise_layers
from edgewright.network.read import read_bytes
from edgewright.network.reference import compare, reference
from tests.helpers.random_networks import networks
from tests.network.passes_networks import RELU, Literal, assert_same, ops, results

STORED = (1, 4, 6, 6)


def same(before: Network, after: Network) -> None:
    assert_same(before, after, random_inputs(before), exact=True)


def start(b: Literal) -> str:
    return b.fake(b.input("x", STORED), "x")


def inner(network: Network) -> list[str]:
    """The operators between the first Quantize and the last Dequantize."""
    names = ops(network)
    assert (names[0], names[-1]) == ("Quantize", "Dequantize")
    return names[1:-1]


@pytest.mark.parametrize("bias", ["none", "stored", "real"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("act", [None, RELU, Clamp(0.0, 1.0)])
def test_convolution(bias: str, per_channel: bool, act: Clamp | None) -> None:
    b = Literal()
    y = b.conv_qdq(start(b), 3, "conv", per_channel, bias)
    y = y if act is None else b.layer(act, [y], "act")
    network = b.build([b.fake(y, "y", 2**-2, -8)])
    after = run(network)
    assert inner(after) == ["Conv2d"]
    layer = after.layers[1]
    assert layer.op == Conv2d(pads=(1, 1, 1, 1), activation=act)
    assert after.tensors[layer.inputs[1]].dtype is DType.INT8
    assert after.tensors[layer.output].quant == Quant.of(2**-2, -8)
    if bias != "none":
        assert after.tensors[layer.inputs[2]].dtype is DType.INT32
    same(network, after)


def test_a_bias_of_another_scale_is_counted_anew() -> None:
    b = Literal()
    x = b.fake(b.input("x", (1, 5)), "x", 2**-4)
    w = b.stored_weights((3, 5), "w", False)  # products come in steps of 2**-8
    bias = b.dequantize(b.constant("bias", np.array([3, -5, 100], np.int32), Quant.of(2**-6)), "bias_dq")
    network = b.build([b.fake(b.layer(Dense(), [x, w, bias], "dense"), "y")])
    after = run(network)
    assert inner(after) == ["Dense"]
    np.testing.assert_array_equal(after.constants[after.layers[1].inputs[2]], [12, -20, 400])
    same(network, after)


def test_steps_too_small_for_float32_leave_the_layer_to_real_numbers() -> None:
    b = Literal()
    x = b.fake(b.input("x", (1, 5)), "x", 2**-8)
    value = b.rng.integers(-8, 8, (3, 5)).astype(np.int8)
    w = b.dequantize(b.constant("w", value, Quant((2**-4, 2**-149, 2**-4), (0,) * 3, 0)), "w_dq")
    bias = b.constant("bias", np.array([3, -5, 100], np.float32))
    after = run(b.build([b.fake(b.layer(Dense(), [x, w, bias], "dense"), "y")]))
    assert all(scale > 0 for tensor in after.tensors.values() if tensor.quant for scale in tensor.quant.scale)


UNARY = {
    "sigmoid": Unary(UnaryKind.SIGMOID),
    "leaky": LeakyRelu(0.1),
    "relu": RELU,
    "softmax": Softmax(1),
    "mean": Reduce((2, 3)),
}


@pytest.mark.parametrize("name", UNARY)
def test_layers_of_one_operand(name: str) -> None:
    b = Literal()
    network = b.build([b.fake(b.layer(UNARY[name], [start(b)], "layer"), "y", 2**-6)])
    after = run(network)
    assert len(inner(after)) == 1
    same(network, after)


@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.MUL, BinaryKind.SUB])
@pytest.mark.parametrize("other", ["computed", "constant"])
def test_layers_of_two_operands(kind: BinaryKind, other: str) -> None:
    b = Literal()
    x = start(b)
    if other == "constant":
        z = b.stored_weights((4, 1, 1), "z", False)
    else:
        z = b.fake(b.input("z", STORED), "z", 2**-3, 4)
    network = b.build([b.fake(b.layer(RELU, [b.binary(kind, x, z, "two")], "relu"), "y", 2**-2, 2)])
    after = run(network)
    assert [name for name in ops(after) if name not in ("Quantize", "Dequantize")] == ["Binary"]
    assert after.tensors[after.layers[-2].output].dtype is DType.INT8
    same(network, after)


def test_average_pool() -> None:
    b = Literal()
    network = b.build([b.fake(b.window(AvgPool2d((2, 2), (2, 2)), [start(b)], "pool"), "y")])
    after = run(network)
    assert inner(after) == ["AvgPool2d"]
    same(network, after)


@pytest.mark.parametrize("quantised_after", [False, True])
def test_movement_commutes(quantised_after: bool) -> None:
    b = Literal()
    x = start(b)
    y = b.max_pool(x, "pool")
    y = b.layer(Pad((0, 0, 1, 0), (0, 0, 0, 1)), [y], "pad")
    y = b.layer(Concat(1), [y, y], "join")
    y = b.window(Resize((8, 8), ResizeMode.NEAREST), [y], "up")
    y = b.layer(Slice((0, 1, 0, 0), (1, 4, 8, 8), (1, 1, 1, 1)), [y], "cut")
    y = b.layer(Reshape((1, 4, 64)), [y], "flat")
    y = b.layer(Transpose((0, 2, 1)), [y], "turn")
    network = b.build([b.fake(y, "y") if quantised_after else y])
    after = run(network)
    assert set(inner(after)) >= {"MaxPool2d", "Pad", "Concat", "Resize", "Slice", "Reshape"}
    for layer in after.layers[:-1]:
        assert after.tensors[layer.output].dtype is DType.INT8
    same(network, after)


def test_concat_of_different_scales() -> None:
    b = Literal()
    parts = [start(b), b.fake(b.input("z", STORED), "z", 2**-3, 4)]
    network = b.build([b.fake(b.layer(Concat(1), parts, "join"), "y", 2**-2)])
    after = run(network)
    assert sorted(ops(after)) == ["Concat", "Dequantize", "Quantize", "Quantize"]
    same(network, after)


def test_arg_max_reads_stored_values() -> None:
    b = Literal()
    network = b.build([b.layer(ArgMax((1,)), [start(b)], "most", dtype=DType.INT64)])
    after = run(network)
    assert ops(after) == ["Quantize", "ArgMax"]
    same(network, after)


def test_stored_embedding() -> None:
    b = Literal()
    table = b.stored_weights((20, 4), "table", False)
    words = b.input("words", (1, 5), DType.INT64)
    network = b.build([b.layer(Gather(0), [table, words], "embedding")])
    after = run(network)
    assert ops(after) == ["Gather", "Dequantize"]
    same(network, after)


def test_flattening_between_quantised_layers() -> None:
    b = Literal()
    y = b.fake(b.layer(RELU, [b.conv_qdq(start(b), 3, "conv")], "relu"), "mid")
    y = b.fake(b.layer(Reshape((1, 108)), [y], "flat"), "flat")
    w = b.stored_weights((5, 108), "w", True)
    network = b.build([b.fake(b.layer(Dense(), [y, w], "dense"), "y", 2**-2)])
    after = run(network)
    assert inner(after) == ["Conv2d", "Reshape", "Dense"]
    assert after.constants[after.by_name["dense"].inputs[1]].shape == (5, 6, 6, 3)
    same(network, after)


# Where it must not


def test_real_layers_stay_real() -> None:
    """No Quantize behind it, a real operand, several readers, an output: each keeps the layer in float."""
    b = Literal()
    x = start(b)
    open_end = b.conv_qdq(x, 2, "open")
    real_operand = b.fake(b.binary(BinaryKind.ADD, x, b.floats(4, 1, 1), "real"), "r")
    shared = b.layer(Unary(UnaryKind.SIGMOID), [x], "shared")
    network = b.build([open_end, real_operand, b.fake(shared, "s"), b.layer(RELU, [shared], "again")])
    after = run(network)
    for name in ("open", "real", "shared"):
        assert after.tensors[after.by_name[name].output].dtype is DType.FLOAT32, name
    assert after.tensors[after.by_name["open"].inputs[1]].dtype is DType.FLOAT32
    same(network, after)


def test_padding_by_other_than_zero_stays_real() -> None:
    b = Literal()
    network = b.build([b.layer(Pad((0, 0, 1, 0), (0, 0, 0, 0), value=1.0), [start(b)], "pad")])
    assert ops(quantise_layers(network)) == ["Quantize", "Dequantize", "Pad"]


def test_tflite_means_what_it_says() -> None:
    b = Literal()
    network = b.build([b.fake(b.layer(Unary(UnaryKind.SIGMOID), [start(b)], "layer"), "y")])
    literal = replace(network, arithmetic=Arithmetic.TFLITE)
    assert quantise_layers(literal) is literal


# Any network


@st.composite
def qdq_networks(draw) -> Network:  # type: ignore[no-untyped-def]
    """Chains and branches of layers, with and without Quantize and Dequantize between them."""
    b = Literal(seed=draw(st.integers(0, 2**31)))
    images = [start(b)]
    for i in range(draw(st.integers(1, 6))):
        x = draw(st.sampled_from(images[-2:]))
        kind = draw(st.sampled_from(["conv", "conv", "add", "pool", "join", "act", "soft"]))
        scale, zero = 2.0 ** -draw(st.integers(1, 5)), 2 * draw(st.integers(-20, 20))
        match kind:
            case "conv" if any(layer.output == x and isinstance(layer.op, Dequantize) for layer in b.layers):
                y = b.conv_qdq(x, draw(st.integers(1, 4)), f"conv{i}", draw(st.booleans()), "stored")
            case "add":
                alike = [t for t in images if b.shape(t) == b.shape(x)]
                y = b.binary(BinaryKind.ADD, x, draw(st.sampled_from(alike)), f"add{i}")
            case "pool" if min(b.shape(x)[2:]) > 1:
                y = b.window(MaxPool2d((2, 2)), [x], f"pool{i}")
            case "join":
                alike = [t for t in images if b.shape(t)[2:] == b.shape(x)[2:]]
                y = b.layer(Concat(1), [x, draw(st.sampled_from(alike))], f"join{i}")
            case "soft":
                y = b.layer(Softmax(1), [x], f"soft{i}")
            case _:
                y = b.layer(Unary(UnaryKind.SIGMOID), [x], f"act{i}")
        if draw(st.booleans()):
            y = b.layer(draw(st.sampled_from([RELU, Clamp(0.0, 2.0), LeakyRelu(0.5)])), [y], f"clamp{i}")
        images.append(b.fake(y, f"y{i}", scale, zero) if draw(st.integers(0, 3)) else y)
    outputs = [images[-1], *(t for t in images[1:-1] if draw(st.integers(0, 4)) == 0)]
    return b.build(list(dict.fromkeys(outputs)))


@given(qdq_networks())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_network_keeps_its_numbers(network: Network) -> None:
    """Scales are powers of two, so that integer and float arithmetic agree to the last bit."""
    inputs = random_inputs(network)
    after = network
    for function in PASSES.values():
        after = function(after)
        assert_same(network, after, inputs)


@given(networks(kinds=("onnx",), most=4))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_written_as_qdq_and_read_again(network: Network) -> None:
    """Quantised layers come back as such: the same stored numbers, bit by bit."""
    again = read_bytes(to_onnx(network).SerializeToString(), network.name)
    inputs = random_inputs(network)
    expected, actual = execute(network, inputs), execute(again, inputs)
    for name in network.outputs:
        np.testing.assert_array_equal(actual[name], expected[name])


# onnxruntime's own fusion


def layer_between(b: Literal, kind: str, x: str, scale: float) -> str:
    """A layer on a dequantised (1, 4, 6, 6), of each kind that onnxruntime has its own way with."""
    weights = b.rng.integers(-127, 128, (5, 3, 3, 4)).astype(np.int8)
    scales = tuple(float(s) for s in b.rng.uniform(0.001, 0.01, 5))
    match kind:
        case "conv":
            w = b.dequantize(b.constant("w", weights, Quant(scales, (0,) * 5, 0)), "w_dq")
            bias = b.constant("bias", b.floats(5) / 8)
            return b.layer(RELU, [b.window(Conv2d(pads=(1, 1, 1, 1)), [x, w, bias], "conv")], "relu")
        case "transposed":
            w = b.dequantize(b.constant("w", weights, Quant.of(0.005)), "w_dq")
            return b.window(ConvTranspose2d((2, 2)), [x, w], "conv")
        case "dense":
            flat = b.layer(Reshape((1, 144)), [x], "flat")
            w = b.dequantize(b.constant("w", weights.reshape(-1)[:144].reshape(1, 144), Quant.of(0.005)), "w_dq")
            return b.layer(Dense(), [flat, w], "dense")
        case "add" | "mul" | "sub":
            return b.binary(BinaryKind(kind), x, b.fake(b.input("z", STORED), "z", 0.7 * scale, 9), "two")
        case "join":
            return b.layer(Concat(1), [x, b.fake(b.input("z", STORED), "z", 0.7 * scale, 9)], "join")
        case "product":
            return b.layer(MatMul(), [x, b.fake(b.input("z", STORED), "z", 0.7 * scale, 9)], "product")
        case "average":
            return b.avg_pool(x, "average")
        case "bilinear":
            return b.window(Resize((9, 11), ResizeMode.LINEAR), [x], "bilinear")
    return b.layer({**UNARY, "clip": Clamp(0.0, 1.0), "elu": Elu()}[kind], [x], "layer")


KINDS = [
    "conv", "transposed", "dense", "add", "mul", "sub", "join", "product", "average", "bilinear", "clip", "elu", *UNARY,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_as_onnxruntime_fuses_it(kind: str, seed: int) -> None:
    """Scales as they come: within one step of onnxruntime, which is given the literal network."""
    b = Literal(seed=seed)
    scale, step = (float(s) for s in b.rng.uniform(0.01, 0.05, 2))
    step = {"softmax": 1 / 256, "bilinear": scale}.get(kind, 4 * step)
    y = layer_between(b, kind, b.fake(b.input("x", STORED), "x", scale, 3), scale)
    network = b.build([b.fake(y, "y", step, 3 if kind == "bilinear" else -5)])
    inputs = random_inputs(network, seed)
    expected = reference(to_onnx(network).SerializeToString(), network).run(inputs)
    after = run(network)
    assert after.tensors[after.layers[-2].output].dtype is DType.INT8
    difference = compare(after, results(after, inputs), expected)
    assert difference.passes, difference
    assert difference.unit == "steps"
