"""Sums taken share by share, over any split of what is summed and any regions, become the output of the whole layer."""

from __future__ import annotations

import zlib
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.network import Arithmetic, Builder, DType, Interval, Layer, Network, Quant, Region, Shape, Tensor
from edgewright.network.kernels import Operand, add_partial_sum, execute, finish_partial_sums
from edgewright.network.operators import AvgPool2d, Clamp, Conv2d, Dense, Op, Reduce, ReduceKind, Unary, UnaryKind
from edgewright.network.operators.partial_sums import partial_macs, partial_needs, reduction_axes
from edgewright.network.tensor import Array
from edgewright.network.tflite import read_tflite
from edgewright.program import summed_axes
from tests.helpers.kernel_cases import Case, Draw, activation, cases, image, shape
from tests.helpers.quantised_cases import network_of
from tests.helpers.tflite_cases import CASES, FLOAT, INT8, UINT8, random_value

EXAMPLES = settings(max_examples=25, deadline=None)
KINDS = ("float32", "tflite int8", "tflite uint8", "onnx int8", "onnx uint8")
OPERATORS = ("conv", "dense", "mean", "pool")


@st.composite
def summing(draw: Draw, operator: str) -> Case:
    """A layer that sums over its input."""
    if operator == "conv":
        return draw(cases(Conv2d).filter(lambda case: case.op.groups == 1))
    if operator == "dense":
        return draw(cases(Dense).filter(lambda case: len(case.shapes[1]) == 2))
    seed = draw(st.integers(0, 99))
    if operator == "pool":
        x = image(draw, least=1)
        return Case(AvgPool2d(x[1:3], activation=activation(draw)), (x,), seed)
    if draw(st.booleans()):
        return Case(Reduce((1, 2), draw(st.booleans())), (image(draw, least=1),), seed)
    x = shape(draw, (1, 4), 6)
    axes = draw(st.lists(st.integers(0, len(x) - 1), min_size=1, unique=True))
    signed = tuple(axis - len(x) if draw(st.booleans()) else axis for axis in axes)
    kind = draw(st.sampled_from([ReduceKind.MEAN, ReduceKind.SUM]))
    return Case(Reduce(signed, draw(st.booleans()), kind), (x,), seed)


def cuts(rng: np.random.Generator, size: int, most: int = 4) -> list[Interval]:
    """0..size in parts of any size, some of them empty."""
    inner = sorted(int(at) for at in rng.integers(0, size + 1, rng.integers(0, most)))
    return list(pairwise([0, *inner, size]))


def boxes(rng: np.random.Generator, whole: Region, axes: tuple[int, ...]) -> list[Region]:
    """The region cut along these axes, in any order."""
    found = []
    for parts in product(*(cuts(rng, whole.shape[axis]) for axis in axes)):
        box = whole
        for axis, part in zip(axes, parts, strict=True):
            box = box.with_axis(axis, part)
        found.append(box)
    return [found[i] for i in rng.permutation(len(found))]


def operands_of(network: Network, layer: Layer, needs: tuple[Region, ...], values: dict[str, Array]) -> list[Operand]:
    return [
        Operand(values[name][region.slices].copy(), region, network.tensors[name])
        for name, region in zip(layer.inputs, needs, strict=True)
    ]


def by_shares(network: Network, layer: Layer, values: dict[str, Array], rng: np.random.Generator) -> Array:
    """The layer's output from sums over random shares, each added to random regions of the output."""
    op, result, shapes = layer.op, network.tensors[layer.output], network.shapes(layer)
    axes = tuple(reduction_axes(op, shapes))
    sums = np.zeros(result.shape, np.float32 if result.dtype is DType.FLOAT32 else np.int32)
    for out in boxes(rng, Region.whole(result.shape), tuple(range(len(result.shape)))):
        shares = boxes(rng, Region.whole(shapes[0]), axes)
        for share in shares:
            needs = partial_needs(op, out, shapes, share)
            assert all(part in whole for part, whole in zip(needs, op.needs(out, shapes), strict=True))
            assert all(Region((needs[0].bounds[axis],)) in Region((share.bounds[axis],)) for axis in axes)
            part = add_partial_sum(op, out, operands_of(network, layer, needs, values), result, network.arithmetic)
            assert (part.shape, part.dtype) == (out.shape, sums.dtype)
            sums[out.slices] += part
        assert sum(partial_macs(op, out, shapes, share) for share in shares) == op.macs(out, shapes)
    tensors = [network.tensors[name] for name in layer.inputs]
    constants = [network.constants.get(name) for name in layer.inputs]
    before = sums.copy()
    found = finish_partial_sums(op, sums, tensors, constants, result, network.arithmetic)
    np.testing.assert_array_equal(sums, before)  # they lie in memory that others may read
    return found


def assert_same(found: Array, wanted: Array) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if wanted.dtype == np.float32:
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=5e-5)
    else:
        np.testing.assert_array_equal(found, wanted)


def inputs_of(network: Network, rng: np.random.Generator) -> dict[str, Array]:
    tensors = [network.tensors[name] for name in network.inputs]
    return {tensor.name: random_value(rng, tensor.shape, tensor.dtype.value) for tensor in tensors}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operator", OPERATORS)
@EXAMPLES
@given(data=st.data())
def test_sums_of_shares_become_the_whole_layer(operator: str, kind: str, data: st.DataObject) -> None:
    network = network_of(data.draw(summing(operator)), kind)
    layer = network.layers[0]
    if not summed_axes(network, layer):
        assert kind.startswith("onnx")  # the one that computes some of these in float32
        return
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    values = inputs_of(network, rng)
    wanted = execute(network, values)[layer.output]
    assert_same(by_shares(network, layer, values | dict(network.constants), rng), wanted)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", [FLOAT, INT8, UINT8])
@pytest.mark.parametrize("name", ["conv_2d", "fully_connected", "mean", "sum_"])
def test_layers_of_tflite_files(name: str, dtype: str, seed: int) -> None:
    """Weights with one scale and with many, multipliers of all sizes, activations as TFLite folds them."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    network = read_tflite(CASES[name, dtype](rng, dtype))
    given = inputs_of(network, rng)
    everything = execute(network, given, keep=network.tensors) | given | dict(network.constants)
    summing = [layer for layer in network.layers if summed_axes(network, layer)]
    assert summing or name == "conv_2d"  # which may have groups
    for layer in summing:
        assert_same(by_shares(network, layer, everything, rng), everything[layer.output])


def one_layer(
    op: Op, x: Shape, w: Shape | None = None, kind: str = "tflite uint8", quant: Quant | None = None
) -> Network:
    """A network of one layer whose zero points are not zero."""
    words = kind.split()
    b = Builder("net", Arithmetic(words[0]))
    dtype = DType(words[1])
    rng = np.random.default_rng(0)
    names = [b.input("x", x, dtype, quant or Quant.of(0.1, 100))]
    if w is not None:
        weights = rng.integers(0, 100, w).astype(dtype.numpy)
        names += [b.constant("w", weights, Quant.of(0.02, 50)), b.constant("b", np.full(w[0], 10**6, np.int32))]
    return b.build([b.layer(op, names, "y", dtype=dtype, quant=Quant.of(0.1, 100))])


def sums_of(network: Network, values: dict[str, Array]) -> Array:
    layer = network.layers[0]
    result = network.tensors[layer.output]
    whole = Region.whole(result.shape)
    needs = partial_needs(layer.op, whole, network.shapes(layer), Region.whole(network.shapes(layer)[0]))
    operands = operands_of(network, layer, needs, values | dict(network.constants))
    return add_partial_sum(layer.op, whole, operands, result, network.arithmetic)


@pytest.mark.parametrize("kind", ["tflite uint8", "onnx uint8"])
def test_products_are_centred_and_padding_and_bias_add_nothing(kind: str) -> None:
    network = one_layer(Conv2d(pads=(1, 1, 1, 1)), (1, 1, 1, 3), (2, 3, 3, 3), kind)
    x = np.array([[[[7, 100, 255]]]], np.uint8)
    middle = network.constants["w"][:, 1, 1].astype(int) - 50  # all other taps fall on the padding
    np.testing.assert_array_equal(sums_of(network, {"x": x}), ((x.astype(int) - 100) @ middle.T).reshape(1, 1, 1, 2))


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        (Reduce((1, 2), True), "tflite uint8"),
        (Reduce((1, 2), True), "onnx uint8"),
        (Reduce((1, 2), True, ReduceKind.SUM), "tflite uint8"),
        (AvgPool2d((2, 3)), "tflite uint8"),
    ],
)
def test_means_sum_what_is_stored(op: Op, kind: str) -> None:
    x = np.random.default_rng(0).integers(0, 256, (1, 2, 3, 4)).astype(np.uint8)
    found = sums_of(one_layer(op, x.shape, kind=kind), {"x": x})
    np.testing.assert_array_equal(found, x.astype(int).sum(axis=(1, 2), keepdims=True))


def axes_of(network: Network) -> set[int]:
    return set(summed_axes(network, network.layers[0]))


def test_only_what_adds_integers_is_summed_up() -> None:
    """onnxruntime's QLinearAveragePool, and whatever it has no integer kernel for, are computed in float32."""
    x, per_channel = (1, 4, 4, 2), Quant((0.1, 0.2), (3, 4), 3)
    for kind in ("tflite int8", "onnx int8", "qlinear int8"):
        is_tflite = kind.startswith("tflite")
        pooled = set() if kind.startswith("qlinear") else {1, 2}
        assert axes_of(one_layer(AvgPool2d((4, 4)), x, kind=kind)) == pooled
        assert axes_of(one_layer(AvgPool2d((2, 2)), x, kind=kind)) == set()
        assert axes_of(one_layer(Reduce((1, 2), kind=ReduceKind.SUM), x, kind=kind)) == ({1, 2} if is_tflite else set())
        assert axes_of(one_layer(Reduce((3,)), x, kind=kind)) == ({3} if is_tflite else set())
        assert axes_of(one_layer(Reduce((1, 2)), x, kind=kind)) == {1, 2}
        assert axes_of(one_layer(Conv2d(activation=Clamp(0.0)), x, (5, 1, 1, 2), kind)) == {3}
    assert axes_of(one_layer(Conv2d(activation=Unary(UnaryKind.TANH)), x, (5, 1, 1, 2), "onnx int8")) == set()
    assert axes_of(one_layer(Reduce((1, 2)), x, kind="onnx int8", quant=per_channel)) == set()
    assert axes_of(one_layer(Conv2d(), x, (5, 1, 1, 2), "tflite int16")) == set()


def test_sums_beyond_32_bits_are_not_kept() -> None:
    """Bytes differ from a zero point of 255 by up to 255, and from one of 50 by up to 205."""
    most = (2**31 - 1) // (255 * 205)
    for terms, axes in ((most, {1}), (most + 1, set())):
        network = one_layer(Dense(), (1, terms), (1, terms), quant=Quant.of(0.1, 255))
        assert axes_of(network) == axes
    values = {"x": np.zeros((1, most), np.uint8)}
    network = one_layer(Dense(), (1, most), (1, most), quant=Quant.of(0.1, 255))
    network = replace(network, constants=dict(network.constants) | {"w": np.full((1, most), 255, np.uint8)})
    assert sums_of(network, values).tolist() == [[-255 * 205 * most]]


def test_a_bias_that_is_computed_is_not_there_at_the_end() -> None:
    b = Builder("net")
    names = [b.input(*named) for named in (("x", (1, 4)), ("b", (3,)))]
    names.insert(1, b.constant("w", np.ones((3, 4), np.float32)))
    assert axes_of(b.build([b.layer(Dense(), names, "y")])) == set()


def test_weights_of_another_type_than_the_input_are_not_summed_up() -> None:
    """Real numbers times stored integers are brought to one type first."""
    network = one_layer(Dense(), (1, 4), (3, 4), "onnx int8")
    tensors = dict(network.tensors)
    for name in ("x", "y"):
        tensors[name] = Tensor(name, tensors[name].shape, DType.FLOAT32)
    assert axes_of(replace(network, tensors=tensors)) == set()
