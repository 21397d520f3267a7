"""Fused multiply-add: on Arm, LiteRT's reference kernels round products and sums at once, because the compiler
contracts them.

The promised results, on every processor, are those of x86-64, where product and sum are rounded separately. The
contracted results are computed to distinguish a runtime that differs for this reason from wrong code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..network import Network
from ..operators import Elu, Resize, Unary
from ..tensor import Array, DType

Number = np.floating[Any]
_IS_CONTRACTED: ContextVar[bool] = ContextVar("is_contracted", default=False)


@contextmanager
def contracted() -> Iterator[None]:
    """Inside the block, kernels compute what LiteRT's reference kernels give on Arm."""
    token = _IS_CONTRACTED.set(True)
    try:
        yield
    finally:
        _IS_CONTRACTED.reset(token)


def multiply_add(a: Array, b: Array | Number, c: Array | Number) -> Array:
    """a * b + c in float32, contracted if the block asks for it; in float64 the difference is negligible."""
    if not _IS_CONTRACTED.get() or np.result_type(a, b, c) != np.float32:
        return a * b + c
    product, added = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = np.asarray(product + added)
    rest = (product - (total - (total - product))) + (added - (total - product))
    # Round to odd first, so that the second rounding to float32 is correct.
    is_odd = (total.view(np.int64) & 1).astype(bool)
    onwards = np.nextafter(total, np.where(rest > 0, np.inf, -np.inf))
    return np.where((rest != 0) & ~is_odd & np.isfinite(total), onwards, total).astype(np.float32)


def may_be_contracted(network: Network) -> bool:
    """Whether the result of some layer depends on contraction: tables of 16-bit functions, interpolated uint8
    images."""
    return any(
        isinstance(layer.op, kinds) and network.tensors[layer.inputs[0]].dtype is dtype
        for layer in network.layers
        for kinds, dtype in (((Unary, Elu), DType.INT16), ((Resize,), DType.UINT8))
    )
