"""Which rows a layer reads for each row it computes: what streaming, pulled inputs and phases are made of."""

from __future__ import annotations

from functools import lru_cache

from ..network import Interval, Layer, Network, Region, Shape
from ..network.operators import Op

ROWS = 1  # the axis of an image (NHWC)
MOST_ROWS = 1 << 16  # of an image that goes row by row: beyond, following every row takes longer than it can save


def rows_needed(network: Network, reader: Layer, name: str, axis: int = ROWS) -> tuple[Interval, ...] | None:
    """The rows of tensor `name` that each output row reads; None where they do not move from top to bottom."""
    out = network.tensors[reader.output].shape
    found: tuple[Interval, ...] | None = None
    for which, other in enumerate(reader.inputs):
        if other == name:
            rows = _rows_read(reader.op, network.shapes(reader), which, out, axis)
            if rows is None:
                return None
            found = rows if found is None else tuple(map(_hull, found, rows))
    return found


def is_in_step(network: Network, reader: Layer, name: str, axis: int = ROWS) -> bool:
    """Whether index i of tensor `name` along the axis is all that is read of it for index i of the output."""
    out, shapes = network.tensors[reader.output].shape, network.shapes(reader)
    return all(_is_identity(reader.op, shapes, at, out, axis) for at, x in enumerate(reader.inputs) if x == name)


@lru_cache(maxsize=4096)
def _is_identity(op: Op, shapes: tuple[Shape, ...], which: int, out: Shape, axis: int) -> bool:
    rows = _rows_read(op, shapes, which, out, axis)
    return rows is not None and all(row == (i, i + 1) for i, row in enumerate(rows))


@lru_cache(maxsize=4096)
def _rows_read(
    op: Op, shapes: tuple[Shape, ...], which: int, out: Shape, axis: int
) -> tuple[Interval, ...] | None:
    if not (len(out) == len(shapes[which]) == 4 and out[0] == shapes[which][0] == 1):
        return None
    if max(out[axis], shapes[which][axis]) > MOST_ROWS:
        return None
    rows: list[Interval] = []
    whole = Region.whole(out)
    for y in range(out[axis]):
        start, stop = op.needs(whole.with_axis(axis, (y, y + 1)), shapes)[which].bounds[axis]
        start = min(start, stop)
        if rows and (stop < rows[-1][1] or start < rows[-1][0]):
            return None
        rows.append((start, stop))
    return tuple(rows)


def _hull(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])
