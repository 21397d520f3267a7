"""What the kernels for M-profile vectors do."""

from __future__ import annotations

from math import prod

from ...network import Region
from ..cost.work import Amounts, ConvPart, KernelWork, dense_work, scaling
from ..kernel import Offer
from ..site import Site
from ..window import up


def conv(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """Sixteen taps at a time."""
    part, how = ConvPart(site, region), f"outputs {scaling(site)}"
    done = part.pixels * part.channels
    amounts = part.gathering(part.edges(1), 1) | {"macs": done * up(part.taps, 16), how: done}
    if part.is_pointwise:
        amounts = {key: amounts[key] for key in ("calls", "rows", "pixels", "macs", how)}
    return KernelWork(f"{'pointwise' if part.is_pointwise else 'conv'} int8", amounts)


def depthwise(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """Four channels in a vector, four vectors at a time."""
    rows, columns, channels = region.shape[1:]
    pixels, taps, fours = rows * columns, prod(site.shapes[1][1:]), up(channels, 4)
    sixteens, rest = divmod(fours, 16)
    amounts: Amounts = {
        "calls": 1,
        "lines": rows,
        "taps": pixels * taps,
        "blocks": pixels * (sixteens + bool(rest)),
        "block taps": pixels * (sixteens + bool(rest)) * taps,
        "outputs": pixels * fours,
        "macs": pixels * fours * taps,
    }
    return KernelWork("depthwise-vectors int8", amounts)


def dense(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    return dense_work(site, region, scaling(site), depth=16)
