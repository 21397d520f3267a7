"""Vector kernels: every width of vectors, whatever shares memory, bit for bit or within the tolerance of floats."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgewright.emit import TARGETS, Library, emit
from edgewright.emit.files import kernel_files
from edgewright.emit.native import build
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import (
    AvgPool2d,
    BatchNorm,
    Binary,
    BinaryKind,
    Clamp,
    Conv2d,
    Dense,
    Elu,
    HardSigmoid,
    LeakyRelu,
    MaxPool2d,
    Reduce,
    ReduceKind,
    Unary,
    UnaryKind,
)
from edgewright.program import Plan, Program, Stage, Step, Sweep
from emitting import WARNINGS
from emitting_batch import agree

VECTORS = {  # compiler options, and what /proc/cpuinfo calls what they need
    "plain": ((), ()),
    "avx2": (("-mavx2", "-mfma"), ("avx2", "fma")),
    "avx512": (("-mavx512f", "-mavx512bw", "-mavx2", "-mfma"), ("avx512f", "avx512bw")),
    "native": (("-march=native",), ()),
}
REAL = [
    None,
    Clamp(0.0),
    Clamp(-0.5, 1.0),
    LeakyRelu(0.1),
    Elu(1.3, 0.9),
    HardSigmoid(0.3, 0.4),
    *(Unary(kind) for kind in (UnaryKind.SILU, UnaryKind.HARD_SWISH, UnaryKind.SIGMOID, UnaryKind.TANH)),
    Unary(UnaryKind.GELU),  # one that the kernels leave to a second pass
]
WHOLE = [None, Clamp(0.0), Clamp(0.0, 6.0)]


def flags(vectors: str) -> list[str]:
    """The options for these vectors; skips where this machine does not have them."""
    options, needed = VECTORS[vectors]
    info = Path("/proc/cpuinfo")
    known = info.read_text().split() if info.exists() else []
    if missing := [name for name in needed if name not in known]:
        pytest.skip(f"this machine has no {', '.join(missing)}")
    return [*WARNINGS, *options]


class Layers:
    """Layers side by side in one network, so that one build tests many."""

    def __init__(self, kind: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.is_real = kind == "float"
        self.is_tflite = kind == "tflite"
        self.builder = Builder(kind, Arithmetic.TFLITE if self.is_tflite else Arithmetic.ONNX)
        self.outputs: list[str] = []

    @property
    def format(self) -> dict[str, object]:
        if self.is_real:
            return {"dtype": DType.FLOAT32}
        if self.is_tflite or self.rng.random() < 0.5:
            return {"dtype": DType.INT8, "quant": Quant.of(self.rng.uniform(0.02, 0.1), self.int(-20, 20))}
        return {"dtype": DType.UINT8, "quant": Quant.of(self.rng.uniform(0.02, 0.1), self.int(0, 255))}

    def int(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def pick(self, choices):
        return choices[self.int(0, len(choices) - 1)]

    def pair(self, choices) -> tuple[int, int]:
        return self.pick(choices), self.pick(choices)

    @property
    def activation(self):
        return self.pick(REAL if self.is_real else WHOLE)

    def input(self, *shape: int) -> str:
        return self.builder.input(f"x{len(self.builder.inputs)}", shape, **self.format)

    def weights(self, shape: tuple[int, ...]) -> list[str]:
        b, rng = self.builder, self.rng
        if self.is_real:
            w = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
            return [b.constant("w", w.astype(np.float32)), b.constant("b", rng.normal(size=shape[0]).astype("f4"))]
        scales = tuple(map(float, rng.uniform(0.002, 0.01, shape[0])))
        quant = Quant(scales, (0,) * shape[0], 0) if shape[0] > 1 else Quant.of(scales[0])
        w = b.constant("w", rng.integers(-127, 128, shape, np.int8), quant)
        return [w, b.constant("b", rng.integers(-2000, 2000, shape[0], np.int32))]

    def layer(self, op, inputs: list[str], name: str) -> str:
        return self.builder.layer(op, inputs, f"{name}{len(self.builder.layers)}", **self.format)

    def end(self, y: str) -> None:
        self.outputs.append(y)

    def conv(self, x: str, kernel, channels: int, groups: int = 1, **attributes) -> str:
        depth = self.builder.tensors[x].shape[3] // groups
        op = Conv2d(groups=groups, activation=self.activation, **attributes)
        return self.layer(op, [x, *self.weights((channels, *kernel, depth))], "conv")

    def build(self) -> Network:
        return self.builder.build(self.outputs)


def convolutions(layers: Layers) -> None:
    """Kernels, strides, dilations, pads; few channels and many; more than one block of depth."""
    for kernel, channels in (((3, 3), 40), ((1, 1), 17), ((5, 2), 16), ((2, 3), 7), ((3, 3), 65)):
        x = layers.input(layers.int(1, 2), layers.int(9, 14), layers.int(9, 14), layers.pick([1, 3, 8, 19]))
        pads = tuple(layers.int(-1, 2) for _ in range(4)) if kernel != (1, 1) else (0, 0, 0, 0)
        attributes = {"stride": layers.pair([1, 1, 2, 3]), "dilation": layers.pair([1, 1, 2]), "pads": pads}
        layers.end(layers.conv(x, kernel, channels, **attributes))
    x = layers.input(1, 6, 7, 150)  # over a thousand numbers per pixel
    layers.end(layers.conv(layers.conv(x, (3, 3), 33, pads=(1, 1, 1, 1)), (1, 1), 300))
    x = layers.input(1, 7, 6, 24)
    layers.end(layers.conv(x, (3, 3), 36, groups=3, pads=(1, 1, 1, 1)))


def depthwise(layers: Layers) -> None:
    """Alone, in a chain that lies in place, and with a window that reaches far beyond the image."""
    for channels in (1, 5, 16, 33, 48):
        x = layers.input(layers.int(1, 2), layers.int(6, 12), layers.int(3, 20), channels)
        for kernel, stride, pads in (((3, 3), (1, 1), (1, 1, 1, 1)), ((3, 3), (2, 2), (0, 1, 1, 2)), ((5, 2), (1, 2), (4, 1, 0, 1))):
            x = layers.conv(x, kernel, channels, groups=channels, stride=stride, pads=pads)
        layers.end(x)


def products(layers: Layers) -> None:
    for shape, channels in (((1, 300), 40), ((3, 65), 17), ((2, 5, 33), 7), ((60, 20), 32), ((70,), 10)):
        op = Dense(layers.pick([None, Clamp(0.0)]))
        layers.end(layers.layer(op, [layers.input(*shape), *layers.weights((channels, shape[-1]))], "dense"))


def small(layers: Layers) -> None:
    """Pools, means, sums, products with broadcasting, batch normalisation, activations alone."""
    b = layers.builder
    for channels in (3, 16, 37):
        x = layers.input(1, 9, 8, channels)
        x = layers.layer(MaxPool2d((3, 2), (2, 1), (1, 1), (1, 0, 1, 1), layers.activation), [x], "max")
        counted = AvgPool2d((3, 3), (1, 2), (1, 1), (1, 1, 1, 1), layers.activation, count_pads=True, uncounted=(1, 0))
        x = layers.layer(counted, [x], "avg")
        x = layers.layer(AvgPool2d((2, 2), (1, 1), (1, 1), (0, 1, 1, 0)), [x], "avg")
        gate = layers.layer(Reduce((1, 2), kind=ReduceKind.MEAN), [x], "mean")
        for kind in (BinaryKind.MUL, BinaryKind.ADD, BinaryKind.SUB):
            x = layers.layer(Binary(kind, layers.activation), [x, gate], "gated")
        x = layers.layer(Binary(BinaryKind.ADD, layers.activation), [x, layers.input(*b.tensors[x].shape)], "sum")
        for activation in REAL[1:]:
            x = layers.layer(activation, [x], "activation")
        scale = [b.constant("s", layers.rng.normal(size=channels).astype(np.float32)) for _ in range(2)]
        layers.end(layers.layer(BatchNorm(layers.activation), [x, *scale], "norm"))


def sums(layers: Layers) -> None:
    for shape in ((1, 5, 5, 16), (1, 3, 7, 5), (40,)):
        for kind in (BinaryKind.ADD, BinaryKind.SUB):
            layers.end(layers.layer(Binary(kind, layers.activation), [layers.input(*shape) for _ in range(2)], "sum"))


PARTS: dict[str, list[Callable[[Layers], None]]] = {
    "float": [convolutions, depthwise, products, small],
    "tflite": [convolutions, depthwise, products, sums],
    "onnx": [convolutions, depthwise, products],
}


def network_of(kind: str, seed: int) -> Network:
    layers = Layers(kind, seed)
    for part in PARTS[kind]:
        part(layers)
    return layers.build()


def in_order(network: Network) -> Plan:
    """A plan with all its sharing; the best order of layers that have nothing to do with each other is of no interest."""
    return make_plan(network, explain=False)


def check(library: Library, options: list[str], cc: str | None = None) -> None:
    native, network = build(library, flags=options, cc=cc), library.network
    for seed, poison in ((0, 0xFF), (1, 0x55)):
        inputs = random_inputs(network, seed)
        agree(network, native.run(inputs, poison), execute(network, inputs))


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize("kind", PARTS)
def test_every_width_of_vectors(kind, vectors):
    options = flags(vectors)
    network = network_of(kind, seed=sorted(VECTORS).index(vectors))
    check(emit(in_order(network), TARGETS["host"], network), options)
