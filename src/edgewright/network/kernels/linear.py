"""Convolutions, matrix products and pools of real numbers (and plain integers)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..operators import AvgPool2d, Conv2d, ConvTranspose2d, Dense, MatMul, MaxPool2d
from ..region import Region
from ..tensor import Array, Tensor
from .activations import activate
from .operand import Operand, Summing
from .windows import product_sums, tap_counts, taps, window_input

Product = Conv2d | ConvTranspose2d | Dense


def _sums(op: Product, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, w = operands[:2]
    return product_sums(op, out, x, w, result, np.float32 if result.dtype.is_float else np.int64)


def _finish(op: Product, out: Region, total: Array, x: Tensor, others: Sequence[Operand], result: Tensor) -> Array:
    for bias in others[1:]:
        total += bias.data
    return activate(op.activation, total)


product = Summing(_sums, _finish)


def matrix_product(op: MatMul, a: Array, b: Array) -> Array:
    """a times b, in their own type; each is transposed first if `op` says so."""
    a = np.swapaxes(a, -1, -2) if op.transpose_a else a
    b = np.swapaxes(b, -1, -2) if op.transpose_b else b
    return np.matmul(a, b)


def max_windows(op: MaxPool2d, out: Region, x: Operand) -> Array:
    """The largest element of each window, ignoring padding."""
    is_integer = np.issubdtype(x.data.dtype, np.integer)
    span = window_input(op, out, x, np.iinfo(x.data.dtype).min if is_integer else -np.inf)
    views = taps(op, op.kernel, span, out.shape[1:3])
    best = next(views)[2].copy()
    for _, _, view in views:
        np.maximum(best, view, out=best)
    return best


def sum_windows(op: AvgPool2d, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """The sum of each window in float64 (exact for small integers); padding adds nothing."""
    total = np.zeros(out.shape)
    for _, _, view in taps(op, op.kernel, window_input(op, out, operands[0], 0), out.shape[1:3]):
        total += view
    return total


def _finish_average(
    op: AvgPool2d, out: Region, total: Array, x: Tensor, others: Sequence[Operand], result: Tensor
) -> Array:
    mean = total / tap_counts(op, out, x.shape[1:3])
    return activate(op.activation, mean.astype(np.float32) if result.dtype.is_float else mean)


avg_pool2d = Summing(sum_windows, _finish_average)
