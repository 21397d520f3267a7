"""The per-channel parameters with which the kernels of `dsp` turn sums into stored values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...network import Arithmetic, Array
from ..requantise.multipliers import Fixed, fit, unfitted
from ..requantise.sums import Requantised, flip
from ..site import Site

LEFT = 8  # sums of every second channel come shifted by this


@dataclass(frozen=True)
class ChannelScaling:
    kind: str  # plain, general, wide or float: a kernel of that name takes them
    channels: Array  # (channels, 2 to 6) int32: the fields of the struct of that kind
    left: int
    shift: int


def channel_scaling(site: Site, sums: Requantised, base: Array, is_unsigned: bool) -> ChannelScaling | None:
    """The fastest kind of scaling that is exact for all channels; the kernel's sums come without `base`.

    onnxruntime rounds ties of its float products to even, which a multiplier and a shift cannot always reproduce: such
    layers are scaled in float.
    """
    up = flip(site.result)
    fixed = _fitted(sums, base, is_wide=False)
    if fixed is None and site.arithmetic is not Arithmetic.TFLITE:
        return _in_float(site, sums, base, up)
    fixed = fixed or _fitted(sums, base, is_wide=True)
    if fixed is None:
        return None
    is_plain = fixed.drop is None and (sums.rule.low, sums.rule.high) == (-128, 127) and not is_unsigned
    kind = "wide" if fixed.is_wide else "plain" if is_plain else "general"
    shift = 0 if fixed.is_wide else fixed.shift
    return ChannelScaling(kind, _channels(fixed, base, up)[:, _COLUMNS[kind]], fixed.left, shift)


def channels_in_float(sums: Requantised, channels: Array) -> Array:
    """Those of the channels for which an int8 ONNX layer would be scaled in float; other scales may do without."""
    return unfitted(sums.rule, sums.bias, 31, LEFT, channels)


_COLUMNS = {"plain": [0, 1], "general": [0, 1, 4, 5], "wide": [0, 1, 2, 3, 4, 5]}


def _fitted(sums: Requantised, base: Array, is_wide: bool) -> Fixed | None:
    if sums.drop_bits is not None:
        return fit(sums.rule, drop_bits=sums.drop_bits, least_left=LEFT, is_wide=is_wide)
    return fit(sums.rule, bias=base, least_left=LEFT, is_wide=is_wide)


def _channels(fixed: Fixed, base: Array, up: int) -> Array:
    """(channels, 6): multiplier, offset, shift, upper half of the offset, drop, bias shifted to the left."""
    offset = fixed.offset.astype(np.int64) - (up << (fixed.shifts + (32 if fixed.is_wide else 0)))
    drop, bias = fixed.drop, base << fixed.left  # may wrap around, and the sum with it: their total fits
    if drop is None:  # the bias is in the offset
        drop, bias = 0 * fixed.multiplier, 0 * base
    return np.stack([fixed.multiplier, offset, fixed.shifts, offset >> 32, drop, bias], axis=1).astype(np.int32)


def _in_float(site: Site, sums: Requantised, base: Array, up: int) -> ChannelScaling | None:
    """Float scales of shifted sums: a power of two changes no rounding."""
    rule, is_live = sums.rule, ~sums.rule.constant
    assert site.result.quant is not None
    largest = int(np.abs(np.stack([rule.first, rule.last]))[:, is_live].max(initial=0))
    if largest >= 1 << (31 - LEFT) or largest * float(rule.scale.max()) >= 1 << 30:
        return None
    scale = (np.where(is_live, rule.scale, 0).astype(np.float32) / np.float32(1 << LEFT)).view(np.int32)
    alike = rule.stored(rule.first[:, None])[:, 0]
    zero = np.where(is_live, site.result.quant.zero[0], alike) - up
    return ChannelScaling("float", np.stack([scale, base << LEFT, zero], axis=1).astype(np.int32), LEFT, 0)
