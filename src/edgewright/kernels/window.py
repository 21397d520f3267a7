"""Sliding windows over images along one axis, as kernels traverse them."""

from __future__ import annotations

from dataclasses import dataclass

from ..network import Interval
from ..network.operators import AvgPool2d, Conv2d, MaxPool2d


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """A window that slides along one axis of an image."""

    kernel: int
    stride: int
    dilation: int
    pad: int
    size: int  # of the image

    def stays_inside(self, outputs: int) -> bool:
        """Whether every window of so many outputs lies within the image."""
        return self.outside((0, outputs)) == (0, 0)

    def outside(self, out: Interval) -> tuple[int, int]:
        """How many of these outputs have windows that begin before the image, and how many end behind it."""
        low, high = out
        first = -(-self.pad // self.stride)  # the first output whose window begins inside
        last = (self.size - 1 + self.pad - (self.kernel - 1) * self.dilation) // self.stride  # that ends inside
        before = min(max(first - low, 0), high - low)
        return before, min(max(high - 1 - last, 0), high - low - before)

    def taps(self, out: Interval) -> int:
        """Taps that meet the image, over all these outputs."""
        before, after = self.outside(out)
        edges = (*range(out[0], out[0] + before), *range(out[1] - after, out[1]))
        return self.kernel * (out[1] - out[0] - before - after) + sum(map(self._met, edges))

    def covered(self, outputs: int) -> int:
        """Indices of the image that so many neighbouring outputs read."""
        return min(self.size, (outputs - 1) * self.stride + (self.kernel - 1) * self.dilation + 1)

    def _met(self, index: int) -> int:
        start = index * self.stride - self.pad
        first = max(0, -(start // self.dilation))
        return max(0, min(self.kernel, -(-(self.size - start) // self.dilation)) - first)


def axes(
    op: Conv2d | MaxPool2d | AvgPool2d, kernel: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[WindowAxis, WindowAxis]:
    """The window of an operator along rows and columns."""
    rows, columns = (WindowAxis(kernel[i], op.stride[i], op.dilation[i], op.pads[i], shape[1 + i]) for i in range(2))
    return rows, columns


def round_up(value: int, multiple: int) -> int:
    """The value, rounded up to a multiple.

    >>> round_up(5, 4)
    8
    """
    return -(-value // multiple) * multiple
