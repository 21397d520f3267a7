"""A step of an LSTM layer from the sums of its gates: in real numbers, and in 16 bits as TFLite's layers have it.

Their functions are those of gemmlowp for 16-bit numbers: a Qn number is raw / 2^(15 - n). Arrays here are int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, frexp

import numpy as np

from ..operators import LstmPart, LstmStep
from ..region import Region
from ..tensor import Array, Tensor
from .activations import sigmoid
from .operand import Operand
from .tflite_fixed import constant, divide_by_power, multiply, quantize_multiplier
from .tflite_scales import saturate, scale, stored_number


def lstm_step(op: LstmStep, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    gates, cell = operands
    if op.part is LstmPart.HIDDEN:
        return sigmoid(_gate(gates, out, 3)) * np.tanh(cell.data)
    kept = sigmoid(_gate(gates, out, 1)) * cell.data + sigmoid(_gate(gates, out, 0)) * np.tanh(_gate(gates, out, 2))
    return kept if op.clip is None else np.clip(kept, -op.clip, op.clip)


def stored_lstm_step(op: LstmStep, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """Gates are Q3 numbers; the cell's scale is a power of two, as `cell_bits` says."""
    gates, cell = operands
    bits, c = cell_bits(cell.tensor), cell.data.astype(np.int64)
    if op.part is LstmPart.HIDDEN:
        product = sigmoid_16(_gate(gates, out, 3)) * tanh_16(c, bits)
        return saturate(multiply(product, *quantize_multiplier(hidden_factor(result))), result)
    kept = divide_by_power(sigmoid_16(_gate(gates, out, 1)) * c, 15)
    new = sigmoid_16(_gate(gates, out, 0)) * tanh_16(_gate(gates, out, 2), 3)
    most = cell_limit(op, result)
    return np.clip(kept + divide_by_power(new, 15 + bits), -most - (most == 0x7FFF), most)


def _gate(gates: Operand, out: Region, number: int) -> Array:
    size, (first, last) = gates.shape[-1] // 4, out.bounds[-1]
    start = number * size + first - gates.origin[-1]
    data = gates.data[..., start : start + last - first]
    return data.astype(np.int64) if np.issubdtype(data.dtype, np.integer) else data


def cell_bits(cell: Tensor) -> int:
    """Integer bits of a cell whose scale is 2^(bits - 15)."""
    return 15 + frexp(float(scale(cell)))[1] - 1


def cell_limit(op: LstmStep, result: Tensor) -> int:
    """The most that a new cell may be, as stored."""
    return 0x7FFF if op.clip is None else min(0x7FFF, stored_number(op.clip, result))


def hidden_factor(result: Tensor) -> np.float32:
    """What products of two Q0 numbers are multiplied with."""
    return np.float32(2.0**-30) / scale(result)


def sigmoid_16(x: Array) -> Array:
    """Of a Q3 number, as Q0."""
    value = _saturated(_inverse_of_half(_exp_of_negative(-np.abs(x), 3)) << 1)
    return np.where(x == 0, 1 << 14, np.where(x > 0, value, 0x7FFF - value))


def tanh_16(x: Array, bits: int) -> Array:
    """Of a Qn number, as Q0."""
    value = _saturated((_inverse_of_half(_exp_of_negative(-np.abs(x), bits + 1)) - (1 << 13)) << 2)
    return np.where(x == 0, 0, np.where(x > 0, value, -value))


def _exp_of_negative(x: Array, bits: int) -> Array:
    """exp(x) as Q0, for x <= 0 as Qn: a polynomial for the part in -1/4..0, factors e^-2^k for the other bits."""
    x = np.maximum(x, -0x8000)
    fraction = 15 - bits
    quarter = 1 << (fraction - 2)
    inner = (x & (quarter - 1)) - quarter
    rest = inner - x
    result = _exp_of_last_quarter(inner << bits)
    for k in range(-2, min(bits, 5)):
        result = np.where((rest >> (fraction + k)) & 1 == 1, _product(result, _constant(exp(-(2.0**k)))), result)
    if bits > 5:
        result = np.where(x < -(32 << fraction), 0, result)
    return np.where(x == 0, 0x7FFF, result)


def _exp_of_last_quarter(x: Array) -> Array:
    """exp(x) for -1/4 <= x < 0, both Q0: Taylor's series of degree 4 around -1/8."""
    x = x + (1 << 12)
    x2 = _product(x, x)
    x3, x4 = _product(x2, x), _product(x2, x2)
    tail = divide_by_power(_product(divide_by_power(x4, 2) + x3, _constant(1 / 3)) + x2, 1)
    middle = _constant(exp(-1 / 8))
    return _saturated(middle + _product(x + tail, middle))


def _inverse_of_half(x: Array) -> Array:
    """2 / (1 + x) as Q2, for x in 0..1 as Q0: Newton's iteration, three times."""
    half = (x + 0x8000) >> 1
    y = _constant(48 / 17 / 4) + _product(half, _constant(-32 / 17 / 4))
    for _ in range(3):
        y = y + _saturated(_product(y, (1 << 13) - _product(half, y)) << 2)
    return y


def _constant(value: float) -> int:
    return int(divide_by_power(np.array(constant(value)), 16))


def _product(a: Array, b: Array | int) -> Array:
    steps: Array = a * b + (1 << 14)
    return np.minimum(steps >> 15, 0x7FFF)


def _saturated(x: Array) -> Array:
    return np.clip(x, -0x8000, 0x7FFF)
