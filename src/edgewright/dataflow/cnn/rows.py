"""Images divided into parts of whole rows, and the reads of each part of a layer's output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

from ...network import Interval, Layer, Network, Region, Shape
from ...network.operators import Op
from ...program.steps import ROWS, has_rows, row_count


def parts(rows: int, count: int) -> tuple[Interval, ...]:
    """The rows divided into `count` consecutive parts of similar size."""
    cuts = [rows * i // count for i in range(count + 1)]
    return tuple(pairwise(cuts))


def part_region(shape: Shape, part: Interval) -> Region:
    """A part of a tensor as a region of it."""
    whole = Region.whole(shape)
    return whole.with_axis(ROWS, part) if has_rows(shape) else whole


def reads(network: Network, layer: Layer, tensor: str, count: int) -> tuple[Interval, ...]:
    """The rows of an input that each of `count` parts of the layer's output reads; an interval may be empty."""
    shapes = network.shapes(layer)
    if count == 1:
        return ((0, row_count(network.tensors[tensor].shape)),)
    table = _reads(layer.op, shapes, network.tensors[layer.output].shape, count)
    places = [i for i, name in enumerate(layer.inputs) if name == tensor]
    return tuple(_hull([row[i] for i in places]) for row in table)


@lru_cache(maxsize=4096)  # networks repeat their layers, and computing every row is slow
def _reads(op: Op, shapes: tuple[Shape, ...], out: Shape, count: int) -> tuple[tuple[Interval, ...], ...]:
    table = []
    for part in parts(row_count(out), count):
        needed = op.needs(part_region(out, part), shapes)
        table.append(tuple(_rows_of(region, shape) for region, shape in zip(needed, shapes, strict=True)))
    return tuple(table)


def _rows_of(region: Region, shape: Shape) -> Interval:
    if region.is_empty:
        return (0, 0)
    return region.bounds[ROWS] if has_rows(shape) else (0, 1)


def _hull(intervals: Sequence[Interval]) -> Interval:
    full = [interval for interval in intervals if interval[0] < interval[1]]
    return (min(start for start, _ in full), max(stop for _, stop in full)) if full else (0, 0)


@dataclass(frozen=True)
class RowUse:
    """How the parts of a layer advance through the rows of an input, counted from the top.

    A part may start when `needed` rows exist; when it ends, `done` of them are no longer needed. The last part takes
    the rest, so that the next image finds the channel empty. For windows that only move down both are exact; a layer
    that jumps back simply keeps more rows.
    """

    needed: tuple[int, ...]
    done: tuple[int, ...]

    @property
    def has_overlap(self) -> bool:
        """Whether some row is read by more than one part."""
        return self.needed != self.done

    @property
    def kept(self) -> tuple[int, ...]:
        """Rows kept for later parts when each part ends: the overlap of M 4.5.2."""
        return tuple(needed - done for needed, done in zip(self.needed, self.done, strict=True))


def use(read: Sequence[Interval], rows: int) -> RowUse:
    """The rows needed and done after each part, from the rows that it reads."""
    needed = list(accumulate((stop for _, stop in read), max))
    starts = [start if start < stop else rows for start, stop in read]
    least = list(accumulate(reversed(starts[1:]), min, initial=rows))[::-1]
    done = [min(a, b) for a, b in zip(least, needed, strict=True)]
    return RowUse((*needed[:-1], rows), (*done[:-1], rows))


def steps(totals: Sequence[int]) -> tuple[int, ...]:
    """The increments of running totals."""
    return tuple(b - a for a, b in pairwise((0, *totals)))
