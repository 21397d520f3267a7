"""How sums become stored values: the rounding that a layer's scales and activation ask for."""

from __future__ import annotations

import numpy as np

from ..network import Arithmetic, Layer, Network
from ..network.kernels.scales import number
from ..network.kernels.tflite_scales import activation_range
from ..network.operators import Activation, Clamp, Dense


def limits(network: Network, layer: Layer) -> tuple[int, int]:
    """The stored values between which the layer's activation keeps its output."""
    y = network.tensors[layer.output]
    info = np.iinfo(y.dtype.numpy)
    activation: Activation | None = getattr(layer.op, "activation", None)
    if not isinstance(activation, Clamp) or y.quant is None:
        return int(info.min), int(info.max)
    if network.arithmetic is Arithmetic.TFLITE:
        return activation_range(activation, y)
    low, high = (int(np.clip(number(v, y), info.min, info.max)) for v in (activation.low, activation.high))
    return low, high


def is_narrow(network: Network, layer: Layer) -> bool:
    """Whether outputs keep to less than their type holds."""
    info = np.iinfo(network.tensors[layer.output].dtype.numpy)
    return limits(network, layer) != (int(info.min), int(info.max))


def scaling(network: Network, layer: Layer) -> str:
    """The kind of scaling.

    TFLite's convolutions round twice, which shows where sums below zero are stored: "signed". "narrow" ones are
    clamped further than their type does.
    """
    y = network.tensors[layer.output]
    if network.arithmetic is Arithmetic.ONNX:
        return "onnx"
    low = limits(network, layer)[0]
    if y.quant is not None and low < y.quant.zero[0] and not isinstance(layer.op, Dense):
        return "signed"
    return "narrow" if is_narrow(network, layer) else "plain"
