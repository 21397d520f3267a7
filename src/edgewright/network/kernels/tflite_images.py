"""TFLite's integer kernels over images, and moves that depend on the scale: pools, resize, pads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..operators import AvgPool2d, Concat, Coordinates, MaxPool2d, Pad, Resize, ResizeMode
from ..region import Region
from ..tensor import Array, DType, Tensor
from .contraction import multiply_add
from .linear import max_windows, sum_windows
from .operand import Operand, Summing
from .rearrange import padded
from .resize import nearest_places, pixels_per_step
from .tflite_fixed import rounded
from .tflite_scales import activation_range, scale, stored_number, zero
from .windows import tap_counts


def max_pool2d(op: MaxPool2d, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    return np.clip(max_windows(op, out, operands[0]), *activation_range(op.activation, result))


def _finish_average(
    op: AvgPool2d, out: Region, total: Array, x: Tensor, others: Sequence[Operand], result: Tensor
) -> Array:
    """Averages stored values, rounded half away from zero; padding does not count."""
    total = total.astype(np.int64)
    count = tap_counts(op, out, (x.shape[1], x.shape[2]))
    mean = np.sign(total) * ((np.abs(total) + count // 2) // count)
    return np.clip(mean, *activation_range(op.activation, result)).astype(result.dtype.numpy)


avg_pool2d = Summing(sum_windows, _finish_average)


def pad(op: Pad, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    return padded(op, out, operands[0], stored_number(op.value, result))


def concat(op: Concat, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """uint8 inputs are converted to the output's scale in float32; other types must share one scale."""
    parts = [operand.data for operand in operands]
    if result.dtype is DType.UINT8:
        parts = [rescaled(operand, result) for operand in operands]
    return np.concatenate(parts, axis=op.axis)


def rescaled(x: Operand, result: Tensor) -> Array:
    """Stored bytes as the output stores them."""
    if (scale(x.tensor), zero(x.tensor)) == (scale(result), zero(result)):
        return x.data
    ratio = scale(x.tensor) * (np.float32(1) / scale(result))
    bias = np.float32(-zero(x.tensor)) * ratio
    steps = rounded((x.data.astype(np.float32) * ratio + bias).astype(np.float64)) + zero(result)
    return np.clip(steps, 0, 255).astype(np.uint8)


def resize(op: Resize, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = operands[0]
    if op.mode is ResizeMode.NEAREST:
        return _pixels(x, x.data, *(nearest_places(op, i, out, x.shape[1 + i]) for i in range(2)))
    if result.dtype is DType.UINT8:
        return _bilinear_float(op, out, x)
    return _bilinear_fixed(op, out, x)


def _pixels(x: Operand, values: Array, rows: Array, cols: Array) -> Array:
    """The pixels of x's image at these rows and columns."""
    return values[:, (rows - x.origin[1])[:, None], (cols - x.origin[2])[None, :], :]


def _bilinear_float(op: Resize, out: Region, x: Operand) -> Array:
    """float32, term by term in the reference kernel's order; adds a half and truncates."""
    (y0, y1, dy), (x0, x1, dx) = (float_places(op, axis, out, x.shape[1 + axis]) for axis in range(2))
    dy, dx = dy.reshape(-1, 1, 1), dx.reshape(1, -1, 1)
    one, corner = np.float32(1), partial(_pixels, x, x.data.astype(np.float32))
    total = multiply_add(corner(y0, x0) * (one - dy), one - dx, corner(y1, x0) * dy * (one - dx))
    total = multiply_add(corner(y0, x1) * (one - dy), dx, total)
    total = multiply_add(corner(y1, x1) * dy, dx, total)
    return (total + np.float32(0.5)).astype(x.data.dtype)


def float_places(op: Resize, axis: int, out: Region, extent: int) -> tuple[Array, Array, Array]:
    """For output rows or columns: the two input ones around the place, and the distance from the first, in float32."""
    index = np.arange(*out.bounds[1 + axis]).astype(np.float32)
    ratio, half = pixels_per_step(op, axis, extent), np.float32(0.5)
    is_half = op.coordinates is Coordinates.HALF_PIXEL
    place = multiply_add(index + half, ratio, -half) if is_half else index * ratio
    low = np.maximum(np.floor(place), 0)
    high = np.minimum(np.ceil(place), extent - 1)
    return low.astype(np.intp), high.astype(np.intp), place - low


def _bilinear_fixed(op: Resize, out: Region, x: Operand) -> Array:
    """Places with 10 fractional bits; results are rounded half away from zero."""
    (y0, y1, dy), (x0, x1, dx) = (fixed_places(op, axis, out, x.shape[1 + axis]) for axis in range(2))
    dy, dx = dy.reshape(-1, 1, 1), dx.reshape(1, -1, 1)
    corner = partial(_pixels, x, x.data.astype(np.int64))
    upper = corner(y0, x0) * (1024 - dx) + corner(y0, x1) * dx
    lower = corner(y1, x0) * (1024 - dx) + corner(y1, x1) * dx
    total = upper * (1024 - dy) + lower * dy
    return (np.sign(total) * ((np.abs(total) + (1 << 19)) >> 20)).astype(x.data.dtype)


def fixed_places(op: Resize, axis: int, out: Region, extent: int) -> tuple[Array, Array, Array]:
    """For output rows or columns: the two input ones around the place, and the distance from the first, in 1/1024."""
    size = op.size[axis]
    is_aligned = op.coordinates is Coordinates.ALIGN_CORNERS and size > 1
    span, steps = (extent - 1, size - 1) if is_aligned else (extent, size)
    ratio = (1024 * span + steps // 2) // steps
    place = np.arange(*out.bounds[1 + axis]) * ratio
    if op.coordinates is Coordinates.HALF_PIXEL:
        place = place + ratio // 2 - 512
    first = np.maximum(place, 0) >> 10
    second = np.minimum(np.trunc((place + 1023) / 1024).astype(np.int64), extent - 1)
    return first, second, place - 1024 * first
