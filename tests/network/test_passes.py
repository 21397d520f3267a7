"""Each pass: where it fires, and where it must not."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from edgewright.errors import ModelError
from edgewright.network import Builder, DType, Network, Quant, random_inputs
from edgewright.network.operators import (
    AvgPool2d,
    BatchNorm,
    Binary,
    BinaryKind,
    Cast,
    Clamp,
    Concat,
    Conv2d,
    DepthToSpace,
    Expand,
    HardSigmoid,
    LeakyRelu,
    MatMul,
    MaxPool2d,
    Pad,
    PadMode,
    Reduce,
    Reshape,
    Slice,
    Softmax,
    SpaceToDepth,
    Transpose,
    Unary,
    UnaryKind,
)
from edgewright.network.passes import run
from edgewright.network.passes.affine import fold_affine, fuse_activations
from edgewright.network.passes.channels_last import to_channels_last
from edgewright.network.passes.constants import fold_constants
from edgewright.network.passes.flatten import fold_flatten
from edgewright.network.passes.identities import drop_dead, drop_identities, merge_reshapes
from edgewright.network.passes.padding import fold_padding
from edgewright.network.passes.recognise import recognise_activations, recognise_shuffles
from edgewright.network.passes.reorder import reshape_groups, reshape_held, reshape_towards
from tests.network.passes_networks import NCHW, NHWC, RELU, Literal, assert_same, ops

ADD, MUL, SUB, DIV = BinaryKind.ADD, BinaryKind.MUL, BinaryKind.SUB, BinaryKind.DIV
IMAGE = (1, 6, 5, 4)  # NHWC


def same(before: Network, after: Network, exact: bool = False) -> None:
    assert_same(before, after, random_inputs(before), exact)


def conv_nhwc(b: Literal, x: str, channels: int, name: str, **attributes: object) -> str:
    w = b.constant(f"{name}_w", b.floats(channels, 3, 3, b.shape(x)[3]))
    return b.layer(Conv2d(**attributes), [x, w], name)  # type: ignore[arg-type]


# The runner


def test_an_error_names_its_pass() -> None:
    b = Literal()
    network = b.build([b.layer(RELU, [b.input("x", (1, 2))], "y")])

    def broken(net: Network) -> Network:
        return net.with_layers([])

    with pytest.raises(ModelError) as caught:
        run(network, {"fine": drop_dead, "break things": broken})
    assert caught.value.__notes__ == ["in pass 'break things'"]


def test_thousands_of_layers() -> None:
    """Deep chains neither recurse nor lose a layer."""
    b = Literal()
    x = b.input("x", (1, 2, 4, 4))
    for i in range(1000):
        x = b.layer(RELU, [b.conv(x, 2, f"c{i}", kernel=1)], f"r{i}")
    assert [layer.name for layer in run(b.build([x])).layers] == [f"c{i}" for i in range(1000)]


# Constants


def test_constants_are_folded_as_views() -> None:
    b = Literal()
    w = b.constant("w", b.floats(4, 3, 1, 1))
    turned = b.layer(Transpose(NHWC), [w], "turned")
    big = b.layer(
        Expand((8, 1, 1, 3)),
        [b.layer(Slice((0, 0, 0, 0), (1, 1, 1, 3), (1, 1, 1, 1)), [turned], "cut")],
        "big",
    )
    y = b.layer(
        Conv2d(),
        [
            b.layer(Conv2d(), [b.input("x", (1, 2, 2, 3)), turned], "one"),
            b.constant("v", b.floats(3, 1, 1, 4)),
        ],
        "two",
    )
    z = b.layer(Conv2d(), [y, big], "three")
    network = b.build([z])
    after = fold_constants(network)
    assert ops(after) == ["Conv2d"] * 3
    assert np.shares_memory(after.constants["turned"], network.constants["w"])
    assert np.shares_memory(after.constants["big"], network.constants["w"])
    same(network, after)


def test_computed_constants_are_folded_unless_huge() -> None:
    b = Literal()
    small = b.binary(ADD, b.constant("a", b.floats(3)), 1.0, "small")
    huge = b.layer(RELU, [b.layer(Expand((1 << 13, 1 << 12)), [b.constant("one", b.floats(1, 1))], "wide")], "huge")
    x = b.input("x", (3,))
    network = b.build([b.binary(ADD, x, small, "y"), b.layer(Reduce((0, 1)), [huge], "sum")])
    after = fold_constants(network)
    assert sorted(ops(after)) == ["Binary", "Clamp", "Reduce"]


def test_an_output_that_depends_on_no_input_is_a_constant_under_its_name() -> None:
    b = Literal()
    b.input("x", (3,))
    a = b.floats(3)
    network = run(b.build([b.binary(ADD, b.constant("a", a), 1.0, "y")]))
    assert ops(network) == [] and network.outputs == ("y",)
    np.testing.assert_array_equal(network.constants["y"], a + np.float32(1))


# Identities


def test_identities_go() -> None:
    b = Literal()
    x = b.input("x", (1, 4, 3))
    for op in (
        Reshape((1, 4, 3)),
        Transpose((0, 1, 2)),
        Slice((0, 0, 0), (1, 4, 3), (1, 1, 1)),
        Pad((0, 0, 0), (0, 0, 0)),
        Cast(DType.FLOAT32),
        Clamp(),
        Concat(1),
        Expand((1, 4, 3)),
    ):
        x = b.layer(op, [x], type(op).__name__)
    y = b.layer(RELU, [x], "y")
    network = b.build([y])
    assert ops(drop_identities(network)) == ["Clamp"]
    same(network, drop_identities(network))


def test_what_looks_like_an_identity_stays() -> None:
    b = Literal()
    x = b.input("x", (1, 3, 3))
    y = b.layer(Transpose((0, 2, 1)), [x], "turn")
    y = b.layer(Slice((0, 2, 0), (1, 3, 3), (1, -1, 1)), [y], "flip")
    y = b.layer(Pad((0, 1, 0), (0, -1, 0)), [y], "shift")
    network = b.build([b.layer(Clamp(-1.0), [y], "y")])
    assert len(drop_identities(network).layers) == 4


def test_outputs_keep_their_names() -> None:
    b = Literal()
    x = b.input("x", (1, 4))
    a = b.layer(RELU, [x], "a")
    copy = b.layer(Clamp(), [a], "copy")  # an output: its name must survive
    again = b.layer(Clamp(), [a], "again")  # a second one of the same value: must stay a layer
    through = b.layer(Clamp(), [x], "through")  # an input straight to an output: likewise
    network = b.build([copy, again, through, b.layer(LeakyRelu(), [a], "b")])
    after = drop_identities(network)
    assert after.outputs == network.outputs
    assert {layer.output: type(layer.op).__name__ for layer in after.layers} == {
        "copy": "Clamp",
        "again": "Clamp",
        "through": "Clamp",
        "b": "LeakyRelu",
    }
    assert after.by_name["a"].output == "copy"
    same(network, after, exact=True)


def test_stored_values_unpacked_and_packed_again() -> None:
    b = Literal()
    x = b.input("x", (256,), DType.INT8, Quant.of(0.3, 7))
    real = b.dequantize(x, "real")
    again = b.quantize(real, "again", 0.3, 7)
    other = b.quantize(real, "other", 0.3, 8)
    y = b.layer(Concat(0), [again, x], "y", dtype=DType.INT8, quant=Quant.of(0.3, 7))
    network = b.build([y, other])
    after = drop_identities(network)
    assert sorted(ops(after)) == ["Concat", "Dequantize", "Quantize"]
    same(network, after, exact=True)


def test_rounding_to_a_grid_is_no_identity() -> None:
    b = Literal()
    network = b.build([b.fake(b.input("x", (1, 9)), "grid")])
    assert ops(run(network)) == ["Quantize", "Dequantize"]


def test_reshapes_merge() -> None:
    b = Literal()
    x = b.input("x", (1, 4, 3))
    y = b.layer(Reshape((12,)), [x], "flat")
    kept = b.layer(RELU, [y], "kept")
    y = b.layer(Transpose((1, 0)), [b.layer(Reshape((12, 1)), [y], "column")], "row")
    network = b.build([b.layer(Reshape((3, 4)), [y], "y"), kept])
    after = merge_reshapes(network)
    assert ops(after) == ["Reshape", "Clamp", "Reshape"]
    assert after.by_name["y"].inputs == ("x",)
    same(network, after, exact=True)


# Channels last


def test_residual_network_needs_no_transpose() -> None:
    b = Literal()
    x = b.input("x", (1, 3, 8, 8))
    y = b.layer(RELU, [b.conv(x, 4, "one", pads=(1, 1, 1, 1))], "relu")
    z = b.conv(y, 4, "two", pads=(1, 1, 1, 1))
    gate = b.layer(Unary(UnaryKind.SIGMOID), [b.layer(Reduce((2, 3)), [z], "mean")], "gate")
    y = b.binary(ADD, y, b.binary(MUL, z, gate, "gated"), "add")
    y = b.binary(MUL, y, b.floats(4, 1, 1), "scale")
    y = b.layer(Concat(1), [y, z], "join")
    y = b.layer(Pad((0, 0, 1, 1), (0, 0, 1, 1)), [y], "pad")
    y = b.layer(Softmax(1), [y], "soft")
    network = b.build([y])
    after = to_channels_last(network)
    assert "Transpose" not in ops(after)
    assert after.layouts == {"x": NHWC, "soft": NHWC}
    assert after.notes == (
        "input 'x' is taken as 1x8x8x3 (NHWC); the file has 1x3x8x8",
        "output 'soft' is given as 1x10x10x8 (NHWC); the file has 1x8x10x10",
    )
    assert after.by_name["join"].op == Concat(3)
    assert after.by_name["soft"].op == Softmax(3)
    same(network, after)


def test_a_head_that_turns_to_channels_last_itself() -> None:
    """As SSD heads do: NCHW, Transpose to NHWC, Reshape to boxes."""
    b = Literal()
    y = b.conv(b.input("x", (1, 3, 6, 6)), 4, "conv")
    y = b.layer(Reshape((1, 32, 2)), [b.layer(Transpose(NHWC), [y], "turn")], "boxes")
    network = b.build([y])
    after = run(network)
    assert ops(after) == ["Conv2d", "Reshape"]
    assert after.tensors["boxes"].shape == (1, 32, 2)
    assert "boxes" not in after.layouts
    same(network, after)


def test_an_input_read_in_two_orders() -> None:
    b = Literal()
    x = b.input("x", (1, 4, 4, 4))
    network = b.build([b.binary(ADD, b.conv(x, 4, "conv", pads=(1, 1, 1, 1)), x, "sum")])
    after = run(network)
    assert ops(after) == ["Conv2d", "Binary"]
    same(network, after)


def test_real_reordering_stays() -> None:
    b = Literal()
    y = b.conv(b.input("x", (1, 3, 6, 5)), 4, "conv", pads=(1, 1, 1, 1))
    y = b.layer(Transpose((0, 1, 3, 2)), [y], "turn")
    network = b.build([b.conv(y, 2, "after")])
    assert ops(run(network)) == ["Conv2d", "Transpose", "Conv2d"]
    same(network, run(network))


def test_an_output_in_another_order_is_put_right() -> None:
    """Only NCHW is a matter of layout; an output that the network itself turned is given as the file has it."""
    b = Literal()
    y = b.conv(b.input("x", (1, 3, 6, 5)), 4, "conv")
    network = b.build([b.layer(Transpose((0, 3, 2, 1)), [y], "y")])
    after = run(network)
    assert after.layouts == {"x": NHWC}
    assert after.tensors["y"].shape == network.tensors["y"].shape
    same(network, after)


def test_products_read_transposed_operands() -> None:
    b = Literal()
    q, k = b.input("q", (2, 5, 4)), b.layer(Reshape((2, 6, 4)), [b.input("k", (12, 4))], "keys")
    network = b.build([b.layer(MatMul(), [q, b.layer(Transpose((0, 2, 1)), [k], "turned")], "scores"), k])
    after = to_channels_last(network)
    assert after.by_name["scores"].op == MatMul(transpose_b=True)
    assert "Transpose" not in ops(after)
    same(network, after)


def test_attention_over_pixels() -> None:
    b = Literal()
    y = b.conv(b.input("x", (1, 3, 6, 5)), 4, "conv")
    lines = b.layer(Reshape((1, 4, 12)), [y], "lines")
    tokens = b.layer(Transpose((0, 2, 1)), [lines], "tokens")
    network = b.build([b.dense(tokens, 3, "dense")])
    assert ops(run(network)) == ["Conv2d", "Reshape", "Dense"]
    same(network, run(network))


def test_groups_of_axes() -> None:
    assert reshape_groups((1, 4, 3, 2), (1, 4, 6)) == (((0,), (0,)), ((1,), (1,)), ((2, 3), (2,)))
    assert reshape_held(NCHW, (1, 4, 3, 2), (1, 4, 6)) == (0, 2, 1)
    assert reshape_held(NCHW, (1, 4, 3, 2), (1, 24)) is None
    assert reshape_towards(NHWC, (1, 2, 2, 4, 3, 3), (1, 16, 3, 3)) == (0, 4, 5, 1, 2, 3)


# Flattening


@pytest.mark.parametrize("middle", ["nothing", "relu"])
def test_flattening_becomes_a_view_of_the_weights(middle: str) -> None:
    b = Literal()
    y = b.conv(b.input("x", (2, 3, 6, 5)), 4, "conv")
    y = b.layer(Reshape((2, 4 * 4 * 3)), [y], "flat")
    y = b.layer(RELU, [y], "relu") if middle == "relu" else y
    network = b.build([b.dense(y, 7, "one"), b.dense(y, 2, "two")])
    after = run(network)
    assert "Transpose" not in ops(after)
    weights = after.constants[after.by_name["one"].inputs[1]]
    assert weights.shape == (7, 4, 3, 4)
    assert np.shares_memory(weights, network.constants["one_w"])
    same(network, after)


@pytest.mark.parametrize("reader", ["output", "softmax", "binary"])
def test_flattening_stays_when_others_see_the_order(reader: str) -> None:
    b = Literal()
    y = b.conv(b.input("x", (1, 3, 6, 5)), 4, "conv")
    flat = b.layer(Reshape((1, 48)), [y], "flat")
    outputs = [b.dense(flat, 7, "dense")]
    if reader == "output":
        outputs.append(flat)
    elif reader == "softmax":
        outputs.append(b.layer(Softmax(-1), [flat], "soft"))
    else:
        outputs.append(b.binary(ADD, flat, b.floats(48), "sum"))
    network = b.build(outputs)
    after = run(network)
    assert "Transpose" in ops(after)
    same(network, after)


def test_flattening_of_one_pixel_costs_nothing() -> None:
    b = Literal()
    y = b.layer(Reduce((2, 3)), [b.conv(b.input("x", (1, 3, 6, 5)), 4, "conv")], "mean")
    network = b.build([b.dense(b.layer(Reshape((1, 4)), [y], "flat"), 7, "dense")])
    after = run(network)
    assert ops(after) == ["Conv2d", "Reduce", "Reshape", "Dense"]
    assert after.by_name["dense"].inputs[1] == "dense_w"
    same(network, after)


def test_fold_flatten_alone_needs_the_pattern() -> None:
    b = Literal()
    turned = b.layer(Transpose(NHWC), [b.input("x", (1, 2, 3, 4))], "turned")
    network = b.build([b.dense(b.layer(Reshape((2, 12)), [turned], "half"), 5, "dense")])
    assert ops(fold_flatten(network)) == ["Transpose", "Reshape", "Dense"]


# Recognition


def test_pixel_shuffles() -> None:
    """The reorg layer of YOLOv2, and sub-pixel convolution (Shi et al. 2016), one channel and several."""
    b = Literal()
    y = b.conv(b.input("x", (1, 3, 8, 6)), 4, "conv", pads=(1, 1, 1, 1))
    split = b.layer(Reshape((1, 4, 4, 2, 3, 2)), [y], "split")
    reorg = b.layer(Reshape((1, 16, 4, 3)), [b.layer(Transpose((0, 3, 5, 1, 2, 4)), [split], "turn")], "reorg")
    outputs = [b.conv(reorg, 2, "after", kernel=1)]
    for channels in (1, 3):
        up = b.conv(y, 4 * channels, f"up{channels}", kernel=1)
        split = b.layer(Reshape((1, channels, 2, 2, 8, 6)), [up], f"split{channels}")
        turn = b.layer(Transpose((0, 1, 4, 2, 5, 3)), [split], f"turn{channels}")
        outputs.append(b.layer(Reshape((1, channels, 16, 12)), [turn], f"shuffle{channels}"))
    network = b.build(outputs)
    after = run(network)
    found = [layer.op for layer in after.layers if not isinstance(layer.op, Conv2d)]
    assert found == [SpaceToDepth(2), DepthToSpace(2), DepthToSpace(2, True)]
    same(network, after)


def test_other_shuffles_stay() -> None:
    b = Literal()
    x = b.input("x", (1, 4, 6, 3))
    split = b.layer(Reshape((1, 2, 2, 3, 2, 3)), [x], "split")
    turn = b.layer(Transpose((0, 1, 3, 4, 2, 5)), [split], "turn")
    network = b.build([b.layer(Reshape((1, 2, 3, 12)), [turn], "y")])
    assert len(recognise_shuffles(network).layers) == 3


def spelled(b: Literal, x: str, name: str) -> str:
    """The activation, written out."""
    match name:
        case "silu":
            return b.binary(MUL, x, b.layer(Unary(UnaryKind.SIGMOID), [x], "gate"), "y")
        case "hard_swish":
            return b.binary(MUL, b.layer(HardSigmoid(1 / 6, 0.5), [x], "gate"), x, "y")
        case "hard_swish_late":
            clip = b.layer(Clamp(0.0, 6.0), [b.binary(ADD, x, 3.0, "plus")], "clip")
            return b.binary(DIV, b.binary(MUL, x, clip, "times"), 6.0, "y")
        case "hard_swish_early":
            plus = b.layer(Binary(ADD, Clamp(0.0, 6.0)), [x, b.constant("three", np.float32(3))], "plus")
            return b.binary(MUL, x, b.binary(MUL, plus, 1 / 6, "sixth"), "y")
        case "mish":
            soft = b.layer(Unary(UnaryKind.SOFTPLUS), [x], "soft")
            return b.binary(MUL, x, b.layer(Unary(UnaryKind.TANH), [soft], "tanh"), "y")
    erf = b.layer(Unary(UnaryKind.ERF), [b.binary(DIV, x, sqrt(2), "scaled")], "erf")
    one = b.binary(ADD, erf, 1.0, "one")
    match name:
        case "gelu":
            return b.binary(MUL, b.binary(MUL, x, one, "times"), 0.5, "y")
        case "gelu_first":
            return b.binary(MUL, b.binary(MUL, x, 0.5, "half"), one, "y")
        case _:
            return b.binary(MUL, x, b.binary(MUL, one, 0.5, "half"), "y")


FORMS = {
    "silu": UnaryKind.SILU,
    "hard_swish": UnaryKind.HARD_SWISH,
    "hard_swish_late": UnaryKind.HARD_SWISH,
    "hard_swish_early": UnaryKind.HARD_SWISH,
    "mish": UnaryKind.MISH,
    "gelu": UnaryKind.GELU,
    "gelu_first": UnaryKind.GELU,
    "gelu_last": UnaryKind.GELU,
}


@pytest.mark.parametrize("name", FORMS)
def test_spelled_activations(name: str) -> None:
    b = Literal()
    network = b.build([spelled(b, b.input("x", (4, 9)), name)])
    after = recognise_activations(network)
    assert [layer.op for layer in after.layers] == [Unary(FORMS[name])]
    same(network, after)


@pytest.mark.parametrize("name", FORMS)
def test_spelled_activations_whose_parts_are_seen_stay(name: str) -> None:
    b = Literal()
    y = spelled(b, b.input("x", (4, 9)), name)
    inner = b.layers[0].output
    network = b.build([y, b.layer(LeakyRelu(), [inner], "seen")])
    after = recognise_activations(network)
    assert [layer.op for layer in after.layers if layer.output == "y"] != [Unary(FORMS[name])]
    same(network, after)


@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.SUB, BinaryKind.DIV, BinaryKind.MAX])
def test_what_is_not_multiplied_with_the_gate_of_a_gelu_is_none(kind: BinaryKind) -> None:
    """x + (1 + erf(x / sqrt 2)) / 2 once became x * (1 + erf(x / sqrt 2)) / 2."""
    b = Literal()
    x = b.input("x", (4, 9))
    erf = b.layer(Unary(UnaryKind.ERF), [b.binary(MUL, x, sqrt(0.5), "scaled")], "erf")
    gate = b.binary(MUL, b.binary(BinaryKind.ADD, erf, 1.0, "one"), 0.5, "half")
    network = b.build([b.binary(kind, x, gate, "y")])
    after = recognise_activations(network)
    assert after.layers == network.layers
    same(network, after)


def test_gates_of_another_tensor_stay() -> None:
    b = Literal()
    x, z = b.input("x", (4, 9)), b.input("z", (4, 9))
    network = b.build([b.binary(MUL, x, b.layer(Unary(UnaryKind.SIGMOID), [z], "gate"), "y")])
    assert ops(recognise_activations(network)) == ["Unary", "Binary"]


# Scale and shift


@pytest.mark.parametrize("kind", ["norm", "add", "sub", "mul", "div", "from"])
def test_scale_and_shift_go_into_the_weights(kind: str) -> None:
    b = Literal()
    y = conv_nhwc(b, b.input("x", IMAGE), 3, "conv")
    c = b.constant("c", np.abs(b.floats(1, 1, 3)) + 1)
    if kind == "norm":
        y = b.layer(BatchNorm(), [y, b.constant("scale", b.floats(3)), b.constant("shift", b.floats(3))], "y")
    elif kind == "from":
        y = b.layer(Binary(SUB), [c, y], "y")
    else:
        y = b.layer(Binary(BinaryKind(kind)), [y, c], "y")
    network = b.build([b.layer(RELU, [y], "relu")])
    after = fold_affine(network)
    assert ops(after) == ["Conv2d", "Clamp"]
    same(network, after)


def test_scale_and_shift_into_dense() -> None:
    b = Literal()
    y = b.dense(b.input("x", (2, 5)), 3, "dense")
    network = b.build([b.binary(ADD, b.binary(MUL, y, b.floats(3), "scale"), 2.0, "shift")])
    assert ops(fold_affine(network)) == ["Dense"]
    same(network, fold_affine(network))


def test_a_chain_of_scales_becomes_one() -> None:
    b = Literal()
    y = b.binary(MUL, b.input("x", IMAGE), b.floats(4), "scale")
    y = b.binary(SUB, b.binary(ADD, y, b.floats(1, 1, 4), "shift"), 0.5, "half")
    network = b.build([y])
    assert ops(fold_affine(network)) == ["BatchNorm"]
    same(network, fold_affine(network))


@pytest.mark.parametrize("why", ["two readers", "output", "activation", "per pixel", "wider"])
def test_scale_and_shift_stay(why: str) -> None:
    b = Literal()
    attributes = {"activation": RELU} if why == "activation" else {}
    conv = conv_nhwc(b, b.input("x", (1, 6, 5, 4)), 1 if why == "wider" else 3, "conv", **attributes)
    shape = (1, 4, 3, 1) if why == "per pixel" else (3,)
    y = b.binary(MUL, conv, b.floats(*shape), "scale")
    outputs = [y]
    if why == "two readers":
        outputs.append(b.layer(LeakyRelu(), [conv], "other"))
    elif why == "output":
        outputs.append(conv)
    network = b.build(outputs)
    assert "Binary" in ops(fold_affine(network))
    same(network, fold_affine(network))


# Padding


@pytest.mark.parametrize(
    "pads", [((0, 1, 2, 0), (0, 0, 1, 0)), ((0, -1, 0, 0), (0, 0, -1, 0)), ((0, 1, 0, 0), (0, -1, 1, 0))]
)
def test_padding_goes_into_each_convolution(pads: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    b = Literal()
    padded = b.layer(Pad(*pads), [b.input("x", IMAGE)], "pad")
    one = conv_nhwc(b, padded, 3, "one", stride=(2, 1))
    network = b.build([one, conv_nhwc(b, padded, 2, "two", dilation=(1, 1))])
    after = fold_padding(network)
    assert ops(after) == ["Conv2d", "Conv2d"]
    same(network, after)


def test_pads_add_up() -> None:
    b = Literal()
    padded = b.layer(Pad((0, 1, 1, 0), (0, 1, 1, 0)), [b.input("x", IMAGE)], "pad")
    network = b.build([conv_nhwc(b, padded, 3, "conv", pads=(1, 0, 1, 0))])
    assert [layer.op for layer in fold_padding(network).layers] == [Conv2d(pads=(2, 1, 2, 1))]
    same(network, fold_padding(network))


@pytest.mark.parametrize("why", ["value", "channels", "mode", "crop then pad", "output", "other reader"])
def test_padding_stays(why: str) -> None:
    b = Literal()
    op = {
        "value": Pad((0, 1, 1, 0), (0, 1, 1, 0), value=1.0),
        "channels": Pad((0, 1, 1, 0), (0, 1, 1, 2)),
        "mode": Pad((0, 1, 1, 0), (0, 1, 1, 0), mode=PadMode.EDGE),
        "crop then pad": Pad((0, -1, 0, 0), (0, 0, 0, 0)),
    }.get(why, Pad((0, 1, 1, 0), (0, 1, 1, 0)))
    padded = b.layer(op, [b.input("x", IMAGE)], "pad")
    outputs = [conv_nhwc(b, padded, 3, "conv", pads=(1, 1, 1, 1))]
    if why == "output":
        outputs.append(padded)
    elif why == "other reader":
        outputs.append(b.layer(LeakyRelu(), [padded], "other"))
    network = b.build(outputs)
    assert "Pad" in ops(fold_padding(network))
    same(network, fold_padding(network))


def test_padding_of_pools() -> None:
    """Zeros are counted by an average; a maximum must know its pixels to be no less than zero."""
    b = Literal()
    x = b.input("x", IMAGE)
    pad = Pad((0, 1, 1, 0), (0, 1, 1, 0))
    positive = b.layer(RELU, [x], "relu")
    average = b.layer(AvgPool2d((3, 3)), [b.layer(pad, [x], "pad1")], "average")
    most = b.layer(MaxPool2d((3, 3)), [b.layer(pad, [positive], "pad2")], "most")
    network = b.build([average, most])
    after = fold_padding(network)
    assert sorted(ops(after)) == ["AvgPool2d", "Clamp", "MaxPool2d"]
    assert after.by_name["average"].op == AvgPool2d((3, 3), pads=(1, 1, 1, 1), count_pads=True)
    same(network, after)


def test_padding_of_pools_stays() -> None:
    b = Literal()
    x = b.input("x", IMAGE)
    pad = Pad((0, 1, 1, 0), (0, 1, 1, 0))
    signed = b.layer(MaxPool2d((3, 3)), [b.layer(pad, [x], "pad1")], "signed")
    uncounted = b.layer(AvgPool2d((3, 3), pads=(1, 1, 1, 1)), [b.layer(pad, [x], "pad2")], "uncounted")
    positive = b.layer(RELU, [x], "relu")
    empty = b.layer(MaxPool2d((1, 1)), [b.layer(pad, [positive], "pad3")], "empty")  # windows without a pixel
    network = b.build([signed, uncounted, empty])
    assert ops(fold_padding(network)).count("Pad") == 3


def test_padding_of_stored_images() -> None:
    """Stored zeros are the zero point; the least storable value never wins a maximum."""
    b = Builder("stored")
    x = b.input("x", IMAGE, DType.INT8, Quant.of(0.5, -128))
    pad = Pad((0, 1, 1, 0), (0, 1, 1, 0))
    most = b.layer(MaxPool2d((3, 3)), [b.layer(pad, [x], "pad1")], "most")
    w = b.constant("w", np.ones((2, 3, 3, 4), np.int8), Quant.of(0.25))
    conv = b.layer(Conv2d(), [b.layer(pad, [x], "pad2"), w], "conv", dtype=DType.INT8, quant=Quant.of(2.0, 3))
    network = b.build([most, conv])
    after = fold_padding(network)
    assert sorted(ops(after)) == ["Conv2d", "MaxPool2d"]
    same(network, after, exact=True)


# Activations


@pytest.mark.parametrize("host", ["conv", "dense", "binary", "norm", "max", "average"])
def test_activations_are_fused(host: str) -> None:
    b = Literal()
    x = b.input("x", IMAGE)
    match host:
        case "conv":
            y = conv_nhwc(b, x, 3, "y")
        case "dense":
            y = b.dense(x, 3, "y")
        case "binary":
            y = b.binary(ADD, x, x, "y")
        case "norm":
            y = b.layer(BatchNorm(), [x, b.constant("a", b.floats(4)), b.constant("b", b.floats(4))], "y")
        case "max":
            y = b.layer(MaxPool2d((2, 2)), [x], "y")
        case _:
            y = b.layer(AvgPool2d((2, 2)), [x], "y")
    network = b.build([b.layer(Unary(UnaryKind.TANH), [y], "act")])
    after = fuse_activations(network)
    assert len(after.layers) == 1
    assert after.outputs == ("act",)
    same(network, after)


@pytest.mark.parametrize("why", ["two readers", "output", "has one", "softmax before"])
def test_activations_stay(why: str) -> None:
    b = Literal()
    x = b.input("x", IMAGE)
    y = b.layer(Softmax(), [x], "y") if why == "softmax before" else b.layer(Binary(ADD), [x, x], "y")
    if why == "has one":
        y = b.layer(RELU, [y], "first")
    outputs = [b.layer(LeakyRelu(), [y], "act")]
    if why == "two readers":
        outputs.append(b.layer(Unary(UnaryKind.EXP), [y], "other"))
    elif why == "output":
        outputs.append(y)
    network = b.build(outputs)
    after = fuse_activations(network)
    assert len(after.layers) == len(network.layers) - (why == "has one")
    same(network, after)


def test_only_clamps_of_the_same_scale_are_fused_into_stored_layers() -> None:
    b = Builder("stored")
    quant = Quant.of(0.05, 10)
    x = b.input("x", (1, 40), DType.INT8, quant)
    outputs = []
    for i, (op, to) in enumerate([(Clamp(0.0, 1.0), quant), (Clamp(0.0), Quant.of(0.1)), (LeakyRelu(), quant)]):
        y = b.layer(Binary(ADD), [x, x], f"sum{i}")
        outputs.append(b.layer(op, [y], f"act{i}", dtype=DType.INT8, quant=to))
    network = b.build(outputs)
    after = fuse_activations(network)
    assert ops(after) == ["Binary", "Binary", "Clamp", "Binary", "LeakyRelu"]
    same(network, after, exact=True)


# One dimension, groups


def test_signals_need_no_transpose() -> None:
    """A 1-D convolution is read as one on images of height 1; the signal is then (N, L, C)."""
    b = Literal()
    y = b.input("x", (1, 3, 16))
    for i, channels in enumerate((4, 5)):
        n, c, length = b.shape(y)
        image = b.layer(Transpose(NHWC), [b.layer(Reshape((n, c, 1, length)), [y], f"image{i}")], f"nhwc{i}")
        w = b.constant(f"w{i}", b.floats(channels, 1, 3, c))
        image = b.layer(Transpose(NCHW), [b.layer(Conv2d(), [image, w], f"conv{i}")], f"nchw{i}")
        y = b.layer(RELU, [b.layer(Reshape((n, channels, length - 2)), [image], f"line{i}")], f"relu{i}")
    network = b.build([b.layer(Reduce((2,), keep=False), [y], "mean")])
    after = run(network)
    assert "Transpose" not in ops(after)
    assert after.layouts == {"x": (0, 2, 1)}
    assert after.notes == ("input 'x' is taken as 1x16x3 (channels last); the file has 1x3x16",)
    same(network, after)


def test_channel_shuffle_moves_channels_only() -> None:
    """ShuffleNet (Zhang et al. 2018) really reorders: one Transpose within the pixels, none of images."""
    b = Literal()
    y = b.conv(b.input("x", (1, 3, 6, 6)), 6, "one")
    split = b.layer(Reshape((1, 2, 3, 4, 4)), [y], "split")
    turn = b.layer(Transpose((0, 2, 1, 3, 4)), [split], "turn")
    network = b.build([b.conv(b.layer(Reshape((1, 6, 4, 4)), [turn], "merge"), 2, "two")])
    after = run(network)
    assert [layer.op for layer in after.layers if isinstance(layer.op, Transpose)] == [Transpose((0, 1, 2, 4, 3))]
    same(network, after)


def test_one_tensor_given_in_several_orders() -> None:
    b = Literal()
    first = b.conv(b.input("x", (1, 3, 6, 5)), 4, "conv")
    second = b.layer(Transpose(NHWC), [first], "second")
    third = b.layer(Transpose(NCHW), [second], "third")
    network = b.build([first, second, third])
    after = run(network)
    assert after.outputs == network.outputs
    same(network, after, exact=True)


def test_what_a_reduction_leaves_is_in_the_order_it_is_held() -> None:
    b = Literal()
    y = b.conv(b.input("x", (1, 3, 6, 5)), 4, "conv")
    rows = b.layer(Reduce((2,), keep=False), [y], "rows")  # (N, C, W), held as (N, W, C)
    network = b.build([b.layer(Reshape((4, 3)), [rows], "flat")])
    after = run(network)
    assert after.tensors["rows"].shape == (1, 3, 4)
    same(network, after)


def test_hard_sigmoid_of_another_slope_is_no_hard_swish() -> None:
    b = Literal()
    x = b.input("x", (4, 9))
    network = b.build([b.binary(MUL, x, b.layer(HardSigmoid(0.2, 0.5), [x], "gate"), "y")])
    assert ops(recognise_activations(network)) == ["HardSigmoid", "Binary"]
