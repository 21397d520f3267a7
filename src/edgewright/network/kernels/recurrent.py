"""One step of an LSTM layer from the sums of its gates: in real numbers, or in 16 bits as in TFLite.

The 16-bit functions are gemmlowp's. Arrays here are int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp

import numpy as np

from ..operators import LstmPart, LstmStep
from ..region import Region
from ..tensor import Array, Tensor
from .activations import sigmoid
from .operand import Operand
from .tflite_fixed import FIXED_16, divide_by_power, multiply, quantize_multiplier
from .tflite_scales import saturate, scale, stored_number


def lstm_step(op: LstmStep, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    gates, cell = operands
    if op.part is LstmPart.HIDDEN:
        return sigmoid(_gate(gates, out, 3)) * np.tanh(cell.data)
    kept = sigmoid(_gate(gates, out, 1)) * cell.data + sigmoid(_gate(gates, out, 0)) * np.tanh(_gate(gates, out, 2))
    return kept if op.clip is None else np.clip(kept, -op.clip, op.clip)


def stored_lstm_step(op: LstmStep, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """Gates are Q3 numbers; the cell's scale is a power of two (`cell_bits`)."""
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
    """The largest new cell value, as stored."""
    return 0x7FFF if op.clip is None else min(0x7FFF, stored_number(op.clip, result))


def hidden_factor(result: Tensor) -> np.float32:
    """The factor for products of two Q0 numbers."""
    return np.float32(2.0**-30) / scale(result)


def sigmoid_16(x: Array) -> Array:
    """The sigmoid of a Q3 number, as Q0."""
    value = FIXED_16.one_over_one_plus(FIXED_16.exp_of_negative(-np.abs(x), 3))
    return np.where(x == 0, 1 << 14, np.where(x > 0, value, 0x7FFF - value))


def tanh_16(x: Array, bits: int) -> Array:
    """The tanh of a Qn number, as Q0."""
    inverse = FIXED_16.inverse_of_half(FIXED_16.exp_of_negative(-np.abs(x), bits + 1))
    value = FIXED_16.shift_left(inverse - (1 << 13), 2)
    return np.where(x == 0, 0, np.where(x > 0, value, -value))
