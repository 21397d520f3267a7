"""Operators that move elements without computing, for any element type. Results may be views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...errors import InputError
from .. import operators as ops
from ..operators.base import normal_axis
from ..operators.rearrange import mirrored
from ..region import Region, element_steps
from ..tensor import Array, Tensor
from .operand import Operand


def reshape(op: ops.Reshape, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """The operand is a run of consecutive elements (whole trailing axes); `out` is a strided view of it."""
    x = operands[0]
    if out == Region.whole(op.shape):
        return x.data.reshape(op.shape)
    flat = np.ascontiguousarray(x.data).reshape(-1)
    steps = element_steps(op.shape)
    known = sum(a * step for a, step in zip(x.origin, element_steps(x.shape), strict=True))
    first = sum(a * step for (a, _), step in zip(out.bounds, steps, strict=True)) - known
    last = first + sum((n - 1) * step for n, step in zip(out.shape, steps, strict=True))
    assert 0 <= first <= last < flat.size, f"{op}: {out} needs more than {x.region}"
    return as_strided(flat[first:], out.shape, [step * flat.itemsize for step in steps], writeable=False)


def padded(op: ops.Pad, out: Region, x: Operand, value: float) -> Array:
    """The region of x with its padding; for quantised x, `value` is a stored number."""
    if op.mode is ops.PadMode.CONSTANT:
        filled = np.full(out.shape, value, x.data.dtype)
        if not x.region.is_empty:
            start = [a - b for a, (b, _) in zip(op.before, out.bounds, strict=True)]
            filled[x.region.moved(start).slices] = x.data
        return filled
    places = [
        mirrored(op.mode, np.arange(*bound), x.shape[i], op.before[i], op.after[i]) - x.origin[i]
        for i, bound in enumerate(out.bounds)
    ]
    return x.data[np.ix_(*places)]


def tile(op: ops.Tile, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x = operands[0]
    places = [np.arange(*bound) % size for bound, size in zip(out.bounds, x.shape, strict=True)]
    return x.data[np.ix_(*places)]


def space_to_depth(op: ops.SpaceToDepth, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    (n, rows, cols, _), k = out.shape, op.block
    blocks = operands[0].data.reshape(n, rows, k, cols, k, -1).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(n, rows, cols, -1)[..., slice(*out.bounds[3])]


def depth_to_space(op: ops.DepthToSpace, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    x, k = operands[0], op.block
    n, rows, cols, _ = x.data.shape
    if op.channel_major:
        blocks = x.data.reshape(n, rows, cols, -1, k, k).transpose(0, 1, 4, 2, 5, 3)
    else:
        blocks = x.data.reshape(n, rows, cols, k, k, -1).transpose(0, 1, 3, 2, 4, 5)
    image = blocks.reshape(n, rows * k, cols * k, -1)
    top, left = out.bounds[1][0] - x.origin[1] * k, out.bounds[2][0] - x.origin[2] * k
    return image[:, top : top + out.shape[1], left : left + out.shape[2], slice(*out.bounds[3])]


def gather(op: ops.Gather, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    data, indices = operands
    axis = normal_axis(op.axis, len(data.shape))
    return np.take(data.data, _places(axis, data, indices), axis=axis)


def gather_elements(op: ops.GatherElements, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    data, indices = operands
    axis = normal_axis(op.axis, len(data.shape))
    return np.take_along_axis(data.data, _places(axis, data, indices), axis)


def _places(axis: int, data: Operand, indices: Operand) -> Array:
    """The indices, negative ones counted from the end; an error if one is out of range."""
    size = data.shape[axis]
    chosen = indices.data.astype(np.int64)
    if chosen.min() < -size or chosen.max() >= size:
        raise InputError(
            f"indices '{indices.tensor.name}' reach from {chosen.min()} to {chosen.max()}, "
            f"but axis {axis} of '{data.tensor.name}' has {size} elements"
        )
    return chosen % size
