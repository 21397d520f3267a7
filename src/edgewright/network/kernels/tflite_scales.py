"""What TFLite's kernels derive from quantisation parameters: zero points, multipliers and activation ranges.

Scales are float32 in the file. Some kernels combine them in float32, others in double, which changes the last bit of a
multiplier: arithmetic on `scale` is float32, on `float(scale(...))` double.
"""

from __future__ import annotations

import numpy as np

from ..operators import Activation, Clamp
from ..region import Region
from ..tensor import Array, Tensor
from .operand import Operand
from .scales import scale_of, zero_of
from .tflite_fixed import quantize_multiplier, round_half_away


def scale(tensor: Tensor) -> np.float32:
    """The only scale of an activation."""
    assert tensor.quant is not None
    assert not tensor.quant.is_per_channel
    return np.float32(tensor.quant.scale[0])


def zero(tensor: Tensor) -> int:
    """The only zero point of an activation."""
    assert tensor.quant is not None
    return tensor.quant.zero[0]


def centred(x: Operand) -> Array:
    """Stored integers minus their zero point, as int64."""
    if x.tensor.quant is None:
        return x.data.astype(np.int64)
    return x.data.astype(np.int64) - zero_of(x.tensor, x.region)


def channel_scales(x: Tensor, w: Operand, result: Tensor) -> Array:
    """The multiplier of each output channel's sums; scales are combined in double."""
    channels = Region((w.region.bounds[0], *((0, 1) for _ in w.shape[1:])))
    scales = np.atleast_1d(scale_of(w.tensor, channels)).reshape(-1).astype(np.float64)
    return float(scale(x)) * scales / float(scale(result))


def channel_multipliers(x: Tensor, w: Operand, result: Tensor) -> tuple[Array, Array]:
    """`channel_scales` as fixed-point multipliers and shifts."""
    pairs = [quantize_multiplier(float(real)) for real in channel_scales(x, w, result)]
    return np.array([m for m, _ in pairs], np.int64), np.array([s for _, s in pairs], np.int64)


def multiplier(x: Tensor, w: Tensor, result: Tensor) -> tuple[int, int]:
    """One multiplier and shift for all channels; scales are multiplied in float32."""
    return quantize_multiplier(float(scale(x) * scale(w)) / float(scale(result)))


def activation_range(activation: Activation | None, result: Tensor) -> tuple[int, int]:
    """The range of stored values that a folded activation allows."""
    info = np.iinfo(result.dtype.numpy)
    if activation is None:
        return int(info.min), int(info.max)
    assert isinstance(activation, Clamp), f"TFLite folds no {activation}"
    low, high = (stored_number(limit, result) for limit in (activation.low, activation.high))
    return max(int(info.min), low), min(int(info.max), high)


def stored_number(value: float, tensor: Tensor) -> int:
    """A real number as stored, without saturation; infinities become integers beyond all types."""
    with np.errstate(over="ignore"):
        steps = float(np.float32(value) / scale(tensor))
    if np.isinf(steps):
        return int(np.sign(steps)) << 40
    return zero(tensor) + round_half_away(steps)


def saturate(values: Array, result: Tensor, activation: Activation | None = None) -> Array:
    """Adds the zero point and saturates to the range of type and activation."""
    low, high = activation_range(activation, result)
    return np.clip(values + zero(result), low, high).astype(result.dtype.numpy)
