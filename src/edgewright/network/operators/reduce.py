"""Reductions along axes, arg-max, top-k and non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar

from ..region import Perm, Region, Shape
from .base import Answer, Operator, RestrictedOperator, normal_axis, require


class ReduceKind(Enum):
    MEAN = "mean"
    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    L1 = "l1"
    L2 = "l2"
    SUM_SQUARE = "sum_square"


@dataclass(frozen=True, slots=True)
class _AlongAxes(Operator):
    axes: tuple[int, ...]
    keep: bool = True  # keep reduced axes with size 1

    def _reduced(self, rank: int) -> set[int]:
        return {normal_axis(axis, rank) for axis in self.axes}

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        x = shapes[0]
        reduced = self._reduced(len(x))
        if self.keep:
            return tuple(1 if i in reduced else size for i, size in enumerate(x))
        return tuple(size for i, size in enumerate(x) if i not in reduced)

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        x = shapes[0]
        reduced = self._reduced(len(x))
        if self.keep:
            bounds = [(0, size) if i in reduced else out.bounds[i] for i, size in enumerate(x)]
        else:
            kept = iter(out.bounds)
            bounds = [(0, size) if i in reduced else next(kept) for i, size in enumerate(x)]
        return (Region(tuple(bounds)),)

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm]:
        gone = self._reduced(len(perm))
        turned = replace(self, axes=tuple(sorted(perm[axis] for axis in gone)))
        if self.keep:
            return turned, perm
        left = [perm[axis] for axis in range(len(perm)) if axis not in gone]
        order = sorted(left)
        return turned, tuple(order.index(axis) for axis in left)


@dataclass(frozen=True, slots=True)
class Reduce(_AlongAxes):
    """Inputs: x. Global average pooling is Reduce((1, 2), kind=MEAN)."""

    kind: ReduceKind = ReduceKind.MEAN


@dataclass(frozen=True, slots=True)
class ArgMax(_AlongAxes):
    """Inputs: x; one axis. `last`: the last of equal ones; `least`: arg-min."""

    order_only: ClassVar[bool] = True
    last: bool = False
    least: bool = False


@dataclass(frozen=True, slots=True)
class TopK(Operator):
    """Inputs: x. Indices of the `count` largest elements along `axis`, the largest first; of equal ones the first comes
    first. `least`: of the smallest."""

    order_only: ClassVar[bool] = True
    axis: int
    count: int
    least: bool = False

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        axis = normal_axis(self.axis, len(shapes[0]))
        require(1 <= self.count <= shapes[0][axis], f"{self.count} of {shapes[0][axis]} elements are asked for")
        return (*shapes[0][:axis], self.count, *shapes[0][axis + 1 :])

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        axis = normal_axis(self.axis, len(shapes[0]))
        return (out.with_axis(axis, (0, shapes[0][axis])),)

    def reordered(self, perm: Perm, shapes: Sequence[Shape]) -> tuple[Any, Perm]:
        return replace(self, axis=perm[self.axis % len(perm)]), perm

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """Finds the top elements up to the last one of the region, and keeps those of the region."""
        axis = normal_axis(self.axis, len(shapes[0]))
        start, stop = out.bounds[axis]
        kept = Region.whole(out.shape).with_axis(axis, (start, stop)) if start else None
        return RestrictedOperator(replace(self, count=stop), self.needs(out, shapes), kept)


@dataclass(frozen=True, slots=True)
class NonMaxSuppression(Operator):
    """Inputs: boxes (N, 4: y and x of two corners), scores (N). Indices of `count` boxes, the best first, then -1.

    Only boxes with scores of at least `score_threshold` count; a box whose intersection over union with a better one
    exceeds `iou_threshold` is dropped. Of equal scores the first comes first.
    """

    count: int
    score_threshold: float
    iou_threshold: float

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        boxes, scores = shapes
        require(boxes == (*scores, 4) and len(scores) == 1, f"boxes {boxes} and scores {scores} do not fit")
        require(self.count >= 1, f"{self.count} boxes are asked for")
        return (self.count,)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        return self._restrict_lines(out, shapes, 0, "each box depends on all better ones")
