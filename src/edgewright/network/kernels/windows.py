"""Sliding windows as arrays: padding, taps, and sums of products, without rounding and activations.

Every function works on the region `out` of the output. A *span* is the part of the padded image covered by the windows
of `out`, from the first tap of the first window to the last tap of the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..operators import AvgPool2d, Conv2d, ConvTranspose2d, Dense, MaxPool2d, Pair
from ..region import Interval, Region, span
from ..tensor import Array, Tensor
from .operand import Operand

Windowed = Conv2d | AvgPool2d | MaxPool2d


def window_input(op: Windowed, out: Region, x: Operand, fill: float | int, kernel: Pair | None = None) -> Array:
    """The span of `out` in the padded image, with `fill` outside the image; a view if it lies inside.

    Pools know their kernel size; for a convolution it is the (kh, kw) of its weights and must be given.
    """
    kernel = kernel or getattr(op, "kernel", None)
    assert kernel is not None, "a convolution's kernel size must be given"
    spans = [span(out.bounds[1 + i], kernel[i], op.stride[i], op.dilation[i], op.pads[i]) for i in range(2)]
    wanted = Region((x.region.bounds[0], *spans, x.region.bounds[3]))
    if wanted == x.region:
        return x.data
    padded = np.full(wanted.shape, fill, x.data.dtype)
    if not x.region.is_empty:
        inside = x.region.moved([-start for start, _ in wanted.bounds])
        padded[inside.slices] = x.data
    return padded


def taps(op: Windowed, kernel: Pair, x: Array, size: Sequence[int]) -> Iterator[tuple[int, int, Array]]:
    """(ky, kx, elements under that tap for each of `size` windows) for every tap; x is the span."""
    (sy, sx), (dy, dx) = op.stride, op.dilation
    for ky, kx in product(range(kernel[0]), range(kernel[1])):
        top, left = ky * dy, kx * dx
        rows = slice(top, top + (size[0] - 1) * sy + 1, sy)
        yield ky, kx, x[:, rows, left : left + (size[1] - 1) * sx + 1 : sx, :]


def tap_counts(op: AvgPool2d, out: Region, image: Sequence[int]) -> Array:
    """(rows, columns, 1): the number of taps by which each window's average is divided."""
    counts = []
    for i in range(2):
        inside = (0, image[i])
        if op.count_pads:
            inside = (-op.pads[i], image[i] + op.pads[2 + i] - op.uncounted[i])
        first = np.arange(*out.bounds[1 + i]) * op.stride[i] - op.pads[i]
        place = first[:, None] + np.arange(op.kernel[i]) * op.dilation[i]
        counts.append(((place >= inside[0]) & (place < inside[1])).sum(axis=1))
    return np.maximum(counts[0][:, None, None] * counts[1][None, :, None], 1)


def conv_accumulate(op: Conv2d, x: Array, w: Array, out: Region, channels: int, dtype: DTypeLike) -> Array:
    """Sums of products for `out`, as `dtype`: x is the span (see `window_input`), w the kernels of `out`.

    `channels` is the number of output channels of the whole layer, which determines the groups. Integers are multiplied
    as floats wide enough to be exact, since BLAS has no integer product. Rows are processed in bands, so that the
    im2col matrix exists for one band at a time.
    """
    work = work_type(x, w, dtype)
    _, kh, kw, _ = w.shape
    batch, rows, cols, depth = out.shape
    result = np.empty((batch, rows, cols, depth), dtype)
    w = np.ascontiguousarray(w, work)
    is_depthwise = w.shape[3] == 1 and op.groups > 1
    per_row = batch * cols * (max(depth, x.shape[3]) * 2 if is_depthwise else x.shape[3] * kh * kw + depth)
    band = max(1, SCRATCH_BYTES // (per_row * np.dtype(work).itemsize))
    multiply = _depthwise if is_depthwise else _grouped if op.groups > 1 else _dense
    for top in range(0, rows, band):
        bottom = min(top + band, rows)
        first, last = top * op.stride[0], (bottom - 1) * op.stride[0] + (kh - 1) * op.dilation[0] + 1
        part = x[:, first:last].astype(work, copy=False)
        result[:, top:bottom] = multiply(op, part, w, out, (bottom - top, cols), channels)
    return result


def _dense(op: Conv2d, x: Array, w: Array, out: Region, size: Pair, channels: int) -> Array:
    matrix = columns(op, x, (w.shape[1], w.shape[2]), size) @ w.reshape(w.shape[0], -1).T
    return matrix.reshape(x.shape[0], *size, w.shape[0])


def _depthwise(op: Conv2d, x: Array, w: Array, out: Region, size: Pair, channels: int) -> Array:
    """One input channel for each output channel: taps times weights, without a matrix product."""
    per_group = channels // op.groups
    start, stop = out.bounds[3]
    if per_group > 1:  # depth multiplier: several neighbouring outputs read each input channel
        x = x[..., np.arange(start, stop) // per_group - start // per_group]
    total = np.zeros((x.shape[0], *size, stop - start), x.dtype)
    product_ = np.empty_like(total)
    for ky, kx, tap in taps(op, (w.shape[1], w.shape[2]), x, size):
        np.multiply(tap, w[:, ky, kx, 0], out=product_)
        total += product_
    return total


def _grouped(op: Conv2d, x: Array, w: Array, out: Region, size: Pair, channels: int) -> Array:
    """One product per group. Groups that `out` cuts are padded with zero weights, and cut again afterwards."""
    per_group = channels // op.groups
    start, stop = out.bounds[3]
    lead, groups = start % per_group, x.shape[3] // w.shape[3]
    whole = np.zeros((groups * per_group, *w.shape[1:]), w.dtype)
    whole[lead : lead + stop - start] = w
    matrices = whole.reshape(groups, per_group, -1).transpose(0, 2, 1)
    parts = [
        columns(op, x[..., g * w.shape[3] : (g + 1) * w.shape[3]], (w.shape[1], w.shape[2]), size) @ matrices[g]
        for g in range(groups)
    ]
    joined = np.concatenate(parts, axis=-1)[:, lead : lead + stop - start]
    return joined.reshape(x.shape[0], *size, stop - start)


def columns(op: Conv2d, x: Array, kernel: Pair, size: Pair) -> Array:
    """(windows, kh * kw * C): the values of each window side by side (im2col); a view if possible."""
    depth = x.shape[3]
    if kernel == (1, 1):
        return next(taps(op, kernel, x, size))[2].reshape(-1, depth)
    result = np.empty((x.shape[0], *size, *kernel, depth), x.dtype)
    for ky, kx, tap in taps(op, kernel, x, size):
        result[:, :, :, ky, kx] = tap
    return result.reshape(-1, kernel[0] * kernel[1] * depth)


def product_sums(
    op: Conv2d | ConvTranspose2d | Dense, out: Region, x: Operand, w: Operand, result: Tensor, dtype: DTypeLike
) -> Array:
    """Sums of products for `out`, as `dtype`; zero points are already subtracted from the operands."""
    match op:
        case Conv2d():
            image = window_input(op, out, x, 0, (w.shape[1], w.shape[2]))
            return conv_accumulate(op, image, w.data, out, result.shape[3], dtype)
        case ConvTranspose2d():
            return transpose_conv_accumulate(op, x, w.data, out, result.shape[3], dtype)
        case Dense():
            return dense_accumulate(x.data, w.data, dtype)


def transpose_conv_accumulate(
    op: ConvTranspose2d, x: Operand, w: Array, out: Region, channels: int, dtype: DTypeLike
) -> Array:
    """Sums of products for `out`, as `dtype`.

    Input i under tap k contributes to output i * stride + k * dilation - pad: one matrix product per tap.
    """
    work = work_type(x.data, w, dtype)
    values, w = x.data.astype(work, copy=False), w.astype(work, copy=False)
    per_group, depth = channels // op.groups, w.shape[3]
    total = np.zeros(out.shape, work)
    for ky, kx in product(range(w.shape[1]), range(w.shape[2])):
        places = [_tap_overlap(op, i, k, out, x.region.bounds[1 + i]) for i, k in ((0, ky), (1, kx))]
        if any(read.start >= read.stop for read, _ in places):
            continue
        tap = values[:, places[0][0], places[1][0], :]
        target = total[:, places[0][1], places[1][1], :]
        start = out.bounds[3][0]
        for first, last in _group_cuts(out.bounds[3], per_group):
            group = first // per_group - start // per_group
            target[..., first - start : last - start] += (
                tap[..., group * depth : (group + 1) * depth] @ w[first - start : last - start, ky, kx].T
            )
    return total.astype(dtype, copy=False)


def _tap_overlap(op: ConvTranspose2d, axis: int, k: int, out: Region, known: Interval) -> tuple[slice, slice]:
    """The inputs (within `known`) that tap k maps into `out`, and the outputs (within `out`) that they reach."""
    start, stop = out.bounds[1 + axis]
    stride, shift = op.stride[axis], k * op.dilation[axis] - op.pads[axis]
    first = max(-(-(start - shift) // stride), known[0])
    last = min((stop - 1 - shift) // stride, known[1] - 1)  # inclusive
    begin = first * stride + shift - start
    read = slice(first - known[0], max(first, last + 1) - known[0])
    return read, slice(begin, begin + (last - first) * stride + 1, stride)


def _group_cuts(channels: Interval, per_group: int) -> Iterator[Interval]:
    """The channel range cut at group boundaries."""
    start = channels[0]
    while start < channels[1]:
        stop = min((start // per_group + 1) * per_group, channels[1])
        yield start, stop
        start = stop


SCRATCH_BYTES = 8 << 20  # per piece of work: small enough for the cache


def work_type(x: Array, w: Array, dtype: DTypeLike, terms: int | None = None) -> np.dtype[Any]:
    """The float type in which products of x and w are summed: exact if `dtype` is an integer.

    BLAS has no integer product, but float32 holds integers below 2^24 exactly, and float64 below 2^53. By default a sum
    has as many terms as a row of w.
    """
    if np.issubdtype(dtype, np.floating):
        return np.dtype(dtype)
    if not x.size or not w.size:
        return np.dtype(np.float32)
    bound = _largest(x) * _largest(w) * (terms or w[0].size)
    assert bound < 1 << 53, "sums beyond 2^53 are not exact"
    return np.dtype(np.float32 if bound < 1 << 24 else np.float64)


def _largest(x: Array) -> int:
    return max(abs(int(x.min())), abs(int(x.max())))


def dense_accumulate(x: Array, w: Array, dtype: DTypeLike) -> Array:
    """x (..., K) times the transpose of w (O, axes that multiply to K), as `dtype` (..., O).

    Weights in another memory order or type are copied a few rows at a time: those of VGG-19's first dense layer alone
    take 411 MB.
    """
    work = work_type(x, w, dtype)
    features = x.astype(work, copy=False).reshape(-1, x.shape[-1])
    rows = w.shape[0]
    band = rows
    if w.dtype != work or not w.flags.c_contiguous:
        band = max(1, SCRATCH_BYTES // max(1, x.shape[-1] * work.itemsize))
    result = np.empty((features.shape[0], rows), dtype)
    for first in range(0, rows, band):
        part = w[first : first + band].astype(work, order="C", copy=False)
        result[:, first : first + band] = features @ part.reshape(part.shape[0], -1).T
    return result.reshape(*x.shape[:-1], rows)
