"""Operators whose elements depend on others along one axis: softmax, LRN, L2 normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..region import Perm, Region, Shape, clip
from .base import Answer, Grain, Operator, RestrictedOperator, normal_axis, require_positive


@dataclass(frozen=True, slots=True)
class _AlongAxis(Operator):
    """Inputs: x. Each output reads the whole line through it along `axis`."""

    grain: ClassVar[Grain] = Grain.PIXEL
    axis: int = -1

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        normal_axis(self.axis, len(shapes[0]))
        return shapes[0]

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        axis = normal_axis(self.axis, len(shapes[0]))
        return (out.with_axis(axis, (0, shapes[0][axis])),)

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm]:
        return replace(self, axis=perm[self.axis % len(perm)]), perm

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        axis = normal_axis(self.axis, len(shapes[0]))
        return self._restrict_lines(out, shapes, axis, "each element depends on all along it")


@dataclass(frozen=True, slots=True)
class Softmax(_AlongAxis):
    """Inputs: x. exp(beta * x), normalised to sum 1 along `axis`."""

    beta: float = 1.0


@dataclass(frozen=True, slots=True)
class LogSoftmax(_AlongAxis):
    """Inputs: x."""


@dataclass(frozen=True, slots=True)
class L2Normalize(_AlongAxis):
    """Inputs: x. x / max(norm, epsilon) along `axis`."""

    epsilon: float = 1e-12


@dataclass(frozen=True, slots=True)
class Lrn(Operator):
    """Inputs: x (..., C). Local response normalisation across `size` channels (Krizhevsky 2012).

    x / (bias + alpha / size * sum of squares) ** beta, the window spanning
    floor((size - 1) / 2) channels before and ceil((size - 1) / 2) after.
    """

    grain: ClassVar[Grain] = Grain.PIXEL
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        require_positive("size and rank", (self.size, len(shapes[0])))
        return shapes[0]

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        start, stop = out.bounds[-1]
        reach = clip((start - (self.size - 1) // 2, stop + self.size // 2), shapes[0][-1])
        return (out.with_axis(-1, reach),)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """Normalises all channels that the region's windows reach, and keeps those of the region."""
        (read,) = self.needs(out, shapes)
        if read == out:
            return RestrictedOperator(self, (read,))
        start = out.bounds[-1][0] - read.bounds[-1][0]
        kept = Region.whole(out.shape).with_axis(-1, (start, start + out.shape[-1]))
        return RestrictedOperator(self, (read,), kept)
