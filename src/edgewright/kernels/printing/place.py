"""Where tensors lie, as C sees it: a pointer, strides in elements, perhaps a rolling window of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...network import Tensor
from .constants import C_TYPES
from .source import Expr, moved, offset


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor in memory. Element (i, j, ...) lies at pointer[i * strides[0] + j * strides[1] + ...]."""

    tensor: Tensor
    pointer: str  # C expression of type `ctype *` (const for constants and inputs) to element (0, ..., 0)
    strides: tuple[int, ...]  # in elements
    window: tuple[int, int] | None = None  # (axis, n): index i along the axis is found at i % n
    memory: str | None = None  # the memory it lies in; None for a constant
    first: int = 0  # bytes of that memory between which the tensor lies
    last: int = 0

    @property
    def ctype(self) -> str:
        return C_TYPES[self.tensor.dtype.value]

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

    def meets(self, other: Place) -> bool:
        """Whether the two may have bytes in common, so that a kernel must keep the order its grain promises."""
        return (
            self.memory is not None
            and self.memory == other.memory
            and self.first < other.last
            and other.first < self.last
        )

    def offset(self, at: Sequence[Expr]) -> Expr:
        """Elements from `pointer` to the element at these indices."""
        return offset(at, self.strides, self.window)

    def address(self, at: Sequence[Expr]) -> str:
        """C of a pointer to the element at these indices."""
        by = self.offset(at)
        return self.pointer if by == 0 else f"({moved(self.pointer, by)})"

    def spread(self, rank: int) -> Place:
        """The same with `rank` axes, broadcast as numpy does: axes in front, and of size 1, do not move."""
        lead = rank - len(self.strides)
        strides = tuple(
            0 if size == 1 else stride for size, stride in zip(self.tensor.shape, self.strides, strict=True)
        )
        window = (self.window[0] + lead, self.window[1]) if self.window else None
        return Place(self.tensor, self.pointer, (0,) * lead + strides, window, self.memory, self.first, self.last)
