"""Steps: each computes one region of one layer's output. Also which rows they read, and how they are cut to parts.

A part is one of the output, or of the input that a layer sums up share by share.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from ..network import DType, Interval, Layer, Network, Region, Shape
from ..network.kernels import can_sum_partially
from ..network.operators import Op
from ..network.operators.partial_sums import reduction_axes


class Sweep(Enum):
    """The order in which a kernel processes its region. Shared memory relies on it."""

    FORWARD = "forward"  # row-major
    BACKWARD = "backward"  # row-major, from the last to the first
    CHANNELS = "channels"  # one channel plane after the other, each computed in scratch before it is written


@dataclass(frozen=True, slots=True)
class Step:
    """Compute one region of one layer's output from the regions of its inputs that it needs."""

    layer: str
    region: Region
    sweep: Sweep = Sweep.FORWARD
    # The part of the first input that is added to the layer's running sums; they become output when the stage ends.
    partial: Region | None = None


ROWS = 1  # the axis of an image (NHWC)
MOST_ROWS = 1 << 13  # of an image that goes row by row: beyond, following every row takes longer than it can save


def has_rows(shape: Shape) -> bool:
    """Whether a tensor is one image, so that it can come row by row (M 4.2: batch 1)."""
    return len(shape) == 4 and shape[0] == 1


def row_count(shape: Shape) -> int:
    """The number of rows of an image; 1 for other tensors."""
    return shape[ROWS] if has_rows(shape) else 1


def rows_needed(network: Network, reader: Layer, name: str, axis: int = ROWS) -> tuple[Interval, ...] | None:
    """The rows of tensor `name` that each output row reads; None if they do not move from top to bottom."""
    out = network.tensors[reader.output].shape
    hull_rows: tuple[Interval, ...] | None = None
    for which, other in enumerate(reader.inputs):
        if other == name:
            rows = _rows_read(reader.op, network.shapes(reader), which, out, axis)
            if rows is None:
                return None
            hull_rows = rows if hull_rows is None else tuple(map(hull, hull_rows, rows))
    return hull_rows


def is_in_step(network: Network, reader: Layer, name: str, axis: int = ROWS) -> bool:
    """Whether index i of the output along the axis reads index i of tensor `name`, and no other."""
    out, shapes = network.tensors[reader.output].shape, network.shapes(reader)
    return all(_is_identity(reader.op, shapes, at, out, axis) for at, x in enumerate(reader.inputs) if x == name)


@lru_cache(maxsize=4096)
def _is_identity(op: Op, shapes: tuple[Shape, ...], which: int, out: Shape, axis: int) -> bool:
    rows = _rows_read(op, shapes, which, out, axis)
    return rows is not None and all(row == (i, i + 1) for i, row in enumerate(rows))


@lru_cache(maxsize=4096)
def _rows_read(op: Op, shapes: tuple[Shape, ...], which: int, out: Shape, axis: int) -> tuple[Interval, ...] | None:
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


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval around both."""
    return min(a[0], b[0]), max(a[1], b[1])


SUM_BYTES = 4


def summed_axes(network: Network, layer: Layer) -> Collection[int]:
    """The axes of the layer's first input over which running sums can be kept: of 32 bits, and exact for integers."""
    tensors = [network.tensors[name] for name in layer.inputs]
    is_fixed = [name in network.constants for name in layer.inputs]
    if is_fixed[0] or not all(is_fixed[1:]):
        return ()
    if not can_sum_partially(layer.op, tensors, network.tensors[layer.output], network.arithmetic):
        return ()
    return reduction_axes(layer.op, network.shapes(layer)).keys()


def sums_bytes(network: Network, layer: Layer) -> int:
    """Bytes of a buffer for the layer's running sums; 0 for real numbers, which are summed in the output."""
    y = network.tensors[layer.output]
    return 0 if y.dtype is DType.FLOAT32 else y.bytes // y.dtype.bytes * SUM_BYTES


def restricted(network: Network, step: Step, axis: int, part: Interval) -> Step:
    """The step for a part along an axis: of the input where it sums over that axis, else of the output."""
    layer = network.by_name[step.layer]
    if step.partial is not None:
        along = axis % len(step.partial.bounds)
        if along in summed_axes(network, layer):
            return replace(step, partial=step.partial.with_axis(along, part))
    return replace(step, region=step.region.with_axis(axis % len(step.region.bounds), part))
