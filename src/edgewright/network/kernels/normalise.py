"""Softmax, LRN and L2 normalisation: the whole line is computed, and the region cut out of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..operators import L2Normalize, LogSoftmax, Lrn, Softmax
from ..region import Region
from ..tensor import Array, Tensor
from .elementwise import widened
from .operand import Operand


def softmax(op: Softmax, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    return _cut(softmax_line(widened(operands[0].data), op.axis, op.beta), op.axis, out)


def softmax_line(x: Array, axis: int, beta: float = 1.0) -> Array:
    raised = np.exp((x - x.max(axis=axis, keepdims=True)) * x.dtype.type(beta))
    return raised / raised.sum(axis=axis, keepdims=True)


def log_softmax(op: LogSoftmax, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = widened(operands[0].data)
    shifted = x - x.max(axis=op.axis, keepdims=True)
    return _cut(shifted - np.log(np.exp(shifted).sum(axis=op.axis, keepdims=True)), op.axis, out)


def l2_normalize(op: L2Normalize, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = widened(operands[0].data)
    norm = np.sqrt(np.square(x).sum(axis=op.axis, keepdims=True))
    return _cut(x / np.maximum(norm, x.dtype.type(op.epsilon)), op.axis, out)


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


def _cut(line: Array, axis: int, out: Region) -> Array:
    """The part of whole lines along `axis` that lies in `out`."""
    index = [slice(None)] * line.ndim
    index[axis] = slice(*out.bounds[axis])
    return line[tuple(index)]
