"""Deep QDQ networks as quantisers write them: residual blocks of convolutions, every tensor with a scale of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edgewright.network import Array

KINDS = ("relu", "leaky", "hardswish", "gate", "prelu")


class Qdq:
    """A QDQ graph under construction; methods give the name of what they add, dequantised."""

    def __init__(self, seed: int, dtype: Any = np.int8, powers: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        self.powers = powers  # scales are powers of two, where ties are common
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.scales: dict[str, float] = {}

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def scale(self) -> float:
        return 2.0 ** int(self.rng.integers(-6, -4)) if self.powers else float(self.rng.uniform(0.02, 0.045))

    def stored(self, x: str, scale: float | None = None, zero: int | None = None) -> str:
        """Quantised and dequantised again."""
        scale = float(np.float32(self.scale() if scale is None else scale))
        middle = 0 if self.dtype == np.int8 else 128
        zero = middle + int(self.rng.integers(-6, 6)) if zero is None else zero
        s, z = self.constant(scale), self.constant(zero, self.dtype)
        made = self.node("DequantizeLinear", self.node("QuantizeLinear", x, s, z), s, z)
        self.scales[made] = scale
        return made

    def weights(self, values: Array, scale: Array, dtype: Any = np.int8) -> str:
        s, z = self.constant(scale), self.constant(np.zeros(scale.shape), dtype)
        return self.node("DequantizeLinear", self.constant(values, dtype), s, z, axis=0)

    def conv(self, x: str, ins: int, outs: int, kernel: int = 3) -> str:
        w = self.rng.normal(0, (2 / (ins * kernel * kernel)) ** 0.5, (outs, ins, kernel, kernel))
        scale = (np.abs(w).max((1, 2, 3)) / 127).astype(np.float32)
        if self.powers:
            scale = 2 ** np.ceil(np.log2(scale))
        stored = np.rint(w / scale.reshape(-1, 1, 1, 1))
        steps = scale * np.float32(self.scales[x])
        bias = self.weights(np.rint(self.rng.normal(0, 0.1, outs) / steps), steps, np.int32)
        pads = [kernel // 2] * 4
        return self.node("Conv", x, self.weights(stored, scale), bias, kernel_shape=[kernel] * 2, pads=pads)

    def activation(self, x: str, kind: str, width: int) -> str:
        least = int(np.iinfo(self.dtype).min)
        match kind:
            case "prelu":  # as exporters write it where there is no PRelu
                positive = self.stored(self.node("Relu", x))
                y = self.stored(self.node("Relu", self.stored(self.node("Neg", x))))
                y = self.stored(self.node("Neg", y))
                values = self.constant(np.rint(self.rng.uniform(30, 127, (1, width, 1, 1))), np.int8)
                slope = self.node("DequantizeLinear", values, self.constant(0.003), self.constant(0, np.int8))
                return self.stored(self.node("Add", positive, self.stored(self.node("Mul", y, slope))))
            case "hardswish":
                gate = self.stored(self.node("HardSigmoid", x, alpha=1 / 6, beta=0.5), 1 / 256, least)
                return self.stored(self.node("Mul", x, gate))
            case "leaky":
                return self.stored(self.node("LeakyRelu", x, alpha=0.1))
            case "gate":  # squeeze and excite
                mean = self.stored(self.node("GlobalAveragePool", x), 1 / 128)
                gate = self.stored(self.node("Sigmoid", self.stored(self.conv(mean, width, width, 1))), 1 / 256, least)
                return self.stored(self.node("Mul", x, gate))
        return self.stored(self.node("Relu", x))

    def model(self, shape: tuple[int, ...], output: str) -> bytes:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = onnx.ValueInfoProto(name=output)
        graph = helper.make_graph(self.nodes, "qdq", [x], [y], self.constants)
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def deep(seed: int, kind: str, depth: int = 3, size: int = 8, dtype: Any = np.int8, powers: bool = False) -> bytes:
    """Residual blocks with this activation."""
    g, width = Qdq(seed, dtype, powers), 6
    x = g.stored(g.conv(g.stored("x"), 3, width))
    for _ in range(depth):
        y = g.activation(g.stored(g.conv(x, width, width)), kind, width)
        x = g.stored(g.node("Add", x, g.stored(g.conv(y, width, width))))
        x = g.activation(x, kind, width) if kind == "prelu" else x
    return g.model((1, 3, size, size), x)


def flattened(seed: int, dtype: Any = np.int8) -> bytes:
    """A convolution whose image is flattened, stored again and read by a dense layer."""
    g = Qdq(seed, dtype)
    x = g.stored(g.conv(g.stored("x"), 3, 4))
    x = g.stored(g.node("Flatten", x), g.scales[x], None)
    w = g.rng.integers(-127, 128, (5, 4 * 6 * 6))
    y = g.node("Gemm", x, g.weights(w, np.full(5, 0.002)), transB=1)
    return g.model((1, 3, 6, 6), g.stored(y))
