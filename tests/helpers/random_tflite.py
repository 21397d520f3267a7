"""Layers of random models in TFLite: float32, int8 with scales such as its converter's, or stored weights alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.helpers.random_models import Shape, Value, drawn_name, drawn_scale, windowed
from tests.helpers.tflite_models import Node, Spec, model, options

_UNARY = {
    "relu": "RELU",
    "relu6": "RELU6",
    "sigmoid": "LOGISTIC",
    "tanh": "TANH",
    "hardswish": "HARD_SWISH",
    "leaky": "LEAKY_RELU",
    "neg": "NEG",
}
_FIXED = {"sigmoid": (1 / 256, -128), "tanh": (1 / 128, 0)}  # scales that LiteRT insists on


class Tflite:
    """A model in the making. All layers of a file are NHWC."""

    def __init__(self, rng: np.random.Generator, numbers: str) -> None:
        self.rng, self.is_quantised, self.is_dynamic = rng, numbers == "int8", numbers == "dynamic"
        self.can_divide = not self.is_quantised
        self.taken: set[str] = set()
        self.specs: list[Spec] = []
        self.nodes: list[Node] = []
        self.inputs: list[str] = []

    # Tensors

    def name(self, kind: str) -> str:
        name = drawn_name(self.rng, f"{kind}{len(self.specs)}", self.taken)
        self.taken.add(name)
        return name

    def new(
        self, shape: Shape, reach: float = 3.0, low: float = -1.0, like: Value | None = None, batch: bool = True
    ) -> Value:
        """A tensor to be written; with the scale of another one, or one that reaches so far."""
        name, file = self.name("t"), _file_shape(shape) if batch else shape
        if not self.is_quantised:
            self.specs.append(Spec(name, file))
            return Value(name, shape)
        scale = drawn_scale(self.rng, reach if low < 0 else reach / 2)
        zero = -128 if low >= 0 else int(self.rng.integers(-20, 20))
        if like:
            scale, zero = like.scale, like.zero
        self.specs.append(Spec(name, file, "int8", scale, zero))
        return Value(name, shape, scale, zero)

    def fixed(self, shape: Shape, scale: float, zero: int) -> Value:
        return self.new(shape, like=Value("", (), scale, zero))

    def stored(self, value: Any, dtype: str, shape: Shape | None = None, **quant: Any) -> str:
        name = self.name("k")
        data = np.asarray(value, dtype)
        self.specs.append(Spec(name, data.shape if shape is None else shape, dtype, data=data, **quant))
        return name

    def node(self, kind: str, inputs: Sequence[str], output: Value, made: Any = None) -> Value:
        self.nodes.append(Node(kind, tuple(inputs), (output.name,), made))
        return output

    def input(self, shape: Shape) -> Value:
        found = self.new(shape)
        self.inputs.append(found.name)
        return found

    def constant(self, shape: Shape, least: float | None = None) -> Value:
        file = _file_shape(shape) if len(shape) == 3 else shape
        if not self.is_quantised:
            data = self.rng.standard_normal(file)
            return Value(self.stored(data if least is None else np.abs(data) + least, "float32"), shape)
        scale, zero = drawn_scale(self.rng, 2.0), int(self.rng.integers(-20, 20))
        data = self.rng.integers(-128, 128, file)
        return Value(self.stored(data, "int8", scale=scale, zero=zero), shape, scale, zero)

    def weights(self, x: Value, shape: Shape, axis: int) -> list[str]:
        """Weights with a scale for each index along the axis, and a bias."""
        count, fan_in = shape[axis], int(np.prod(shape)) // shape[axis]
        if self.is_dynamic and self.rng.random() < 0.8:
            scales = tuple(float(np.float32(drawn_scale(self.rng, 1.7 / np.sqrt(fan_in)))) for _ in range(count))
            w = self.stored(self.rng.integers(-127, 128, shape), "int8", scale=scales, zero=0, axis=axis)
            return [w, self.stored(self.rng.standard_normal(count) * 0.3, "float32")]
        if not self.is_quantised:
            w = self.stored(self.rng.standard_normal(shape) / np.sqrt(fan_in), "float32")
            return [w, self.stored(self.rng.standard_normal(count) * 0.3, "float32")]
        reach = 128 / (73 * np.sqrt(fan_in))
        scales = tuple(float(np.float32(drawn_scale(self.rng, reach))) for _ in range(count))
        w = self.stored(self.rng.integers(-127, 128, shape), "int8", scale=scales, zero=0, axis=axis)
        steps = tuple(float(np.float32(s) * np.float32(x.scale)) for s in scales)
        bias = [round(float(self.rng.standard_normal()) * 0.3 / step) for step in steps]
        return [w, self.stored(bias, "int32", scale=steps, zero=0)]

    # Layers

    def conv(self, x: Value, out: int, kernel: Shape, stride: Shape, same: bool, depthwise: bool, relu: int) -> Value:
        size, _ = windowed(x.shape[:2], kernel, stride, same)
        fields = {
            "padding": 0 if same else 1,
            "strideH": stride[0],
            "strideW": stride[1],
            "fusedActivationFunction": (0, 1, 3)[relu],
        }
        y = self.new((*size, out), low=0.0 if relu else -1.0)
        if depthwise:
            multiplier = out // x.shape[2]
            given = self.weights(x, (1, *kernel, out), 3)
            made = options("DepthwiseConv2D", depthMultiplier=multiplier, **fields)
            return self.node("DEPTHWISE_CONV_2D", [x.name, *given], y, made)
        given = self.weights(x, (out, *kernel, x.shape[2]), 0)
        return self.node("CONV_2D", [x.name, *given], y, options("Conv2D", **fields))

    def deconv(self, x: Value, out: int, kernel: Shape, stride: int) -> Value:
        size = tuple((n - 1) * stride + k for n, k in zip(x.shape[:2], kernel, strict=True))
        given = self.weights(x, (out, *kernel, x.shape[2]), 0)
        made = options("TransposeConv", padding=1, strideH=stride, strideW=stride)
        to = self.stored((1, *size, out), "int32")
        return self.node("TRANSPOSE_CONV", [to, given[0], x.name, given[1]], self.new((*size, out)), made)

    def pool(self, x: Value, kind: str, kernel: Shape, stride: Shape, same: bool) -> Value:
        size, _ = windowed(x.shape[:2], kernel, stride, same)
        made = options(
            "Pool2D",
            padding=0 if same else 1,
            strideH=stride[0],
            strideW=stride[1],
            filterHeight=kernel[0],
            filterWidth=kernel[1],
        )
        y = self.new((*size, x.shape[2]), like=x)
        return self.node("MAX_POOL_2D" if kind == "max" else "AVERAGE_POOL_2D", [x.name], y, made)

    def reduce(self, x: Value, kind: str, over: str) -> Value:
        """Over the pixels, which keeps an image of one; over all, to a number; over the whole image, to a row."""
        along = {"pixels": [1, 2], "image": [0, 1, 2], "all": [0, 1, 2, 3]}[over]
        shape = {"pixels": (1, 1, x.shape[2]), "image": x.shape[2:], "all": ()}[over]
        y = self.new(shape, 1.5, like=x if kind == "max" else None, batch=over != "image")
        axes = self.stored(along, "int32")
        made = options("Reducer", keepDims=over == "pixels")
        return self.node({"mean": "MEAN", "max": "REDUCE_MAX"}[kind], [x.name, axes], y, made)

    def binary(self, kind: str, a: Value, b: Value, shape: Shape) -> Value:
        made = options(kind.capitalize(), fusedActivationFunction=int(self.rng.choice([0, 0, 1])))
        return self.node(kind.upper(), [a.name, b.name], self.new(shape, 4.0), made)

    def unary(self, kind: str, x: Value) -> Value:
        if self.is_quantised and kind in _FIXED:
            y = self.fixed(x.shape, *_FIXED[kind])
        else:
            y = self.new(x.shape, low=0.0 if kind.startswith("relu") else -1.0)
        made = {"leaky": options("LeakyRelu", alpha=0.1), "hardswish": options("HardSwish")}.get(kind)
        return self.node(_UNARY[kind], [x.name], y, made)

    def prelu(self, x: Value) -> Value:
        """The operator, or what exporters write for it: relu(x) + slope * -relu(-x), which LiteRT has no int8 for."""
        slope = self.rng.uniform(0.05, 0.4, (1, 1, x.shape[2]))
        if self.is_quantised:
            scale = drawn_scale(self.rng, 0.5)
            stored = self.stored(np.clip(np.rint(slope / scale), 0, 127), "int8", scale=scale, zero=0)
            return self.node("PRELU", [x.name, stored], self.new(x.shape))
        stored = self.stored(slope, "float32")
        if self.rng.random() < 0.3:
            return self.node("PRELU", [x.name, stored], self.new(x.shape))
        negative = self.unary("neg", self.unary("relu", self.unary("neg", x)))
        scaled = self.binary("mul", Value(stored, (1, 1, x.shape[2])), negative, x.shape)
        return self.binary("add", self.unary("relu", x), scaled, x.shape)

    def larger(self, x: Value) -> Value:
        """The larger of x and a number, by a comparison and a choice: without a jump that rounding could move."""
        if self.is_quantised and x.scale < 1 / 256:
            return self.prelu(x)
        quant = {"scale": x.scale, "zero": x.zero} if self.is_quantised else {}
        number = self.rng.integers(-60, 60) if self.is_quantised else self.rng.uniform(-0.5, 0.5)
        stored = self.stored(number, "int8" if self.is_quantised else "float32", **quant)
        is_larger = self.name("is")
        self.specs.append(Spec(is_larger, _file_shape(x.shape), "bool"))
        self.nodes.append(Node("GREATER", (x.name, stored), (is_larger,), options("Greater")))
        return self.node("SELECT_V2", [is_larger, x.name, stored], self.new(x.shape, like=x), options("SelectV2"))

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        """Of what has one scale in common: the others are brought to it."""
        alike = [self._scaled_like(part, parts[0]).name for part in parts]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        y = self.new(tuple(shape), like=parts[0])
        return self.node("CONCATENATION", alike, y, options("Concatenation", axis=axis + 1))

    def _scaled_like(self, x: Value, other: Value) -> Value:
        if (x.scale, x.zero) == (other.scale, other.zero):
            return x
        return self.node("QUANTIZE", [x.name], self.new(x.shape, like=other))

    def resize(self, x: Value, size: Shape, linear: bool) -> Value:
        y = self.new((*size, x.shape[2]), like=x)
        kind, name = ("BILINEAR", "ResizeBilinear") if linear else ("NEAREST_NEIGHBOR", "ResizeNearestNeighbor")
        made = options(name, halfPixelCenters=True) if linear else options(name)
        return self.node(f"RESIZE_{kind}", [x.name, self.stored(size, "int32")], y, made)

    def pad(self, x: Value, before: Shape, after: Shape) -> Value:
        y = self.new(tuple(a + n + b for a, n, b in zip(before, x.shape, after, strict=True)), like=x)
        pads = self.stored([(0, 0), *zip(before, after, strict=True)], "int32")
        return self.node("PAD", [x.name, pads], y, options("Pad"))

    def slice(self, x: Value, start: Shape, size: Shape) -> Value:
        given = [self.stored(v, "int32") for v in ((0, *start), (1, *size))]
        return self.node("SLICE", [x.name, *given], self.new(size, like=x), options("Slice"))

    def reshape(self, x: Value, shape: Shape) -> Value:
        to = self.stored(_file_shape(shape), "int32")
        return self.node("RESHAPE", [x.name, to], self.new(shape, like=x), options("Reshape"))

    def dense(self, x: Value, out: int) -> Value:
        y = self.new((out,))
        given = self.weights(x, (out, x.shape[0]), 0)
        return self.node("FULLY_CONNECTED", [x.name, *given], y, options("FullyConnected"))

    def softmax(self, x: Value) -> Value:
        y = self.fixed(x.shape, 1 / 256, -128)
        return self.node("SOFTMAX", [x.name], y, options("Softmax", beta=1.0))

    def alias(self, x: Value) -> Value:
        """The tensor itself: a file may name it as an output twice, or an input as an output."""
        return x

    def file(self, outputs: Sequence[Value]) -> bytes:
        names = [output.name for output in outputs]
        if self.rng.random() < 0.05:
            names.append(names[0])
        if self.rng.random() < 0.05:
            names.append(self.inputs[0])
        return model(self.specs, self.nodes, self.inputs, names)


def _file_shape(shape: Shape) -> Shape:
    return (1, *shape) if shape else ()
