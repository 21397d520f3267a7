"""TFLite's integer convolutions and fully connected layers: exact sums, then one multiplier per channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..operators import Conv2d, ConvTranspose2d, Dense, MatMul
from ..region import Region
from ..tensor import Array, DType, Tensor
from .linear import matrix_product
from .operand import Operand, Summing
from .tflite_fixed import multiply, multiply_wide, rounded
from .tflite_scales import centred, channel_multipliers, channel_scales, multiplier, saturate
from .windows import product_sums


def _sums(op: Conv2d | ConvTranspose2d | Dense, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, w = (replace(operand, data=_narrow(operand)) for operand in operands[:2])
    return product_sums(op, out, x, w, result, np.int64)


def _finish_conv(
    op: Conv2d | ConvTranspose2d, out: Region, total: Array, x: Tensor, others: Sequence[Operand], result: Tensor
) -> Array:
    w, *bias = others
    return saturate(_scaled(total, x, w, bias, result), result, op.activation)


def _finish_dense(op: Dense, out: Region, total: Array, x: Tensor, others: Sequence[Operand], result: Tensor) -> Array:
    """Unlike a convolution, it multiplies in double and rounds once."""
    w, *bias = others
    steps = rounded(_add_bias(total, bias) * channel_scales(x, w, result))
    return saturate(np.clip(steps, -(2.0**31), 2.0**31).astype(np.int64), result, op.activation)


convolution = Summing(_sums, _finish_conv)
dense = Summing(_sums, _finish_dense)


def matmul(op: MatMul, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """Sums of 16-bit products have 64 bits; both scales are multiplied in float32."""
    a, b = operands
    total = matrix_product(op, centred(a).astype(np.int64), centred(b).astype(np.int64))
    scaled = multiply_wide if a.tensor.dtype is DType.INT16 else multiply
    return saturate(scaled(total, *multiplier(a.tensor, b.tensor, result)), result)


def _narrow(x: Operand) -> Array:
    """Stored integers minus their zero point, in a narrow type, since weights may be large."""
    if x.tensor.quant is None or not any(x.tensor.quant.zero):
        return x.data
    return centred(x).astype(np.int16 if x.data.dtype.itemsize == 1 else np.int32)


def _add_bias(total: Array, bias: Sequence[Operand]) -> Array:
    return total + bias[0].data if bias else total


def _scaled(total: Array, x: Tensor, w: Operand, bias: Sequence[Operand], result: Tensor) -> Array:
    """Sums of a convolution plus bias, converted to the output's scale.

    uint8 layers, with one scale for all channels, multiply the scales of x and w in float32, others in double. Sums of
    16-bit activations have 64 bits, unless the bias says otherwise.
    """
    total = _add_bias(total, bias)
    if x.dtype is DType.UINT8:
        return multiply(total, *multiplier(x, w.tensor, result))
    is_wide = x.dtype is DType.INT16 and not (bias and bias[0].tensor.dtype is DType.INT32)
    return (multiply_wide if is_wide else multiply)(total, *channel_multipliers(x, w, result))
