"""ONNX's names of operators that differ only in their kind, shared by readers and writers."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from .operators import BinaryKind, CompareKind, ReduceKind, UnaryKind

K = TypeVar("K", bound=Enum)


def _named(kinds: Iterable[K], prefix: str = "") -> dict[K, str]:
    """Names in capitals: sum_square is SumSquare."""
    return {kind: prefix + "".join(word.capitalize() for word in kind.value.split("_")) for kind in kinds}


_SPELLED = (
    UnaryKind.GELU,
    UnaryKind.GELU_TANH,
    UnaryKind.RSQRT,
    UnaryKind.SILU,
    UnaryKind.SQUARE,
)  # expressed by others
UNARY = _named(kind for kind in UnaryKind if kind not in _SPELLED)
ARITHMETIC = _named(kind for kind in BinaryKind if kind is not BinaryKind.SQUARED_DIFFERENCE)
COMPARISONS = {
    **_named((CompareKind.AND, CompareKind.EQUAL, CompareKind.GREATER, CompareKind.LESS, CompareKind.OR)),
    CompareKind.GREATER_EQUAL: "GreaterOrEqual",
    CompareKind.LESS_EQUAL: "LessOrEqual",
}
REDUCTIONS = _named(ReduceKind, "Reduce")
