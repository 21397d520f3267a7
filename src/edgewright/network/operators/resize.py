"""Resize: an image scaled to another size, with the conventions of positions and rounding of both formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import floor
from typing import ClassVar

from ..region import Region, Shape
from .base import Grain, Operator, require, require_positive


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
