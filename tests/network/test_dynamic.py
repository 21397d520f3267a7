"""Dynamic range TFLite: real activations stored in eight bits as they come, bit for bit as LiteRT's hybrid kernels."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from edgewright.emit import TARGETS, emit
from edgewright.emit.verify import verify
from edgewright.errors import Unsupported
from edgewright.memory import plan as make_plan
from edgewright.network import Array, Builder, DType, Network
from edgewright.network.kernels import execute
from edgewright.network.operators import Conv2d, DynamicProduct, DynamicQuantize, DynamicRange
from edgewright.network.tflite import read_tflite
from tests.helpers.emitting import check_emitted
from tests.helpers.emitting_cases import in_turns
from tests.helpers.on_board import check_on_board
from tests.helpers.parameters import each_once
from tests.helpers.tflite_cases import CASES, FLOAT, INT8
from tests.helpers.tflite_models import Node, Spec, as_litert_here, constant, model, options, run_litert

KINDS = ("dynamic_conv_2d", "dynamic_depthwise_conv_2d", "dynamic_transpose_conv", "dynamic_fully_connected")


def difficult(rng: np.random.Generator, shape: tuple[int, ...], kind: int) -> Array:
    """Numbers of one sign, none but zeros, multiples of 1/8 (which meet ties), and any."""
    x = (rng.standard_normal(shape) * np.exp(rng.uniform(-3, 3))).astype(np.float32)
    match kind % 6:
        case 0:
            return np.abs(x)
        case 1:
            return -np.abs(x)
        case 2:
            return np.zeros_like(x)
        case 3:
            return (np.rint(x * 8) / 8).astype(np.float32)
        case 4:
            x[0] = 0
    return x


@pytest.mark.parametrize("name", KINDS)
def test_equal_to_litert(name: str) -> None:
    """But for TRANSPOSE_CONV, where LiteRT adds up scaled products as floats: we sum integers, which are exact."""
    for seed in range(18):
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        content = CASES[name, FLOAT](rng, FLOAT)
        network = read_tflite(content)
        assert {type(layer.op) for layer in network.layers} >= {DynamicRange, DynamicQuantize, DynamicProduct}
        x = difficult(rng, network.tensors["x"].shape, seed)
        wanted = run_litert(content, [x])[0]
        noise = 1e-6 * float(np.abs(wanted).max()) if name == "dynamic_transpose_conv" else 0
        with as_litert_here():
            found = execute(network, {"x": x})[network.outputs[0]]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=noise)


def chain(seed: int = 0) -> bytes:
    """Convolutions of every kind with branches that read the same image, then a row of numbers."""
    rng = np.random.default_rng(seed)
    specs = [Spec("x", (1, 9, 8, 3)), constant("axes", [1, 2])]

    def weights(name: str, shape: tuple[int, ...], axis: int) -> None:
        scales = tuple(float(np.float32(s)) for s in rng.uniform(0.002, 0.01, shape[axis]))
        specs.append(constant(f"{name}w", rng.integers(-127, 128, shape), INT8, scale=scales, axis=axis))
        specs.append(constant(f"{name}b", rng.normal(0, 0.1, shape[axis]), FLOAT))

    weights("a", (6, 3, 3, 3), 0)
    weights("b", (4, 1, 1, 6), 0)
    weights("c", (4, 3, 3, 6), 0)
    weights("d", (1, 3, 3, 4), 3)
    weights("e", (5, 4), 0)
    specs += [Spec(name, (1, 9, 8, depth)) for name, depth in (("a", 6), ("b", 4), ("c", 4), ("s", 4), ("d", 4))]
    specs += [Spec("m", (1, 4)), Spec("y", (1, 5))]
    conv = options("Conv2D", strideH=1, strideW=1, fusedActivationFunction=1)
    depthwise = options("DepthwiseConv2D", strideH=1, strideW=1, depthMultiplier=1)
    nodes = [
        Node("CONV_2D", ("x", "aw", "ab"), ("a",), conv),
        Node("CONV_2D", ("a", "bw", "bb"), ("b",), conv),
        Node("CONV_2D", ("a", "cw", "cb"), ("c",), conv),
        Node("ADD", ("b", "c"), ("s",), options("Add")),
        Node("DEPTHWISE_CONV_2D", ("s", "dw", "db"), ("d",), depthwise),
        Node("MEAN", ("d", "axes"), ("m",), options("Reducer")),
        Node("FULLY_CONNECTED", ("m", "ew", "eb"), ("y",), options("FullyConnected")),
    ]
    return model(specs, nodes, ["x"], ["y"])


def test_an_image_is_stored_once_however_many_read_it() -> None:
    network = read_tflite(chain())
    kinds = [type(layer.op) for layer in network.layers]
    assert kinds.count(DynamicProduct) == 5
    assert kinds.count(DynamicQuantize) == kinds.count(DynamicRange) == 4


def test_a_chain_is_verified() -> None:
    """A mean in the middle may round otherwise than LiteRT's; nothing else may."""
    content = chain()
    network = read_tflite(content)
    found = verify(emit(make_plan(network), TARGETS["cortex-m4"], network), content, count=2)
    assert found.verified
    assert all(check.difference <= 1e-5 for check in found.checks)


@pytest.mark.parametrize(("name", "target"), each_once(KINDS, ["cortex-m4", "cortex-m0plus"]))
def test_on_chips(name: str, target: str) -> None:
    """Scales and sums are exact there too: nothing is left to the order of additions."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    check_on_board(read_tflite(CASES[name, FLOAT](rng, FLOAT)), target)


def test_weights_stay_small() -> None:
    network: Network = read_tflite(chain())
    library = emit(make_plan(network), TARGETS["cortex-m4"], network)
    stored = sum(v.size for v in network.constants.values() if v.dtype == np.int8)
    assert stored <= library.weight_bytes < 2 * stored


def test_weights_with_a_zero_point_are_refused() -> None:
    w = constant("w", np.ones((2, 3)), INT8, scale=0.1, zero=5)
    node = Node("FULLY_CONNECTED", ("x", "w"), ("y",), options("FullyConnected"))
    with pytest.raises(Unsupported, match="weights with a zero point meet real numbers"):
        read_tflite(model([Spec("x", (1, 3)), w, Spec("y", (1, 2))], [node], ["x"], ["y"]))


@pytest.mark.parametrize(("groups", "depth", "channels"), [(1, 4, 7), (5, 1, 5), (3, 2, 9), (2, 3, 8)])
def test_channels_in_turns(groups: int, depth: int, channels: int) -> None:
    """Turns begin within groups, and between them."""
    rng, b = np.random.default_rng(channels), Builder("dynamic")
    x, found = b.input("x", (1, 7, 6, groups * depth), DType.INT8), b.input("range", (1, 3))
    w = b.constant("w", rng.integers(-127, 128, (channels, 3, 3, depth)).astype(np.int8))
    scales = b.constant("scales", rng.uniform(0.001, 0.01, channels).astype(np.float32))
    bias = b.constant("bias", rng.normal(size=channels).astype(np.float32))
    op = DynamicProduct(Conv2d(pads=(1, 1, 1, 1), groups=groups), asymmetric=True)
    network = b.build([b.layer(op, [x, w, scales, bias, found], "y", dtype=DType.FLOAT32)])
    for size in (2, 3):
        plan = in_turns(make_plan(network, plain=True), size)
        library = emit(plan, TARGETS["cortex-m4"])
        assert library.files[f"{library.name}.c"].count("dynamic_conv_run(") == 1
        check_emitted(network, "cortex-m4", plan)
