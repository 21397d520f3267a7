"""Operators whose sums can be split over channels or rows of the first input (S 4.2).

An operator that sums over an axis of its input computes its output from any split of that axis: each part contributes a
partial sum, and bias, scale and activation are applied once, to the complete sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..region import Region, Shape
from . import Op
from .linear import Dense
from .reduce import Reduce, ReduceKind
from .window import AvgPool2d, Conv2d, is_global


def reduction_axes(op: Op, shapes: Sequence[Shape]) -> Mapping[int, int | None]:
    """The axes of the first input that are summed over, each with the corresponding axis of the weights."""
    rank = len(shapes[0])
    match op:
        case Conv2d(groups=1):
            return {3: 3}
        case Dense() if len(shapes[1]) == 2:
            return {rank - 1: 1}
        case Reduce(kind=ReduceKind.MEAN | ReduceKind.SUM, axes=axes):
            return {axis % rank: None for axis in axes}
        case AvgPool2d() if is_global(op, shapes[0]):
            return {1: None, 2: None}
        case _:
            return {}


def partial_needs(op: Op, out: Region, shapes: Sequence[Shape], share: Region) -> tuple[Region, ...]:
    """The region of each input that is read for the contribution of `share`, a part of the first input, to `out`."""
    first, *others = op.needs(out, shapes)
    for axis, other in reduction_axes(op, shapes).items():
        first = first.with_axis(axis, (Region((first.bounds[axis],)) & Region((share.bounds[axis],))).bounds[0])
        if other is not None:
            others[0] = others[0].with_axis(other, first.bounds[axis])
    return (first, *others)


def partial_macs(op: Op, out: Region, shapes: Sequence[Shape], share: Region) -> int:
    """Multiply-accumulates of the partial sum."""
    total = op.macs(out, shapes)
    for axis in reduction_axes(op, shapes):
        start, stop = share.bounds[axis]
        total = total * (stop - start) // shapes[0][axis]
    return total
