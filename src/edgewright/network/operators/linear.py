"""Matrix products: fully connected layers and MatMul of two activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from ..region import Region, Shape
from .base import Grain, Operator, broadcast_needs, broadcast_shape, require
from .elementwise import Activation


@dataclass(frozen=True, slots=True)
class Dense(Operator):
    """Inputs: x (..., K), w (O, axes that multiply to K), optional b (O).

    Weights may keep several axes (an image flattened into K), so that reordering them is a view rather than a copy.
    """

    grain: ClassVar[Grain] = Grain.PIXEL
    activation: Activation | None = None

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        x, w = shapes[0], shapes[1]
        require(len(x) >= 1 and len(w) >= 2, f"cannot multiply {x} with weights {w}")
        require(x[-1] == prod(w[1:]), f"{x[-1]} features do not match weights {w}")
        require(len(shapes) < 3 or shapes[2] == (w[0],), f"bias {shapes[-1]} does not match weights {w}")
        return (*x[:-1], w[0])

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        x, w = shapes[0], shapes[1]
        channels = out.bounds[-1]
        region = Region((*out.bounds[:-1], (0, x[-1])))
        return (region, Region.whole(w).with_axis(0, channels), *(Region((channels,)) for _ in shapes[2:]))

    def macs(self, out: Region, shapes: Sequence[Shape]) -> int:
        return out.size * shapes[0][-1]


@dataclass(frozen=True, slots=True)
class MatMul(Operator):
    """Inputs: a (..., M, K), b (..., K, N), both computed; leading axes broadcast."""

    grain: ClassVar[Grain] = Grain.PIXEL
    transpose_a: bool = False
    transpose_b: bool = False

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        a, b = shapes
        require(len(a) >= 2 and len(b) >= 2, f"MatMul needs rank 2 or more, got {a} and {b}")
        (m, k), (k2, n) = self._matrix(a, self.transpose_a), self._matrix(b, self.transpose_b)
        require(k == k2, f"inner sizes differ: {a} and {b}")
        return (*broadcast_shape((a[:-2], b[:-2])), m, n)

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        a, b = shapes
        k = self._matrix(a, self.transpose_a)[1]
        batch = Region(out.bounds[:-2])
        rows, cols = out.bounds[-2:]
        left = ((0, k), rows) if self.transpose_a else (rows, (0, k))
        right = (cols, (0, k)) if self.transpose_b else ((0, k), cols)
        return (
            Region((*broadcast_needs(batch, a[:-2]).bounds, *left)),
            Region((*broadcast_needs(batch, b[:-2]).bounds, *right)),
        )

    def macs(self, out: Region, shapes: Sequence[Shape]) -> int:
        return out.size * self._matrix(shapes[0], self.transpose_a)[1]

    @staticmethod
    def _matrix(shape: Shape, transposed: bool) -> tuple[int, int]:
        return (shape[-1], shape[-2]) if transposed else (shape[-2], shape[-1])
