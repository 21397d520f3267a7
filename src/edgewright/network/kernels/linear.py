"""Convolutions and matrix products of real numbers (and plain integers)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..operators import Conv2d, ConvTranspose2d, Dense, MatMul
from ..region import Region
from ..tensor import Array, Tensor
from .activations import activate
from .elementwise import widened
from .operand import Operand
from .products import dense_accumulate
from .windows import conv_accumulate, transpose_conv_accumulate, window_input


def conv2d(op: Conv2d, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, w, *bias = operands
    image = window_input(op, out, x, 0, (w.shape[1], w.shape[2]))
    total = conv_accumulate(op, image, w.data, out, result.shape[3], _sum_type(result))
    return activate(op.activation, _add_bias(total, bias))


def conv_transpose2d(op: ConvTranspose2d, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, w, *bias = operands
    total = transpose_conv_accumulate(op, x, x.data, w.data, out, result.shape[3], _sum_type(result))
    return activate(op.activation, _add_bias(total, bias))


def dense(op: Dense, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, w, *bias = operands
    return activate(op.activation, _add_bias(dense_accumulate(x.data, w.data, _sum_type(result)), bias))


def matmul(op: MatMul, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    return matrix_product(op, *(widened(operand.data) for operand in operands))


def matrix_product(op: MatMul, a: Array, b: Array) -> Array:
    """a times b, in their own type; each transposed first if `op` says so."""
    a = np.swapaxes(a, -1, -2) if op.transpose_a else a
    b = np.swapaxes(b, -1, -2) if op.transpose_b else b
    return np.matmul(a, b)


def _sum_type(result: Tensor) -> np.dtype[Any]:
    return np.dtype(np.float32 if result.dtype.is_float else np.int64)


def _add_bias(total: Array, bias: Sequence[Operand]) -> Array:
    if bias:
        total += bias[0].data
    return total
