"""Resize: nearest and linear, with ONNX's coordinates and rounding modes, and places computed in TFLite's order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from ..operators import Coordinates, NearestMode, Resize, ResizeMode
from ..region import Region
from ..tensor import Array, Tensor
from .operand import Operand

TIE = 1e-6  # distance from the middle between two elements that counts as the middle (measured on onnxruntime 1.31)


def resize(op: Resize, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    if op.mode is ResizeMode.NEAREST:
        return nearest(op, out, operands[0])
    values = operands[0].data
    return linear(op, out, operands[0], values.astype(np.float32, copy=False))


def nearest(op: Resize, out: Region, x: Operand) -> Array:
    if op.by_product:
        rows, cols = (nearest_places(op, axis, out, x.shape[1 + axis]) for axis in range(2))
    else:
        rows, cols = (rounded_places(op, places(op, axis, out, x)) for axis in range(2))
    rows, cols = (_local(index, axis, x) for axis, index in enumerate((rows, cols)))
    return x.data[:, rows[:, None], cols[None, :], :]


def linear(op: Resize, out: Region, x: Operand, values: Array) -> Array:
    """The four neighbours (`values` are real), weighted and added in onnxruntime's order.

    Beyond the border, border elements are repeated.
    """
    rows, cols = (neighbours(op, axis, out, x) for axis in range(2))
    total: Array = np.zeros(out.shape, values.dtype)
    for (row, vertical), (col, horizontal) in product(rows, cols):
        weight = (horizontal[None, :] * vertical[:, None])[:, :, None]
        total += weight * values[:, row[:, None], col[None, :], :]
    return total


def neighbours(op: Resize, axis: int, out: Region, x: Operand) -> tuple[tuple[Array, Array], ...]:
    """For each output index, the neighbours before and after its place, with their weights.

    The weight of one is the distance to the other; at the border both are the same element, with weight one half each.
    """
    end = x.shape[1 + axis] - 1
    place = np.clip(places(op, axis, out, x), 0, end)
    low = np.floor(place)
    is_border, half = low == end, np.float32(0.5)
    high = np.where(place > low, low + 1, low)  # not read if its weight is 0, since it may lie outside the region
    return (
        (_local(low, axis, x), np.where(is_border, half, low + 1 - place)),
        (_local(high, axis, x), np.where(is_border, half, place - low)),
    )


def places(op: Resize, axis: int, out: Region, x: Operand) -> Array:
    """The places of output indices in the input, in float32, computed in the runtime's order."""
    index = np.arange(*out.bounds[1 + axis], dtype=np.float32)
    extent, size = x.shape[1 + axis], op.size[axis]
    if op.by_product:
        half = np.float32(0.5 if op.coordinates is Coordinates.HALF_PIXEL else 0)
        return (index + half) * pixels_per_step(op, axis, extent) - half
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


def pixels_per_step(op: Resize, axis: int, extent: int) -> np.float32:
    """The distance in the input between two neighbouring output pixels, as LiteRT computes it."""
    size = op.size[axis]
    if op.coordinates is Coordinates.ALIGN_CORNERS and size > 1:
        return np.float32(extent - 1) / np.float32(size - 1)
    return np.float32(extent) / np.float32(size)


def nearest_places(op: Resize, axis: int, out: Region, extent: int) -> Array:
    """For each output row or column, the input one that LiteRT takes."""
    index = np.arange(*out.bounds[1 + axis], dtype=np.float32)
    if op.coordinates is Coordinates.HALF_PIXEL:
        index = index + np.float32(0.5)
    place = (index * pixels_per_step(op, axis, extent)).astype(np.float64)
    is_aligned = op.coordinates is Coordinates.ALIGN_CORNERS
    return np.clip(np.floor(place + 0.5 if is_aligned else place), 0, extent - 1).astype(np.intp)


def rounded_places(op: Resize, place: Array) -> Array:
    match op.rounding:
        case NearestMode.FLOOR:
            return np.floor(place)
        case NearestMode.CEIL:
            return np.ceil(place)
        case NearestMode.HALF_DOWN:
            return np.ceil(place.astype(np.float64) - 0.5 - TIE)
        case NearestMode.HALF_UP:
            return np.floor(place.astype(np.float64) + 0.5 + TIE)


def _local(index: Array, axis: int, x: Operand) -> Array:
    """Indices of the tensor, clamped to it, as indices of the operand's region."""
    return np.clip(index, 0, x.shape[1 + axis] - 1).astype(np.intp) - x.origin[1 + axis]
