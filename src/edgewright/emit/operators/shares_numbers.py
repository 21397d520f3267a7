"""What the running sums of a layer become on cores with pairs of 16-bit products."""

from __future__ import annotations

import numpy as np

from ...network import Array
from ...network.tensor import DType
from ..site import Site
from ..sums import Sums, sums_of
from .dsp_numbers import Numbers, numbers_of
from .dsp_packing import LARGEST, grouped


def summed_numbers(site: Site, is_raw: bool) -> Numbers | None:
    """The numbers of each channel for sums that come in pairs; None where the kernels of `dsp` do not fit."""
    sums = sums_of(site) if site.inputs[1].is_constant else None
    if sums is None or len(sums.weights) > LARGEST or grouped(sums.weights[:, None], 2) is None:
        return None
    is_unsigned = is_raw and site.inputs[0].tensor.dtype is DType.UINT8
    return numbers_of(site, sums, missing(sums, is_raw), is_unsigned)


def missing(sums: Sums, is_raw: bool) -> Array:
    """(channels,): what the running sums lack: the bias, and the zero point of x where it is not taken off before."""
    return sums.bias - (sums.zero * sums.weights.sum(axis=1, dtype=np.int64) if is_raw else 0)
