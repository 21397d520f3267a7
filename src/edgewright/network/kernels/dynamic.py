"""Dynamic quantisation to eight bits, and products of the stored numbers, as LiteRT's hybrid kernels and onnxruntime
compute them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..operators import Dense, DynamicProduct, DynamicQuantize, DynamicRange
from ..region import Region
from ..tensor import Array, Tensor
from .activations import activate
from .contraction import multiply_add
from .operand import Operand
from .tflite_fixed import rounded
from .windows import product_sums


def dynamic_range(op: DynamicRange, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """Scale, inverse and zero point of every item."""
    x = operands[0].data.astype(np.float32, copy=False)
    axes = tuple(range(op.lead, x.ndim))
    low, high = x.min(axis=axes), x.max(axis=axes)
    numbers = (_even if op.even else _asymmetric if op.asymmetric else _symmetric)(low, high)
    return np.stack(numbers, axis=-1)[..., slice(*out.bounds[-1])]


def _symmetric(low: Array, high: Array) -> tuple[Array, ...]:
    reach = np.maximum(np.abs(low), np.abs(high))
    some = np.where(reach == 0, np.float32(1), reach)
    scale = np.where(reach == 0, np.float32(1), some / np.float32(127))
    return scale, np.float32(127) / some, np.zeros_like(scale)


def _asymmetric(low: Array, high: Array) -> tuple[Array, ...]:
    """The range is widened to contain 0; the zero point is computed from the end at which it rounds less."""
    low, high = np.minimum(low, np.float32(0)), np.maximum(high, np.float32(0))
    nothing = low == high
    step = np.where(nothing, 1.0, (high - low).astype(np.float64) / 255)
    least, most = low.astype(np.float64) / step, high.astype(np.float64) / step
    zero = rounded(np.where(128 + np.abs(least) < 127 + np.abs(most), -128 - least, 127 - most))
    scale = step.astype(np.float32)
    zero = np.where(nothing, 0.0, np.clip(zero, -128, 127)).astype(np.float32)
    return scale, np.float32(1) / scale, zero


def _even(low: Array, high: Array) -> tuple[Array, ...]:
    """As onnxruntime computes it, in float32 throughout; the zero point is for int8 instead of uint8."""
    low, high = np.minimum(low, np.float32(0)), np.maximum(high, np.float32(0))
    scale = np.where(low == high, np.float32(1), (high - low) / np.float32(255))
    zero = np.rint(np.clip(-low / scale, 0, 255)) - np.float32(128)
    return scale, np.float32(1) / scale, zero


def dynamic_quantize(op: DynamicQuantize, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, span = operands
    if op.even:
        quotient = x.data.astype(np.float32, copy=False) / _along(span, 0, x.data.ndim)
        return np.clip(np.rint(quotient) + _along(span, 2, x.data.ndim), -128, 127).astype(np.int8)
    inverse = _along(span, 1, x.data.ndim)
    with np.errstate(over="ignore"):
        steps = rounded((x.data.astype(np.float32, copy=False) * inverse).astype(np.float64))
    if op.asymmetric:
        steps = steps + _along(span, 2, x.data.ndim)
    return np.clip(steps, -128 if op.asymmetric else -127, 127).astype(np.int8)


def _along(ranges: Operand, which: int, rank: int) -> Array:
    """Scale, inverse or zero point of each item, shaped to broadcast against a tensor of this rank."""
    values = ranges.data[..., which]
    return values.reshape(*values.shape, *(1,) * (rank - values.ndim))


def dynamic_product(op: DynamicProduct, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, w, scale, bias, ranges = operands
    centred = x.data.astype(np.int16)
    if op.asymmetric:
        centred -= _along(ranges, 2, centred.ndim).astype(np.int16)
    total = product_sums(op.product, out, replace(x, data=centred), w, result, np.int64).astype(np.float32)
    mine = _along(ranges, 0, total.ndim)
    if isinstance(op.product, Dense):
        summed = multiply_add(total, mine * scale.data, bias.data)
    else:
        summed = (total * scale.data * mine if op.in_turn else total * (mine * scale.data)) + bias.data
    return activate(op.product.activation, summed)
