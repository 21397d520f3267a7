"""Reductions along axes. Sums of floats are taken in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..operators import ArgMax, Reduce, ReduceKind
from ..region import Region
from ..tensor import Array, Tensor
from .operand import Operand


def reduce(op: Reduce, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    return reduced(op, operands[0].data)


def reduced(op: Reduce, x: Array) -> Array:
    if op.kind in (ReduceKind.MAX, ReduceKind.MIN):
        extreme = np.max if op.kind is ReduceKind.MAX else np.min
        return np.asarray(extreme(x, axis=op.axes, keepdims=op.keep))
    wide = x.astype(np.float64 if np.issubdtype(x.dtype, np.floating) else np.int64)
    match op.kind:
        case ReduceKind.L1:
            wide = np.abs(wide)
        case ReduceKind.L2 | ReduceKind.SUM_SQUARE:
            wide = np.square(wide)
    if op.kind is ReduceKind.PROD:
        return np.asarray(wide.prod(axis=op.axes, keepdims=op.keep))
    if op.kind is ReduceKind.MEAN:
        return np.asarray(wide.mean(axis=op.axes, keepdims=op.keep))
    total = np.asarray(wide.sum(axis=op.axes, keepdims=op.keep))
    return np.sqrt(total) if op.kind is ReduceKind.L2 else total


def arg_max(op: ArgMax, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, axis = operands[0].data, op.axes[0]
    find = np.argmin if op.least else np.argmax
    if op.last:
        return x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=op.keep)
    return find(x, axis=axis, keepdims=op.keep)
