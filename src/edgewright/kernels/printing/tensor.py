"""Tensors as C sees them: a pointer to the first element, and where the others lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..strided_tensor import StridedTensor
from .constants import C_TYPES
from .source import Expr, moved, offset


@dataclass(frozen=True, slots=True)
class CTensor(StridedTensor):
    """A tensor in memory. Element (i, j, ...) lies at pointer[i * strides[0] + j * strides[1] + ...]."""

    pointer: str = ""  # C expression of type `ctype *` (const for constants and inputs) to element (0, ..., 0)

    @property
    def ctype(self) -> str:
        return C_TYPES[self.tensor.dtype.value]

    def offset(self, at: Sequence[Expr]) -> Expr:
        """Elements from `pointer` to the element at these indices."""
        return offset(at, self.strides, self.window)

    def address(self, at: Sequence[Expr]) -> str:
        """C of a pointer to the element at these indices."""
        by = self.offset(at)
        return self.pointer if by == 0 else f"({moved(self.pointer, by)})"
