"""Fixed-point arithmetic as in TFLite's kernels: multipliers, rounding, and functions of Q-format numbers.

A Qn number is an int32 (or int16) with n integer bits: its value is raw / 2^(31 - n) (gemmlowp's fixedpoint.h; Jacob et
al. 2018, section 2.2). Arrays here are int64 that hold int32 values, so products cannot overflow.
"""

from __future__ import annotations

from math import exp, floor, frexp, isfinite, sqrt

import numpy as np

from ...errors import ModelError
from ..tensor import Array

INT32_MAX = (1 << 31) - 1
INT32_MIN = -(1 << 31)


def quantize_multiplier(real: float | np.float32) -> tuple[int, int]:
    """(multiplier, shift) with real = multiplier * 2^(shift - 31); the multiplier is rounded to 31 bits."""
    if real == 0:
        return 0, 0
    if not isfinite(real):
        raise ModelError(
            f"the scales of a quantised layer stand in a ratio of {real}; the model's quantisation is damaged"
        )
    fraction, shift = frexp(float(real))
    multiplier = round_half_away(fraction * (1 << 31))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    return (multiplier, shift) if shift >= -31 else (0, 0)


def round_half_away(value: float) -> int:
    return floor(value + 0.5) if value >= 0 else -floor(-value + 0.5)


def rounded(values: Array) -> Array:
    """float64 numbers rounded half away from zero: C's round()."""
    return np.trunc(values + np.copysign(0.5, values))


def multiply(x: Array, multiplier: Array | int, shift: Array | int) -> Array:
    """x * multiplier * 2^(shift - 31), rounded after the product and after the right shift."""
    left = np.maximum(shift, 0)
    if np.any(left):
        x = wrapped(x << left)
    return divide_by_power(high_multiply(x, multiplier), np.maximum(np.negative(shift), 0))


def multiply_wide(x: Array, multiplier: Array | int, shift: Array | int) -> Array:
    """`multiply` for 64-bit sums: a multiplier of 15 bits, rounded once (up at a half)."""
    narrow = np.where(np.asarray(multiplier) < 0x7FFF0000, (np.asarray(multiplier) + (1 << 15)) >> 16, 0x7FFF)
    total = 15 - np.asarray(shift)
    return (x * narrow + (np.int64(1) << (total - 1))) >> total


def divide_by_power(x: Array, exponent: Array | int) -> Array:
    """x / 2^exponent, rounded half away from zero."""
    half = (np.int64(1) << np.asarray(exponent, np.int64)) >> 1
    return (x + half - ((x < 0) & (half > 0))) >> exponent


def wrapped(x: Array) -> Array:
    """x wrapped around as in int32 arithmetic."""
    return x.astype(np.int32).astype(np.int64)


def leading_zeros(x: Array) -> Array:
    """Zero bits above the highest set bit of a positive int32."""
    return 32 - np.frexp(x.astype(np.float64))[1]


class FixedPoint:
    """gemmlowp's arithmetic on Qn numbers of 32 or 16 bits."""

    def __init__(self, bits: int) -> None:
        self.bits, self.point, self.most = bits, bits - 1, (1 << (bits - 1)) - 1

    def constant(self, value: float) -> int:
        """A number below 1 as Q0."""
        return int(divide_by_power(np.array(round_half_away(value * (1 << 31))), 32 - self.bits))

    def multiply(self, a: Array, b: Array | int) -> Array:
        """The upper half of 2 * a * b, rounded half up; the one product that overflows is saturated."""
        return np.minimum((a * np.asarray(b, np.int64) + (1 << (self.point - 1))) >> self.point, self.most)

    def shift_left(self, x: Array, exponent: Array | int) -> Array:
        """x * 2^exponent, saturated."""
        return np.clip(x << np.asarray(exponent, np.int64), -self.most - 1, self.most)

    def exp_of_negative(self, x: Array, bits: int) -> Array:
        """exp(x) as Q0, for x <= 0 as Qn: a polynomial for the part in -1/4..0, factors e^-2^k for the other bits."""
        x = np.maximum(x, -self.most - 1)
        fraction = self.point - bits
        quarter = 1 << (fraction - 2)
        inner = (x & (quarter - 1)) - quarter
        rest = inner - x
        result = self._exp_of_last_quarter(inner << bits)
        for k in range(-2, min(bits, 5)):
            is_set = (rest >> (fraction + k)) & 1 == 1
            result = np.where(is_set, self.multiply(result, self.constant(exp(-(2.0**k)))), result)
        if bits > 5:
            result = np.where(x < -(32 << fraction), 0, result)
        return np.where(x == 0, self.most, result)

    def _exp_of_last_quarter(self, x: Array) -> Array:
        """exp(x) for -1/4 <= x < 0, both Q0: Taylor's series of degree 4 around -1/8."""
        x = x + (1 << (self.point - 3))
        x2 = self.multiply(x, x)
        x3, x4 = self.multiply(x2, x), self.multiply(x2, x2)
        tail = divide_by_power(self.multiply(divide_by_power(x4, 2) + x3, self.constant(1 / 3)) + x2, 1)
        middle = self.constant(exp(-1 / 8))
        return np.minimum(middle + self.multiply(x + tail, middle), self.most)

    def inverse_of_half(self, x: Array) -> Array:
        """2 / (1 + x) as Q2, for x in 0..1 as Q0: Newton's iteration for the reciprocal, three times."""
        half = (x + self.most + 1) >> 1  # (1 + x) / 2
        y = self.constant(48 / 17 / 4) + self.multiply(half, self.constant(-32 / 17 / 4))
        for _ in range(3):
            y = y + self.shift_left(self.multiply(y, (1 << (self.point - 2)) - self.multiply(half, y)), 2)
        return y

    def one_over_one_plus(self, x: Array) -> Array:
        """1 / (1 + x) for x in 0..1, both Q0."""
        return self.shift_left(self.inverse_of_half(x), 1)


FIXED_32, FIXED_16 = FixedPoint(32), FixedPoint(16)
high_multiply, shift_left, constant = FIXED_32.multiply, FIXED_32.shift_left, FIXED_32.constant


def reciprocal(x: Array, integer_bits: int) -> tuple[Array, Array]:
    """(1 / y, e) with x = y * 2^e and 1 <= y < 2: the reciprocal as Q0, of a positive Q`integer_bits`."""
    zeros = leading_zeros(x)
    return FIXED_32.one_over_one_plus((x << zeros) - (1 << 31)), integer_bits - zeros


def log_of_q12(x: Array) -> Array:
    """log(x) as Q5, for x >= 1 as Q12: x = 2^k * r, then a rational function of r around 2^-1/4.

    Of the two choices of k (r near 2^-1/2 or near 1), the one with r closer to the middle is used.
    """
    accumulator_bits = 6  # one more than the result, against saturation
    one = 31 - accumulator_bits
    root, quarter = constant(sqrt(0.5)), 1 << (one - 2)
    zeros_a = leading_zeros(x)
    r_a = shift_left(high_multiply(shift_left(x, zeros_a - 1), root), 1)
    k_a = np.clip(((12 - zeros_a) << one) + quarter, INT32_MIN, INT32_MAX)
    zeros_b = leading_zeros(high_multiply(x, root)) - 1
    r_b = shift_left(x, zeros_b)
    k_b = np.clip(((12 - zeros_b) << one) - quarter, INT32_MIN, INT32_MAX)
    r, k = np.minimum(r_a, r_b), np.maximum(k_a, k_b)

    middle, fourth = constant(sqrt(sqrt(0.5))), sqrt(sqrt(2.0))
    p = divide_by_power(r + middle, 1)
    q = 2 * (r - middle)
    q2 = high_multiply(q, q)
    numerator = high_multiply(q, r) + high_multiply(high_multiply(q, q2), constant(11 / 240 * fourth))
    inner = constant(2 / fourth - fourth) + q + high_multiply(q2, constant(fourth / 20))
    denominator = FIXED_32.one_over_one_plus(high_multiply(p, inner) + high_multiply(q, constant(fourth / 4)))
    scaled = divide_by_power(numerator, accumulator_bits)
    total = high_multiply(k, constant(np.log(2.0))) + high_multiply(scaled, denominator)
    return shift_left(total, 1)


def inverse_root(x: Array) -> tuple[Array, Array]:
    """(multiplier, shift), as for `multiply`, of 1 / sqrt(x): Newton's iteration in Q3, five times."""
    big = x
    shift = np.full(x.shape, 11, np.int64)
    while np.any(big >= 1 << 29):
        is_big = big >= 1 << 29
        big, shift = np.where(is_big, big // 4, big), shift + is_big
    pairs = (leading_zeros(np.maximum(big, 1)) - 1) // 2 - 1
    shift = shift - pairs
    value = (big << (2 * pairs)) >> 1
    half = divide_by_power(value, 1)
    root = np.full(x.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = shift_left(high_multiply(high_multiply(root, root), root), 6)
        root = shift_left(high_multiply(root, (1 << 28) + (1 << 27)) - high_multiply(half, cube), 3)
    root = high_multiply(root, constant(sqrt(0.5)))
    root = np.where(shift < 0, root << np.maximum(-shift, 0), root)
    shift = np.maximum(shift, 0)
    is_unit = x <= 1  # 0 is treated as 1
    return np.where(is_unit, INT32_MAX, root), np.where(is_unit, 0, -shift)
