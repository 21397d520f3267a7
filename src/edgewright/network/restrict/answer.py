"""The possible results of restricting an operator to one region of its output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..operators import Op
from ..region import Interval, Region, Shape, clip


@dataclass(frozen=True, slots=True)
class RestrictedOperator:
    """`op`, applied to the region `reads` of each input (None: the input is dropped), computes the region.

    With `keep` it computes more, such as the rest of a block or a window, and `keep` is the requested part.
    """

    op: Op
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


def unchanged(op: Op, out: Region, shapes: Sequence[Shape]) -> RestrictedOperator:
    """The same operator on exactly what it needs, for operators that do not depend on position."""
    return RestrictedOperator(op, op.needs(out, shapes))


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
