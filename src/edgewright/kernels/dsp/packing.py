"""Weights as the kernels of `dsp` multiply them, and the tables of their channels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...network import Array
from ...network.tensor import DType
from ..call import Call as Site
from ..printing.source import Expr
from ..requantise.sums import sums_of
from .numbers import numbers_of

ORDER = [0, 2, 1, 3]  # of four taps: SXTB16 takes bytes 0 and 2, then 1 and 3


LARGEST = (1 << 15) - 1  # of the sizes that tables hold


@dataclass(frozen=True)
class Packed:
    fields: tuple[Expr, ...]  # of ew_dsp_sums
    first: int  # channel of the step
    count: int  # of channels
    zero: int  # of x as a signed byte
    kind: str  # of the kernels, see `dsp_numbers`


def packed(site: Site, runs: Array, group: int, is_raw: bool) -> Packed | None:
    """The layer as the kernels want it, or None when it does not fit them.

    `runs` are the weights (channels, runs, taps of a run), `group` channels are multiplied at once. `is_raw`: x keeps
    its zero point.
    """
    first, last = site.region[-1]
    sums = sums_of(site)
    if sums is None or not isinstance(first, int) or not isinstance(last, int):
        return None
    x_flip, flip = (128 if tensor.dtype is DType.UINT8 else 0 for tensor in (site.inputs[0].tensor, site.result))
    base = sums.bias - (sums.zero * sums.weights.sum(axis=1, dtype=np.int64) if is_raw else 0)
    order = overlapping(last - first, group)
    weights = grouped(runs[first:last][order], group)
    if weights is None or max(weights.shape[1] * 2 // group, last - first) > LARGEST:
        return None
    numbers = numbers_of(site, sums, base, is_unsigned=is_raw and x_flip > 0)
    if numbers is None:
        return None
    add, channels = site.unit.constants.add, numbers.channels[first:last][order]
    channels = np.pad(
        channels, ((0, max(0, group - len(channels))), (0, 0)), "edge"
    )  # kernels finish whole groups
    fields = (
        add(weights, f"{site.layer.name}: weights, pairs of channels as 256 * b + a"),
        add(channels, f"{site.layer.name}: numbers of each channel ({numbers.kind})"),
        *(last - first, weights.shape[1] * 2 // group, numbers.left, numbers.shift),
        *(sums.rule.low - flip, sums.rule.high - flip, flip, channels.shape[1]),
    )
    return Packed(fields, first, last - first, sums.zero - x_flip, numbers.kind)


def packed_fours(site: Site, taps: int) -> tuple[Packed, str] | None:
    """The layer for kernels that take `taps` bytes as they lie, and the name of the kernel."""
    weights = site.network.constants[site.inputs[1].tensor.name].reshape(-1, taps)
    made = packed(site, overlapped(weights)[:, None], group=4, is_raw=True)
    if made is None:
        return None
    return made, f"dsp_fours_{'unsigned_' if site.inputs[0].tensor.dtype is DType.UINT8 else ''}{made.kind}"


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
