"""Resize: nearest and linear, with the coordinates and roundings that ONNX defines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..operators import Coordinates, Resize, ResizeMode, Rounding
from ..region import Region
from ..tensor import Array, Tensor
from .elementwise import widened
from .operand import Operand


def resize(op: Resize, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    if op.mode is ResizeMode.NEAREST:
        return nearest(op, out, operands[0])
    return linear(op, out, operands[0], widened(operands[0].data))


def nearest(op: Resize, out: Region, x: Operand) -> Array:
    rows, cols = (_rounded(op, places(op, axis, out, x)) for axis in range(2))
    rows, cols = (_local(index, axis, x) for axis, index in enumerate((rows, cols)))
    return x.data[:, rows[:, None], cols[None, :], :]


def linear(op: Resize, out: Region, x: Operand, values: Array) -> Array:
    """Between the two neighbours along each axis; beyond the border the border itself. `values` are x's, real."""
    for axis in range(2):
        place = np.clip(places(op, axis, out, x), 0, x.shape[1 + axis] - 1)
        low = np.floor(place)
        share = (place - low).reshape((-1, 1, 1) if axis == 0 else (-1, 1))
        first = np.take(values, _local(low, axis, x), axis=1 + axis)
        second = np.take(values, _local(low + 1, axis, x), axis=1 + axis)
        values = first * (1 - share) + second * share
    return values


def places(op: Resize, axis: int, out: Region, x: Operand) -> Array:
    """Where the output indices lie in the input, in float32, in the order in which onnxruntime computes it."""
    index = np.arange(*out.bounds[1 + axis], dtype=np.float32)
    extent, size = x.shape[1 + axis], op.size[axis]
    ratio = np.float32(op.scale[axis] if op.scale else size / extent)
    match op.coordinates:
        case Coordinates.ASYMMETRIC:
            return index / ratio
        case Coordinates.ALIGN_CORNERS:
            return index * np.float32(extent - 1) / np.float32(size - 1) if size > 1 else index * 0
        case Coordinates.PYTORCH_HALF_PIXEL if size == 1:
            return index * 0
        case _:
            return (index + np.float32(0.5)) / ratio - np.float32(0.5)


def _rounded(op: Resize, place: Array) -> Array:
    match op.rounding:
        case Rounding.FLOOR:
            return np.floor(place)
        case Rounding.CEIL:
            return np.ceil(place)
        case Rounding.HALF_DOWN:
            return np.ceil(place - np.float32(0.5))
        case Rounding.HALF_UP:
            return np.floor(place + np.float32(0.5))


def _local(index: Array, axis: int, x: Operand) -> Array:
    """Indices of the tensor, kept inside it, as indices of the operand's region."""
    return np.clip(index, 0, x.shape[1 + axis] - 1).astype(np.intp) - x.origin[1 + axis]
