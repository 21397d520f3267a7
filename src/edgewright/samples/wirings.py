"""Small networks for the shapes a graph can take: branches, dense reuse, long skips, gates, random wiring."""

import numpy as np
import onnx
from onnx import TensorProto

from ..errors import InputError
from .builder import LINEAR, RELU, RELU_CENTRED, ModelBuilder


def tiny_inception(size: int = 64, classes: int = 10) -> onnx.ModelProto:
    """Three inception modules: four branches each, concatenated (Szegedy et al. 2015, fig. 2b)."""
    net = ModelBuilder("tiny_inception")
    x = net.input(1, 3, size, size)
    x = net.max_pool(net.relu(net.conv(x, 16, 3, 2)), 3, 2, 1)
    for width in (8, 16):
        x = _inception(net, x, width)
    x = _inception(net, net.max_pool(x, 3, 2, 1), 24)
    x = net.classifier(x, classes)
    return net.model(net.softmax(x))


def _inception(net: ModelBuilder, x: str, width: int) -> str:
    one = net.relu(net.conv(x, width))
    three = net.relu(net.conv(net.relu(net.conv(x, width)), 2 * width, 3))
    five = net.relu(net.conv(net.relu(net.conv(x, width // 2)), width, 5))
    pooled = net.relu(net.conv(net.max_pool(x, 3, 1, 1), width))
    return net.concat(one, three, five, pooled)


def tiny_densenet(growth: int = 8, layers: int = 3, classes: int = 10) -> onnx.ModelProto:
    """Three dense blocks: every layer reads all before it, normalised first (Huang et al. 2017)."""
    net = ModelBuilder("tiny_densenet")
    x = net.input(1, 3, 32, 32)
    x = net.unbiased_conv(x, 2 * growth, 3, gain=LINEAR)
    for block in range(3):
        for _ in range(layers):
            y = net.unbiased_conv(net.relu(net.batchnorm(x)), growth, 3)
            x = net.concat(x, y)
        if block < 2:
            x = net.unbiased_conv(net.relu(net.batchnorm(x)), net.shape(x)[1] // 2)
            x = net.average_pool(x, 2, 2)
    x = net.relu(net.batchnorm(x))
    return net.model(net.classifier(x, classes))


def unet(size: int = 64, width: int = 8, classes: int = 2, transposed: bool = False) -> onnx.ModelProto:
    """U-Net of three levels: long skips from each way down to its way up (Ronneberger et al. 2015).

    Upsampling is nearest neighbour and a convolution, or a transposed convolution as in the original.
    """
    net = ModelBuilder("unet")
    x = net.input(1, 1, size, size)
    skips = []
    for level in range(2):
        skips.append(_double_conv(net, x, width << level))
        x = net.max_pool(skips[-1], 2, 2)
    x = _double_conv(net, x, width << 2)
    for skip in reversed(skips):
        channels = net.shape(skip)[1]
        up = net.up_conv(x, channels) if transposed else net.relu(net.conv(net.upsample(x), channels, 3))
        x = _double_conv(net, net.concat(skip, up), channels)
    return net.model(net.conv(x, classes, gain=LINEAR))


def _double_conv(net: ModelBuilder, x: str, channels: int) -> str:
    for _ in range(2):
        x = net.relu(net.conv(x, channels, 3))
    return x


def tiny_mobilenet_v3(size: int = 64, classes: int = 10) -> onnx.ModelProto:
    """MobileNetV3 in small: squeeze-and-excite gates, HardSwish, batch normalisation (Howard et al. 2019)."""
    net = ModelBuilder("tiny_mobilenet_v3")
    x = net.input(1, 3, size, size)
    x = net.hard_swish(_conv_bn(net, x, 16, 3, 2))
    for expanded, channels, stride in ((16, 16, 2), (72, 24, 2), (88, 24, 1), (96, 40, 2), (120, 40, 1)):
        depth = net.shape(x)[1]
        y = net.hard_swish(_conv_bn(net, x, expanded))
        y = net.hard_swish(_conv_bn(net, y, expanded, 3, stride, groups=expanded))
        y = _conv_bn(net, _squeeze_excite(net, y), channels, gain=LINEAR)
        x = net.add(x, y) if stride == 1 and channels == depth else y
    x = net.hard_swish(_conv_bn(net, x, 160))
    return net.model(net.classifier(x, classes))


def _conv_bn(
    net: ModelBuilder,
    x: str,
    channels: int,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
    gain: float = RELU_CENTRED,
) -> str:
    pad = kernel // 2
    return net.batchnorm(net.unbiased_conv(x, channels, kernel, stride, pad, groups=groups, gain=gain))


def _squeeze_excite(net: ModelBuilder, x: str) -> str:
    """The channels of x, each scaled by a gate computed from all of them."""
    channels = net.shape(x)[1]
    gate = net.relu(net.conv(net.node("GlobalAveragePool", x), max(8, channels // 4)))
    gate = net.node("HardSigmoid", net.conv(gate, channels, gain=LINEAR), alpha=1 / 6, beta=0.5)
    return net.node("Mul", x, gate)


def randwire(seed: int = 0, nodes: int = 12, width: int = 16, classes: int = 10) -> onnx.ModelProto:
    """Randomly wired cell: a Watts-Strogatz graph of separable convolutions (Xie et al. 2019)."""
    if nodes < 6:
        raise InputError(f"randwire: {nodes} nodes are too few for four neighbours each. Choose 6 or more.")
    net = ModelBuilder(f"randwire_{seed}" if seed else "randwire")
    stem = net.input(1, 3, 32, 32)
    stem = net.relu(_conv_bn(net, stem, width, 3, 2))
    edges = _small_world(np.random.default_rng(seed), nodes, neighbours=4, rewired=0.75)
    value: list[str] = []
    for node in range(nodes):
        sources = [value[a] for a, b in edges if b == node]
        x = net.add(*sources) if sources else stem
        x = net.unbiased_conv(net.relu(x), net.shape(x)[1], 3, groups=net.shape(x)[1], gain=RELU)
        # A sum of n values varies n times as much, which is taken back here.
        value.append(_conv_bn(net, x, width, gain=LINEAR / max(1, len(sources))))
    sinks = [value[n] for n in range(nodes) if not any(a == n for a, _ in edges)]
    x = net.relu(net.add(*sinks))
    return net.model(net.softmax(net.classifier(x, classes)))


def _small_world(rng: np.random.Generator, nodes: int, neighbours: int, rewired: float) -> list[tuple[int, int]]:
    """Edges (a, b), a < b, of a ring lattice with some ends moved (Watts & Strogatz 1998)."""
    edges: set[tuple[int, int]] = set()
    for distance in range(1, neighbours // 2 + 1):
        for a in range(nodes):
            b = (a + distance) % nodes
            free = [n for n in range(nodes) if n != a and (min(a, n), max(a, n)) not in edges]
            if rng.random() < rewired or b not in free:
                if not free:
                    continue  # already joined to all others
                b = free[rng.integers(len(free))]
            edges.add((min(a, b), max(a, b)))
    return sorted(edges)


def text_classifier(words: int = 10003, length: int = 256, width: int = 16, classes: int = 2) -> onnx.ModelProto:
    """Film review as word numbers: embedding, mean over the words, two dense layers.

    The sizes are those of the average-word-vector model of the TensorFlow Lite samples, a network like TXT in
    Stahl table 4.1.
    """
    net = ModelBuilder("text_classifier")
    x = net.embedding(net.input(1, length, dtype=TensorProto.INT32), words, width)
    x = net.node("ReduceMean", x, axes=[1], keepdims=0)
    # The mean of n words varies n times less than one.
    x = net.relu(net.dense(x, width, gain=LINEAR * length))
    return net.model(net.softmax(net.dense(x, classes)))
