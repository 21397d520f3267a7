"""Operators restricted to one region of their output. `parts` wires them into a network.

The operators know how (`Operator.restrict`), except for Resize, where kernels decide: every position of the region must
come out exactly as in the whole image. Output rows repeat in blocks: p rows of the output show q rows of the input,
p / q being the scale. A part that starts at a block boundary has the whole's positions minus an integer. Float32 and
fixed point may round differently, so the positions and weights of each candidate are computed as the kernels do and
compared with the whole's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from .kernels.operand import Operand
from .kernels.resize import nearest_places, neighbours, places, rounded_places
from .kernels.tflite_images import fixed_places, float_places
from .operators import Coordinates, Op, Resize, ResizeMode
from .operators.base import Answer, RestrictedOperator, WidenedRegion
from .region import Interval, Region, Shape
from .tensor import Array, DType, Tensor


@dataclass(frozen=True, slots=True)
class _ScaledRows:
    """One axis of a resize: input rows, the number of rows they are scaled to, and the rows that are kept."""

    read: Interval
    size: int
    kept: Interval


def restrict(op: Op, out: Region, shapes: Sequence[Shape], dtype: DType = DType.FLOAT32) -> Answer:
    """How to compute the region of the output without the rest; `dtype` is the type of the first input."""
    return _restrict_resize(op, out, shapes, dtype) if isinstance(op, Resize) else op.restrict(out, shapes)


def restrictable_hull(op: Op, out: Region, shapes: Sequence[Shape], dtype: DType = DType.FLOAT32) -> Region:
    """The smallest region around `out` that a restricted operator computes; the whole output is always one."""
    while isinstance(answer := restrict(op, out, shapes, dtype), WidenedRegion):
        assert out in answer.region and answer.region != out, f"{op}: {out} becomes {answer.region}"
        out = answer.region
    return out


def _restrict_resize(op: Resize, out: Region, shapes: Sequence[Shape], dtype: DType) -> Answer:
    x = shapes[0]
    cuts = []
    for axis in range(2):
        rows = _cut(op, axis, out.bounds[1 + axis], x[1 + axis], dtype)
        if rows is None:
            what = f"places of {op.size[axis]} in {x[1 + axis]} are exact in the whole only"
            return WidenedRegion(out.with_axis(1 + axis, (0, op.size[axis])), 1 + axis, what)
        cuts.append(rows)
    made = replace(op, size=(cuts[0].size, cuts[1].size))
    read = Region((out.bounds[0], cuts[0].read, cuts[1].read, out.bounds[3]))
    keep = Region(((0, out.shape[0]), cuts[0].kept, cuts[1].kept, (0, out.shape[3])))
    is_all = keep.shape[1:3] == made.size
    return RestrictedOperator(made, (read,), None if is_all else keep)


def _cut(op: Resize, axis: int, out: Interval, extent: int, dtype: DType) -> _ScaledRows | None:
    """The smallest candidate with the same result as the whole; None if only the whole has it."""
    size = op.size[axis]
    if out == (0, size):
        return _ScaledRows((0, extent), size, out)
    wanted = _shown(op, axis, out, extent, 0, dtype)
    for candidate in _candidates(op, axis, out, extent):
        made = _with_size(op, axis, candidate.size)
        start, stop = candidate.read
        shown = _shown(made, axis, candidate.kept, stop - start, start, dtype)
        if all(np.array_equal(a, b) for a, b in zip(shown, wanted, strict=True)):
            return candidate
    return None


def _candidates(op: Resize, axis: int, out: Interval, extent: int) -> Iterator[_ScaledRows]:
    """Whole blocks around the region, with up to two more on either side, if smaller than the whole."""
    size = op.size[axis]
    aligned = int(op.coordinates is Coordinates.ALIGN_CORNERS)  # blocks share their first and last rows
    if min(size, extent) <= aligned:
        return
    given = op.scale is not None and not aligned
    ratio = Fraction(op.scale[axis]).limit_denominator(64) if given and op.scale else None
    ratio = ratio or Fraction(size - aligned, extent - aligned)
    p, q = ratio.numerator, ratio.denominator
    first, last = out[0] // p, -(-(out[1] - aligned) // p)
    for begin in dict.fromkeys((first, max(first - 1, 0), max(first - 2, 0))):
        for end in (max(last, begin + 1), last + 1, last + 2):
            read = begin * q, min(end * q + aligned, extent)
            made = begin * p, min(end * p + aligned, size)
            is_whole = made == (0, size)
            if not is_whole and read[0] < read[1] and made[0] <= out[0] and out[1] <= made[1]:
                yield _ScaledRows(read, made[1] - made[0], (out[0] - made[0], out[1] - made[0]))


def _with_size(op: Resize, axis: int, size: int) -> Resize:
    sizes = list(op.size)
    sizes[axis] = size
    return replace(op, size=(sizes[0], sizes[1]))


def _shown(op: Resize, axis: int, out: Interval, extent: int, origin: int, dtype: DType) -> list[Array]:
    """The rows of an image beginning at `origin` that each output shows, with weights.

    Computed in the arithmetic of every runtime that such a layer may follow.
    """
    shape = [1, 1, 1, 1]
    shape[1 + axis] = extent
    x = Operand(np.empty(0), Region.whole(shape), Tensor("x", tuple(shape), dtype))
    region = Region(((0, 1), (0, 1), (0, 1), (0, 1))).with_axis(1 + axis, out)
    in_tflite = op.by_product or (not dtype.is_float and op.scale is None)
    if op.mode is ResizeMode.NEAREST:
        rows = [] if op.by_product else [np.clip(rounded_places(op, places(op, axis, region, x)), 0, extent - 1)]
        rows += [nearest_places(op, axis, region, extent)] if in_tflite else []
        return [row + origin for row in rows]
    shown: list[Array] = []
    if dtype.is_float or not op.by_product:
        for row, weight in neighbours(op, axis, region, x):
            shown += [row + origin, weight]
    if not dtype.is_float and in_tflite:
        how = float_places if dtype is DType.UINT8 else fixed_places
        low, high, weight = how(op, axis, region, extent)
        shown += [low + origin, high + origin, weight]
    return shown
