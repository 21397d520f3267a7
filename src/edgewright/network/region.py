"""A region: a box inside a tensor, one half-open interval per axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

Shape = tuple[int, ...]
Interval = tuple[int, int]  # half-open; empty when stop <= start
Perm = tuple[int, ...]  # a tensor t held as h is t = h.transpose(perm): axis i of t is axis perm[i] of h
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Region:
    """A box: for each axis the half-open interval of its indices.

    >>> Region.whole((1, 4, 4, 3)).with_axis(1, (0, 2))
    Region(0:1, 0:2, 0:4, 0:3)
    """

    bounds: tuple[Interval, ...]

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Region:
        return cls(tuple((0, size) for size in shape))

    @property
    def shape(self) -> Shape:
        # A list rather than function calls: judges and planners ask for millions of shapes.
        return tuple([stop - start if stop > start else 0 for start, stop in self.bounds])

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def is_empty(self) -> bool:
        for start, stop in self.bounds:  # noqa: SIM110
            if stop <= start:
                return True
        return False

    @property
    def slices(self) -> tuple[slice, ...]:
        """The region as an index for a numpy array."""
        return tuple([slice(start, stop if stop > start else start) for start, stop in self.bounds])

    def with_axis(self, axis: int, interval: Interval) -> Region:
        bounds = list(self.bounds)
        bounds[axis] = interval
        return Region(tuple(bounds))

    def moved(self, by: Sequence[int]) -> Region:
        return Region(tuple([(start + d, stop + d) for (start, stop), d in zip(self.bounds, by, strict=True)]))

    def clipped(self, shape: Sequence[int]) -> Region:
        """The part of the region inside a tensor of this shape."""
        return Region(tuple([clip(interval, size) for interval, size in zip(self.bounds, shape, strict=True)]))

    def __contains__(self, other: Region) -> bool:
        return other.is_empty or all(
            a <= c and d <= b for (a, b), (c, d) in zip(self.bounds, other.bounds, strict=True)
        )

    def __and__(self, other: Region) -> Region:
        pairs = zip(self.bounds, other.bounds, strict=True)
        return Region(tuple([(max(a, c), max(a, c, min(b, d))) for (a, b), (c, d) in pairs]))

    def __or__(self, other: Region) -> Region:
        """The bounding box of both."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        pairs = zip(self.bounds, other.bounds, strict=True)
        return Region(tuple([(min(a, c), max(b, d)) for (a, b), (c, d) in pairs]))

    def __repr__(self) -> str:
        return f"Region({', '.join(f'{start}:{stop}' for start, stop in self.bounds)})"


def clip(interval: Interval, size: int) -> Interval:
    """The interval clipped to 0..size; an interval outside becomes an empty one at the border."""
    start = min(max(interval[0], 0), size)
    return start, max(start, min(interval[1], size))


def window(out: Interval, kernel: int, stride: int, dilation: int, pad: int, size: int) -> Interval:
    """The interval that a sliding window reads along one axis to produce `out` (M 2.1; padding clipped).

    >>> window((0, 1), kernel=3, stride=1, dilation=1, pad=1, size=8)
    (0, 2)
    """
    start, stop = out  # inlined `span`, because planners call this very often
    if stop <= start:
        return (0, 0)
    return clip((start * stride - pad, (stop - 1) * stride - pad + (kernel - 1) * dilation + 1), size)


def span(out: Interval, kernel: int, stride: int, dilation: int, pad: int) -> Interval:
    """The interval that the windows of `out` cover along one axis, including padding (may start below 0)."""
    start, stop = out
    return start * stride - pad, (stop - 1) * stride - pad + (kernel - 1) * dilation + 1


def window_output(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]) -> int:
    """Output size of one axis (Dumoulin & Visin 2016, Relationship 6, with dilation)."""
    return (size + pads[0] + pads[1] - (kernel - 1) * dilation - 1) // stride + 1


def element_steps(shape: Shape) -> list[int]:
    """The stride in elements along each axis, in row-major order."""
    return [prod(shape[i + 1 :]) for i in range(len(shape))]


def run_of_box(box: Sequence[Interval], shape: Shape) -> Interval:
    """The shortest run of consecutive elements that contains a box."""
    first, last, step = 0, 0, 1
    for (start, stop), size in zip(reversed(box), reversed(shape), strict=True):
        first += start * step
        last += (stop - 1) * step
        step *= size
    return first, last + 1


def box_around_run(run: Interval, shape: Shape) -> tuple[Interval, ...]:
    """The smallest box around a run that is itself a run: single indices, a range, and whole axes."""
    first, last, step = run[0], run[1] - 1, prod(shape)
    bounds: list[Interval] = []
    for i, size in enumerate(shape):
        step //= size
        a, b = first // step, last // step
        bounds.append((a, b + 1))
        if a != b:
            return (*bounds, *((0, other) for other in shape[i + 1 :]))
        first, last = first - a * step, last - b * step
    return tuple(bounds)


def inverse(perm: Perm) -> Perm:
    """The transposition that undoes it."""
    back = [0] * len(perm)
    for i, axis in enumerate(perm):
        back[axis] = i
    return tuple(back)


def pick(values: Sequence[T], perm: Perm) -> tuple[T, ...]:
    return tuple(values[i] for i in perm)
