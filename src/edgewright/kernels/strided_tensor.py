"""The position of a tensor in memory, independent of C: strides, perhaps a rolling window of rows, and a byte range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from ..network import Tensor

Route = Sequence[tuple[int | None, int, int]]  # for each axis of a place: (axis of the nest, start, step)


@dataclass(frozen=True, slots=True)
class StridedTensor:
    """A tensor in memory. Element (i, j, ...) lies i * strides[0] + j * strides[1] + ... elements behind the first."""

    tensor: Tensor
    strides: tuple[int, ...]  # in elements
    window: tuple[int, int] | None = None  # (axis, n): index i along the axis is found at i % n
    memory: str | None = None  # the memory it lies in; None for a constant
    first: int = 0  # bytes of that memory between which the tensor lies
    last: int = 0

    @property
    def is_constant(self) -> bool:
        return self.memory is None

    @property
    def is_dense(self) -> bool:
        """Whether elements follow each other without gaps, in the order of the tensor."""
        step = 1
        for size, stride in zip(reversed(self.tensor.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step *= size
        return self.window is None

    @property
    def lies_by_pixels(self) -> bool:
        """Whether the elements of a pixel lie side by side, and only rows may be kept in a rolling buffer."""
        return self.strides[-1] == 1 and (self.window is None or self.window[0] == len(self.strides) - 3)

    def meets(self, other: StridedTensor) -> bool:
        """Whether the two may have bytes in common, so that a kernel must keep the order its grain promises."""
        return (
            self.memory is not None
            and self.memory == other.memory
            and self.first < other.last
            and other.first < self.last
        )

    def broadcast(self, rank: int) -> Self:
        """The same with `rank` axes, broadcast as numpy does: axes in front, and of size 1, do not move."""
        lead = rank - len(self.strides)
        strides = tuple(
            0 if size == 1 else stride for size, stride in zip(self.tensor.shape, self.strides, strict=True)
        )
        window = (self.window[0] + lead, self.window[1]) if self.window else None
        return replace(self, strides=(0,) * lead + strides, window=window)

    def along(self, route: Route, rank: int) -> tuple[Self, int] | None:
        """The same as a nest of `rank` axes sees it, one stride each, and the element at which it begins.

        None where a rolling window bends the route.
        """
        strides, start, window = [0] * rank, 0, None
        for axis, (loop, first, step) in enumerate(route):
            if self.window and self.window[0] == axis:
                if first or step != 1 or loop is None or strides[loop]:
                    return None
                window = (loop, self.window[1])
            start += first * self.strides[axis]
            if loop is not None:
                strides[loop] += step * self.strides[axis]
        shape = tuple(2 if stride else 1 for stride in strides)  # so that no axis with a stride counts as broadcast
        seen = replace(self, tensor=replace(self.tensor, shape=shape), strides=tuple(strides), window=window)
        return seen, start


def dense_strides(tensor: Tensor) -> tuple[int, ...]:
    """In elements, of a tensor whose elements follow each other without gaps."""
    return tuple(stride // tensor.dtype.bytes for stride in tensor.strides)
