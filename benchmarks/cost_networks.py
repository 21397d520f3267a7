"""Networks that the cost model is fitted to: random chains that cover kernels and shapes. The same each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgewright.errors import EdgewrightError
from edgewright.memory import plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant
from edgewright.network.operators import (
    Activation,
    AvgPool2d,
    Binary,
    BinaryKind,
    Clamp,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    Dequantize,
    Gather,
    HardSigmoid,
    LeakyRelu,
    MaxPool2d,
    Pad,
    Quantize,
    Reduce,
    ReduceKind,
    Reshape,
    Resize,
    Slice,
    Softmax,
    Transpose,
    Unary,
    UnaryKind,
)
from edgewright.program import FusionSchedule, Split, even_ends

FORMATS = ("tflite", "onnx", "uint8", "float")
RELU, RELU6 = Clamp(0.0), Clamp(0.0, 6.0)
SMALL = (0.03, 0.6)  # size of functions' arguments, on which their instructions depend: trained layers keep it small


@dataclass
class Grower:
    """A chain that grows layer by layer, in one of the formats."""

    form: str
    seed: int
    rng: np.random.Generator = field(init=False)
    builder: Builder = field(init=False)
    count: int = 0
    uneven: float = 1.0  # how much larger the scale of every eighth channel is
    has_lowest: bool = False  # whether weights take the lowest value of their type
    gains: tuple[float, float] = (0.2, 1.4)  # how large sums of real numbers are, compared with what is summed

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        arithmetic = Arithmetic.TFLITE if self.form == "tflite" else Arithmetic.ONNX
        self.builder = Builder(f"{self.form}{self.seed}", arithmetic)

    @property
    def dtype(self) -> DType:
        return {"float": DType.FLOAT32, "uint8": DType.UINT8}.get(self.form, DType.INT8)

    def pick(self, *choices: int) -> int:
        return int(self.rng.choice(choices))

    def input(self, *shape: int, batch: int = 1) -> str:
        """An input of the network; the first is called x."""
        name = f"x{len(self.builder.inputs)}" if self.builder.inputs else "x"
        return self.builder.input(name, (batch, *shape), self.dtype, self.format(1 / 32, True).get("quant"))

    def constant(self, *shape: int) -> str:
        """An operand that no layer computes."""
        name, fmt = f"c{self.count}", self.format(1 / 32, True)
        if self.form == "float":
            return self.builder.constant(name, self.rng.standard_normal(shape).astype(np.float32))
        info = np.iinfo(self.dtype.numpy)
        values = self.rng.integers(info.min, info.max + 1, shape).astype(self.dtype.numpy)
        return self.builder.constant(name, values, fmt["quant"])

    def row(self, size: int) -> str:
        return self.input(size)

    def small_row(self, size: int) -> str:
        """Real numbers of some size; others as they are."""
        x = self.row(size)
        if self.form != "float":
            return x
        factor = np.full((1, size), self.rng.uniform(*SMALL), np.float32)
        return self.layer(Binary(BinaryKind.MUL), x, self.builder.constant(f"{x}.factor", factor))

    def format(self, scale: float, is_signed: bool) -> dict:
        """Element type and quantisation: after a ReLU, zero is the least number."""
        if self.form == "float":
            return {"dtype": DType.FLOAT32}
        low = 0 if self.form == "uint8" else -128
        return {
            "dtype": self.dtype,
            "quant": Quant.of(scale, low + (int(self.rng.integers(90, 160)) if is_signed else 0)),
        }

    def weights(self, shape: tuple[int, ...], x: str) -> tuple[list[str], float]:
        """The names of weights and bias, and a scale that suits the output."""
        b, name = self.builder, f"w{self.count}"
        taps = int(np.prod(shape[1:]))
        if self.form == "float":
            gain = self.rng.uniform(*self.gains)
            w, bias = self.rng.standard_normal(shape) * gain / np.sqrt(taps), self.rng.normal(0, 0.1, shape[0])
            return [b.constant(n, v.astype(np.float32)) for n, v in ((name, w), (f"{name}.b", bias))], 1.0
        drawn = self.rng.uniform(0.6, 1.4, shape[0]) / (64 * np.sqrt(taps))
        drawn[::8] *= self.uneven
        scales = tuple(float(s) for s in drawn)
        quant = b.tensors[x].quant
        assert quant is not None
        zeros = (0,) * shape[0]
        w = np.clip(np.rint(self.rng.normal(0, 45, shape)), -127, 127).astype(np.int8)
        if self.has_lowest:
            w[w < -90] = -128
        bias = self.rng.integers(-500, 500, shape[0]).astype(np.int32)
        both = Quant(tuple(s * quant.scale[0] for s in scales), zeros, 0)
        return [b.constant(name, w, Quant(scales, zeros, 0)), b.constant(f"{name}.b", bias, both)], quant.scale[0]

    def conv(
        self,
        x: str,
        out: int,
        kernel: tuple[int, int],
        stride: int = 1,
        *,
        act: Activation | None = RELU,
        same: bool = True,
        dilation: int = 1,
        depthwise: bool = False,
        groups: int = 1,
    ) -> str:
        _, h, w, c = self.builder.shape(x)
        pads = [0, 0, 0, 0]
        if same:
            for i, size in enumerate((h, w)):
                total = max(0, (-(-size // stride) - 1) * stride + (kernel[i] - 1) * dilation + 1 - size)
                pads[i], pads[2 + i] = total // 2, total - total // 2
        groups = c if depthwise else groups
        names, scale = self.weights((out, *kernel, c // groups), x)
        op = Conv2d((stride, stride), (dilation, dilation), tuple(pads), groups, act)
        fmt = self.format(6 / 255 if act is RELU6 else 0.9 * scale, act is None)
        return self._add(op, [x, *names], fmt)

    def depthwise(self, x: str, kernel: tuple[int, int], stride: int = 1, act: Clamp | None = RELU) -> str:
        return self.conv(x, self.builder.shape(x)[3], kernel, stride, act=act, depthwise=True)

    def dense(self, x: str, out: int, act: Activation | None = RELU) -> str:
        names, scale = self.weights((out, self.builder.shape(x)[-1]), x)
        return self._add(Dense(act), [x, *names], self.format(scale, act is None))

    def add(self, a: str, b: str, kind: BinaryKind = BinaryKind.ADD, act: Clamp | None = None) -> str:
        return self._add(Binary(kind, act), [a, b], self.format(1 / 16, act is None))

    def layer(self, op: object, *inputs: str) -> str:
        return self._add(op, list(inputs), {})

    def _add(self, op, inputs: list[str], fmt: dict) -> str:
        self.count += 1
        return self.builder.layer(op, inputs, f"l{self.count}", **fmt)


def mobile(g: Grower) -> list[str]:
    """A first convolution, then depthwise and pointwise ones, all followed by a ReLU."""
    x = g.input(g.pick(18, 23, 32, 40), g.pick(17, 24, 33), g.pick(1, 3))
    x = g.conv(x, g.pick(8, 10, 16), (3, 3), 2, act=RELU6 if g.seed % 3 == 0 else RELU)
    for stride in (1, 2, 1, 1, 2, 1):
        x = g.depthwise(x, (3, 3), stride, RELU)
        x = g.conv(x, g.pick(8, 12, 16, 23, 32, 48, 64), (1, 1))
    return [head(g, x)]


def inverted(g: Grower) -> list[str]:
    """Expanding, depthwise, linear; added to what came in."""
    x = g.input(g.pick(12, 15, 20), g.pick(11, 16, 24), g.pick(8, 12, 16))
    for stride in (1, 2, 1, 1):
        c = g.builder.shape(x)[3]
        wide = g.conv(x, c * g.pick(2, 3, 4), (1, 1), act=RELU6)
        y = g.depthwise(wide, (g.pick(3, 3, 5, 7),) * 2, stride, RELU6)
        y = g.conv(y, c if stride == 1 else g.pick(12, 20, 24), (1, 1), act=None)
        x = g.add(x, y) if stride == 1 else y
    return [head(g, x)]


def residual(g: Grower) -> list[str]:
    """3x3 convolutions with shortcuts, pools between them."""
    x = g.input(g.pick(14, 16, 21), g.pick(12, 16, 19), g.pick(1, 3, 4))
    x = g.conv(x, g.pick(6, 8, 16), (3, 3))
    x = g.layer((MaxPool2d if g.seed % 2 else AvgPool2d)((2, 2), (2, 2)), x)
    for _ in range(2):
        c = g.builder.shape(x)[3]
        y = g.conv(g.conv(x, c, (3, 3)), c, (3, 3), act=None)
        x = g.add(x, y, act=RELU)
    c = g.pick(12, 16, 32)
    y = g.conv(g.conv(x, c, (3, 3), 2), c, (3, 3), act=None)
    x = g.add(g.conv(x, c, (1, 1), 2, act=None), y, act=RELU)
    return [head(g, x)]


def windows(g: Grower) -> list[str]:
    """Windows of all sizes, also dilated ones, ones without padding, few and many channels."""
    x = g.input(g.pick(24, 30, 49), g.pick(10, 20, 25), g.pick(1, 2, 3))
    x = g.conv(x, g.pick(4, 9, 16, 32), (g.pick(4, 5, 10), g.pick(4, 5)), 2)
    x = g.conv(x, g.pick(5, 8, 12), (3, 3), dilation=2, act=None)
    x = g.conv(x, g.pick(8, 24), (5, 5), 1)
    x = g.conv(x, g.pick(8, 16), (1, 3), 1, same=False)
    x = g.conv(x, g.pick(16, 40), (3, 1), 1)
    x = g.conv(x, g.pick(8, 30, 64), (1, 1), act=None)
    x = g.conv(x, 1 if g.seed % 4 == 0 else 6, (3, 3), 1)
    return [head(g, x)]


def deep(g: Grower) -> list[str]:
    """Few pixels and many channels: windows for which memory may be short."""
    x = g.input(g.pick(5, 7, 8), g.pick(4, 5, 8), g.pick(32, 40, 48))
    x = g.conv(x, g.pick(36, 48, 64), (3, 3))
    x = g.conv(x, g.pick(16, 32, 33), (3, 3), act=None)
    x = g.conv(x, g.pick(160, 200, 256), (1, 1))
    x = g.conv(x, g.pick(20, 32, 64), (1, 1), act=None)
    x = g.conv(x, g.pick(16, 24), (5, 5), 2)
    return [head(g, x)]


def separable(g: Grower) -> list[str]:
    """Depthwise convolutions of all sizes."""
    x = g.input(g.pick(12, 16, 24, 31), g.pick(12, 18, 25), g.pick(3, 8, 16, 24))
    x = g.depthwise(x, (3, 3), 1, None)
    x = g.depthwise(x, (g.pick(5, 7), g.pick(3, 5)), 1, RELU)
    x = g.depthwise(x, (5, 5), 2, RELU6)
    x = g.depthwise(x, (3, 3), 1, RELU)
    x = g.depthwise(x, (3, 3), 2, RELU)
    x = g.depthwise(x, (g.pick(1, 3), 3), 1, None)
    return [head(g, x)]


def thin(g: Grower) -> list[str]:
    """Signals: images of one column, or of one row, with windows along the other axis."""
    along, size, depth = g.seed % 2, g.pick(40, 64, 96), g.pick(3, 6, 9)
    x = g.input(*((size, 1) if along else (1, size)), depth)

    def window(taps: int) -> tuple[int, int]:
        return (taps, 1) if along else (1, taps)

    x = g.conv(x, g.pick(8, 12, 16, 30), window(g.pick(3, 5, 9)))
    x = g.depthwise(x, window(g.pick(3, 5, 9)), 1, (g.seed % 3 and RELU) or None)
    x = g.conv(x, g.pick(16, 24, 40), window(5), 2)
    x = g.depthwise(x, window(5))
    x = g.conv(x, g.pick(8, 16, 20), (1, 1))
    return [head(g, x)]


def broad(g: Grower) -> list[str]:
    """Depthwise convolutions of many channels and few pixels, pointwise ones between them."""
    x = g.input(g.pick(5, 6, 8), g.pick(4, 6, 8), g.pick(128, 144, 170))
    x = g.depthwise(x, (3, 3), 1, RELU)
    x = g.conv(x, g.pick(128, 160), (1, 1))
    x = g.depthwise(x, (g.pick(3, 5),) * 2, 1, RELU6)
    x = g.depthwise(x, (3, 3), 2, None)
    return [head(g, x)]


def narrow(g: Grower) -> list[str]:
    """Images of few columns, often an odd number of them: rows whose last pixel has no partner."""
    x = g.input(g.pick(8, 11, 14), g.pick(3, 5, 7), g.pick(2, 3, 8))
    x = g.conv(x, g.pick(12, 16), (3, 3), act=RELU6 if g.seed % 2 else RELU)
    for out in (24, 40, 64, 32):
        x = g.depthwise(x, (3, 3), 1, RELU)
        x = g.conv(x, out + g.pick(0, 4, 8), (1, 1), act=RELU if out > 30 else None)
    x = g.conv(x, g.pick(6, 10), (4, 3))
    return [head(g, x)]


def uneven(g: Grower) -> list[str]:
    """Channels whose scales lie far apart: to be exact, most multipliers need wide offsets."""
    g.uneven = 500.0
    x = g.input(g.pick(10, 13, 16), g.pick(9, 12, 16), g.pick(3, 4))
    x = g.conv(x, g.pick(8, 16), (3, 3), 2, act=RELU6)
    for act in (RELU, RELU6, None, RELU6):
        x = g.depthwise(x, (3, 3), 1, act)
        x = g.conv(x, g.pick(16, 24, 36, 64), (1, 1), act=act)
    x = g.conv(x, g.pick(12, 32), (3, 3), 1, act=RELU)
    return [head(g, x)]


def lookups(g: Grower) -> list[str]:
    """Words looked up in tables, their means, dense layers: few words, and many."""
    found, fmt = [], g.format(1 / 32, True)
    counts = (g.pick(60, 100, 200), g.pick(100, 200), g.pick(40, 70), g.pick(60, 150))
    widths = (g.pick(8, 12, 16), g.pick(8, 24), g.pick(2, 5, 7, 32), g.pick(1, 4, 50))
    for index, (count, width) in enumerate(zip(counts, widths, strict=True)):
        ids = g.builder.input(f"ids{index}", (1, count), DType.INT32)
        rows = g.rng.standard_normal((200, width))
        if g.form == "float":
            table = g.builder.constant(f"table{index}", rows.astype(np.float32))
        else:
            low = 128 if g.form == "uint8" else 0
            stored = np.clip(np.rint(rows * 32) + low, low - 128, low + 127).astype(fmt["dtype"].numpy)
            table = g.builder.constant(f"table{index}", stored, fmt["quant"])
        x = g.builder.layer(Gather(), [table, ids], f"words{index}", **fmt)
        x = g.layer(Reduce((1,), keep=False, kind=ReduceKind.MEAN), x)
        found.append(g.dense(g.dense(x, g.pick(8, 16)), 4, None))
    return found


def lowest(g: Grower) -> list[str]:
    """Weights of -128, which kernels for pairs of products do not take."""
    g.has_lowest = True
    x = g.input(g.pick(8, 11), g.pick(7, 8, 10), g.pick(3, 4, 8))
    x = g.conv(x, g.pick(8, 9, 16), (3, 3))
    x = g.conv(x, g.pick(12, 24, 30), (1, 1), act=None)
    x = g.depthwise(x, (3, 3), 1, RELU)
    x = g.layer(Reshape((1, int(np.prod(g.builder.shape(x))))), x)
    for out in (g.pick(4, 6, 8), g.pick(33, 50, 64), 10):
        x = g.dense(x, out, RELU if out != 10 else None)
    return [x]


def single(g: Grower) -> list[str]:
    """Large windows over an image of few channels, most of which leave it; others stay inside."""
    x = g.input(g.pick(20, 24, 32), g.pick(16, 20, 25), 1)
    sizes = ((10, 8), (7, 7), (5, 3), (3, 9))
    found = [g.conv(x, g.pick(4, 8, 12), size, 1 + index // 2) for index, size in enumerate(sizes)]
    for size in ((11, 9), (3, 2), (8, 15), (5, 5), (2, 13)):
        x = g.input(size[0] + g.pick(3, 5, 6), size[1] + g.pick(3, 4, 7), g.pick(1, 1, 2, 3))
        found.append(g.conv(x, g.pick(4, 6, 8), size, same=False))
    return found


def denses(g: Grower) -> list[str]:
    x = g.builder.input("x", (1, g.pick(64, 130, 300)), g.dtype, g.format(1 / 32, True).get("quant"))
    for out in (g.pick(64, 128), g.pick(16, 33, 50), g.pick(8, 5, 7), g.pick(64, 100), 10):
        x = g.dense(x, out, RELU if out != 10 else None)
    return [x]


def products(g: Grower) -> list[str]:
    """Convolutions and dense layers beside each other, of all shapes, many with activations that are no clamps."""
    g.gains = SMALL
    acts: list[Any] = [None, RELU, RELU6, None, LeakyRelu(0.1), HardSigmoid(), *map(Unary, FUSED)]
    if g.form == "tflite":
        acts = acts[:4]
    found = []
    for index in range(14):
        act, depth = acts[(index + g.seed) % len(acts)], g.pick(1, 2, 3, 5, 6, 8, 16, 20)
        kernel = (g.pick(1, 1, 2, 3, 5), g.pick(1, 1, 3, 3, 4))
        size = (kernel[0] + g.pick(0, 2, 4, 5), kernel[1] + g.pick(0, 3, 4, 6))
        x = g.input(*size, depth * 4 if kernel == (1, 1) else depth)
        stride, is_deep = g.pick(1, 1, 2), index % 4 != 3
        is_spread = index % 7 == 6 and 2 * kernel[0] <= size[0] and 2 * kernel[1] <= size[1]
        form = {"same": g.pick(0, 1) == 1 or is_spread, "dilation": 1 + is_spread, "depthwise": not is_deep}
        out = g.pick(1, 3, 4, 6, 10, 16) if is_deep else g.builder.shape(x)[3]
        found.append(g.conv(x, out, kernel, stride, act=act, **form))
    for index in range(8):
        x = g.row(g.pick(5, 12, 16, 33, 64, 100, 160))
        found.append(g.dense(x, g.pick(1, 3, 8, 10, 16, 24, 40), acts[(index + g.seed) % len(acts)]))
    return found


FUSED = (UnaryKind.TANH, UnaryKind.SIGMOID, UnaryKind.HARD_SWISH, UnaryKind.SILU)


def elements(g: Grower) -> list[str]:
    """Layers without products beside each other: functions, sums along axes, pools, moves, of all shapes."""
    known = (UnaryKind.TANH, UnaryKind.SIGMOID, UnaryKind.HARD_SWISH, UnaryKind.ABS)
    kinds, others = (known, ()) if g.form == "tflite" else (UNARY, (HardSigmoid(),))
    found = [g.layer(Unary(kind), g.small_row(g.pick(40, 100, 200))) for kind in kinds]
    found += [g.layer(op, g.row(g.pick(60, 150))) for op in (LeakyRelu(0.1), RELU, *others)]
    sizes = [(g.pick(4, 6, 7), g.pick(4, 5, 8), g.pick(1, 3, 6, 8, 16)) for _ in range(12)]
    for index, size in enumerate(sizes[:8]):
        x, kernel = g.input(*size), (g.pick(1, 2, 3), g.pick(2, 3))
        pool = MaxPool2d if index % 2 else AvgPool2d
        pads = (0, 0, kernel[0] - 1, kernel[1] - 1) if index % 4 < 2 else (0, 0, 0, 0)
        found.append(g.layer(pool(kernel, (g.pick(1, 2),) * 2, pads=pads), x))
    for size in sizes[8:]:
        found.append(g.layer(Reduce((1, 2), keep=False, kind=ReduceKind.MEAN), g.input(*size)))
        found.append(g.layer(Reduce((g.pick(1, 2),), keep=False, kind=ReduceKind.MEAN), g.input(*size)))
        found.append(g.add(g.input(*size), g.input(1, 1, size[2]), BinaryKind.MUL))
        found.append(g.add(g.input(*size), g.input(*size), act=(None, RELU)[g.pick(0, 1)]))
        found.append(g.layer(Concat(3), *(g.input(*size[:2], depth) for depth in (size[2], g.pick(2, 4, 8)))))
    if g.form == "tflite":
        low = {"dtype": DType.INT8, "quant": Quant.of(1 / 256, -128)}
        return [*found, *(g.builder.layer(Softmax(), [g.row(n)], f"softmax{n}", **low) for n in (2, 5, 12, 30, 200))]
    found += [g.layer(Softmax(), g.row(n)) for n in (2, 5, 12, 30)]
    if g.form != "float":
        real = {"dtype": DType.FLOAT32}
        found += [g.builder.layer(Dequantize(), [g.row(n)], f"real{n}", **real) for n in (1, 10, 100)]
        for n, depth in ((3, 7), (10, 3), (15, 1), (1, 150)):
            x = g.builder.input(f"reals{n}", (1, n, n, depth))
            found.append(g.builder.layer(Quantize(), [x], f"bytes{n}", **g.format(1 / 32, True)))
    return found


UNARY = (*FUSED, UnaryKind.EXP, UnaryKind.SQRT, UnaryKind.ABS, UnaryKind.GELU, UnaryKind.SOFTPLUS)


def pools(g: Grower) -> list[str]:
    """Pools, pads, additions and moves."""
    x = g.input(g.pick(12, 17, 24), g.pick(12, 16, 21), g.pick(3, 8, 12))
    a = g.layer(MaxPool2d((3, 3), (1, 1), pads=(1, 1, 1, 1)), x)
    b = g.layer(AvgPool2d((3, 3), (1, 1), pads=(1, 1, 1, 1)), a)
    c = g.add(a, b)
    d = g.add(c, b, BinaryKind.MUL)
    p = g.layer(Pad((0, 1, 1, 0), (0, 1, 1, 0)), d)
    q = g.layer(MaxPool2d((2, 2), (2, 2)), p)
    r = g.layer(AvgPool2d((g.pick(2, 3), 2), (2, 2)), q)
    s = g.layer(
        Slice((0, 1, 0, 0), (1, *(n - 1 for n in g.builder.shape(q)[1:3]), g.builder.shape(q)[3]), (1, 1, 1, 1)), q
    )
    t = g.layer(Concat(3), s, s)
    u = g.layer(Resize(tuple(2 * n for n in g.builder.shape(r)[1:3])), r)
    v = g.layer(Unary(UnaryKind.SIGMOID), t)
    return [head(g, v), g.layer(RELU, u)]


def head(g: Grower, x: str) -> str:
    """A mean, a dense layer, a softmax; in turns a pool over all, or flattened."""
    shape = g.builder.shape(x)
    if g.seed % 3 == 0:
        x = g.layer(Reshape((1, int(np.prod(shape[1:3])) * shape[3])), x)
    elif g.seed % 3 == 1:
        x = g.layer(AvgPool2d((shape[1], shape[2]), (1, 1)), x)
        x = g.layer(Reshape((1, shape[3])), x)
    else:
        x = g.layer(Reduce((1, 2), keep=False, kind=ReduceKind.MEAN), x)
    x = g.dense(x, g.pick(2, 5, 10, 12), None)
    if g.form == "float":
        return g.layer(Softmax(), x)
    if g.form != "tflite" or g.seed % 2:
        return g.builder.layer(Dequantize(), [x], "real", dtype=DType.FLOAT32)
    low = {"dtype": DType.INT8, "quant": Quant.of(1 / 256, -128)}
    return g.builder.layer(Softmax(), [x], "softmax", **low)


def from_reals(g: Grower) -> list[str]:
    """Real numbers, or unsigned bytes, that are quantised first."""
    shape, fmt = (1, g.pick(8, 16, 20), g.pick(9, 16), 3), g.format(1 / 32, True)
    if g.form == "tflite" and g.seed % 2:
        x = g.builder.input("x", shape, DType.UINT8, Quant.of(1 / 32, 128))
    else:
        x = g.builder.input("x", shape)
    x = g.builder.layer(Quantize(), [x], "quantise", **fmt) if g.form != "float" else x
    return [head(g, g.conv(x, 8, (3, 3), 2))]


def moves(g: Grower) -> list[str]:
    """Parts of images, images turned and enlarged, and bytes as real numbers."""
    found = []
    for index in range(6):
        size = (g.pick(4, 7, 9), g.pick(4, 5, 8), g.pick(2, 3, 8, 12))
        x, first = g.input(*size), (0, g.pick(0, 1), g.pick(0, 1), g.pick(0, 1) * (index % 2))
        found.append(g.layer(Slice(first, (1, size[0] - 1, size[1] - 1, size[2] - index % 2), (1, 1, 1, 1)), x))
        found.append(g.layer(Transpose(((0, 2, 1, 3), (0, 3, 1, 2))[index % 2]), g.input(*size)))
        found.append(g.layer(Resize((2 * size[0], 2 * size[1])), g.input(*size)))
    if g.form != "float":
        shapes = ((1,), (10,), (100,), (3, 4, 5))
        found += [g.builder.layer(Dequantize(), [g.input(*n)], f"real{n}", dtype=DType.FLOAT32) for n in shapes]
    return found


def transposed(g: Grower) -> list[str]:
    """Transposed convolutions beside each other, cropped and not; some by channels, some spread."""
    found = []
    for index in range(9):
        depth, kernel = g.pick(1, 3, 4, 8, 16), (g.pick(2, 3, 4, 5), g.pick(1, 2, 3, 4))
        x, is_deep, crop = g.input(g.pick(3, 5, 8), g.pick(4, 6, 7), depth), index % 4 != 3, index % 2
        names, scale = g.weights((g.pick(1, 4, 6, 10) if is_deep else depth, *kernel, depth if is_deep else 1), x)
        spread = (1, 2) if index == 8 else (1, 1)
        pads = (crop, 0, 0, crop)
        op = ConvTranspose2d((g.pick(1, 2, 2, 3), g.pick(1, 2, 2, 4)), spread, pads, groups=1 if is_deep else depth)
        found.append(g._add(op, [x, *names], g.format(scale, True)))
    return found


def odd_windows(g: Grower) -> list[str]:
    """Convolutions in groups, spread, over several images, of large windows: what plain loops are left with."""
    found = []
    for index in range(12):
        kind, batch = index % 6, g.pick(2, 3) if index % 4 == 3 else 1
        groups, depth = (g.pick(2, 3, 4), g.pick(1, 2, 3, 5)) if kind < 2 else (1, g.pick(1, 2, 4, 8))
        kernel = (g.pick(1, 2, 3, 5), g.pick(1, 3, 4)) if kind < 5 else (g.pick(7, 9, 12), g.pick(6, 11, 13))
        spread = g.pick(2, 3) if kind in (1, 2, 4) else 1
        size = [(taps - 1) * spread + g.pick(2, 4, 7) for taps in kernel]
        x = g.input(*size, groups * depth, batch=batch)
        if kind in (3, 4):  # each channel by itself, one or several outputs of it
            out, groups = groups * depth * g.pick(1, 2, 3), groups * depth
        else:
            out = groups * g.pick(1, 2, 4)
        form = {"same": g.pick(0, 1) == 1, "dilation": spread, "groups": groups}
        found.append(g.conv(x, out, kernel, g.pick(1, 1, 2), act=(None, RELU, RELU6)[g.pick(0, 1, 2)], **form))
    return found


def odd_elements(g: Grower) -> list[str]:
    """Pools over several images, of windows small and large; pairs of numbers, one of them a constant or repeated."""
    found = []
    for index in range(10):
        size, batch = (g.pick(5, 9, 14), g.pick(4, 8, 11), g.pick(1, 2, 3, 4, 8, 13)), g.pick(1, 2, 3)
        kernel = (g.pick(1, 2, 3, size[0]), g.pick(2, 3, 4))
        pads = (0, 0, 0, 0) if g.pick(0, 1) else (kernel[0] // 2, kernel[1] // 2, kernel[0] // 2, kernel[1] // 2)
        pool = (MaxPool2d, AvgPool2d)[index % 2](kernel, (g.pick(1, 2), g.pick(1, 2)), pads=pads)
        found.append(g.layer(pool, g.input(*size, batch=batch)))
    kinds = (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.SUB, BinaryKind.ADD, BinaryKind.MUL)
    for index in range(15):
        size, batch = (g.pick(3, 7, 9), g.pick(4, 6), g.pick(1, 3, 5, 8, 16)), g.pick(1, 1, 2)
        x = g.input(*size, batch=batch)
        other = (
            lambda: g.input(*size, batch=batch),  # noqa: B023
            lambda: g.constant(batch, *size),  # noqa: B023
            lambda: g.constant(size[-1]),  # noqa: B023
            lambda: g.constant(1),
            lambda: g.input(1, 1, size[-1], batch=batch),  # noqa: B023
        )[index // 3]()
        pair = (x, other) if index % 2 or index < 3 else (other, x)
        found.append(g.add(*pair, kinds[index % 5], (None, RELU)[g.pick(0, 1)]))
    return found


def odd_moves(g: Grower) -> list[str]:
    """Tensors of all ranks turned, cut in steps, joined, repeated."""
    found = []
    for index in range(12):
        rank = 2 + index % 4
        shape = [g.pick(2, 3, 5, 8, 12) for _ in range(rank - 1)]
        x = g.input(*shape, batch=g.pick(1, 2, 6))
        found.append(g.layer(Transpose(tuple(int(axis) for axis in g.rng.permutation(rank))), x))
    for index in range(8):
        size, batch = (g.pick(4, 7, 9), g.pick(4, 5, 8), g.pick(1, 2, 3, 8, 12)), g.pick(1, 2)
        x, axis = g.input(*size, batch=batch), 1 + index % 3
        steps = tuple(2 if at == axis else 1 for at in range(4))
        sizes = (batch, *(-(-n // steps[1 + at]) for at, n in enumerate(size)))
        found.append(g.layer(Slice((0, 0, 0, 0), sizes, steps), x))
        found.append(g.layer(Concat(axis), x, g.input(*size, batch=batch)))
        found.append(g.layer(Pad((0, 1, 0, index % 2), (0, 1, 2, 0)), g.input(*size)))
    return found


Shape = Callable[[Grower], list[str]]
SHAPES: tuple[Shape, ...] = (
    mobile, inverted, residual, windows, separable, denses, pools, from_reals, deep, thin, broad, lookups, uneven,
    lowest, single, products, elements, moves, transposed, odd_windows, odd_elements, odd_moves, narrow,
)  # fmt: skip


ODD = (odd_windows, odd_elements, odd_moves)
BESIDE = (
    products,
    elements,
    lookups,
    single,
    moves,
    transposed,
    *ODD,
)  # layers apart, each a stage


def network(form: str, shape: Shape, seed: int) -> Network:
    """The network of a shape, a format and a seed."""
    g = Grower(form, 100 * SHAPES.index(shape) + seed)
    outputs = shape(g)
    g.builder.name = f"{shape.__name__}_{form}_{seed}"
    return g.builder.build(outputs)


def parts(network: Network, turn: int) -> list[FusionSchedule]:
    """Schedules for stretches of one to three layers in parts: of every kind some, others each turn."""
    found: list[FusionSchedule] = []
    chosen = turn
    for stretch in stretches(network, turn):
        kinds = [way for way in schedules(network, stretch) if _is_possible(network, [*found, way])]
        if kinds:
            found.append(kinds[chosen % len(kinds)])
            chosen += 1
    return found


def rows_alone(network: Network) -> list[FusionSchedule]:
    """Each layer of an image by rows, by itself."""
    found: list[FusionSchedule] = []
    for layer in network.layers:
        shape = network.tensors[layer.output].shape
        way = FusionSchedule((layer.name,), streamed=True)
        if len(shape) == 4 and shape[1] > 1 and _is_possible(network, [*found, way]):
            found.append(way)
    return found


def stretches(network: Network, turn: int) -> Iterator[tuple[str, ...]]:
    """Layers in a row, each of which reads the one before it alone."""
    chain: list[str] = []
    size = 1 + turn % 3
    for layer in network.layers:
        before = network.by_name[chain[-1]].output if chain else None
        if len(chain) == size or (before and network.sole_reader(before) is not layer):
            yield tuple(chain)
            chain, size = [], 1 + (size + turn) % 3
        chain.append(layer.name)
    if chain:
        yield tuple(chain)


def schedules(network: Network, stretch: tuple[str, ...]) -> list[FusionSchedule]:
    """By rows, several at once, few columns at a time; tiles along rows, columns, both, channels."""
    last = network.by_name[stretch[-1]]
    shape, depth = network.tensors[last.output].shape, network.shapes(last)[0][-1]
    channels = Split(-1, even_ends(depth if isinstance(last.op, Conv2d | Dense) else shape[-1], 2, 2))
    if len(shape) != 4:
        return [FusionSchedule(stretch, (channels,))]
    rows, columns = (Split(axis, even_ends(shape[axis], parts)) for axis, parts in ((1, 3), (2, 2)))
    return [
        FusionSchedule(stretch, streamed=True),
        FusionSchedule(stretch, (columns,), streamed=True),
        FusionSchedule(stretch, (channels,)),
        FusionSchedule(stretch, (rows,)),
        FusionSchedule(stretch, streamed=True, columns=tuple((name, 4) for name in stretch)),
        FusionSchedule(stretch, (rows, columns)),
        FusionSchedule(stretch, streamed=True, rows=tuple((name, 2) for name in stretch)),
        FusionSchedule(stretch, (channels,), streamed=True),
    ]


def _is_possible(network: Network, chosen: list[FusionSchedule]) -> bool:
    try:
        plan(network, explain=False, schedules=chosen)
    except (EdgewrightError, AssertionError, IndexError, ValueError):
        return False
    return True
