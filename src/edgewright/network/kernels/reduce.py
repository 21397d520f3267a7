"""Reductions and normalisations along axes. Float sums are accumulated in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..operators import ArgMax, L2Normalize, LogSoftmax, Lrn, NonMaxSuppression, Reduce, ReduceKind, Softmax, TopK
from ..region import Region
from ..tensor import Array, Tensor
from .elementwise import widened
from .operand import Kernel, Operand, Summing


def reduce(op: Reduce, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    if op.kind in (ReduceKind.SUM, ReduceKind.MEAN):
        return sum_or_mean(op, out, operands, result)
    return reduced(op, operands[0].data)


def sum_axes(op: Reduce, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """The sum along the axes, of stored values if the input is quantised: float64, or int64 for integers."""
    return _summed(op, _wide(operands[0].data))


def _finish(op: Reduce, out: Region, sums: Array, x: Tensor, others: Sequence[Operand], result: Tensor) -> Array:
    return np.asarray(sums / terms(op, x)) if op.kind is ReduceKind.MEAN else sums


sum_or_mean = Summing(sum_axes, _finish)


def terms(op: Reduce, x: Tensor) -> int:
    """The number of elements reduced to one."""
    return prod(x.shape[axis] for axis in op.axes)


def reduced(op: Reduce, x: Array) -> Array:
    """Reductions other than sum and mean."""
    if op.kind in (ReduceKind.MAX, ReduceKind.MIN):
        extreme = np.max if op.kind is ReduceKind.MAX else np.min
        return np.asarray(extreme(x, axis=op.axes, keepdims=op.keep))
    wide = _wide(x)
    match op.kind:
        case ReduceKind.L1:
            wide = np.abs(wide)
        case ReduceKind.L2 | ReduceKind.SUM_SQUARE:
            wide = np.square(wide)
    if op.kind is ReduceKind.PROD:
        return np.asarray(wide.prod(axis=op.axes, keepdims=op.keep))
    return np.sqrt(_summed(op, wide)) if op.kind is ReduceKind.L2 else _summed(op, wide)


def _wide(x: Array) -> Array:
    return x.astype(np.float64 if np.issubdtype(x.dtype, np.floating) else np.int64)


def _summed(op: Reduce, wide: Array) -> Array:
    return np.asarray(wide.sum(axis=op.axes, keepdims=op.keep))


def arg_max(op: ArgMax, x: Array) -> Array:
    find, axis = np.argmin if op.least else np.argmax, op.axes[0]
    if op.last:
        return x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis, keepdims=op.keep)
    return find(x, axis=axis, keepdims=op.keep)


def non_max_suppression(op: NonMaxSuppression, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    corners, scores = operands[0].data.reshape(-1, 2, 2), operands[1].data
    near, far = corners.min(axis=1), corners.max(axis=1)
    area = (far - near).prod(axis=1)
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if len(kept) == op.count or scores[i] < np.float32(op.score_threshold):
            break
        shared = np.maximum(np.minimum(far[kept], far[i]) - np.maximum(near[kept], near[i]), 0).prod(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            overlap = np.where((area[kept] <= 0) | (area[i] <= 0), 0, shared / (area[kept] + area[i] - shared))
        if not (overlap > np.float32(op.iou_threshold)).any():
            kept.append(int(i))
    chosen = np.full(op.count, -1)
    chosen[: len(kept)] = kept
    return chosen[out.slices]


def along(function: Callable[..., Array]) -> Kernel:
    """The kernel of a function of whole lines along the operator's axis, for part of its output."""

    def kernel(op: Any, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
        line = function(op, widened(operands[0].data))
        index = [slice(None)] * line.ndim
        index[op.axis] = slice(*out.bounds[op.axis])
        return line[tuple(index)]

    return kernel


def top_k(op: TopK, x: Array) -> Array:
    wide = _wide(x)
    return np.argsort(wide if op.least else -wide, axis=op.axis, kind="stable")


def softmax(op: Softmax, x: Array) -> Array:
    raised = np.exp((x - x.max(axis=op.axis, keepdims=True)) * x.dtype.type(op.beta))
    return raised / raised.sum(axis=op.axis, keepdims=True)


def log_softmax(op: LogSoftmax, x: Array) -> Array:
    shifted = x - x.max(axis=op.axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=op.axis, keepdims=True))


def l2_normalize(op: L2Normalize, x: Array) -> Array:
    norm = np.sqrt(np.square(x).sum(axis=op.axis, keepdims=True))
    return x / np.maximum(norm, x.dtype.type(op.epsilon))


def lrn(op: Lrn, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = operands[0]
    values = widened(x.data)
    start, stop = out.bounds[-1]
    first = start - (op.size - 1) // 2  # channel under the first tap of the first window
    squares = np.zeros((*values.shape[:-1], stop - start + op.size - 1), values.dtype)
    offset = x.region.bounds[-1][0] - first
    squares[..., offset : offset + values.shape[-1]] = np.square(values)
    total = sum(squares[..., k : k + stop - start] for k in range(op.size))
    here = start - x.region.bounds[-1][0]
    base = values.dtype.type(op.bias) + values.dtype.type(op.alpha / op.size) * total
    return values[..., here : here + stop - start] / base ** values.dtype.type(op.beta)
