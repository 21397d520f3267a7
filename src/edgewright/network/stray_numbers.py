"""Refuses constants with NaN or infinite values, except where a layer gives infinities a meaning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import ModelError
from . import operators as ops
from .tensor import Array

CHUNK = 1 << 22  # elements checked at a time, to limit memory

# Unbounded limits, and terms that a following Softmax ignores.
_MEANT = (ops.BinaryKind.ADD, ops.BinaryKind.MAX, ops.BinaryKind.MIN, ops.BinaryKind.SUB)


def require_numbers(op: ops.Op, name: str, values: Array, looked: Callable[[], None] = lambda: None) -> None:
    """Refuses a constant that the operator cannot compute with; `looked` is called after each chunk of a large one."""
    if _are_numbers(values, np.isnan if takes_infinities(op) else _is_stray, looked):
        return
    what = "NaN" if takes_infinities(op) else "NaN or infinite values"
    raise ModelError(f"the constant '{name}' holds {what}. Export the model again.")


def takes_infinities(op: ops.Op) -> bool:
    is_meant = isinstance(op, ops.Binary) and op.kind in _MEANT
    return op.moves or is_meant or isinstance(op, ops.Compare | ops.Pad)


def _is_stray(values: Array) -> Array:
    return ~np.isfinite(values)


def _are_numbers(values: Array, is_stray: Callable[[Array], Array], looked: Callable[[], None]) -> bool:
    """Whether all elements are finite; reads memory once."""
    if not np.issubdtype(values.dtype, np.floating) or values.size == 0:
        return True
    once = values[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in values.strides)]
    once = once.transpose(sorted(range(once.ndim), key=lambda axis: -abs(once.strides[axis])))  # memory order
    if not once.flags.c_contiguous:  # result of folding, hence small
        return not is_stray(once).any()
    flat = once.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        if is_stray(flat[start : start + CHUNK]).any():
            return False
        if flat.size > CHUNK:
            looked()
    return True
