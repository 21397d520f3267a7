"""Work of running sums: parts that are added to them, and what becomes of them at the end."""

from __future__ import annotations

from math import prod

from ...network import Region
from ...network.operators import Conv2d
from ...network.operators.shares import share_needs
from ..site import Site
from ..window import up
from .work import Amounts, ConvPart, KernelWork, is_small, type_of


def _read(site: Site, region: Region, partial: Region | None) -> Region:
    assert partial is not None
    return share_needs(site.op, region, site.shapes, partial)[0]


def add_conv_work(site: Site, region: Region, partial: Region | None) -> KernelWork:
    """Tap by tap."""
    assert isinstance(site.op, Conv2d)
    part = ConvPart(site, region, _read(site, region, partial).shape[-1])
    amounts: Amounts = {"calls": 1, "pixels": part.pixels, "outputs": region.size}
    taps = part.pixels * part.channels * part.window
    amounts |= {"taps": taps, "macs": part.pixels * part.channels * part.taps}
    return KernelWork(f"sums-conv {type_of(site)}", amounts)


def add_dense_work(site: Site, region: Region, partial: Region | None, multiple: int = 1) -> KernelWork:
    """So many taps and channels at a time."""
    rows = prod(region.shape[:-1])
    done = rows * up(region.shape[-1], multiple)
    macs = done * up(_read(site, region, partial).shape[-1], multiple)
    return KernelWork(f"sums-dense {type_of(site)}", {"calls": 1, "rows": rows, "outputs": done, "macs": macs})


def add_mean_work(site: Site, region: Region, partial: Region | None) -> KernelWork:
    read = _read(site, region, partial)
    lines, (pixels, channels) = prod(read.shape[:-2]), (1, *read.shape)[-2:]
    fours, rest = divmod(channels, 4)
    amounts: Amounts = {
        "calls": 1,
        "lines": lines,
        "blocks": lines * (fours + rest),
        "reads": lines * pixels * 4 * fours,
        "odd reads": lines * pixels * rest,
    }
    return KernelWork(f"sums-mean {type_of(site)}", amounts)


def finish_work(site: Site, how: str | None) -> KernelWork:
    """Each sum is zeroed at first, and scaled and stored at last."""
    y = site.result
    name = "finish" if how is not None else "finish-mean"
    outputs = f"outputs {how}" if how and is_small(site) else "outputs"
    return KernelWork(f"{name} {type_of(site)}", {"calls": 1, "pixels": prod(y.shape[:-1]), outputs: y.size})
