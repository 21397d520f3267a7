"""Random small CNNs for property tests: branches, concats, slices, strides, paddings, groups; float and quantised.

Residual sums, gates of squeeze and excite, and PReLU as exporters write it come as whole blocks.
"""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import strategies as st

from edgewright.network import Arithmetic, Builder, DType, Network, Quant
from edgewright.network.operators import (
    AvgPool2d,
    Binary,
    BinaryKind,
    Clamp,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    DepthToSpace,
    DynamicProduct,
    DynamicQuantize,
    DynamicRange,
    MaxPool2d,
    Pad,
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


class _Drawn:
    """Choices that hypothesis makes."""

    def __init__(self, draw) -> None:
        self.draw = draw

    def int(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def pick(self, choices):
        return self.draw(st.sampled_from(choices))

    def flip(self) -> bool:
        return self.draw(st.booleans())


class _Seeded:
    """Choices that follow from a seed, all of them as likely as the others."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def int(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def pick(self, choices):
        return self.random.choice(choices)

    def flip(self) -> bool:
        return self.random.random() < 0.5


class _Grower:
    """A network that grows by one random layer at a time."""

    def __init__(self, choices: _Drawn | _Seeded, kind: str) -> None:
        self.int, self.pick, self.flip = choices.int, choices.pick, choices.flip
        self.quantised = kind != "float"
        arithmetic = Arithmetic.TFLITE if kind == "tflite" else Arithmetic.ONNX
        self.builder = Builder("random", arithmetic)
        self.rng = np.random.default_rng(self.int(0, 2**31))
        self.pool: list[str] = []
        self.numbers: list[str] = []

    def format(self) -> dict:
        """Element type and quantisation of a new activation."""
        if not self.quantised:
            return {"dtype": DType.FLOAT32}
        scale = self.rng.uniform(0.02, 0.1) if self.int(0, 3) else 2.0 ** self.int(-6, -3)
        return {"dtype": DType.INT8, "quant": Quant.of(scale, self.int(-20, 20))}

    def weights(self, shape, x: str, name: str) -> list[str]:
        """A weight constant and a bias for input x; per-channel along the first axis."""
        b = self.builder
        if not self.quantised:
            w = (self.rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
            bias = self.rng.standard_normal(shape[0]).astype(np.float32)
            return [b.constant(f"{name}.w", w), b.constant(f"{name}.b", bias)]
        scales = tuple(float(s) for s in self.rng.uniform(0.004, 0.02, shape[0]))
        zeros = (0,) * shape[0]
        x_scale = b.tensors[x].quant.scale[0]
        w = self.rng.integers(-127, 128, shape).astype(np.int8)
        bias = self.rng.integers(-500, 500, shape[0]).astype(np.int32)
        bias_quant = Quant(tuple(s * x_scale for s in scales), zeros, 0)
        return [
            b.constant(f"{name}.w", w, Quant(scales, zeros, 0)),
            b.constant(f"{name}.b", bias, bias_quant),
        ]

    def activation(self):
        return self.pick([None, Clamp(0.0), Clamp(0.0, 6.0)])

    def residual(self, x: str, name: str) -> str:
        """A convolution that keeps the shape, added to what it read."""
        c = self.builder.shape(x)[3]
        conv = Conv2d(pads=(1, 1, 1, 1), activation=self.activation())
        weights = self.weights((c, 3, 3, c), x, f"{name}.conv")
        y = self.builder.layer(conv, [x, *weights], f"{name}.conv", **self.format())
        return self.builder.layer(Binary(BinaryKind.ADD, self.activation()), [x, y], name, **self.format())

    def gate(self, x: str, name: str) -> str:
        """Squeeze and excite: the image times a sigmoid made of its own mean."""
        b, c = self.builder, self.builder.shape(x)[3]
        mean = b.layer(Reduce((1, 2), kind=ReduceKind.MEAN), [x], f"{name}.mean", **self.format())
        weights = self.weights((c, 1, 1, c), mean, f"{name}.conv")
        y = b.layer(Conv2d(), [mean, *weights], f"{name}.conv", **self.format())
        share = {"dtype": DType.INT8, "quant": Quant.of(1 / 256, -128)} if self.quantised else {}
        y = b.layer(Unary(UnaryKind.SIGMOID), [y], f"{name}.sigmoid", **share)
        return b.layer(Binary(BinaryKind.MUL), [x, y], name, **self.format())

    def constant(self, shape: tuple[int, ...], name: str) -> str:
        """Values that no layer computes."""
        if not self.quantised:
            return self.builder.constant(name, self.rng.standard_normal(shape).astype(np.float32))
        return self.builder.constant(name, self.rng.integers(-128, 128, shape).astype(np.int8), self.format()["quant"])

    def constant_first(self, x: str, name: str) -> str:
        """A difference or product whose first operand is a constant: a number, one for each channel, an image."""
        shape = self.builder.shape(x)
        first = self.constant(self.pick([(), shape[-1:], (1, 1, 1, shape[-1]), shape]), f"{name}.first")
        kind = self.pick([BinaryKind.SUB, BinaryKind.SUB, BinaryKind.MUL])
        return self.builder.layer(Binary(kind, self.activation()), [first, x], name, **self.format())

    def one_minus(self, x: str, name: str) -> str:
        """x * (1 - sigmoid(x))."""
        b = self.builder
        share = {"dtype": DType.INT8, "quant": Quant.of(1 / 256, -128)} if self.quantised else {}
        y = b.layer(Unary(UnaryKind.SIGMOID), [x], f"{name}.sigmoid", **share)
        one = self.constant((), f"{name}.one")
        y = b.layer(Binary(BinaryKind.SUB), [one, y], f"{name}.rest", **self.format())
        return b.layer(Binary(BinaryKind.MUL), [x, y], name, **self.format())

    def centred(self, x: str, name: str) -> str:
        """The image less its own mean, which is a single number."""
        b = self.builder
        every = Reduce((0, 1, 2, 3), keep=False, kind=ReduceKind.MEAN)
        mean = b.layer(every, [x], f"{name}.mean", **self.format())
        self.numbers.append(mean)
        operands = self.pick([[x, mean], [mean, x]])
        return b.layer(Binary(self.pick([BinaryKind.SUB, BinaryKind.MUL])), operands, name, **self.format())

    def prelu(self, x: str, name: str) -> str:
        """What is negative times a slope for each channel, in operators without a parameter."""
        b, c = self.builder, self.builder.shape(x)[3]
        slopes = self.rng.uniform(0.1, 0.4, (1, 1, 1, c)).astype(np.float32)
        if self.quantised:
            slope = b.constant(f"{name}.slope", np.rint(slopes / 0.0032).astype(np.int8), Quant.of(0.0032))
        else:
            slope = b.constant(f"{name}.slope", slopes)
        positive = b.layer(Clamp(0.0), [x], f"{name}.positive", **self.format())
        y = b.layer(Unary(UnaryKind.NEG), [x], f"{name}.neg", **self.format())
        y = b.layer(Clamp(0.0), [y], f"{name}.relu", **self.format())
        y = b.layer(Unary(UnaryKind.NEG), [y], f"{name}.negative", **self.format())
        y = b.layer(Binary(BinaryKind.MUL), [y, slope], f"{name}.mul", **self.format())
        return b.layer(Binary(BinaryKind.ADD), [positive, y], name, **self.format())

    def dynamic(self, name: str) -> str:
        """An input stored in eight bits as it comes, and a convolution of that.

        Of inputs alone: what other layers compute may differ in its last bit, and near a tie that makes a step.
        """
        b, x = self.builder, self.pick(self.builder.inputs)
        c, out, asymmetric = b.shape(x)[3], self.int(1, 5), self.flip()
        groups = self.pick([1, c])
        found = b.layer(DynamicRange(1, asymmetric), [x], f"{name}.range", dtype=DType.FLOAT32)
        small = b.layer(DynamicQuantize(asymmetric), [x, found], f"{name}.stored", dtype=DType.INT8)
        shape = (out * groups, self.int(1, 3), self.int(1, 3), c // groups)
        conv = Conv2d((self.int(1, 2), 1), pads=(1, 1, 1, 1), groups=groups, activation=self.activation())
        w = b.constant(f"{name}.w", self.rng.integers(-127, 128, shape).astype(np.int8))
        scale = b.constant(f"{name}.scale", self.rng.uniform(0.004, 0.02, shape[0]).astype(np.float32))
        bias = b.constant(f"{name}.b", self.rng.standard_normal(shape[0]).astype(np.float32))
        op = DynamicProduct(conv, asymmetric, self.flip())
        return b.layer(op, [small, w, scale, bias, found], name, dtype=DType.FLOAT32)

    def grow(self, index: int) -> None:
        b, x, name = self.builder, self.pick(self.pool), f"layer{index}"
        n, h, w, c = b.shape(x)
        kinds = ["conv", "depthwise", "pointwise", "max", "avg", "relu", "add", "concat", "slice"]
        kinds += ["reshape", "resize", "pad"] + (
            [] if self.quantised else ["tanh", "transpose", "deconv", "blocks", "dynamic"]
        )
        kinds += ["constant first", "one minus", "centred"]
        kinds += ["residual", "gate"] + (["prelu"] if b.arithmetic is Arithmetic.ONNX else [])
        match self.pick(kinds):
            case "conv" | "depthwise" | "pointwise" as kind:
                groups = c if kind == "depthwise" else self.pick([g for g in (1, 2) if c % g == 0])
                kh, kw = (1, 1) if kind == "pointwise" else (self.int(1, 3), self.int(1, 3))
                multiple = self.int(1, 2)
                out = c * multiple if kind == "depthwise" else groups * self.int(1, 3)
                dilation = (self.int(1, 2), 1)
                pads = tuple(self.int(-1 if h > 4 and w > 4 else 0, 2) for _ in range(4))
                if min(h + pads[0] + pads[2], w + pads[1] + pads[3]) < (kh - 1) * dilation[0] + 3:
                    pads = (kh, kw, kh, kw)
                op = Conv2d((self.int(1, 2), self.int(1, 2)), dilation, pads, groups, self.activation())
                if self.flip():  # the usual kind: the image keeps its size
                    out = c if kind == "depthwise" else out
                    same = ((kh - 1) // 2, (kw - 1) // 2, kh // 2, kw // 2)
                    op = Conv2d(pads=same, groups=groups, activation=self.activation())
                y = b.layer(op, [x, *self.weights((out, kh, kw, c // groups), x, name)], name, **self.format())
            case "deconv":
                out, k = self.int(1, 3), self.int(1, 3)
                op = ConvTranspose2d(
                    (self.int(1, 2), self.int(1, 2)), pads=(0, self.int(0, 1) if w * k > 3 else 0, 0, 0)
                )
                y = b.layer(op, [x, *self.weights((out, k, k, c), x, name)], name)
            case "max" | "avg" as kind:
                k = (min(h, self.int(1, 3)), min(w, self.int(1, 3)))
                pool = MaxPool2d if kind == "max" else AvgPool2d
                pads = (0, self.int(0, k[1] - 1), self.int(0, k[0] - 1), 0)
                y = b.layer(pool(k, (self.int(1, 2), self.int(1, 2)), pads=pads), [x], name)
            case "relu":
                y = b.layer(Clamp(0.0, self.pick([6.0, float("inf")])), [x], name)
            case "tanh":
                y = b.layer(Unary(self.pick([UnaryKind.TANH, UnaryKind.SIGMOID, UnaryKind.SILU])), [x], name)
            case "add":
                alike = [t for t in self.pool if b.shape(t) in (b.shape(x), (n, 1, 1, c))]
                kind = self.pick([BinaryKind.ADD, BinaryKind.MUL])
                y = b.layer(Binary(kind, self.activation()), [x, self.pick(alike)], name, **self.format())
            case "concat":
                axis = self.pick([1, 2, 3])
                other = [
                    t
                    for t in self.pool
                    if b.tensors[t].quant == b.tensors[x].quant
                    and all(p == q for i, (p, q) in enumerate(zip(b.shape(t), b.shape(x), strict=True)) if i != axis)
                ]
                y = b.layer(Concat(axis), [self.pick(other) for _ in range(self.int(2, 3))], name)
            case "slice":
                axis = self.pick([1, 2, 3])
                extent = b.shape(x)[axis]
                start = self.int(0, extent - 1)
                step = self.pick([1, 1, 2])
                size = self.int(1, (extent - start + step - 1) // step)
                shape = b.shape(x)
                starts = tuple(start if i == axis else 0 for i in range(4))
                sizes = tuple(size if i == axis else shape[i] for i in range(4))
                steps = tuple(step if i == axis else 1 for i in range(4))
                y = b.layer(Slice(starts, sizes, steps), [x], name)
            case "reshape":
                y = b.layer(Reshape(self.pick([(n, w, h, c), (n, h * w, 1, c), (n, 1, w, h * c)])), [x], name)
            case "transpose":
                y = b.layer(Transpose((0, 2, 1, 3)), [x], name)
            case "blocks":
                y = b.layer(DepthToSpace(2), [x], name) if c % 4 == 0 else b.layer(Clamp(0.0), [x], name)
            case "resize":
                y = b.layer(Resize((min(h * 2, 12), min(w * 2, 12))), [x], name)
            case "dynamic":
                y = self.dynamic(name)
            case "residual":
                y = self.residual(x, name)
            case "constant first":
                y = self.constant_first(x, name)
            case "one minus":
                y = self.one_minus(x, name)
            case "centred":
                y = self.centred(x, name)
            case "gate":
                y = self.gate(x, name)
            case "prelu":
                y = self.prelu(x, name)
            case "pad":
                y = b.layer(Pad((0, self.int(0, 1), 1, 0), (0, 1, self.int(0, 2), 0)), [x], name)
        if np.prod(b.shape(y)) <= 4096:
            self.pool.append(y)

    def finish(self) -> Network:
        """Outputs: the last tensors, one of them behind a small head; a number, an input or a constant besides."""
        b, x = self.builder, self.pool[-1]
        outputs = [x]
        if self.flip():
            c = b.shape(x)[3]
            mean = b.layer(Reduce((1, 2), keep=False, kind=ReduceKind.MEAN), [x], "mean")
            y = b.layer(Dense(), [mean, *self.weights((4, c), mean, "dense")], "dense", **self.format())
            outputs = [y]
            if not self.quantised:
                outputs = [b.layer(Softmax(), [y], "softmax")]
        if self.flip():
            other = self.pick(self.pool)
            if other not in outputs and other not in b.inputs:
                outputs.append(other)
        outputs = [t for t in outputs if t not in b.inputs]
        if not outputs:
            outputs = [b.layer(Clamp(0.0), [x], "out")]
        match self.int(0, 9):
            case 0:  # the same for every input
                outputs.append(self.constant(self.pick([(), (3,), (1, 2, 3, 4)]), "fixed"))
            case 1:
                outputs.append(b.inputs[0])
            case 2 if self.numbers:
                outputs.append(self.numbers[0])
        return b.build(outputs)


KINDS = ("float", "tflite", "onnx")  # int8 in LiteRT's arithmetic, and in onnxruntime's


def _network(choices: _Drawn | _Seeded, kinds: tuple[str, ...], most: int) -> Network:
    grower = _Grower(choices, choices.pick(kinds))
    shape = (1, choices.int(2, 9), choices.int(2, 9), choices.int(1, 4))
    for i in range(choices.int(1, 2)):
        fmt = grower.format()
        grower.pool.append(grower.builder.input(f"x{i}", shape, fmt["dtype"], fmt.get("quant")))
    for index in range(choices.int(1, most)):
        grower.grow(index)
    return grower.finish()


@st.composite
def networks(draw, kinds: tuple[str, ...] = KINDS, most: int = 8) -> Network:
    """A random network of one of these kinds."""
    return _network(_Drawn(draw), kinds, most)


def network_of_seed(seed: int, kinds: tuple[str, ...] = KINDS, most: int = 8) -> Network:
    """The random network of a seed."""
    return _network(_Seeded(seed), kinds, most)
