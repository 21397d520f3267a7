"""Networks as a literal reader would hand them to the passes: NCHW between layers, Transposes around every window."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgewright.network import Array, Builder, DType, Network, Quant
from edgewright.network.kernels import execute
from edgewright.network.operators import (
    AvgPool2d,
    Binary,
    BinaryKind,
    Clamp,
    Conv2d,
    Dense,
    Dequantize,
    MaxPool2d,
    Op,
    Quantize,
    Transpose,
)

NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)
RELU = Clamp(0.0)


class Literal(Builder):
    """A builder that speaks NCHW, as an ONNX file does."""

    def __init__(self, name: str = "net", seed: int = 0) -> None:
        super().__init__(name)
        self.rng = np.random.default_rng(seed)

    def floats(self, *shape: int) -> Array:
        return self.rng.standard_normal(shape).astype(np.float32)

    def window(self, op: Op, inputs: list[str], name: str) -> str:
        """A layer on images, with the Transposes that make it one on NCHW."""
        image = self.layer(Transpose(NHWC), inputs[:1], f"{name}_nhwc")
        out = self.layer(op, [image, *inputs[1:]], name)
        return self.layer(Transpose(NCHW), [out], f"{name}_nchw")

    def conv(self, x: str, channels: int, name: str, kernel: int = 3, bias: bool = True, **attributes: object) -> str:
        depth = self.shape(x)[1] // int(attributes.get("groups", 1))  # type: ignore[call-overload]
        w = self.constant(f"{name}_w", self.floats(channels, depth, kernel, kernel).transpose(NHWC) / 3)
        inputs = [x, w] + ([self.constant(f"{name}_b", self.floats(channels))] if bias else [])
        return self.window(Conv2d(**attributes), inputs, name)  # type: ignore[arg-type]

    def max_pool(self, x: str, name: str, size: int = 2, stride: int = 2) -> str:
        return self.window(MaxPool2d((size, size), (stride, stride)), [x], name)

    def avg_pool(self, x: str, name: str, size: int = 2) -> str:
        return self.window(AvgPool2d((size, size), (size, size)), [x], name)

    def dense(self, x: str, features: int, name: str) -> str:
        w = self.constant(f"{name}_w", self.floats(features, self.shape(x)[-1]) / 4)
        return self.layer(Dense(), [x, w, self.constant(f"{name}_b", self.floats(features))], name)

    def binary(self, kind: BinaryKind, a: str, b: str | Array | float, name: str) -> str:
        if not isinstance(b, str):
            b = self.constant(f"{name}_c", np.asarray(b, np.float32))
        return self.layer(Binary(kind), [a, b], name)

    # QDQ. Scales are powers of two and zero points even: float32 is then exact, and ties round alike everywhere.

    def quantize(self, x: str, name: str, scale: float = 2**-4, zero: int = 0, dtype: DType = DType.INT8) -> str:
        return self.layer(Quantize(), [x], name, dtype=dtype, quant=Quant.of(scale, zero))

    def dequantize(self, x: str, name: str) -> str:
        return self.layer(Dequantize(), [x], name, dtype=DType.FLOAT32)

    def fake(self, x: str, name: str, scale: float = 2**-4, zero: int = 0) -> str:
        """Quantize then Dequantize."""
        return self.dequantize(self.quantize(x, f"{name}_q", scale, zero), f"{name}_dq")

    def stored_weights(self, shape: tuple[int, ...], name: str, per_channel: bool) -> str:
        value = self.rng.integers(-8, 8, shape).astype(np.int8)
        if per_channel:
            scales = tuple(float(2.0 ** -self.rng.integers(3, 6)) for _ in range(shape[0]))
            quant = Quant(scales, (0,) * shape[0], 0)
        else:
            quant = Quant.of(2**-4)
        return self.dequantize(self.constant(name, value, quant), f"{name}_dq")

    def conv_qdq(self, x: str, channels: int, name: str, per_channel: bool = True, bias: str = "stored") -> str:
        """A convolution of a dequantised tensor, with weights (and bias) behind Dequantize."""
        w = self.stored_weights((channels, 3, 3, self.shape(x)[1]), f"{name}_w", per_channel)
        inputs = [x, w]
        if bias == "stored":
            quant = self.tensors[self.layers[-1].inputs[0]].quant
            assert quant is not None
            source = next(layer for layer in self.layers if layer.output == x)
            step = self.tensors[source.inputs[0]].quant
            assert step is not None
            scales = tuple(step.scale[0] * s for s in quant.scale)
            steps = self.rng.integers(-40, 40, channels).astype(np.int32)
            stored = self.constant(f"{name}_b", steps, Quant(scales, (0,) * len(scales), 0 if per_channel else None))
            inputs.append(self.dequantize(stored, f"{name}_b_dq"))
        elif bias == "real":
            inputs.append(self.constant(f"{name}_b", (self.rng.integers(-9, 9, channels) / 16).astype(np.float32)))
        return self.window(Conv2d(pads=(1, 1, 1, 1)), inputs, name)


def results(network: Network, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs in the file's layout, for inputs in the file's layout."""
    ours = {
        name: value.transpose(network.layouts[name]) if name in network.layouts else value
        for name, value in inputs.items()
    }
    outputs = execute(network, ours)
    return {
        name: outputs[name].transpose(np.argsort(network.layouts[name])) if name in network.layouts else outputs[name]
        for name in network.outputs
    }


def assert_same(before: Network, after: Network, inputs: Mapping[str, Array], exact: bool = False) -> None:
    """Both networks have the same outputs by name, shape (in the file's layout) and value."""
    expected, actual = results(before, inputs), results(after, inputs)
    assert list(expected) == list(actual)
    for name, value in expected.items():
        if exact:
            np.testing.assert_array_equal(actual[name], value, name)
        else:
            scale = float(np.abs(value).max(initial=1))
            np.testing.assert_allclose(actual[name], value, rtol=1e-4, atol=2e-5 * scale, err_msg=name)


def ops(network: Network) -> list[str]:
    return [type(layer.op).__name__ for layer in network.layers]
