"""TFLite's integer kernels along a line: softmax, log-softmax, L2 normalisation, reductions."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import numpy as np

from ...errors import ModelError
from ..operators import L2Normalize, LogSoftmax, Reduce, ReduceKind, Softmax
from ..region import Region
from ..tensor import Array, DType, Tensor
from .operand import Operand, Summing
from .reduce import reduced, sum_axes, terms
from .tflite_fixed import (
    FIXED_32,
    divide_by_power,
    high_multiply,
    inverse_root,
    leading_zeros,
    log_of_q12,
    multiply,
    quantize_multiplier,
    reciprocal,
)
from .tflite_functions import interpolated, step_table
from .tflite_scales import centred, saturate, scale, zero

_INPUT_BITS = 5  # differences to the largest element are Q5: e^-32 is negligible
_SUM_BITS = 12


def softmax(op: Softmax, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = operands[0]
    if x.tensor.dtype is DType.INT16:
        return _cut(_wide_softmax(op, x), out)
    below = _below_largest(x.data)
    factor, shift, least = difference_scale(op.beta, x.tensor)
    exps = FIXED_32.exp_of_negative(multiply(below, factor, shift), _INPUT_BITS)
    counted = np.where(below >= least, exps, 0)
    total = divide_by_power(counted, _SUM_BITS).sum(axis=-1, keepdims=True)
    inverse, power = reciprocal(total, _SUM_BITS)
    bits = 8 * result.dtype.bytes
    shares = divide_by_power(high_multiply(inverse, counted), power + 31 - bits)
    info = np.iinfo(result.dtype.numpy)
    stored = np.where(below >= least, np.clip(shares + info.min, info.min, info.max), info.min)
    return _cut(stored.astype(result.dtype.numpy), out)


def _wide_softmax(op: Softmax, x: Operand) -> Array:
    """16 bits: exp over -10..0 and 1 / (1 + x) over 0..1 from tables."""
    span = 65535.0
    exp_table = step_table(np.exp, (10.0 / span, 2.0 / span), (32767, 0), np.float64)
    inverse_table = step_table(lambda v: 1 / (1 + v), (1.0 / span, 2.0 / span), (-32768, 0), np.float64)
    ratio = float(scale(x.tensor) * np.float32(op.beta)) / (10.0 / 65535.0)
    below = multiply(_below_largest(x.data), *quantize_multiplier(ratio))
    exps = interpolated(np.clip(below + 32767, -32768, 32767), exp_table).astype(np.int64)
    total = exps.sum(axis=-1, keepdims=True)
    zeros = leading_zeros(total)
    shifted = ((total << (zeros - 1)) + (1 << 13)) >> 14
    inverse = interpolated(np.clip(shifted - (1 << 15) - (1 << 16), -32768, 32767), inverse_table)
    right = 31 - zeros
    shares = (exps * inverse + ((np.int64(1) << right) >> 1)) >> right
    return np.clip(shares, 0, 32767).astype(np.int16)


def log_softmax(op: LogSoftmax, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """The output's scale is always 1/16 and its zero point the maximum, whatever the file says."""
    x = operands[0]
    below = _below_largest(x.data)
    factor, shift, least = difference_scale(1.0, x.tensor)
    scaled = multiply(below, factor, shift)
    exps = np.where(below >= least, FIXED_32.exp_of_negative(scaled, _INPUT_BITS), 0)
    log_sum = log_of_q12(divide_by_power(exps, _SUM_BITS).sum(axis=-1, keepdims=True))
    back, back_shift = quantize_multiplier((1 << (31 - shift)) / factor)
    least_kept = np.maximum(least - 1, multiply(log_sum - (1 << 31), back, back_shift))
    info = np.iinfo(result.dtype.numpy)
    steps = divide_by_power(scaled - log_sum, 31 - _INPUT_BITS - 4) + info.max
    stored = np.where(below > least_kept, np.clip(steps, info.min, info.max), info.min)
    return _cut(stored.astype(result.dtype.numpy), out)


def _below_largest(x: Array) -> Array:
    wide = x.astype(np.int64)
    return wide - wide.max(axis=-1, keepdims=True)


def difference_scale(beta: float, x: Tensor) -> tuple[int, int, int]:
    """(multiplier, shift) to Q5 for differences, and the least difference that contributes."""
    real = min(beta * float(scale(x)) * (1 << (31 - _INPUT_BITS)), (1 << 31) - 1.0)
    if real <= 1:  # LiteRT aborts
        small = f"the scale {float(scale(x)):.3g} of '{x.name}', which a softmax reads,"
        raise ModelError(f"{small} is too small for its beta of {beta:g}")
    factor, shift = quantize_multiplier(real)
    radius = floor(((1 << _INPUT_BITS) - 1) * (1 << (31 - _INPUT_BITS)) / (1 << shift))
    return factor, shift, -radius


def exponentials(beta: float, x: Tensor) -> Array:
    """exp as Q0, by the distance of a byte to the largest one of its line, as far as it contributes."""
    factor, shift, least = difference_scale(beta, x)
    below = -np.arange(min(255, -least) + 1, dtype=np.int64)
    return FIXED_32.exp_of_negative(multiply(below, factor, shift), _INPUT_BITS)


def l2_normalize(op: L2Normalize, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """The output's scale is always 1/128 and its zero point the middle, whatever the file says."""
    values = centred(operands[0])
    root, shift = inverse_root(np.square(values).sum(axis=-1, keepdims=True))
    info = np.iinfo(result.dtype.numpy)
    middle = (info.max + info.min + 1) // 2
    # uint8 scales before the product and int8 after it, which rounds differently.
    is_old = result.dtype is DType.UINT8
    steps = (multiply(values << 7, root, shift) if is_old else multiply(values, root, shift + 7)) + middle
    return _cut(np.clip(steps, info.min, info.max).astype(result.dtype.numpy), out)


def reduce(op: Reduce, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = operands[0]
    if op.kind in (ReduceKind.MAX, ReduceKind.MIN):
        return reduced(op, x.data)
    return sum_or_mean(op, out, operands, result)


def _finish(op: Reduce, out: Region, sums: Array, x: Tensor, others: Sequence[Operand], result: Tensor) -> Array:
    """Sums stored values; their zero points are subtracted at the end."""
    steps = np.asarray(sums - terms(op, x) * zero(x))
    return saturate(multiply(steps, *reduce_factor(op, x, result)), result)


sum_or_mean = Summing(sum_axes, _finish)


def reduce_factor(op: Reduce, x: Tensor, result: Tensor) -> tuple[int, int]:
    """The multiplier of a sum or a mean; 1 / count is folded into it, with as many bits as fit."""
    factor, shift = quantize_multiplier(float(scale(x)) / float(scale(result)))
    if op.kind is ReduceKind.MEAN:
        count = terms(op, x)
        room = min(count.bit_length() - 1, 32, 31 + shift)
        factor, shift = (factor << room) // count, shift - room
    return factor, shift


def _cut(line: Array, out: Region) -> Array:
    """The elements of `out`, from whole lines along the last axis."""
    return line[..., slice(*out.bounds[-1])]
