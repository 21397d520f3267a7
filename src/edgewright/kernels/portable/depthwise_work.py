"""What the kernels of depthwise layers do: lines of outputs, the columns that windows share, rows that are gathered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...network import DType, Interval, Region
from ...network.operators import Conv2d
from ..cost.work import Amounts, KernelWork, is_narrow, scaling
from ..kernel import Offer
from ..site import Site
from ..window import WindowAxis, axes, round_up


@dataclass(frozen=True, slots=True)
class _Part:
    """Part of a depthwise convolution, and in which blocks it is computed."""

    rows: Interval
    columns: Interval
    channels: int
    down: WindowAxis
    across: WindowAxis
    is_signed: bool  # sums below zero are rounded otherwise
    is_settled: bool  # outputs are gone over once more
    block: tuple[int, int] | None = None  # rows and columns computed aside before the first is written

    @property
    def is_3x3(self) -> bool:
        """Whether the kernels for 3x3 windows take it."""
        return self.down.kernel == self.across.kernel == 3 and self.across.stride in (1, 2) and not self.is_signed

    @property
    def turned(self) -> _Part:
        return replace(self, rows=self.columns, columns=self.rows, down=self.across, across=self.down)

    @property
    def most(self) -> tuple[int, int]:
        """Rows and columns of a block."""
        return self.block or (_length(self.rows), _length(self.columns))

    @property
    def bands(self) -> list[Interval]:
        """The rows of each block."""
        return [*_pieces(self.rows, self.most[0])]

    @property
    def strips(self) -> list[Interval]:
        """The columns of each block."""
        return [*_pieces(self.columns, self.most[1])]


def _length(span: Interval) -> int:
    return span[1] - span[0]


def _pieces(span: Interval, size: int) -> Iterator[Interval]:
    return ((low, min(low + size, span[1])) for low in range(*span, size))


def _part(site: Site, offer: Offer, region: Region) -> _Part:
    shape, weights = site.shapes[:2]
    down, across = (_spread(axis) for axis in axes(site.op_as(Conv2d), weights[1:3], shape))
    settled = is_narrow(site) or site.result.dtype is DType.UINT8
    _, rows, columns, _ = region.bounds
    part = _Part(rows, columns, region.shape[3], down, across, scaling(site) == "signed", settled)
    given = dict(offer.variant)
    if given.get("exchanged"):
        part = part.turned
    return replace(part, block=(given["rows"], given["columns"])) if given.get("rows") else part


def _spread(axis: WindowAxis) -> WindowAxis:
    """The same with dilation written out, as the weights are."""
    if axis.dilation == 1:
        return axis
    return replace(axis, kernel=(axis.kernel - 1) * axis.dilation + 1, dilation=1)


def depthwise_rows(site: Site, offer: Offer, region: Region, *, has_own_shifts: bool) -> KernelWork:
    """Line by line, each channel begun again; with care where it has a shift of its own, or rows are outside."""
    part = _part(site, offer, region)
    amounts = _carried(part)
    amounts["careful lines"] = amounts["lines" if has_own_shifts else "edge lines"]
    del amounts["channels"]
    return KernelWork(f"depthwise-rows-{part.across.stride} int8", amounts)


def depthwise_direct(site: Site, offer: Offer, region: Region, _: Region | None) -> KernelWork:
    """From where rows lie; the row above a window may be kept aside, and is filled for every block."""
    part = _part(site, offer, region)
    if not offer["line"]:
        return KernelWork(f"depthwise-direct-{part.across.stride} int8", _carried(part))
    width = sum(part.across.covered(_length(strip)) for strip in part.strips)
    kept = part.channels * len(part.bands) * width
    return KernelWork("depthwise-direct-kept int8", _carried(part) | {"kept": kept})


def _carried(part: _Part) -> Amounts:
    """Lines along which sums of the next windows are carried, so that each column is read once.

    A column to the left of the image takes fewer instructions than one that is read, and so does one to the right,
    which ends a line; of lines at the upper and the lower edge the padding is summed first.
    """
    outside = [part.across.outside(strip) for strip in part.strips]
    left, right = (sum(map(bool, ends)) for ends in zip(*outside, strict=True))
    lines, rows = part.channels * _length(part.rows), part.channels * sum(part.down.outside(part.rows))
    amounts = _lines(part)
    return amounts | {
        "outputs": amounts["outputs"] - lines * right,
        "last outputs": lines * right,
        "first columns": amounts["lines"] - lines * left,
        "edge lines": rows * len(outside),
        "rows": _length(part.rows) * len(outside),
    }


def depthwise_ring(site: Site, offer: Offer, region: Region, _: Region | None) -> KernelWork:
    """One channel at a time, from rows that are gathered: all of a block at once, or as a ring goes round."""
    part, is_whole = _part(site, offer, region), bool(offer["whole"])
    tall, wide = part.most
    pitch = round_up((round_up(wide, 2) - 1) * part.across.stride + round_up(part.across.kernel, 2), 2)
    slots = (tall - 1) * part.down.stride + part.down.kernel if is_whole else part.down.kernel
    bands, strips = part.bands, part.strips
    pairs = part.channels * _length(part.rows) * sum(round_up(_length(strip), 2) for strip in strips)
    read = [part.down.kernel + (_length(band) - 1) * part.down.stride for band in bands]
    gathered = [_inside(part.down, band, slots if is_whole else rows) for band, rows in zip(bands, read, strict=True)]
    inside = [_inside(part.across, strip, pitch) for strip in strips]
    gathers, amounts = part.channels * sum(gathered), _lines(part)
    amounts |= {
        "outputs": pairs,
        "ring lines": 0 if is_whole else amounts["lines"],
        "gathers": gathers * len(strips),
        "gathered": gathers * sum(count - count % 4 for count in inside),
        "gathered singly": gathers * sum(count % 4 for count in inside),
        "padded": 0 if is_whole else part.channels * (sum(read) - sum(gathered)) * sum(inside),
        "filled": len(bands) * len(strips) * slots * pitch,
    }
    if part.is_3x3:
        return KernelWork(f"depthwise-ring-{part.across.stride} int8", amounts)
    amounts["signed"] = pairs if part.is_signed else 0
    amounts["taps"] = pairs * part.down.kernel * round_up(part.across.kernel, 2)
    amounts["weights"] = part.channels * len(bands) * len(strips) * part.down.kernel * part.across.kernel
    amounts["tap lines"] = pairs * part.down.kernel
    return KernelWork("depthwise-any int8", amounts)


def _inside(axis: WindowAxis, out: Interval, count: int) -> int:
    """How many of so many indices, the first of which these outputs' windows begin with, the image has."""
    first = out[0] * axis.stride - axis.pad
    return max(0, min(axis.size, first + count) - max(0, first))


def _lines(part: _Part) -> Amounts:
    rows, columns, blocks = _length(part.rows), _length(part.columns), len(part.bands) * len(part.strips)
    size = rows * columns * part.channels
    is_kept = part.block is not None and part.block != (1, 1)
    return {
        "calls": 1,
        "blocks": blocks if part.block else 0,
        "channels": part.channels * blocks,
        "lines": part.channels * rows * len(part.strips),
        "outputs": size,
        "settled": size if part.is_settled else 0,
        "copies": rows * columns if is_kept else 0,
        "copied": size if is_kept else 0,
    }
