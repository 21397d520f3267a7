"""Small networks for the virtual board, and ways to break the firmware around them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from edgewright.emit import Library
from edgewright.network import Arithmetic, Builder, DType, Network, Quant
from edgewright.network.operators import Clamp, Conv2d, MaxPool2d, Softmax, Unary, UnaryKind


def quantised() -> Network:
    """A convolution, a pooling, a convolution: int8, as TFLite computes."""
    rng = np.random.default_rng(0)
    b = Builder("tiny", Arithmetic.TFLITE)
    quant = Quant.of(0.05, 3)

    def weights(name: str, shape: tuple[int, ...]) -> list[str]:
        scales, zeros = tuple(float(s) for s in rng.uniform(0.004, 0.02, shape[0])), (0,) * shape[0]
        values = rng.integers(-127, 128, shape).astype(np.int8)
        bias = rng.integers(-500, 500, shape[0]).astype(np.int32)
        return [
            b.constant(f"{name}.w", values, Quant(scales, zeros, 0)),
            b.constant(f"{name}.b", bias, Quant(tuple(s * 0.05 for s in scales), zeros, 0)),
        ]

    x = b.input("x", (1, 6, 6, 4), DType.INT8, quant)
    conv = Conv2d(pads=(1, 1, 1, 1), activation=Clamp(0.0))
    y = b.layer(conv, [x, *weights("conv", (8, 3, 3, 4))], "conv", dtype=DType.INT8, quant=quant)
    y = b.layer(MaxPool2d((2, 2), (2, 2)), [y], "pool")
    y = b.layer(Conv2d(), [y, *weights("point", (5, 1, 1, 8))], "point", dtype=DType.INT8, quant=quant)
    return b.build([y])


def real() -> Network:
    """Float32 with mathematics: tanh and softmax."""
    rng = np.random.default_rng(1)
    b = Builder("real")
    x = b.input("x", (1, 4, 4, 3))
    w = b.constant("w", rng.standard_normal((6, 3, 3, 3)).astype(np.float32))
    y = b.layer(Conv2d(pads=(1, 1, 1, 1)), [x, w], "conv")
    y = b.layer(Unary(UnaryKind.TANH), [y], "tanh")
    y = b.layer(Softmax(), [y], "softmax")
    return b.build([y])


def with_statement(library: Library, statement: str) -> Library:
    """The library with a C statement at the start of its run function."""
    file = f"{library.name}.c"
    head = re.search(rf"(?m)^void {library.name}_run\(.*\) {{$", str(library.files[file]))
    assert head
    text = str(library.files[file]).replace(head.group(), f"{head.group()} {statement}")
    return replace(library, files={**library.files, file: text})
