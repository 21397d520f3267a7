"""What the kernels of microcontrollers in plain C do: blocks of pixels and channels; depthwise layers line by line."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...network import DType, Region
from ...network.operators import Conv2d, Dense
from ..cost.products import dense_work
from ..cost.work import Amounts, ConvPart, KernelWork, is_narrow, scaling
from ..kernel import Offer
from ..site import Site
from ..window import WindowAxis, axes, up
from .blocked import scaling_kind

DENSE_BLOCKS = (16, 4)  # channels at a time, then one by one


def stored_how(site: Site) -> str:
    """How sums become bytes; with wide offsets, and with float products, the sign of a sum makes no difference."""
    kind = scaling_kind(site)
    return scaling(site) if kind == "narrow" else kind


def _gathered(site: Site, part: ConvPart, block: int, single: int) -> Amounts:
    """Windows inside the image line by line, others tap by tap.

    Bytes are moved in fours, except those of lines' ends, of unsigned numbers and of `single` pixels.
    """
    is_spread = part.runs > part.down.kernel  # dilated: the bytes of a line are not contiguous
    edges = part.pixels if is_spread else part.edges(block)
    inner = part.pixels - edges
    in_fours = 0.0 if site.inputs[0].tensor.dtype is DType.UINT8 else 1 - single / max(1, part.pixels)
    runs = inner * part.runs
    words = in_fours * runs * (part.run // 4)
    amounts: Amounts = {"calls": 1, "rows": part.rows, "pixels": part.pixels, "runs": runs}
    amounts |= {"bent runs": runs if part.is_bent else 0, "words": words, "bytes": runs * part.run - 4 * words}
    if block > 1:  # of windows that leave the image, byte by byte
        return amounts | {"edge taps": edges * part.window, "edge bytes": edges * part.taps}
    met = part.batch * part.down.taps(part.bounds[1]) * part.across.taps(part.bounds[2]) - inner * part.window
    outside, moved = edges * part.window - met, in_fours * met * (part.depth // 4)
    return amounts | {
        "words": words + moved,
        "bytes": amounts["bytes"] + met * part.depth - 4 * moved,
        "edge taps": met,
        "outside taps": outside,
        "outside bytes": outside * part.depth,
    }


def conv(site: Site, offer: Offer, region: Region, _: Region | None) -> KernelWork:
    """Four pixels and four channels at a time, or one pixel where columns of four have no room."""
    if isinstance(site.op, Dense):
        return KernelWork("portable-rows int8", dense(site, offer, region, None).amounts)
    part, how = ConvPart(site, region), f"outputs {stored_how(site)}"
    if offer["pairs"]:
        fours, rest = divmod(part.pixels, 4)
        fours, ones = fours + (rest == 3), 0 if rest == 3 else rest
        amounts = _gathered(site, part, 2, 0) | {
            "macs": 4 * fours * part.channels * up(part.taps, 2),
            "single macs": ones * part.channels * up(part.taps, 2),
            how: (4 * fours + ones) * part.channels,
            "blocks": (fours + ones) * part.channels / 4,
        }
        return KernelWork("portable-pairs int8", amounts)
    is_blocked = offer["pixels"] > 1
    fours, ones = divmod(part.pixels, 4) if is_blocked else (0, part.pixels)
    wide, odd = divmod(part.channels, 4)
    amounts = _gathered(site, part, 1, ones) | {
        "macs": 16 * fours * wide * part.taps,
        "single macs": 4 * ones * wide * part.taps,
        "odd macs": 4 * fours * odd * part.taps,
        "single odd macs": ones * odd * part.taps,
        how: part.pixels * part.channels,
        "blocks": (fours + ones) * (wide + odd),
    }
    return KernelWork("portable-conv int8" if is_blocked else "portable-tight-conv int8", amounts)


def dense(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """One row: what smaller blocks of channels take more is an amount of its own."""
    amounts = dense_work(site, region, stored_how(site)).amounts
    rest, blocks, more = region.shape[-1], 0, {}
    for block in DENSE_BLOCKS:
        blocks, rest = blocks + rest // block, rest % block
        more[f"macs below {block}"] = amounts["taps"] * rest
    return KernelWork("portable-dense int8", {**amounts, **more, "blocks": amounts["rows"] * (blocks + rest)})


@dataclass(frozen=True, slots=True)
class _Part:
    """Part of a depthwise convolution, and in which blocks it is computed."""

    rows: int
    columns: int
    channels: int
    down: WindowAxis
    across: WindowAxis
    is_signed: bool  # sums below zero are rounded otherwise
    is_settled: bool  # outputs are gone over once more
    block: tuple[int, int] | None = None  # rows and columns computed aside before the first is written

    @property
    def is_nine(self) -> bool:
        """Whether the kernels for 3x3 windows take it."""
        return self.down.kernel == self.across.kernel == 3 and self.across.stride in (1, 2) and not self.is_signed

    @property
    def turned(self) -> _Part:
        return replace(self, rows=self.columns, columns=self.rows, down=self.across, across=self.down)


def _part(site: Site, offer: Offer, region: Region) -> _Part:
    (shape, weights), op = site.shapes[:2], site.op
    assert isinstance(op, Conv2d)
    down, across = (_spread(axis) for axis in axes(op, weights[1:3], shape))
    settled = is_narrow(site) or site.result.dtype is DType.UINT8
    _, rows, columns, channels = region.shape
    part = _Part(rows, columns, channels, down, across, scaling(site) == "signed", settled)
    given = dict(offer.variant)
    if given.get("exchanged"):
        part = part.turned
    return replace(part, block=(given["rows"], given["columns"])) if given.get("rows") else part


def _spread(axis: WindowAxis) -> WindowAxis:
    """The same with dilation written out, as the weights are."""
    if axis.dilation == 1:
        return axis
    return replace(axis, kernel=(axis.kernel - 1) * axis.dilation + 1, dilation=1)


def depthwise_rows(site: Site, offer: Offer, region: Region, _: Region | None) -> KernelWork:
    part = _part(site, offer, region)
    return KernelWork(f"depthwise-rows-{part.across.stride} int8", _lines(part))


def depthwise_direct(site: Site, offer: Offer, region: Region, _: Region | None) -> KernelWork:
    """From where rows lie; the row above a window may be kept aside, and is filled for every block."""
    part = _part(site, offer, region)
    if not offer["line"]:
        return KernelWork(f"depthwise-direct-{part.across.stride} int8", _lines(part))
    amounts = _lines(part)
    width = part.across.covered(part.block[1] if part.block else part.columns)
    return KernelWork("depthwise-direct-kept int8", amounts | {"kept": amounts["channels"] * width})


def depthwise_ring(site: Site, offer: Offer, region: Region, _: Region | None) -> KernelWork:
    """One channel at a time, from rows that are gathered."""
    part = _part(site, offer, region)
    tall, wide = part.block or (part.rows, part.columns)
    bands, strips = -(-part.rows // tall), -(-part.columns // wide)
    lines = part.channels * strips * bands * part.down.covered(tall)
    pairs = part.channels * part.rows * strips * up(wide, 2)
    amounts = _lines(part) | {"outputs": pairs, "gathers": lines, "gathered": lines * part.across.covered(wide)}
    if part.is_nine:
        return KernelWork(f"depthwise-ring-{part.across.stride} int8", amounts)
    amounts["signed"] = pairs if part.is_signed else 0
    amounts["taps"] = pairs * part.down.kernel * up(part.across.kernel, 2)
    amounts["weights"] = part.channels * bands * strips * part.down.kernel * part.across.kernel
    amounts["tap lines"] = pairs * part.down.kernel
    return KernelWork("depthwise-any int8", amounts)


def _lines(part: _Part) -> Amounts:
    tall, wide = part.block or (part.rows, part.columns)
    bands, strips = -(-part.rows // tall), -(-part.columns // wide)
    size = part.rows * part.columns * part.channels
    is_kept = part.block is not None and part.block != (1, 1)
    return {
        "calls": 1,
        "blocks": bands * strips if part.block else 0,
        "channels": part.channels * bands * strips,
        "lines": part.channels * part.rows * strips,
        "outputs": size,
        "settled": size if part.is_settled else 0,
        "copies": part.rows * part.columns if is_kept else 0,
        "copied": size if is_kept else 0,
    }
