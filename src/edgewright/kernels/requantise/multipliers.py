"""Integer multipliers that are proven to store what the reference stores, for every sum a layer can reach.

A stored value never falls as the sum grows, so that a function of sums is known by its thresholds: the least sum that
is stored as v or more, for each of the 255 values v above the lowest. Two functions that agree on both sides of every
threshold agree everywhere. What a sum is stored as in the reference is said by `sums`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np

from ...network import Array

Stored = Callable[[Array], Array]  # sums (channels, n) to stored values, each row by its channel's rule
INT32_MAX = (1 << 31) - 1
MOST_SHIFT = 20  # a stored value has 9 bits with its sign: shifted by this, it stays far from 31
MOST_KNOWN = 4096  # answers that are remembered
TOGETHER = 64  # multipliers that are tried at the same time, of all channels
TRIES = 9, 1025  # multipliers: around the nearest one for all channels, then among all slopes for stubborn ones


@dataclass(frozen=True)
class Rule:
    """What the sums of each channel are stored as: the truth that a multiplier is proven against."""

    stored: Stored  # never falls from one sum to the next
    low: int  # the range of stored values, activation included
    high: int
    first: Array  # (channels,) the least and the greatest sum that can be reached
    last: Array
    scale: Array  # (channels,) steps of the output for each unit of the sum
    name: str = ""  # of `stored`: rules of one name, range and scale are the same; "" is like no other

    @property
    def channels(self) -> int:
        return len(self.first)

    @cached_property
    def constant(self) -> Array:
        """(channels,): whether all sums of a channel are stored as the same value."""
        ends = self.stored(np.stack([self.first, self.last], axis=1))
        return np.asarray(ends[:, 0] == ends[:, 1])

    @cached_property
    def thresholds(self) -> Array:
        """(channels, high - low): the least sum that is stored as low + 1 + i or more; last + 1 when none is."""
        values = np.arange(self.low + 1, self.high + 1)[None, :]
        below = np.repeat(self.first[:, None], values.size, axis=1)
        above = np.repeat(self.last[:, None] + 1, values.size, axis=1)
        while np.any(below < above):
            middle = (below + above) >> 1
            reached = self.stored(np.minimum(middle, self.last[:, None])) >= values
            above = np.where(reached, middle, above)
            below = np.where(reached, below, np.minimum(middle + 1, above))
        return above


@dataclass(frozen=True)
class Fixed:
    """stored = clamp((high32((sum << left) * multiplier) + offset) >> shift), high32 the upper half of the product.

    Where the sum is negative `drop` is taken off before the shift: the reference rounds half away from zero there.
    A wide offset has 64 bits and is added to the whole product; each channel then has a shift of its own.
    """

    multiplier: Array  # (channels,) int32, not negative
    offset: Array  # (channels,) int32, int64 if wide: rounding and zero point, and whatever was added to the sums
    drop: Array | None  # (channels,) int32
    left: int  # for all channels
    shifts: Array  # (channels,) equal unless wide
    is_wide: bool = False

    @property
    def shift(self) -> int:
        """The one shift of all channels."""
        assert not self.is_wide
        return int(self.shifts[0])

    def first(self, count: int) -> Fixed:
        """Those of the first channels."""
        multiplier, offset, shifts = (each[:count] for each in (self.multiplier, self.offset, self.shifts))
        return replace(self, multiplier=multiplier, offset=offset, shifts=shifts, drop=_first(self.drop, count))


@dataclass(frozen=True)
class EvenRounding:
    """Float products of sums, rounded half to even: in integers where these are farther than `margin` from any tie.

    stored = clamp((high32((sum << left) * multiplier) + offset) >> shift) there; the float product says it elsewhere.
    """

    multiplier: Array  # (channels,) int32, not negative
    scale: Array  # (channels,) float32
    left: int
    shift: int
    margin: int  # in units of the sum before the shift

    def first(self, count: int) -> EvenRounding:
        """That of the first channels."""
        return replace(self, multiplier=self.multiplier[:count], scale=self.scale[:count])


def _first(values: Array | None, count: int) -> Array | None:
    return None if values is None else values[:count]


MOST_STEPS = 257  # of an output within its range, and one more
FLOAT_ERROR = 2.0**-23  # of a sum as a float, and of its product with a scale, relative to the product
MOST_NEAR = 1 / 8  # of all sums may be near ties


def fit_even(rule: Rule) -> EvenRounding | None:
    """Multipliers for a rule that rounds float32 products half to even; None where too many sums are near ties."""
    sizes = _sizes(rule, np.zeros(rule.channels, np.int64), np.arange(rule.channels), 0, 31, is_wide=False)
    if sizes is None:
        return None
    left, shift = sizes[0], int(sizes[1][0])
    exact = rule.scale * 2.0 ** (32 + shift - left)
    multiplier = np.rint(exact)
    error = MOST_STEPS * (FLOAT_ERROR + np.abs(multiplier / exact - 1).max())
    margin = int(np.ceil(error * 2.0**shift)) + 2  # the upper half of the product is cut
    if 2 * margin + 1 > MOST_NEAR * (1 << shift) or multiplier.max() > INT32_MAX:
        return None
    return EvenRounding(multiplier.astype(np.int32), rule.scale.astype(np.float32), left, shift, margin)


def fit(
    rule: Rule,
    bias: Array | None = None,
    drop_bits: Array | None = None,
    most_left: int = 31,
    least_left: int = 0,
    is_wide: bool = False,
) -> Fixed | None:
    """The multipliers that store every sum in first..last as `rule` does; None if none were found for some channel.

    With `bias` (per channel), C's sums come without it and the offset makes up for it. With `drop_bits`, a channel's
    negative sums lose 2^-bits of an output step, which is what a second rounding half away from zero amounts to;
    this needs the sign of the whole sum, so that the two do not go together. A channel that stores one value only gets
    the multiplier 0: its sums may wrap around. Sums are shifted by `least_left` to `most_left` bits. With `is_wide`,
    offsets have 64 bits and channels their own shifts: almost all can be fitted.
    """
    assert bias is None or drop_bits is None
    if not rule.name:
        return _fit(rule, bias, drop_bits, most_left, least_left, is_wide)
    key = _digest(rule, bias, drop_bits, (most_left, least_left, is_wide))
    if key not in _known:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[key] = _fit(rule, bias, drop_bits, most_left, least_left, is_wide)
    return _known[key]


_known: dict[bytes, Fixed | None] = {}  # the tiles of a layer, and the plans of a network, all ask for the same


def _digest(rule: Rule, bias: Array | None, drop_bits: Array | None, limits: tuple[int, ...]) -> bytes:
    """A few bytes that stand for all that a fit depends on."""
    found = blake2b(repr((rule.name, rule.low, rule.high, bias is None, drop_bits is None, limits)).encode())
    for values in (rule.first, rule.last, rule.scale, bias, drop_bits):
        if values is not None:
            found.update(values.tobytes())
    return found.digest()


def unfitted(rule: Rule, bias: Array, most_left: int, least_left: int, channels: Array | None = None) -> Array:
    """Those of some channels, or of all, for which `fit` finds no multiplier; all where sums are out of its range."""
    base, live = bias.astype(np.int64), np.nonzero(~rule.constant)[0]
    sizes = _sizes(rule, base, live, least_left, most_left, is_wide=False)
    asked = np.arange(rule.channels) if channels is None else channels
    if sizes is None:
        return asked
    limits, live = _Limits(rule, rule.thresholds, base, None, *sizes, 0), np.intersect1d(live, asked)
    return live[limits.search(live, is_partial=True)[:, 0] < 0]


def _fit(
    rule: Rule, bias: Array | None, drop_bits: Array | None, most_left: int, least_left: int, is_wide: bool
) -> Fixed | None:
    base = np.zeros(rule.channels, np.int64) if bias is None else bias.astype(np.int64)
    live = np.nonzero(~rule.constant)[0]
    sizes = _sizes(rule, base, live, least_left, most_left, is_wide)
    least = np.zeros(rule.channels, np.int64) if drop_bits is None else drop_bits.astype(np.int64)
    if sizes is None or np.any(sizes[1][live] < least[live]):
        return None
    by, shifts = sizes
    drop = None
    if drop_bits is not None:
        drop = np.where(drop_bits > 0, 1 << np.maximum(shifts - least, 0), 0)
        drop[rule.constant] = 0
    bits = 32 if is_wide else 0
    found = np.stack([0 * base, rule.stored(rule.first[:, None])[:, 0].astype(np.int64) << (shifts + bits)], axis=1)
    fitted = _Limits(rule, rule.thresholds, base, drop, by, shifts, bits).search(live)
    if np.any(fitted[:, 0] < 0):
        return None
    found[live] = fitted
    multiplier, offset = found[:, 0].astype(np.int32), found[:, 1].astype(np.int64 if is_wide else np.int32)
    return Fixed(multiplier, offset, None if drop is None else drop.astype(np.int32), by, shifts, is_wide)


def _sizes(
    rule: Rule, base: Array, live: Array, least_left: int, most_left: int, is_wide: bool
) -> tuple[int, Array] | None:
    """(left, shifts): sums as large as 31 bits allow, and the largest multiplier just below 2^31.

    Wide products stay one bit smaller, so that they and their offset add up to less than 2^63.
    """
    largest = int(np.abs(np.stack([rule.first - base, rule.last - base]))[:, live].max(initial=1))
    scale = rule.scale[live].max(initial=2.0**-20)
    if largest > INT32_MAX or not np.all(rule.scale[live] > 0) or not scale < 2.0**20:
        return None
    room = min(31 - largest.bit_length(), most_left)
    exponent = int(np.frexp(scale)[1])  # scale < 2^exponent
    shift = min(room - 1 - exponent, MOST_SHIFT)
    left = max(min(room, shift + 1 + exponent), least_left)
    if left > room or shift < 0:
        return None
    if not is_wide:
        return left, np.full(rule.channels, shift, np.int64)
    exponents = np.frexp(np.minimum(rule.scale, scale))[1].astype(np.int64)
    return left, np.clip(left - 2 - exponents, 0, MOST_SHIFT)


@dataclass(frozen=True)
class _Limits:
    """What the thresholds demand of a multiplier and an offset."""

    rule: Rule
    least: Array  # thresholds, bias included
    base: Array  # what the sums of C lack
    drop: Array | None
    left: int
    shifts: Array
    bits: int  # of the product that are kept below its upper half

    @property
    def largest(self) -> int:
        """What product and offset may add up to."""
        return INT32_MAX << max(self.bits - 1, 0)

    def search(self, channels: Array, is_partial: bool = False) -> Array:
        """(channels, 2): a multiplier and an offset for each channel, -1 where there is none.

        Once a channel has none, the others are left at that, unless `is_partial` asks for them.
        """
        scale = self.rule.scale[channels]
        # A change of the slope that moves the farthest threshold by about one sum.
        span = scale / (np.maximum(np.abs(self.rule.first), np.abs(self.rule.last))[channels] + 1)
        found = self._try(channels, scale - span, scale + span, TRIES[0])
        stubborn = np.nonzero(found[:, 0] < 0)[0]
        if len(stubborn):
            lowest, highest = self._slopes(channels[stubborn])
            has_room = highest > lowest
            if is_partial or np.all(has_room):
                able = stubborn[has_room]
                found[able] = self._try(channels[able], lowest[has_room], highest[has_room], TRIES[1])
        return found

    def _try(self, channels: Array, lowest: Array, highest: Array, tries: int) -> Array:
        """(channels, 2): a multiplier and an offset, from the middle of the slopes on; -1 where none passes."""
        spread = np.linspace(-1, 1, tries)
        spread = spread[np.argsort(np.abs(spread), kind="stable")]
        middle, half = (highest + lowest) / 2, (highest - lowest) / 2
        slopes = middle[:, None] + half[:, None] * spread
        candidates = np.rint(slopes * 2.0 ** (32 + self.shifts[channels, None] - self.left)).astype(np.int64)
        result = np.full((len(channels), 2), -1, np.int64)
        bounds, column = self._bounds(channels), 0
        while column < tries and len(open_ := np.nonzero(result[:, 0] < 0)[0]):
            width = max(1, TOGETHER // len(open_)) if column else 1  # the first one passes most often
            multiplier = candidates[open_, column : column + width]
            passes, offset = self._offsets(multiplier, *(each[open_, None] for each in bounds))
            able = np.nonzero(passes.any(axis=1))[0]
            first = passes[able].argmax(axis=1)
            result[open_[able]] = np.stack([multiplier[able, first], offset[able, first]], axis=1)
            column += width
        return result

    def _slopes(self, channels: Array) -> tuple[Array, Array]:
        """The least and the greatest slope of lines that pass between all thresholds; equal ones where none does.

        The room that a slope leaves for the line's height is a concave function: its peak is found by thirds.
        """
        low, high = np.zeros(len(channels)), 2 * self.rule.scale[channels]
        room = self._room(channels)
        left, right = low, high
        for _ in range(80):
            a, b = left + (right - left) / 3, right - (right - left) / 3
            is_right = room(a) < room(b)
            left, right = np.where(is_right, a, left), np.where(is_right, right, b)
        peak = (left + right) / 2
        if np.any(room(peak) <= 0):
            return peak, peak
        return _edge(room, peak, low), _edge(room, peak, high)

    def _room(self, channels: Array) -> Callable[[Array], Array]:
        """How far lines of given slopes can be moved up and down between the thresholds, in output steps."""
        first, last, base = (v[channels, None] for v in (self.rule.first, self.rule.last, self.base))
        least, value = self.least[channels], np.arange(self.rule.low + 1, self.rule.high + 1)[None, :]
        step = 0 if self.drop is None else self.drop[channels, None] / 2.0 ** self.shifts[channels, None]
        above, below = np.minimum(least, last) - base, np.maximum(least - 1, first) - base
        lowest = np.where(least <= last, step * (above < 0), -np.inf)
        highest = np.where(least > first, step * (below < 0), np.inf)

        def room(slope: Array) -> Array:
            at_least = value - slope[:, None] * above + lowest
            at_most = value - slope[:, None] * below + highest
            return np.asarray(at_most.min(axis=1, initial=1e9) - at_least.max(axis=1, initial=-1e9))

        return room

    def _bounds(self, channels: Array) -> tuple[Array, Array, Array, Array]:
        """Shifted sums of each channel and the least that product and offset must add up to there; sums and the most.

        The last column is the end of the range, where what they add up to must not overflow.
        """
        first, last, base = (v[channels, None] for v in (self.rule.first, self.rule.last, self.base))
        least, most = self.least[channels], self.largest
        values = np.arange(self.rule.low + 1, self.rule.high + 1, dtype=np.int64)[None, :]
        steps = values << (self.shifts[channels, None] + self.bits)
        low = self._demands(channels, np.minimum(least, last) - base, steps, first - base, -most, least <= last)
        high = self._demands(channels, np.maximum(least - 1, first) - base, steps - 1, last - base, most, least > first)
        return *low, *high

    def _demands(
        self, channels: Array, sums: Array, totals: Array, end: Array, limit: int, is_demanded: Array
    ) -> tuple[Array, Array]:
        """The sums, shifted, with their totals; the limit where nothing is demanded."""
        sums, totals = (np.hstack(each) for each in ((sums, end), (totals, np.full_like(end, limit))))
        if self.drop is not None:
            totals = totals + np.where(sums < 0, self.drop[channels, None] << self.bits, 0)
        asked = np.hstack((is_demanded, np.ones_like(end, bool)))
        return np.where(asked, sums << self.left, 0), np.where(asked, totals, limit)

    def _offsets(
        self, multiplier: Array, low_sums: Array, low_totals: Array, high_sums: Array, high_totals: Array
    ) -> tuple[Array, Array]:
        """(channels, n): whether an offset fits each multiplier, and one in the middle of those that do."""
        wide, cut = multiplier[:, :, None], 32 - self.bits
        lower = (low_totals - ((low_sums * wide) >> cut)).max(axis=2, initial=-self.largest)
        upper = (high_totals - ((high_sums * wide) >> cut)).min(axis=2, initial=self.largest)
        fits = (multiplier >= 0) & (multiplier <= INT32_MAX) & (lower <= upper)
        return fits, lower + ((upper - lower) >> 1)


def _edge(room: Callable[[Array], Array], inside: Array, outside: Array) -> Array:
    """The slope between these two at which a line just stops passing all thresholds, by bisection."""
    for _ in range(45):
        middle = (inside + outside) / 2
        has_room = room(middle) > 0
        inside, outside = np.where(has_room, middle, inside), np.where(has_room, outside, middle)
    return inside
