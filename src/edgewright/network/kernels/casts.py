"""Numbers as another type, the same on every processor: C and numpy leave open what becomes of those out of range."""

from __future__ import annotations

import numpy as np

from ..tensor import Array, DType


def converted(values: Array, dtype: DType) -> Array:
    """Real numbers are cut towards zero and kept within int32 (int64 for that type), NaN becoming the least number.

    Narrower types keep the lowest bits, as of integers: so do onnxruntime and LiteRT within the range of int32.
    """
    is_whole = not (dtype.is_float or dtype is DType.BOOL)
    if not np.issubdtype(values.dtype, np.floating) or not is_whole:
        with np.errstate(over="ignore"):
            return values.astype(dtype.numpy)
    limits = np.iinfo(np.int64 if dtype is DType.INT64 else np.int32)
    real = values.astype(np.float64)  # which holds -2^63, and 2^63 in place of the largest int64
    inside = (real > limits.min) & (real < limits.max)
    whole = np.where(inside, real, 0.0).astype(np.int64)
    return np.where(inside, whole, np.where(real >= limits.max, limits.max, limits.min)).astype(dtype.numpy)
