"""Networks that the papers work through by hand, so that their figures can be computed again.

They are the dissertations of Stahl and of Minakova. A layer carries the name that the paper gives it.
"""

import math
import zlib
from collections.abc import Sequence

import numpy as np
import onnx

from .builder import LINEAR, ModelBuilder


def stahl_running_example() -> onnx.ModelProto:
    """Running example of Stahl fig. 4.4: a small keyword spotter that only depthwise tiling shrinks."""
    net = ModelBuilder("stahl_running_example")
    x = net.input(1, 1, 32, 8)
    # Two rows of padding on either side make 16 rows of the 32; the 8 columns divide evenly.
    x = net.relu(net.conv(x, 32, (6, 2), 2, (2, 0, 2, 0), name="Conv1"))
    x = net.relu(net.depthwise(x, 3, name="Conv2"))
    x = net.relu(net.conv(x, 64, name="Conv3"))
    return net.model(net.classifier(x, 6, name="Dense"))


def stahl_two_paths() -> onnx.ModelProto:
    """Scheduling example of Stahl fig. 4.5: two paths whose best order, peak 110, is not depth-first, 120.

    One unit is 40 floats, 160 bytes: 20 rows of 2. The text gives A1 50, B1 30, C1 40, B2 40, C2 40. The others are
    ours: input 20, A2 20, D 10; any with input <= 30, A2 <= 40 and D <= 30 keep both peaks. D has to be smaller
    than what it reads, so it is a product: rows of the first path times rows of the second.
    """
    net = ModelBuilder("stahl_two_paths")
    x = net.input(20, 40)
    first, second = x, x
    for layer, width in (("A1", 100), ("B1", 60), ("C1", 80)):
        first = net.dense(first, width, gain=LINEAR, name=layer)
    for layer, width in (("A2", 40), ("B2", 80), ("C2", 80)):
        second = net.dense(second, width, gain=LINEAR, name=layer)
    return net.model(net.node("Gemm", first, second, name="D", transB=1))


def minakova_example() -> onnx.ModelProto:
    """Low-memory example of Minakova table 4.1: four layers whose buffers shrink when run row by row."""
    net = ModelBuilder("minakova_example")
    x = net.input(1, 1, 32, 32)
    x = net.conv(x, 4, 17, 1, 0, gain=LINEAR, name="l2")
    # The pads of l3 are -1 on all sides. Conv knows no negative pads, Pad does.
    crop = net.constant("crop", (0, 0, -1, -1, 0, 0, -1, -1), np.int64)
    x = net.conv(net.node("Pad", x, crop, name="l3.crop"), 3, 5, 3, 0, gain=LINEAR, name="l3")
    return net.model(net.dense(net.node("Flatten", x, axis=1), 2, name="l4"))


def minakova_cnn1() -> onnx.ModelProto:
    """First network of the application in Minakova fig. 6.1: two convolutions and their sum."""
    net = ModelBuilder("minakova_cnn1")
    x = net.conv(net.input(1, 3, 32, 32), 8, 5, 1, 2, gain=LINEAR, name="l2")
    y = net.conv(x, 8, 5, 1, 2, gain=LINEAR, name="l3")
    return net.model(net.node("Add", x, y, name="l4"))


def minakova_cnn2() -> onnx.ModelProto:
    """Second network of the application in Minakova fig. 6.1: a convolution and a fully connected layer."""
    net = ModelBuilder("minakova_cnn2")
    x = net.conv(net.input(1, 3, 32, 32), 8, 5, 1, 0, gain=LINEAR, name="l2")
    return net.model(net.dense(net.node("Flatten", x, axis=1), 10, name="l3"))


ACTIVATION_SCALE = 1 / 32  # of all int8 activations of the scenarios, so that equal weights make equal layers


def minakova_scenario1() -> onnx.ModelProto:
    """First scenario of Minakova fig. 5.3, int8: two convolutions and a fully connected layer."""
    net = ModelBuilder("minakova_scenario1")
    x = _int8_conv(net, _int8_input(net), "l2", 8, 5)
    return _int8_ending(net, _int8_conv(net, x, "l3", 16, 3, stride=2, weights="W3_1"))


def minakova_scenario2() -> onnx.ModelProto:
    """Second scenario of Minakova fig. 5.3, int8: one convolution more, between layers that the first has too."""
    net = ModelBuilder("minakova_scenario2")
    x = _int8_conv(net, _int8_input(net), "l2", 8, 5)
    x = _int8_conv(net, x, "l3", 8, 3, weights="W3_2")
    return _int8_ending(net, _int8_conv(net, x, "l4", 16, 3, stride=2, weights="W4_2"))


def _int8_input(net: ModelBuilder) -> str:
    return _quantised(net, net.input(1, 3, 32, 32))


def _int8_conv(
    net: ModelBuilder, x: str, name: str, channels: int, kernel: int, stride: int = 1, weights: str = ""
) -> str:
    """A convolution; layers with the same name of weights have the same weights."""
    shape = (channels, net.shape(x)[1], kernel, kernel)
    pads = [kernel // 2] * 4
    y = net.node("Conv", *_int8_operands(net, x, weights or name, shape), name=name, pads=pads, strides=[stride] * 2)
    return _quantised(net, y)


def _int8_ending(net: ModelBuilder, x: str) -> onnx.ModelProto:
    flat = net.node("Flatten", x, axis=1)
    y = net.node("Gemm", *_int8_operands(net, flat, "l5", (10, net.shape(flat)[1])), name="l5", transB=1)
    return net.model(_real(net, _quantised(net, y), "scores"))


def _int8_operands(net: ModelBuilder, x: str, weights: str, shape: Sequence[int]) -> tuple[str, str, str]:
    """Input, weights and biases as real numbers; weights have variance 1 / fan-in."""
    rng = np.random.default_rng(zlib.crc32(weights.encode()))
    step = math.sqrt(3 / math.prod(shape[1:])) / 127
    w = net.constant(f"{weights}.weight", rng.integers(-127, 128, shape), np.int8)
    b = net.constant(f"{weights}.bias", rng.integers(-1000, 1001, shape[0]), np.int32)
    scales = net.constant(f"{weights}.scale", step), net.constant(f"{weights}.bias_scale", step * ACTIVATION_SCALE)
    zeros = net.constant("zero", 0, np.int8), net.constant("bias_zero", 0, np.int32)
    real = [net.node("DequantizeLinear", y, s, z) for y, s, z in zip((w, b), scales, zeros, strict=True)]
    return _real(net, x), real[0], real[1]


def _quantised(net: ModelBuilder, x: str) -> str:
    return net.node("QuantizeLinear", x, *_activation_scale(net))


def _real(net: ModelBuilder, x: str, name: str = "") -> str:
    return net.node("DequantizeLinear", x, *_activation_scale(net), name=name)


def _activation_scale(net: ModelBuilder) -> tuple[str, str]:
    return net.constant("step", ACTIVATION_SCALE), net.constant("zero", 0, np.int8)
