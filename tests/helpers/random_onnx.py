"""Layers of random models in ONNX: NCHW nodes in float32, or each tensor behind QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.helpers.random_models import Shape, Value, drawn_name, drawn_scale, windowed

_UNARY = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "hardswish": "HardSwish",
    "leaky": "LeakyRelu",
    "neg": "Neg",
}


class Onnx:
    """A graph in the making. Images are NCHW in the file."""

    can_divide = True

    def __init__(self, rng: np.random.Generator, is_quantised: bool) -> None:
        self.rng, self.is_quantised = rng, is_quantised
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: dict[str, Shape] = {}
        self.count = 0
        self.taken: set[str] = set()

    # Tensors

    def name(self, kind: str) -> str:
        self.count += 1
        name = drawn_name(self.rng, f"{kind}{self.count}", self.taken)
        self.taken.add(name)
        return name

    def stored(self, value: Any, dtype: Any = np.float32) -> str:
        name = self.name("k")
        self.constants[name] = np.asarray(value, dtype)
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = self.name(kind.lower())
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def value(self, name: str, shape: Shape, reach: float = 3.0, low: float = -1.0) -> Value:
        """What a node gave; in a quantised model behind a pair of conversions. It reaches from low * reach to reach."""
        if not self.is_quantised:
            return Value(name, shape)
        scale = drawn_scale(self.rng, reach if low < 0 else reach / 2)
        zero = -128 if low >= 0 else int(self.rng.integers(-20, 20))
        return Value(self.converted(name, scale, zero), shape)

    def converted(self, name: str, scale: float, zero: int) -> str:
        given = self.stored(scale), self.stored(zero, np.int8)
        return self.node("DequantizeLinear", self.node("QuantizeLinear", name, *given), *given)

    def input(self, shape: Shape) -> Value:
        name = self.name("x")
        self.inputs[name] = _file_shape(shape)
        return self.value(name, shape)

    def constant(self, shape: Shape, least: float | None = None) -> Value:
        """One along the channels where it has one axis; an image, or a number, otherwise."""
        data = self.rng.standard_normal(shape).astype(np.float32)
        if least is not None:
            data = np.abs(data) + np.float32(least)
        if len(shape) == 3:
            data = data.transpose(2, 0, 1)[None]
        elif len(shape) == 1:
            data = data.reshape(1, -1, 1, 1)
        return self.value(self.stored(data), shape)

    def weights(self, shape: Shape, axis: int = 0) -> str:
        """With a scale for each index along the axis."""
        count, fan_in = shape[axis], int(np.prod(shape)) // shape[axis]
        if not self.is_quantised:
            return self.stored(self.rng.standard_normal(shape) / np.sqrt(fan_in))
        scales = np.array([drawn_scale(self.rng, 128 / (73 * np.sqrt(fan_in))) for _ in range(count)], np.float32)
        values = self.rng.integers(-127, 128, shape)
        return self.node(
            "DequantizeLinear",
            self.stored(values, np.int8),
            self.stored(scales),
            self.stored(np.zeros(count), np.int8),
            axis=axis,
        )

    def bias(self, size: int) -> str:
        return self.stored(self.rng.standard_normal(size) * 0.3)

    # Layers

    def conv(self, x: Value, out: int, kernel: Shape, stride: Shape, same: bool, depthwise: bool, relu: int) -> Value:
        channels = x.shape[2]
        size, (before, after) = windowed(x.shape[:2], kernel, stride, same)
        groups = channels if depthwise else 1
        w = self.weights((out, channels // groups, *kernel))
        given = [x.name, w, self.bias(out)] if self.rng.random() < 0.8 else [x.name, w]
        y = self.node("Conv", *given, strides=stride, pads=(*before, *after), group=groups, kernel_shape=kernel)
        return self._activated(y, (*size, out), relu)

    def deconv(self, x: Value, out: int, kernel: Shape, stride: int) -> Value:
        w = self.weights((x.shape[2], out, *kernel), axis=1)
        y = self.node("ConvTranspose", x.name, w, self.bias(out), strides=(stride, stride), kernel_shape=kernel)
        size = ((n - 1) * stride + k for n, k in zip(x.shape[:2], kernel, strict=True))
        return self.value(y, (*size, out))

    def _activated(self, y: str, shape: Shape, relu: int) -> Value:
        if relu == 1:
            return self.value(self.node("Relu", y), shape, low=0.0)
        if relu == 2:
            return self.value(self.node("Clip", y, self.stored(0.0), self.stored(6.0)), shape, low=0.0)
        return self.value(y, shape)

    def pool(self, x: Value, kind: str, kernel: Shape, stride: Shape, same: bool) -> Value:
        size, (before, after) = windowed(x.shape[:2], kernel, stride, same)
        pads = (*before, *after)
        y = self.node(
            "MaxPool" if kind == "max" else "AveragePool", x.name, kernel_shape=kernel, strides=stride, pads=pads
        )
        return self.value(y, (*size, x.shape[2]))

    def reduce(self, x: Value, kind: str, over: str) -> Value:
        """Over the pixels, which keeps an image of one; over all, to a number; over the whole image, to a row."""
        name = {"mean": "ReduceMean", "max": "ReduceMax"}[kind]
        reach = 3.0 if kind == "max" else 1.5
        if over == "pixels":
            whole = {"mean": "GlobalAveragePool", "max": "GlobalMaxPool"}[kind]
            y = self.node(whole, x.name) if self.rng.random() < 0.5 else self.node(name, x.name, axes=[2, 3])
            return self.value(y, (1, 1, x.shape[2]), reach)
        if over == "image":
            return self.value(self.node(name, x.name, axes=[0, 2, 3], keepdims=0), (x.shape[2],), reach)
        axes = {} if self.rng.random() < 0.5 else {"axes": [0, 1, 2, 3]}
        return self.value(self.node(name, x.name, keepdims=0, **axes), (), reach)

    def binary(self, kind: str, a: Value, b: Value, shape: Shape) -> Value:
        return self.value(self.node(kind.capitalize(), a.name, b.name), shape, 4.0)

    def unary(self, kind: str, x: Value) -> Value:
        if kind == "relu6":
            return self._activated(x.name, x.shape, 2)
        y = self.node(_UNARY[kind], x.name, **({"alpha": 0.1} if kind == "leaky" else {}))
        return self.value(y, x.shape, 1.0 if kind in ("sigmoid", "tanh") else 3.0, 0.0 if kind == "sigmoid" else -1.0)

    def prelu(self, x: Value) -> Value:
        """The operator, or what exporters write for it: relu(x) + slope * -relu(-x)."""
        slope = self.rng.uniform(0.05, 0.4, (x.shape[2], 1, 1))
        stored = self.value(self.stored(slope), (1, 1, x.shape[2]), 0.5, 0.0)
        if self.rng.random() < 0.3:
            return self.value(self.node("PRelu", x.name, stored.name), x.shape)
        negative = self.unary("neg", self.unary("relu", self.unary("neg", x)))
        return self.binary("add", self.unary("relu", x), self.binary("mul", stored, negative, x.shape), x.shape)

    def larger(self, x: Value) -> Value:
        """The larger of x and a number, by a comparison and a choice: without a jump that rounding could move."""
        number = self.stored(self.rng.uniform(-0.5, 0.5))
        is_larger = self.node(str(self.rng.choice(["Greater", "GreaterOrEqual"])), x.name, number)
        return self.value(self.node("Where", is_larger, x.name, number), x.shape)

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        y = self.node("Concat", *(part.name for part in parts), axis=(2, 3, 1)[axis])
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.value(y, tuple(shape))

    def resize(self, x: Value, size: Shape, linear: bool) -> Value:
        sizes = self.stored([1, x.shape[2], *size], np.int64)
        modes = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
        near = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.value(
            self.node("Resize", x.name, "", "", sizes, **(modes if linear else near)), (*size, x.shape[2])
        )

    def pad(self, x: Value, before: Shape, after: Shape) -> Value:
        pads = [0, before[2], *before[:2], 0, after[2], *after[:2]]
        y = self.node("Pad", x.name, self.stored(pads, np.int64))
        return self.value(y, tuple(a + n + b for a, n, b in zip(before, x.shape, after, strict=True)))

    def slice(self, x: Value, start: Shape, size: Shape) -> Value:
        ends = [a + n for a, n in zip(start, size, strict=True)]
        given = [self.stored(v, np.int64) for v in (start, ends, [2, 3, 1])]
        return self.value(self.node("Slice", x.name, *given), size)

    def reshape(self, x: Value, shape: Shape) -> Value:
        return self.value(self.node("Reshape", x.name, self.stored(_file_shape(shape), np.int64)), shape)

    def dense(self, x: Value, out: int) -> Value:
        y = self.node("Gemm", x.name, self.weights((out, x.shape[0])), self.bias(out), transB=1)
        return self.value(y, (out,))

    def softmax(self, x: Value) -> Value:
        y = self.node("Softmax", x.name)
        return Value(self.converted(y, 1 / 255, -128) if self.is_quantised else y, x.shape)

    def alias(self, x: Value) -> Value:
        return Value(self.node("Identity", x.name), x.shape)

    def file(self, outputs: Sequence[Value]) -> bytes:
        graph = helper.make_graph(
            self.nodes,
            "random",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in self.inputs.items()],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
                for name in dict.fromkeys(output.name for output in outputs)
            ],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", 17)]
        return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def _file_shape(shape: Shape) -> Shape:
    if len(shape) == 3:
        return (1, shape[2], *shape[:2])
    return (1, *shape) if shape else ()
