"""Sums of products by BLAS, exact for integers, with little scratch memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..tensor import Array

SCRATCH_BYTES = 8 << 20  # per piece of work: keeps scratch small and in the cache


def work_type(x: Array, w: Array, dtype: DTypeLike, terms: int | None = None) -> np.dtype[Any]:
    """The float type in which products of x and w are summed: exact if `dtype` is an integer.

    BLAS knows no integers, but float32 holds integers below 2^24 exactly, and float64 below 2^53. A sum has as many
    terms as w has in a row, unless told.
    """
    if np.issubdtype(dtype, np.floating):
        return np.dtype(dtype)
    if not x.size or not w.size:
        return np.dtype(np.float32)
    bound = _largest(x) * _largest(w) * (terms or w[0].size)
    assert bound < 1 << 53, "sums beyond 2^53 are not exact"
    return np.dtype(np.float32 if bound < 1 << 24 else np.float64)


def _largest(x: Array) -> int:
    return max(abs(int(x.min())), abs(int(x.max())))


def dense_accumulate(x: Array, w: Array, dtype: DTypeLike) -> Array:
    """x (..., K) times the transpose of w (O, axes that multiply to K), as `dtype` (..., O).

    Weights that lie otherwise in memory (a transposed view, another type) are copied a few rows at a time: those of
    VGG-19's first dense layer alone are 411 MB.
    """
    work = work_type(x, w, dtype)
    features = x.astype(work, copy=False).reshape(-1, x.shape[-1])
    rows = w.shape[0]
    band = rows
    if w.dtype != work or not w.flags.c_contiguous:
        band = max(1, SCRATCH_BYTES // max(1, x.shape[-1] * work.itemsize))
    result = np.empty((features.shape[0], rows), dtype)
    for first in range(0, rows, band):
        part = w[first : first + band].astype(work, order="C", copy=False)
        result[:, first : first + band] = features @ part.reshape(part.shape[0], -1).T
    return result.reshape(*x.shape[:-1], rows)
