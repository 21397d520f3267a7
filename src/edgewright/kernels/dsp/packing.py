"""Weights packed as the kernels of `dsp` read them, and the tables of their channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...network import Array, Interval
from ...network.tensor import DType
from ..call import CCall
from ..printing.constants import WeightRows
from ..printing.source import Fields
from ..requantise.sums import flip, larger_layer, requantised
from ..site import Site, unwrap
from .numbers import ChannelScaling, channel_scaling

ORDER = [0, 2, 1, 3]  # of four taps: SXTB16 takes bytes 0 and 2, then 1 and 3


LARGEST = (1 << 15) - 1  # of the sizes that tables hold


@dataclass(frozen=True)
class PackedChannels:
    """Some channels of a layer as the kernels read them."""

    weights: Array
    channels: Array  # numbers of each channel, see `numbers`
    count: int  # of channels
    taps: int  # of a group's row of weights
    zero: int  # of x as a signed byte
    numbers: ChannelScaling
    limits: tuple[int, int, int]  # least and largest stored value as signed bytes, and what makes them stored ones

    def fields(self, call: CCall) -> Fields:
        """The fields of ew_dsp_sums."""
        groups, words = self.weights.shape
        rows = WeightRows((words // self.taps,) * groups, self.taps)
        weights, pitch = call.add_rows(self.weights, "weights, pairs of channels as 256 * b + a", rows)
        low, high, up = self.limits
        return {
            "weights": weights,
            "channels": call.add(self.channels, f"numbers of each channel ({self.numbers.kind})"),
            "count": self.count,
            "taps": self.taps,
            "left": self.numbers.left,
            "shift": self.numbers.shift,
            "low": low,
            "high": high,
            "flip": up,
            "numbers": self.channels.shape[1],
            **pitch,
        }


def packed(site: Site, runs: Array, channels: Interval, group: int, is_raw: bool) -> PackedChannels | None:
    """These channels in the kernels' format, or None where their numbers do not fit it.

    `runs` are the weights (channels, runs, taps of a run), and `group` channels are multiplied at once. With `is_raw`,
    x keeps its zero point.
    """
    (first, last), sums = channels, requantised(site)
    if sums is None:
        return None
    up = flip(site.result)
    order = overlapping(last - first, group)
    weights = grouped(runs[first:last][order], group)
    if weights is None or max(weights.shape[1] * 2 // group, last - first) > LARGEST:
        return None
    numbers = layer_numbers(site, is_raw)
    if numbers is None:
        return None
    each = numbers.channels[first:last][order]
    each = np.pad(each, ((0, max(0, group - len(each))), (0, 0)), "edge")  # kernels finish whole groups
    limits = sums.rule.low - up, sums.rule.high - up, up
    taps = weights.shape[1] * 2 // group
    return PackedChannels(weights, each, last - first, taps, sums.zero - flip(site.inputs[0].tensor), numbers, limits)


def layer_numbers(site: Site, is_raw: bool) -> ChannelScaling | None:
    """The scaling of the whole layer's sums, searched for once."""
    sums = requantised(site)
    if sums is None:
        return None
    if not site.facts.exact:
        return ChannelScaling("general", np.zeros((len(sums.weights), 4), np.int32), 0, 0)
    base = sums.bias - (sums.zero * sums.weights.sum(axis=1, dtype=np.int64) if is_raw else 0)
    is_unsigned = is_raw and site.inputs[0].tensor.dtype is DType.UINT8

    def found() -> ChannelScaling | None:
        own, larger = channel_scaling(site, sums, base, is_unsigned), larger_layer(site, is_raw)
        of_all = layer_numbers(larger, is_raw) if larger is not None else None
        if own is None or of_all is None or of_all.kind != own.kind:
            return own
        return replace(of_all, channels=of_all.channels[: len(own.channels)])  # which is stored already

    return site.facts.once(("dsp", is_raw), found)


def packs(site: Site, runs: Array, group: int, is_raw: bool) -> bool:
    """Whether the channels of all calls can be packed."""
    if not site.facts.exact:
        return bool(site.ranges) and requantised(site) is not None
    return bool(site.ranges) and all(packed(site, runs, r.channels, group, is_raw) for r in site.ranges)


def packs_fours(site: Site, taps: int) -> bool:
    """Whether the channels of all calls can be packed for the kernels that read `taps` contiguous bytes."""
    weights = site.weights.reshape(-1, taps)
    return packs(site, overlapped(weights)[:, None] if site.facts.exact else weights, group=4, is_raw=True)


def packed_fours(site: Site, taps: int, channels: Interval, weights: Array | None = None) -> PackedChannels | None:
    """These channels packed for the kernels that read `taps` contiguous bytes; `weights` in the order of these."""
    rows = (site.weights if weights is None else weights).reshape(-1, taps)
    return packed(site, overlapped(rows)[:, None], channels, group=4, is_raw=True)


def fours_kernel(site: Site) -> str:
    """The name of the kernel that multiplies four channels."""
    numbers = unwrap(layer_numbers(site, is_raw=True))
    return f"dsp_fours_{'unsigned_' if site.inputs[0].tensor.dtype is DType.UINT8 else ''}{numbers.kind}"


def overlapping(count: int, group: int) -> list[int]:
    """The indices of `count` things in whole groups: the first group, then all after the rest. Few come as they are.

    >>> overlapping(5, 2)
    [0, 1, 1, 2, 3, 4]
    """
    rest = count % group
    return list(range(group)) + list(range(rest, count)) if rest and count > group else list(range(count))


def overlapped(weights: Array) -> Array:
    """Vectors (channels, features) in fours as the dense kernels read x: what is read twice counts once."""
    features = weights.shape[1]
    order = overlapping(features, 4)
    result = weights[:, order]
    if features > 4:
        result[:, 4 : 4 + (-features) % 4] = 0
    return result


def grouped(runs: Array, group: int) -> Array | None:
    """(groups, taps * group / 2): for each two taps a word for each pair of channels of the group.

    Each half of a word is 256 * b + a; None if that leaves 16 bits. Missing taps and channels are zeros.
    """
    taps = np.pad(runs, [(0, -len(runs) % group), (0, 0), (0, -runs.shape[2] % 4)]).astype(np.int32)
    taps = taps.reshape(len(taps), -1, 4)[:, :, ORDER].reshape(len(taps), -1, 2)
    both = 256 * taps[1::2] + taps[0::2]
    if both.size and both.min() < -(1 << 15):
        return None
    words = both.astype(np.int16).reshape(-1, group // 2, *both.shape[1:])
    return words.transpose(0, 2, 1, 3).reshape(len(words), -1)
