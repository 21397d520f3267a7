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
    axes = {"axis": op.axes, "keepdims": op.keep}
    total = np.float64 if np.issubdtype(x.dtype, np.floating) else np.int64
    match op.kind:
        case ReduceKind.MEAN:
            return np.mean(x, dtype=np.float64, **axes)
        case ReduceKind.SUM:
            return np.sum(x, dtype=total, **axes)
        case ReduceKind.MAX:
            return np.max(x, **axes)
        case ReduceKind.MIN:
            return np.min(x, **axes)
        case ReduceKind.PROD:
            return np.prod(x, dtype=total, **axes)
        case ReduceKind.L1:
            return np.sum(np.abs(x), dtype=total, **axes)
        case ReduceKind.L2:
            return np.sqrt(np.sum(np.square(x, dtype=total), **axes))
        case ReduceKind.SUM_SQUARE:
            return np.sum(np.square(x, dtype=total), **axes)


def arg_max(op: ArgMax, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, axis = operands[0].data, op.axes[0]
    find = np.argmin if op.least else np.argmax
    if op.last:
        return x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=op.keep)
    return find(x, axis=axis, keepdims=op.keep)
