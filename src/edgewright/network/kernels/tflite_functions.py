"""TFLite's integer versions of functions of one number: tables for most, fixed point for some."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import erfc, pi, sqrt
from typing import Any

import numpy as np

from ..operators import Elu, Unary, UnaryKind
from ..region import Region
from ..tensor import Array, DType, Tensor
from .contraction import multiply_add
from .operand import Operand
from .tflite_fixed import (
    FIXED_16,
    divide_by_power,
    inverse_root,
    multiply,
    quantize_multiplier,
    round_half_away,
    rounded,
)
from .tflite_scales import centred, saturate, scale, zero

# Functions of the given type: TFLite's tables are made in float32, with rounding after every operation. Where this
# differs between mathematical libraries, exponentials and the like are rounded correctly.
Function = Callable[[Array], Array]


def elu(op: Elu, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    return look_up(operands[0], result, lambda x: np.where(x < 0, _once(np.expm1, x), x))


def unary(op: Unary, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = operands[0]
    is_wide = x.tensor.dtype is DType.INT16
    match op.kind:
        case UnaryKind.ABS:
            factors = quantize_multiplier(scale(x.tensor) / scale(result))
            values = np.abs(centred(x))
            return saturate(values if scale(x.tensor) == scale(result) else multiply(values, *factors), result)
        case UnaryKind.HARD_SWISH:
            return _hard_swish(x, result)
        case UnaryKind.RSQRT if not is_wide:
            return _inverse_root(x, result)
        case UnaryKind.SQRT:  # steps are truncated, not rounded
            steps = np.sqrt(scale(x.tensor) * np.maximum(centred(x), 0).astype(np.float32)) / scale(result)
            return saturate(np.minimum(steps, 2.0**31).astype(np.int64), result)
        case UnaryKind.SIGMOID if is_wide:
            return _wide_sigmoid(x)
        case UnaryKind.TANH if is_wide:
            return _wide_tanh(x)
        case _:
            return look_up(x, result, function_of(op.kind, result))


def function_of(kind: UnaryKind, result: Tensor) -> Function:
    """The function to tabulate; where it is undefined, its value is the output's minimum or maximum."""
    match kind:
        case UnaryKind.LOG:
            low = (np.iinfo(result.dtype.numpy).min - zero(result)) * scale(result)
            return lambda v: np.where(v <= 0, low, _once(np.log, np.where(v <= 0, 1, v)))
        case UnaryKind.RSQRT:
            high = np.iinfo(np.int16).max * scale(result)
            return lambda v: np.where(v <= 0, high, 1 / np.sqrt(np.where(v <= 0, 1, v)))
        case _:
            return FUNCTIONS[kind]


def _once(function: Function, x: Array) -> Array:
    """The function, rounded once to the type of `x`: float64 has enough digits."""
    return function(x.astype(np.float64)).astype(x.dtype)


def _gelu(x: Array) -> Array:
    return np.float32(0.5) * x * _once(np.vectorize(erfc), x * np.float32(-sqrt(0.5)))


def _gelu_tanh(x: Array) -> Array:
    inner = np.float32(sqrt(2 / pi)) * x * (1 + np.float32(0.044715) * x * x)
    return np.float32(0.5) * x * (1 + _once(np.tanh, inner))


FUNCTIONS: Mapping[UnaryKind, Function] = {
    UnaryKind.EXP: lambda x: _once(np.exp, x),
    UnaryKind.GELU: _gelu,
    UnaryKind.GELU_TANH: _gelu_tanh,
    UnaryKind.SIGMOID: lambda x: 1 / (1 + _once(np.exp, -x)),
    UnaryKind.TANH: lambda x: _once(np.tanh, x),
}


def look_up(x: Operand, result: Tensor, function: Function) -> Array:
    """Applies the function with a table of all 8-bit values, or of 512 steps between 16-bit ones."""
    with np.errstate(over="ignore"):
        if x.tensor.dtype is DType.INT16:
            return interpolated(x.data, wide_table(x.tensor, result, function))
        info = np.iinfo(x.tensor.dtype.numpy)
        stored = np.arange(info.min, info.max + 1)
        real = scale(x.tensor) * (stored - zero(x.tensor)).astype(np.float32)
        steps = function(real) * (np.float32(1) / scale(result))
        table = saturate(np.clip(rounded(steps.astype(np.float64)), -(2.0**31), 2.0**31).astype(np.int64), result)
    return table[x.data.astype(np.intp) - info.min]


def wide_table(x: Tensor, result: Tensor, function: Function) -> Array:
    """The table of a function between two 16-bit tensors."""
    with np.errstate(over="ignore"):
        scales = float(scale(x)), float(scale(result))
        return step_table(function, scales, (zero(x), zero(result)), np.float32)


def step_table(
    function: Function, scales: tuple[float, float], zeros: tuple[int, int], work: type[np.floating[Any]]
) -> Array:
    """513 values of a function over the range of int16, each corrected by half the interpolation error in the
    middle."""
    info = np.iinfo(np.int16)
    low, high = (work(scales[0]) * work(limit - zeros[0]) for limit in (info.min, info.max))
    least, most = (work(scales[1]) * work(limit - zeros[1]) for limit in (info.min, info.max))
    step = (high - low) / work(512)
    per_unit = work(1 << 16) / (most - least)
    i = np.arange(513).astype(work)

    def stored(place: Array) -> Array:
        return function(place) * per_unit

    start = multiply_add(i[:-1], step, low)
    here, middle = stored(start), stored(start + step / work(2))
    after = multiply_add(function(multiply_add(i[1:], step, low)), per_unit, _round(here))
    between = _round(after / work(2))
    with np.errstate(invalid="ignore"):  # where the function overflows, the error is NaN
        values = _round(here) - _round((between - _round(middle)) / work(2))
    table = np.append(values, _round(stored(np.array([high]))))
    return np.nan_to_num(np.clip(table, info.min, info.max), nan=0).astype(np.int64)


def _round(values: Array) -> Array:
    return rounded(values.astype(np.float64)).astype(values.dtype)


def interpolated(x: Array, table: Array) -> Array:
    """Interpolates between two of 513 values: the upper 9 bits select them, the lower 7 are the weight."""
    index, share = 256 + (x.astype(np.int64) >> 7), x.astype(np.int64) & 0x7F
    slope = (table[index + 1] - table[index]).astype(np.int16).astype(np.int64)
    return (table[index] + ((slope * share + 64) >> 7)).astype(np.int16)


@cache
def sigmoid_table() -> Array:
    """sigmoid(i / 24) in 16 bits, each value corrected by half the interpolation error; the last one saturates."""
    i = np.arange(256)

    def sigmoid(x: Array) -> Array:
        return 65536 / (1 + np.exp(-x / 24))

    error = (sigmoid(i) + sigmoid(i + 1)) / 2 - sigmoid(i + 0.5)
    table = np.rint(sigmoid(i) - error / 2).astype(np.int64)
    table[-1] = 65535
    return table


def input_factor(x: Tensor, most: int) -> tuple[int, int]:
    """(multiplier, right shift) that convert 16-bit input to steps of 1 / (3 * 4096).

    A scale of 2^(n - 12), with n up to `most`, is a whole number; others get a truncated 15-bit multiplier.
    """
    power = float(np.log(scale(x)) * (np.float32(1) / np.log(np.float32(2))))
    nearest = round_half_away(power)
    if abs(power - nearest) < 1e-3 and 0 <= nearest + 12 <= most:
        return 3 << (nearest + 12), 0
    factor, shift = float(scale(x)) * 4096.0 * 3.0, 0
    while factor <= 32767.0 / 2.0 and shift <= 30:
        factor, shift = factor * 2.0, shift + 1
    return int(factor), shift


def _wide_steps(x: Operand, is_tanh: bool) -> tuple[Array, Array]:
    """16-bit input in steps of 1 / (3 * 4096), rounded half up; and the sigmoid of its magnitude, or for tanh of twice
    that.

    The sigmoid is interpolated in a table, with 9 bits between two of its values, or 8 for tanh.
    """
    bits, (factor, shift) = 9 - is_tanh, input_factor(x.tensor, int(is_tanh))
    scaled = (x.data.astype(np.int64) * factor + ((1 << shift) >> 1)) >> shift
    size, table = np.abs(scaled), sigmoid_table()
    index = np.minimum(size >> bits, 254)
    value = (table[index] << bits) + (size & ((1 << bits) - 1)) * (table[index + 1] - table[index])
    return scaled, np.where(size >> bits >= 255, (0xFFFF if is_tanh else 0xFFFE) << bits, value)


def _wide_sigmoid(x: Operand) -> Array:
    scaled, value = _wide_steps(x, is_tanh=False)
    return (np.where(scaled >= 0, value + (1 << 9), (1 << 25) - value + (1 << 9) - 1) >> 10).astype(np.int16)


def _wide_tanh(x: Operand) -> Array:
    """2 * sigmoid(2 * x) - 1."""
    scaled, value = _wide_steps(x, is_tanh=True)
    moved = np.where(scaled >= 0, value - (1 << 23) + (1 << 7), -value + (1 << 23) + (1 << 7) - 1)
    return (moved >> 8).astype(np.int16)


def _inverse_root(x: Operand, result: Tensor) -> Array:
    """1 / sqrt(x) in fixed point; 0 gives the maximum, negative x is undefined."""
    values = np.maximum(centred(x), 0)
    factors = quantize_multiplier(1.0 / float(np.sqrt(scale(x.tensor)) * scale(result)))
    root, shift = inverse_root(values)
    steps = multiply(multiply(np.ones_like(values), root, shift + 20), factors[0], factors[1] - 20)
    stored = saturate(steps, result)
    return np.where(values == 0, np.iinfo(stored.dtype).max, stored)


def _hard_swish(x: Operand, result: Tensor) -> Array:
    """x * min(max(x + 3, 0), 6) / 6 with 16-bit products: (x + 3) / 6 is a Q0 number in -1..1, saturated."""
    fine = scale(x.tensor) * np.float32(1 / 128)
    out_factor, out_shift = _sixteen_bit_multiplier(fine / scale(result))
    gate_factor, gate_shift = _sixteen_bit_multiplier(fine / np.float32(3.0 / 32768.0))
    value = centred(x) << 7
    gate = value
    if gate_shift > 0:
        gate = FIXED_16.shift_left(gate, gate_shift - 1)
    gate = FIXED_16.multiply(gate, gate_factor)
    if gate_shift > 0:
        gate = FIXED_16.shift_left(gate, 1)
    elif gate_shift < 0:
        gate = divide_by_power(gate, -gate_shift)
    gate = (gate + (1 << 15)) >> 1
    product = np.trunc(gate * FIXED_16.multiply(value, out_factor) / (1 << 15)).astype(np.int64)
    return saturate(divide_by_power(product, -out_shift), result)


def _sixteen_bit_multiplier(real: np.float32) -> tuple[int, int]:
    factor, shift = quantize_multiplier(float(real))
    return min((factor + (1 << 15)) >> 16, 0x7FFF), shift
