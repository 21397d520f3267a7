"""The questions that every operator answers: its output shape, what a region of the output reads, its cost and traits.

An operator is a frozen dataclass of attributes. `Layer` holds its wiring, `Tensor` shapes and types; kernels compute
the numbers. Spatial operators are NHWC, with one output each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any, ClassVar

from ..region import Interval, Perm, Region, Shape, clip


class Grain(Enum):
    """How finely a kernel's reads and writes interleave. Part of its contract, since buffers share memory based on it.

    Atoms are processed in row-major order of the output (or in exactly the reverse order).
    """

    ELEMENT = "element"  # an atom is one output element; all it reads is read before it is written
    PIXEL = "pixel"  # an atom is the whole last axis; its reads and writes may come in any order
    WHOLE = "whole"  # any input may be read until the last output is written


@dataclass(frozen=True, slots=True)
class RestrictedOperator:
    """`op`, applied to the region `reads` of each input (None: the input is dropped), computes the region.

    With `keep` it computes more, such as the rest of a block or a window, and `keep` is the requested part.
    """

    op: Any  # an operator
    reads: tuple[Region | None, ...]
    keep: Region | None = None


@dataclass(frozen=True, slots=True)
class JoinedRegions:
    """No single operator computes the region: it is the concatenation along `axis` of these regions."""

    axis: int
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class WidenedRegion:
    """No operator computes exactly this region, for a `reason` along `axis`; `region` is the next larger candidate."""

    region: Region
    axis: int
    reason: str


Answer = RestrictedOperator | JoinedRegions | WidenedRegion


class Operator:
    """Defaults for an operator that reads all of every input and multiplies nothing."""

    __slots__ = ()
    grain: ClassVar[Grain] = Grain.WHOLE
    moves: ClassVar[bool] = False  # every element of the output is an element of an input, before any activation
    order_only: ClassVar[bool] = False  # gives indices that depend on the order of elements, not on their scale
    pointwise: ClassVar[bool] = False  # each element depends on those at the same index of the operands alone
    may_be_view: ClassVar[bool] = False  # the output may share its inputs' memory instead of being computed

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        """The shape of the output; ValueError (shown with the layer's name) if the inputs do not fit."""
        raise NotImplementedError

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        """The region of each input that is read to produce `out` (padding clipped; may be empty)."""
        return tuple(Region.whole(shape) for shape in shapes)

    def macs(self, out: Region, shapes: Sequence[Shape]) -> int:
        """Multiply-accumulates to produce `out`."""
        return 0

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm] | None:
        """The operator on inputs held with axes in the order `perm`, and the perm of its held output.

        None if it depends on the order of axes.
        """
        return (self, perm) if self.pointwise else None

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """How to compute one region of the output; by default the same operator on exactly what it needs."""
        return RestrictedOperator(self, self.needs(out, shapes))

    def _restrict_lines(self, out: Region, shapes: Sequence[Shape], axis: int, reason: str) -> Answer:
        """The unchanged operator if the region contains the whole axis."""
        whole = (0, self.output_shape(shapes)[axis])
        if out.bounds[axis] != whole:
            return WidenedRegion(out.with_axis(axis, whole), axis, reason)
        return RestrictedOperator(self, self.needs(out, shapes))


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def require_positive(what: str, numbers: Sequence[float]) -> None:
    """Refuses attributes of a damaged file that would divide by zero or be negative."""
    require(all(0 < number < inf for number in numbers), f"{what} {list(numbers)} must be positive")


def normal_axis(axis: int, rank: int) -> int:
    require(-rank <= axis < rank, f"axis {axis} does not exist in a tensor of rank {rank}")
    return axis % rank


def broadcast_needs(out: Region, shape: Shape) -> Region:
    """The part of an operand of this shape that `out` reads under numpy's broadcasting rules."""
    bounds = out.bounds[len(out.bounds) - len(shape) :]
    return Region(tuple((0, 1) if size == 1 else bound for bound, size in zip(bounds, shape, strict=True)))


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    rank = max(len(shape) for shape in shapes)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(shape, rank - len(shape)):
            require(size == result[i] or 1 in (size, result[i]), f"shapes {list(shapes)} do not broadcast")
            result[i] = size if result[i] == 1 else result[i]
    return tuple(result)


def inside(span: Interval, size: int) -> Interval:
    """The part of a span in 0..size; if empty, one element at the border, which pads then crop."""
    start, stop = clip(span, size)
    near = min(start, size - 1)
    return (start, stop) if start < stop else (near, near + 1)


def split(out: Region, axis: int, ends: Sequence[int]) -> JoinedRegions:
    """The region divided along an axis at those of the given indices that lie inside it."""
    start, stop = out.bounds[axis]
    inner = sorted({end for end in ends if start < end < stop})
    cuts: list[Interval] = list(zip([start, *inner], [*inner, stop], strict=True))
    return JoinedRegions(axis, tuple(out.with_axis(axis, cut) for cut in cuts))
