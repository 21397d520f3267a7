"""The answers of an operator that is asked to compute one region of its output and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..operators import Op
from ..region import Interval, Region, Shape, clip


@dataclass(frozen=True, slots=True)
class RestrictedOperator:
    """`op`, applied to the region `reads` of each input (None: it drops that input), computes the region.

    With `keep` it computes a little more, the rest of a block or a window, of which this region is asked.
    """

    op: Op
    reads: tuple[Region | None, ...]
    keep: Region | None = None


@dataclass(frozen=True, slots=True)
class JoinedRegions:
    """No single operator computes the region: it is the concatenation along `axis` of these regions, each computed
    alone."""

    axis: int
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class WidenedRegion:
    """The region cannot be computed alone, for a `reason` along `axis`; `region` is the next larger one that might
    be."""

    region: Region
    axis: int
    reason: str


Answer = RestrictedOperator | JoinedRegions | WidenedRegion


def unchanged(op: Op, out: Region, shapes: Sequence[Shape]) -> RestrictedOperator:
    """The same operator on exactly what it needs: whatever depends on no place."""
    return RestrictedOperator(op, op.needs(out, shapes))


def inside(span: Interval, size: int) -> Interval:
    """The part of a span that lies in 0..size; one element at the border where none does, which pads then crop."""
    start, stop = clip(span, size)
    near = min(start, size - 1)
    return (start, stop) if start < stop else (near, near + 1)


def split(out: Region, axis: int, ends: Sequence[int]) -> JoinedRegions:
    """The region divided along an axis at those of the given indices that lie inside it."""
    start, stop = out.bounds[axis]
    inner = sorted({end for end in ends if start < end < stop})
    cuts: list[Interval] = list(zip([start, *inner], [*inner, stop], strict=True))
    return JoinedRegions(axis, tuple(out.with_axis(axis, cut) for cut in cuts))
