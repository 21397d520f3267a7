"""What the emitted C makes of sums by integer multipliers, in numpy: the oracle of those who search for multipliers."""

from __future__ import annotations

import numpy as np

from edgewright.kernels.requantise.multipliers import EvenRounding, Fixed
from edgewright.network import Array


def fixed_stored(fixed: Fixed, sums: Array, low: int, high: int) -> Array:
    """(channels, n): the stored values of these sums."""
    bits = 32 if fixed.is_wide else 0
    steps = ((sums << fixed.left) * fixed.multiplier[:, None].astype(np.int64)) >> (32 - bits)
    if fixed.drop is not None:
        steps = steps - np.where(sums < 0, fixed.drop[:, None].astype(np.int64) << bits, 0)
    return np.clip((steps + fixed.offset[:, None]) >> (fixed.shifts[:, None] + bits), low, high)


def _even_steps(even: EvenRounding, sums: Array) -> Array:
    steps = ((sums << even.left) * even.multiplier[:, None].astype(np.int64)) >> 32
    return np.asarray(steps + (1 << even.shift >> 1))


def is_near_tie(even: EvenRounding, sums: Array) -> Array:
    """(channels, n): where the float product decides."""
    return np.asarray((_even_steps(even, sums) + even.margin) & ((1 << even.shift) - 1)) <= 2 * even.margin


def even_stored(even: EvenRounding, sums: Array, zero: int, low: int, high: int) -> Array:
    """(channels, n): the stored values of sums far from ties."""
    return np.clip((_even_steps(even, sums) >> even.shift) + zero, low, high)
