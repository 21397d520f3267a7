"""Operators that move elements without computing: reshape, transpose, concat, slice, pad, gather."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import Any, ClassVar

import numpy as np

from ..region import Interval, Perm, Region, Shape, box_around_run, clip, inverse, pick, run_of_box
from ..tensor import Array
from .base import (
    Answer,
    Grain,
    Operator,
    RestrictedOperator,
    WidenedRegion,
    broadcast_needs,
    broadcast_shape,
    inside,
    normal_axis,
    require,
    require_positive,
    split,
)


@dataclass(frozen=True, slots=True)
class Reshape(Operator):
    """Inputs: x. The same elements in the same order, in another shape."""

    moves: ClassVar[bool] = True
    may_be_view: ClassVar[bool] = True
    shape: Shape

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        require(min(self.shape, default=1) >= 0, f"shape {self.shape} is negative")
        require(prod(self.shape) == prod(shapes[0]), f"cannot reshape {shapes[0]} to {self.shape}")
        return self.shape

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        """The smallest box of whole leading indices that covers the flat range of `out`."""
        if out.is_empty:
            return (Region(tuple((0, 0) for _ in shapes[0])),)
        if out == Region.whole(self.shape):
            return (Region.whole(shapes[0]),)
        return (Region(box_around_run(run_of_box(out.bounds, self.shape), shapes[0])),)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """Axes form groups with the same elements in both shapes; in each group a run must be a box in both."""
        reads: list[Interval] = []
        bounds = list(out.bounds)
        for mine, theirs in _groups(self.shape, shapes[0]):
            box = out.bounds[mine.start : mine.stop]
            sizes, others = self.shape[mine.start : mine.stop], shapes[0][theirs.start : theirs.stop]
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


@dataclass(frozen=True, slots=True)
class Transpose(Operator):
    """Inputs: x. Axis i of the output is axis perm[i] of x."""

    grain: ClassVar[Grain] = Grain.ELEMENT
    moves: ClassVar[bool] = True
    perm: tuple[int, ...]

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        require(sorted(self.perm) == list(range(len(shapes[0]))), f"perm {self.perm} does not fit {shapes[0]}")
        return tuple(shapes[0][axis] for axis in self.perm)

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        bounds = dict(zip(self.perm, out.bounds, strict=True))
        return (Region(tuple(bounds[axis] for axis in range(len(self.perm)))),)


@dataclass(frozen=True, slots=True)
class Concat(Operator):
    """Inputs: any number, with equal shapes except along `axis`."""

    grain: ClassVar[Grain] = Grain.PIXEL
    moves: ClassVar[bool] = True
    may_be_view: ClassVar[bool] = True
    axis: int

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        axis = normal_axis(self.axis, len(shapes[0]))
        for shape in shapes:
            alike = len(shape) == len(shapes[0]) and shape[:axis] == shapes[0][:axis]
            if not alike or shape[axis + 1 :] != shapes[0][axis + 1 :]:
                raise ValueError(f"cannot join {shapes[0]} and {shape} along {axis}")
        return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        axis = normal_axis(self.axis, len(shapes[0]))
        start, stop = out.bounds[axis]
        regions, begin = [], 0
        for shape in shapes:
            regions.append(out.with_axis(axis, clip((start - begin, stop - begin), shape[axis])))
            begin += shape[axis]
        return tuple(regions)

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm]:
        return Concat(perm[self.axis % len(perm)]), perm

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """A concat of the inputs that the region reads; the others are dropped."""
        reads = [None if region.is_empty else region for region in self.needs(out, shapes)]
        return RestrictedOperator(self, tuple(reads))


@dataclass(frozen=True, slots=True)
class Slice(Operator):
    """Inputs: x. For each axis: first index, size of the output, step (may be negative). A split is several slices."""

    grain: ClassVar[Grain] = Grain.ELEMENT
    moves: ClassVar[bool] = True
    may_be_view: ClassVar[bool] = True
    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[int, ...]

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        for start, size, step, extent in zip(self.starts, self.sizes, self.steps, shapes[0], strict=True):
            ends = (start, start + (size - 1) * step)
            require(size > 0 and step != 0, f"slice of {size} elements with step {step}")
            require(min(ends) >= 0 and max(ends) < extent, f"slice {self} leaves the tensor {shapes[0]}")
        return self.sizes

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        bounds = []
        for (a, b), start, step in zip(out.bounds, self.starts, self.steps, strict=True):
            ends = (start + a * step, start + (b - 1) * step)
            bounds.append((min(ends), max(ends) + 1) if b > a else (0, 0))
        return (Region(tuple(bounds)),)

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm]:
        held = inverse(perm)
        return Slice(pick(self.starts, held), pick(self.sizes, held), pick(self.steps, held)), perm

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """A slice of the range that is read, which begins at the first or the last element of the region."""
        (read,) = self.needs(out, shapes)
        starts = tuple(0 if step > 0 else size - 1 for step, size in zip(self.steps, read.shape, strict=True))
        return RestrictedOperator(Slice(starts, out.shape, self.steps), (read,))


class PadMode(Enum):
    CONSTANT = "constant"
    REFLECT = "reflect"  # without repeating the border
    SYMMETRIC = "symmetric"  # repeating the border
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class Pad(Operator):
    """Inputs: x. `value` is a real number; a quantised tensor stores it quantised. Negative pads crop."""

    grain: ClassVar[Grain] = Grain.ELEMENT
    before: tuple[int, ...]
    after: tuple[int, ...]
    mode: PadMode = PadMode.CONSTANT
    value: float = 0.0

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        sizes = tuple(s + a + b for s, a, b in zip(shapes[0], self.before, self.after, strict=True))
        require(min(sizes, default=1) > 0, f"pads {self.before}, {self.after} leave nothing of {shapes[0]}")
        return sizes

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        if self.mode is not PadMode.CONSTANT:
            padded = [a > 0 or b > 0 for a, b in zip(self.before, self.after, strict=True)]
            moved = out.moved([-a for a in self.before]).clipped(shapes[0])
            return (Region(tuple((0, s) if p else m for p, s, m in zip(padded, shapes[0], moved.bounds, strict=True))),)
        return (out.moved([-a for a in self.before]).clipped(shapes[0]),)

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm]:
        held = inverse(perm)
        return replace(self, before=pick(self.before, held), after=pick(self.after, held)), perm

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """Pads what is read. Mirrored pads are tried, and compared with the whole."""
        axes = [_padded_axis(self, axis, bound, shapes[0][axis]) for axis, bound in enumerate(out.bounds)]
        made = replace(self, before=tuple(before for _, before, _, _ in axes), after=tuple(a for _, _, a, _ in axes))
        keep = Region(tuple(kept for *_, kept in axes))
        read = Region(tuple(read for read, *_ in axes))
        return RestrictedOperator(
            made, (read,), None if keep == Region.whole(made.output_shape([read.shape])) else keep
        )


@dataclass(frozen=True, slots=True)
class Expand(Operator):
    """Inputs: x, repeated along axes of size 1 until it has `shape`."""

    grain: ClassVar[Grain] = Grain.ELEMENT
    moves: ClassVar[bool] = True
    shape: Shape

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        require(len(self.shape) >= len(shapes[0]), f"cannot expand {shapes[0]} to {self.shape}")
        return broadcast_shape((shapes[0], self.shape))

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        return (broadcast_needs(out, shapes[0]),)

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm] | None:
        if len(self.shape) > len(perm):
            return None
        padded = (1,) * (len(perm) - len(self.shape)) + self.shape
        return Expand(pick(padded, inverse(perm))), perm

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        return RestrictedOperator(Expand(out.shape), self.needs(out, shapes))


@dataclass(frozen=True, slots=True)
class Tile(Operator):
    """Inputs: x, repeated `repeats` times along each axis."""

    moves: ClassVar[bool] = True
    repeats: tuple[int, ...]

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        require_positive("repeats", self.repeats)
        return tuple(size * n for size, n in zip(shapes[0], self.repeats, strict=True))

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm]:
        return Tile(pick(self.repeats, inverse(perm))), perm

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
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


@dataclass(frozen=True, slots=True)
class SpaceToDepth(Operator):
    """Inputs: x (N, H, W, C). Blocks of pixels become channels, ordered (row, column, channel)."""

    moves: ClassVar[bool] = True
    block: int

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        n, h, w, c = shapes[0]
        require_positive("block", (self.block,))
        require(h % self.block == 0 and w % self.block == 0, f"{h}x{w} does not divide into blocks of {self.block}")
        return (n, h // self.block, w // self.block, c * self.block**2)

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        n, rows, cols, _ = out.bounds
        k = self.block
        return (Region((n, (rows[0] * k, rows[1] * k), (cols[0] * k, cols[1] * k), (0, shapes[0][3]))),)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """All channels, or those of one position in the block, which is a strided slice."""
        n, rows, cols, channels = out.bounds
        k, depth = self.block, shapes[0][3]
        if channels == (0, k * k * depth):
            return RestrictedOperator(self, self.needs(out, shapes))
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


@dataclass(frozen=True, slots=True)
class DepthToSpace(Operator):
    """Inputs: x (N, H, W, C). Channels become blocks of pixels; channels ordered (row, column, channel), or
    (channel, row, column) with `channel_major` (ONNX's CRD, PixelShuffle)."""

    moves: ClassVar[bool] = True
    block: int
    channel_major: bool = False

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        n, h, w, c = shapes[0]
        require_positive("block", (self.block,))
        require(c % self.block**2 == 0, f"{c} channels do not divide into blocks of {self.block}x{self.block}")
        return (n, h * self.block, w * self.block, c // self.block**2)

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        n, rows, cols, _ = out.bounds
        k = self.block
        spatial = [(a // k, -(-b // k)) for a, b in (rows, cols)]
        return (Region((n, spatial[0], spatial[1], (0, shapes[0][3]))),)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """Computes whole blocks, and keeps the region."""
        n, rows, cols, channels = out.bounds
        k, depth = self.block, shapes[0][3]
        if channels != (0, depth // k**2) and not self.channel_major:
            reason = "the channels of each block lie apart in the input"
            return WidenedRegion(out.with_axis(3, (0, depth // k**2)), 3, reason)
        spatial = [(start // k, -(-stop // k)) for start, stop in (rows, cols)]
        read = Region((n, spatial[0], spatial[1], (channels[0] * k * k, channels[1] * k * k)))
        made = Region((n, *((a * k, b * k) for a, b in spatial), channels))
        return RestrictedOperator(
            self, (read,), None if made == out else out.moved([-start for start, _ in made.bounds])
        )


@dataclass(frozen=True, slots=True)
class Gather(Operator):
    """Inputs: data, indices. Indices replace `axis` (an embedding is axis 0); negative ones count from the end."""

    moves: ClassVar[bool] = True
    axis: int = 0

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, indices = shapes
        axis = normal_axis(self.axis, len(data))
        return (*data[:axis], *indices, *data[axis + 1 :])

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        data, indices = shapes
        axis = normal_axis(self.axis, len(data))
        before, picked = out.bounds[:axis], out.bounds[axis : axis + len(indices)]
        after = out.bounds[axis + len(indices) :]
        return (Region((*before, (0, data[axis]), *after)), Region(picked))

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm] | None:
        return (Gather(perm[self.axis % len(perm)]), perm) if len(shapes[1]) == 1 else None


@dataclass(frozen=True, slots=True)
class GatherElements(Operator):
    """Inputs: data, indices, of equal rank. Each output is data at its own position, with the index along `axis`."""

    moves: ClassVar[bool] = True
    axis: int = 0

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, indices = shapes
        axis = normal_axis(self.axis, len(data))
        fits = len(data) == len(indices) and all(
            i == axis or n <= m for i, (m, n) in enumerate(zip(data, indices, strict=True))
        )
        require(fits, f"indices {indices} do not fit {data}")
        return indices

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        axis = normal_axis(self.axis, len(shapes[0]))
        return (out.with_axis(axis, (0, shapes[0][axis])), out)

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm]:
        return replace(self, axis=perm[self.axis % len(perm)]), perm


def mirrored(mode: PadMode, index: Array, size: int, before: int, after: int) -> Array:
    """Which element of an axis each output index shows. Negative pads crop first."""
    low, size = max(0, -before), size + min(0, before) + min(0, after)
    index = index - max(0, before)
    match mode:
        case PadMode.EDGE:
            index = np.clip(index, 0, size - 1)
        case PadMode.REFLECT:
            period = max(1, 2 * (size - 1))
            index = np.minimum(index % period, period - index % period) if size > 1 else index * 0
        case _:
            index = np.minimum(index % (2 * size), 2 * size - 1 - index % (2 * size))
    return index + low


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


def _groups(mine: Shape, theirs: Shape) -> list[tuple[range, range]]:
    """The shortest runs of axes of two shapes with equal numbers of elements."""
    groups, i, j = [], 0, 0
    while i < len(mine) or j < len(theirs):
        a, b = i + 1, j + 1
        while a <= len(mine) and b <= len(theirs) and (left := prod(mine[i:a])) != (right := prod(theirs[j:b])):
            a, b = (a + 1, b) if left < right else (a, b + 1)
        a, b = min(a, len(mine)), min(b, len(theirs))
        groups.append((range(i, a), range(j, b)))
        i, j = a, b
    return groups
