"""What the kernels of microcontrollers in plain C do: blocks of pixels and channels."""

from __future__ import annotations

from ...network import DType, Region
from ...network.operators import Dense
from ..cost.products import dense_work
from ..cost.work import Amounts, ConvPart, KernelWork, scaling
from ..kernel import Offer
from ..site import Site
from ..window import round_up
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
    amounts |= {"circular runs": runs if part.is_circular else 0, "words": words, "bytes": runs * part.run - 4 * words}
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
            "macs": 4 * fours * part.channels * round_up(part.taps, 2),
            "single macs": ones * part.channels * round_up(part.taps, 2),
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
