"""Data movement restricted to a region: the region must correspond to a box of the input, or is widened until it
does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ..kernels.rearrange import mirrored
from ..operators import Concat, DepthToSpace, Expand, Pad, PadMode, Reshape, Slice, SpaceToDepth, Tile
from ..region import Interval, Region, Shape, box_around_run, run_of_box
from .answer import Answer, RestrictedOperator, WidenedRegion, inside, split


def concat(op: Concat, out: Region, shapes: Sequence[Shape]) -> Answer:
    """A concat of the inputs that the region reads; the others are dropped."""
    reads = [None if region.is_empty else region for region in op.needs(out, shapes)]
    return RestrictedOperator(op, tuple(reads))


def slice_(op: Slice, out: Region, shapes: Sequence[Shape]) -> Answer:
    """A slice of the range that is read, which begins at the first or the last element of the region."""
    (read,) = op.needs(out, shapes)
    starts = tuple(0 if step > 0 else size - 1 for step, size in zip(op.steps, read.shape, strict=True))
    return RestrictedOperator(Slice(starts, out.shape, op.steps), (read,))


def expand(op: Expand, out: Region, shapes: Sequence[Shape]) -> Answer:
    return RestrictedOperator(Expand(out.shape), op.needs(out, shapes))


def tile(op: Tile, out: Region, shapes: Sequence[Shape]) -> Answer:
    """A range within one copy, or whole copies; other ranges are split at copy boundaries."""
    reads, repeats = [], []
    for axis, ((start, stop), size) in enumerate(zip(out.bounds, shapes[0], strict=True)):
        first, last = start // size, (stop - 1) // size
        if first == last:
            reads.append((start - first * size, stop - first * size))
            repeats.append(1)
        elif start % size == 0 and stop % size == 0:
            reads.append((0, size))
            repeats.append((stop - start) // size)
        else:
            return split(out, axis, [-(-start // size) * size, stop // size * size])
    return RestrictedOperator(Tile(tuple(repeats)), (Region(tuple(reads)),))


def space_to_depth(op: SpaceToDepth, out: Region, shapes: Sequence[Shape]) -> Answer:
    """All channels, or those of one position in the block, which is a strided slice."""
    n, rows, cols, channels = out.bounds
    k, depth = op.block, shapes[0][3]
    if channels == (0, k * k * depth):
        return RestrictedOperator(op, op.needs(out, shapes))
    cut = split(out, 3, [place * depth for place in range(k * k)])
    if len(cut.regions) > 1:
        return cut
    place, first = divmod(channels[0], depth)
    spatial = [
        (start * k + shift, (stop - 1) * k + shift + 1)
        for (start, stop), shift in zip((rows, cols), divmod(place, k), strict=True)
    ]
    read = Region((n, spatial[0], spatial[1], (first, first + channels[1] - channels[0])))
    return RestrictedOperator(Slice((0, 0, 0, 0), out.shape, (1, k, k, 1)), (read,))


def depth_to_space(op: DepthToSpace, out: Region, shapes: Sequence[Shape]) -> Answer:
    """Computes whole blocks, and keeps the region."""
    n, rows, cols, channels = out.bounds
    k, depth = op.block, shapes[0][3]
    if channels != (0, depth // k**2) and not op.channel_major:
        reason = "the channels of each block lie apart in the input"
        return WidenedRegion(out.with_axis(3, (0, depth // k**2)), 3, reason)
    spatial = [(start // k, -(-stop // k)) for start, stop in (rows, cols)]
    read = Region((n, spatial[0], spatial[1], (channels[0] * k * k, channels[1] * k * k)))
    made = Region((n, *((a * k, b * k) for a, b in spatial), channels))
    return RestrictedOperator(op, (read,), None if made == out else out.moved([-start for start, _ in made.bounds]))


def pad(op: Pad, out: Region, shapes: Sequence[Shape]) -> Answer:
    """Pads what is read. Mirrored pads are tried, and compared with the whole."""
    axes = [_padded_axis(op, axis, bound, shapes[0][axis]) for axis, bound in enumerate(out.bounds)]
    made = replace(op, before=tuple(before for _, before, _, _ in axes), after=tuple(a for _, _, a, _ in axes))
    keep = Region(tuple(kept for *_, kept in axes))
    read = Region(tuple(read for read, *_ in axes))
    return RestrictedOperator(made, (read,), None if keep == Region.whole(made.output_shape([read.shape])) else keep)


def _padded_axis(op: Pad, axis: int, out: Interval, size: int) -> tuple[Interval, int, int, Interval]:
    """The range read along an axis, the pads before and after it, and the range kept of the result."""
    before, after = op.before[axis], op.after[axis]
    if out == (0, size + before + after):
        return (0, size), before, after, out
    start, stop = out[0] - before, out[1] - before
    if op.mode is PadMode.CONSTANT:
        low, high = inside((start, stop), size)
        return (low, high), low - start, stop - high, (0, stop - start)
    wanted = mirrored(op.mode, np.arange(*out), size, before, after)
    low, high = int(wanted.min()), int(wanted.max()) + 1
    for read in ((low, high), (min(low, max(start, 0)), max(high, min(stop, size)))):
        pads = max(0, read[0] - start), max(0, stop - read[1])
        first = start - read[0] + pads[0]
        kept = (first, first + stop - start)
        made = mirrored(op.mode, np.arange(*kept), read[1] - read[0], *pads)
        if kept[1] <= read[1] - read[0] + sum(pads) and np.array_equal(made + read[0], wanted):
            return read, *pads, kept
    return (0, size), before, after, out


def reshape(op: Reshape, out: Region, shapes: Sequence[Shape]) -> Answer:
    """Axes form groups with the same elements in both shapes; in each group a run must be a box in both."""
    reads: list[Interval] = []
    bounds = list(out.bounds)
    for mine, theirs in _groups(op.shape, shapes[0]):
        box = out.bounds[mine.start : mine.stop]
        sizes, others = op.shape[mine.start : mine.stop], shapes[0][theirs.start : theirs.stop]
        if len(sizes) == len(others) == 1:
            reads.extend(box)
            continue
        read = box_around_run(run_of_box(box, sizes), others)
        again = box_around_run(run_of_box(read, others), sizes)
        if again != box:
            bounds[mine.start : mine.stop] = again
            axis = next(i for i, (a, b) in enumerate(zip(again, box, strict=True), mine.start) if a != b)
            reason = f"it is no box of the input's {others}"
            return WidenedRegion(Region(tuple(bounds)), axis, reason)
        reads.extend(read)
    return RestrictedOperator(Reshape(out.shape), (Region(tuple(reads)),))


def _groups(mine: Shape, theirs: Shape) -> list[tuple[range, range]]:
    """The shortest runs of axes of two shapes with equal numbers of elements."""
    found, i, j = [], 0, 0
    while i < len(mine) or j < len(theirs):
        a, b = i + 1, j + 1
        while a <= len(mine) and b <= len(theirs) and (left := prod(mine[i:a])) != (right := prod(theirs[j:b])):
            a, b = (a + 1, b) if left < right else (a, b + 1)
        a, b = min(a, len(mine)), min(b, len(theirs))
        found.append((range(i, a), range(j, b)))
        i, j = a, b
    return found
