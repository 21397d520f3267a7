"""Weights as the vector kernels multiply them: in panels of channels, zero where a panel has none."""

from __future__ import annotations

import numpy as np

from ...network import Array

PANEL = 16  # EW_PANEL
ALIGNMENT = 64  # bytes, of all that vectors read
MOST_JOINED = 8  # groups


def padded(values: Array) -> Array:
    """Whole panels along the first axis."""
    extra = -values.shape[0] % PANEL
    return np.pad(values, [(0, extra), *[(0, 0)] * (values.ndim - 1)])


def panels(matrix: Array) -> Array:
    """(channels, depth) as (panels, depth, PANEL), zero beyond the last channel."""
    whole = padded(matrix)
    return np.ascontiguousarray(whole.reshape(-1, PANEL, matrix.shape[1]).transpose(0, 2, 1))


def byte_panels(matrix: Array) -> Array:
    """(channels, depth) as (panels, depth / 4, PANEL, 4), zero beyond the last channel and the last byte."""
    whole = padded(np.pad(matrix, [(0, 0), (0, -matrix.shape[1] % 4)]))
    return np.ascontiguousarray(whole.reshape(-1, PANEL, whole.shape[1] // 4, 4).transpose(0, 2, 1, 3))


def starts(matrix: Array, bias: Array, is_signed: bool, zero: int) -> tuple[Array, Array]:
    """Where the sums of each channel start, in whole panels, as EW_START takes them: at the bias, less what the input's
    bytes are larger than the numbers they stand for, multiplied as signed or as unsigned bytes."""
    totals, surplus = matrix.sum(axis=1, dtype=np.int64), zero - (0 if is_signed else 128)
    signed, unsigned = (padded(bias - totals * s).astype(np.int32) for s in (surplus, surplus + 128))
    return signed, unsigned


def can_join(groups: int) -> bool:
    """Whether one group may do the work of all: zeros are not too many."""
    return groups <= MOST_JOINED


def joined_groups(w: Array, groups: int) -> Array:
    """Weights of one group that does the work of all, zero where groups do not meet."""
    channels, depth = w.shape[0] // groups, w.shape[3]
    whole = np.zeros((*w.shape[:3], depth * groups), w.dtype)
    for group in range(groups):
        rows = slice(group * channels, (group + 1) * channels)
        whole[rows, ..., group * depth : (group + 1) * depth] = w[rows]
    return whole
