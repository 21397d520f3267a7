"""The multipliers of depthwise kernels: proven exact, with one shift for all channels where possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...network import Array
from ..site import Site
from .multipliers import Fixed, Rule, fit, unfitted
from .sums import Requantised, flip, larger_layer, requantised

LEAST_LEFT, MOST_LEFT = 8, 16  # bits that sums are shifted: gathered numbers by 8, weights by up to 8


@dataclass(frozen=True)
class Factors:
    sums: Requantised
    table: Array  # (channels, 2): multiplier, offset; a third column: shift; or a third and fourth: start, drop
    left: int  # of the weights, or of the sums
    shift: int  # of all channels that have none of their own

    @property
    def has_sign(self) -> bool:
        """Whether negative sums are rounded otherwise than positive ones."""
        return self.table.shape[1] == 4


def factors_of(site: Site) -> Factors | None:
    """Found once; None when the layer is none of int8 or uint8, or there are no exact multipliers."""
    return site.facts.once("depthwise factors", lambda: _shared(site, _found(site), factors_of))


def _shared(site: Site, own: Factors | None, find: Callable[[Site], Factors | None]) -> Factors | None:
    """The factors of the larger layer, which are stored already, where they have the same form."""
    larger = larger_layer(site, counts_weights=True)
    of_all = find(larger) if larger is not None else None
    if own is None or of_all is None or of_all.table.shape[1] != own.table.shape[1]:
        return own
    return replace(of_all, sums=own.sums, table=of_all.table[: len(own.table)])


def _found(site: Site) -> Factors | None:
    sums = requantised(site)
    if sums is None:
        return None
    if not site.facts.exact:
        return _assumed(sums)
    base = _base(sums, site)
    if sums.drop_bits is not None:
        return _signed(site, sums, base)
    return _shifted(site, sums, base, LEAST_LEFT, _most_left(sums, 0))


def _assumed(sums: Requantised) -> Factors:
    """Stands for factors that were not searched for: of this form they are, if there are any."""
    return Factors(sums, np.zeros((len(sums.weights), 2 if sums.drop_bits is None else 4), np.int32), 0, 0)


def factors_shifted_by(site: Site, left: int) -> Factors | None:
    """Factors for a kernel that shifts the sums of all channels by `left` bits and rounds them by one rule."""
    sums = requantised(site)
    if sums is None or sums.drop_bits is not None:
        return None
    if not site.facts.exact:
        return _assumed(sums)
    own = _shifted(site, sums, _base(sums, site), left, left)
    return _shared(site, own, lambda larger: factors_shifted_by(larger, left))


def _shifted(site: Site, sums: Requantised, base: Array, least: int, most: int) -> Factors | None:
    """One shift of the results for all channels where possible, else channels have their own."""
    fixed = fit(sums.rule, bias=base, most_left=most, least_left=least)
    if fixed is None:
        return _in_groups(site, sums, base, most)
    table = np.stack([fixed.multiplier, _offset(site, fixed)], axis=1)
    return Factors(sums, table.astype(np.int32), fixed.left - LEAST_LEFT, fixed.shift)


def channels_without_factors(sums: Requantised) -> Array:
    """The channels of an int8 layer that keep it from having factors; other scales of their weights may do."""
    base = sums.bias - sums.zero * sums.weights.sum(axis=1, dtype=np.int64)
    most = _most_left(sums, 0)
    if most < LEAST_LEFT or not len(unfitted(sums.rule, base, most, LEAST_LEFT)):
        return np.arange(0 if most >= LEAST_LEFT else len(base))
    exponents = np.frexp(sums.rule.scale)[1]
    groups = [np.nonzero(exponents == exponent)[0] for exponent in np.unique(exponents)]
    return np.concatenate(
        [which[unfitted(_of_channels(sums.rule, which), base[which], most, most)] for which in groups]
    )


def _base(sums: Requantised, site: Site) -> Array:
    """(channels,) what the kernel's sums of stored values, read as int8, lack."""
    zero = sums.zero - flip(site.inputs[0].tensor)
    return sums.bias - zero * sums.weights.sum(axis=1, dtype=np.int64)


def _most_left(sums: Requantised, beside: int) -> int:
    """By how many bits sums may be shifted and still fit 32 at every moment."""
    largest = 128 * int(np.abs(sums.weights.astype(np.int64)).sum(axis=1).max()) + beside
    return min(MOST_LEFT, 31 - largest.bit_length())


def _offset(site: Site, fixed: Fixed) -> Array:
    """The offset for outputs that are counted from -128."""
    return fixed.offset.astype(np.int64) - (flip(site.result) << fixed.shift)


def _signed(site: Site, sums: Requantised, base: Array) -> Factors | None:
    most = _most_left(sums, int(np.abs(base).max()))
    fixed = fit(sums.rule, drop_bits=sums.drop_bits, most_left=most, least_left=LEAST_LEFT)
    if fixed is None or fixed.drop is None:
        return None
    table = np.stack([fixed.multiplier, _offset(site, fixed), base << LEAST_LEFT, fixed.drop], axis=1)
    return Factors(sums, table.astype(np.int32), fixed.left - LEAST_LEFT, fixed.shift)


def _in_groups(site: Site, sums: Requantised, base: Array, left: int) -> Factors | None:
    """One shift per power of two of the scales: channels with small scales lose no bits to those with large ones."""
    table = np.zeros((sums.rule.channels, 3), np.int64)
    exponents = np.frexp(sums.rule.scale)[1]
    for exponent in np.unique(exponents):
        which = np.nonzero(exponents == exponent)[0]
        fixed = fit(_of_channels(sums.rule, which), bias=base[which], most_left=left, least_left=left)
        if fixed is None:
            return None
        shift = np.full(len(which), fixed.shift)
        table[which] = np.stack([fixed.multiplier, _offset(site, fixed), shift], axis=1)
    return Factors(sums, table.astype(np.int32), left - LEAST_LEFT, 0) if left >= LEAST_LEFT else None


def _of_channels(rule: Rule, which: Array) -> Rule:
    """The rule restricted to these channels."""

    def stored(values: Array) -> Array:
        spread = np.zeros((rule.channels, values.shape[1]), values.dtype)
        spread[which] = values
        return rule.stored(spread)[which]

    return replace(rule, stored=stored, first=rule.first[which], last=rule.last[which], scale=rule.scale[which])
