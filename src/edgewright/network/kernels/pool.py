"""Pooling, tap by tap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..operators import AvgPool2d, MaxPool2d
from ..region import Region
from ..tensor import Array, Tensor
from .activations import activate
from .operand import Operand
from .summing import Summing
from .windows import tap_counts, taps, window_input


def max_pool2d(op: MaxPool2d, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    return activate(op.activation, max_windows(op, out, operands[0]))


def max_windows(op: MaxPool2d, out: Region, x: Operand) -> Array:
    """The largest element of each window; padding never wins."""
    is_integer = np.issubdtype(x.data.dtype, np.integer)
    span = window_input(op, out, x, np.iinfo(x.data.dtype).min if is_integer else -np.inf)
    views = taps(op, op.kernel, span, out.shape[1:3])
    best = next(views)[2].copy()
    for _, _, view in views:
        np.maximum(best, view, out=best)
    return best


def sum_windows(op: AvgPool2d, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """The sum of each window, float64 (exact for small integers); padding adds nothing."""
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
