"""Operators that move elements without computing: reshape, transpose, concat, slice, pad, gather, resize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import floor, prod
from typing import ClassVar

from ..region import Region, Shape, box_around_run, clip, run_of_box
from .base import Grain, Operator, broadcast_needs, broadcast_shape, normal_axis, require, require_positive


@dataclass(frozen=True, slots=True)
class Reshape(Operator):
    """Inputs: x. The same elements in the same order, in another shape."""

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


@dataclass(frozen=True, slots=True)
class Transpose(Operator):
    """Inputs: x. Axis i of the output is axis perm[i] of x."""

    grain: ClassVar[Grain] = Grain.ELEMENT
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


@dataclass(frozen=True, slots=True)
class Slice(Operator):
    """Inputs: x. For each axis: first index, size of the output, step (may be negative). A split is several slices."""

    grain: ClassVar[Grain] = Grain.ELEMENT
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


@dataclass(frozen=True, slots=True)
class Expand(Operator):
    """Inputs: x, repeated along axes of size 1 until it has `shape`."""

    grain: ClassVar[Grain] = Grain.ELEMENT
    shape: Shape

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        require(len(self.shape) >= len(shapes[0]), f"cannot expand {shapes[0]} to {self.shape}")
        return broadcast_shape((shapes[0], self.shape))

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        return (broadcast_needs(out, shapes[0]),)


@dataclass(frozen=True, slots=True)
class Tile(Operator):
    """Inputs: x, repeated `repeats` times along each axis."""

    repeats: tuple[int, ...]

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        require_positive("repeats", self.repeats)
        return tuple(size * n for size, n in zip(shapes[0], self.repeats, strict=True))


@dataclass(frozen=True, slots=True)
class SpaceToDepth(Operator):
    """Inputs: x (N, H, W, C). Blocks of pixels become channels, ordered (row, column, channel)."""

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


@dataclass(frozen=True, slots=True)
class DepthToSpace(Operator):
    """Inputs: x (N, H, W, C). Channels become blocks of pixels; channels ordered (row, column, channel), or
    (channel, row, column) with `channel_major` (ONNX's CRD, PixelShuffle)."""

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


@dataclass(frozen=True, slots=True)
class Gather(Operator):
    """Inputs: data, indices. Indices replace `axis` (an embedding is axis 0); negative ones count from the end."""

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


@dataclass(frozen=True, slots=True)
class GatherElements(Operator):
    """Inputs: data, indices, of equal rank. Each output is data at its own position, with the index along `axis`."""

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


class ResizeMode(Enum):
    NEAREST = "nearest"
    LINEAR = "linear"


class Coordinates(Enum):
    """The mapping of an output index to a position in the input."""

    HALF_PIXEL = "half_pixel"
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    ASYMMETRIC = "asymmetric"
    ALIGN_CORNERS = "align_corners"


class NearestMode(Enum):
    """The neighbour that a nearest resize takes."""

    FLOOR = "floor"
    CEIL = "ceil"
    HALF_DOWN = "round_prefer_floor"
    HALF_UP = "round_prefer_ceil"


MOST_RESIZED = 1 << 22  # rows or columns of a resized image: kernels compute the origin of each


@dataclass(frozen=True, slots=True)
class Resize(Operator):
    """Inputs: x (N, H, W, C), scaled to `size` rows and columns; scale = output / input unless the file gives one."""

    grain: ClassVar[Grain] = Grain.PIXEL
    size: tuple[int, int]
    mode: ResizeMode = ResizeMode.NEAREST
    coordinates: Coordinates = Coordinates.HALF_PIXEL
    rounding: NearestMode = NearestMode.HALF_DOWN
    scale: tuple[float, float] | None = None
    slack: float = 1e-4  # how far a kernel's arithmetic may move a position, in input pixels
    # Positions are index * (input / output), as in TFLite; ONNX divides by output / input.
    by_product: bool = False

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        require(len(shapes[0]) == 4, f"expected an image of rank 4 (NHWC), got shape {shapes[0]}")
        require_positive("size and scale", (*self.size, *(self.scale or ())))
        longest = max(*self.size, *shapes[0][1:3])
        require(longest <= MOST_RESIZED, f"{longest} rows or columns, more than the {MOST_RESIZED} that are handled")
        return (shapes[0][0], *self.size, shapes[0][3])

    def place(self, axis: int, index: int, extent: int) -> float:
        """The position of output `index` along rows (0) or columns (1) in an input of this extent."""
        size = self.size[axis]
        ratio = self.scale[axis] if self.scale else size / extent
        match self.coordinates:
            case Coordinates.ASYMMETRIC:
                return index / ratio
            case Coordinates.ALIGN_CORNERS:
                return index * (extent - 1) / (size - 1) if size > 1 else 0.0
            case Coordinates.PYTORCH_HALF_PIXEL if size == 1:
                return 0.0
            case _:
                return (index + 0.5) / ratio - 0.5

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        """One neighbour on either side of each position: enough for every mode and rounding."""
        x = shapes[0]
        spatial = []
        for axis in range(2):
            start, stop = out.bounds[1 + axis]
            if stop <= start:
                spatial.append((0, 0))
                continue
            extent = x[1 + axis]
            slack = max(self.slack, extent * 4e-7)  # float32 positions in a large image are less exact
            first = min(max(floor(self.place(axis, start, extent) - slack), 0), extent - 1)
            last = min(max(floor(self.place(axis, stop - 1, extent) + slack) + 1, 0), extent - 1)
            spatial.append((first, last + 1))
        return (Region((out.bounds[0], spatial[0], spatial[1], out.bounds[3])),)
