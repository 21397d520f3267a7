"""TFLite's element-wise integer kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..operators import Binary, BinaryKind, Clamp, Dequantize, LeakyRelu, PRelu, Quantize
from ..region import Region
from ..tensor import Array, DType, Tensor
from .operand import Operand
from .tflite_fixed import (
    divide_by_power,
    high_multiply,
    leading_zeros,
    multiply,
    quantize_multiplier,
    reciprocal,
    rounded,
    wrapped,
)
from .tflite_scales import centred, saturate, scale, zero


def binary(op: Binary, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    a, b = operands
    match op.kind:
        case BinaryKind.ADD | BinaryKind.SUB:
            values = _sum(a, b, result, 1 if op.kind is BinaryKind.ADD else -1)
        case BinaryKind.MUL:
            factors = quantize_multiplier(scale(a.tensor) * scale(b.tensor) / scale(result))
            values = multiply(centred(a) * centred(b), *factors)
        case BinaryKind.DIV:
            values = _quotient(a, b, result)
        case BinaryKind.SQUARED_DIFFERENCE:
            values = _squared_difference(a, b, result)
        case BinaryKind.MIN:
            return np.minimum(a.data, b.data)
        case BinaryKind.MAX:
            return np.maximum(a.data, b.data)
        case _:
            raise AssertionError(f"TFLite has no integer kernel for {op}")
    return saturate(values, result, op.activation)


def _common(a: Operand, b: Operand, left: int) -> tuple[Array, Array, float]:
    """Both operands shifted left, in steps of twice the larger scale; and that step."""
    twice = 2.0 * float(max(scale(a.tensor), scale(b.tensor)))
    x, y = (
        multiply(centred(operand) << left, *quantize_multiplier(float(scale(operand.tensor)) / twice))
        for operand in (a, b)
    )
    return x, y, twice


def _sum(a: Operand, b: Operand, result: Tensor, sign: int) -> Array:
    """The sum or difference of both operands on their common scale, with as many bits as fit in 32."""
    left = 15 if result.dtype is DType.INT16 else 20
    x, y, twice = _common(a, b, left)
    return multiply(x + sign * y, *quantize_multiplier(twice / (float(1 << left) * float(scale(result)))))


def _squared_difference(a: Operand, b: Operand, result: Tensor) -> Array:
    x, y, twice = _common(a, b, 7)
    factors = quantize_multiplier(twice * twice / ((1 << 14) * float(scale(result))))
    return multiply((x - y) ** 2, *factors)


def _quotient(a: Operand, b: Operand, result: Tensor) -> Array:
    """The dividend shifted to the top bits, times the reciprocal; both shifts are undone at once."""
    dividend, divisor = np.broadcast_arrays(centred(a), centred(b))
    dividend = np.where(divisor < 0, -dividend, dividend)
    inverse, power = reciprocal(np.maximum(np.abs(divisor), 1), 31)
    room = np.where(dividend < 0, leading_zeros(np.maximum(-2 * dividend - 1, 1)), leading_zeros(dividend) - 1)
    quotient = high_multiply(wrapped(dividend << room), inverse)
    factor, shift = quantize_multiplier(scale(a.tensor) / (scale(b.tensor) * scale(result)))
    return divide_by_power(high_multiply(quotient, factor), -(shift - power - room))


def clamp(op: Clamp, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = operands[0]
    return saturate(multiply(centred(x), *quantize_multiplier(scale(x.tensor) / scale(result))), result, op)


def leaky_relu(op: LeakyRelu, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = operands[0]
    values = centred(x)
    same = quantize_multiplier(scale(x.tensor) / scale(result))
    sloped = quantize_multiplier(scale(x.tensor) * np.float32(op.alpha) / scale(result))
    return saturate(np.where(values >= 0, multiply(values, *same), multiply(values, *sloped)), result)


def prelu(op: PRelu, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, slope = operands
    values = centred(x)
    same = quantize_multiplier(scale(x.tensor) / scale(result))
    sloped = quantize_multiplier(scale(x.tensor) * scale(slope.tensor) / scale(result))
    negative = multiply(values * centred(slope), *sloped)
    return saturate(np.where(values >= 0, multiply(values, *same), negative), result)


def quantize(op: Quantize, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """Quantises real numbers, or converts stored ones to another scale or type."""
    x = operands[0]
    if x.tensor.dtype.is_float:
        with np.errstate(over="ignore"):
            steps = rounded((x.data.astype(np.float32) / scale(result)).astype(np.float64))
        return saturate(np.clip(steps, -(2.0**31), 2.0**31).astype(np.int64), result)
    ratio = float(scale(x.tensor)) / float(scale(result))
    return saturate(multiply(centred(x), *quantize_multiplier(ratio)), result)


def dequantize(op: Dequantize, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = operands[0]
    return (float(scale(x.tensor)) * (x.data.astype(np.float64) - zero(x.tensor))).astype(np.float32)
