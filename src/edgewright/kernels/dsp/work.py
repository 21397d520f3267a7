"""What the kernels for pairs of 16-bit products do: blocks of pixels and channels, windows gathered for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...network import Region
from ...network.operators import Conv2d, Dense
from ...network.operators.partial_sums import partial_needs
from ..cost.products import dense_work
from ..cost.work import Amounts, ConvPart, KernelWork, is_narrow, scaling, unrounded_type
from ..kernel import Offer
from ..site import Site
from ..window import round_up
from .packing import layer_numbers


def stored_how(site: Site, is_raw: bool = False) -> str:
    """How sums become bytes: which of the kernels' ways is taken, or most often is where that was not searched for."""
    if not site.facts.exact:
        return "general" if scaling(site) == "signed" or is_narrow(site) else "plain"
    numbers = layer_numbers(site, is_raw)
    return numbers.kind if numbers else "plain"


def conv(site: Site, offer: Offer, region: Region, _: Region | None) -> KernelWork:
    """Two pixels and two channels at a time."""
    part, how = ConvPart(site, region), stored_how(site)
    padded = part.runs * round_up(part.run, 4)
    if offer["row"]:
        return _row(part, how, padded, offer["pixels"] == 3)
    done = round_up(part.pixels, 2) * round_up(part.channels, 2)
    amounts = _gathered(part) | {"macs": done * padded, "odd": part.pixels * (part.channels % 2)}
    return KernelWork("conv int8", amounts | {f"outputs {how}": done})


def _gathered(part: ConvPart) -> Amounts:
    """Windows gathered for pairs of pixels, word by word; at edges with checks of bounds, cut words byte by byte.

    A last pixel without a partner is its own: its window is gathered twice.
    """
    rows, (left, right) = range(*part.bounds[1]), part.sides
    above, below = part.down.outside(part.bounds[1])
    edge_rows = (*rows[:above], *rows[len(rows) - below :])
    sides = (*range(left), *range(part.columns - right, part.columns))
    careful = _paired(sides, part.columns, part.rows)
    edges = part.inner_rows * sum(careful.values()) + len(edge_rows) * part.batch * part.columns
    cut = {column: _cut_bytes(part, part.bounds[2][0] + column) for column in careful}
    inside = part.run % 4 if part.run == part.across.kernel * part.depth else part.across.kernel * (part.depth % 4)
    in_row = sum(cut[column] for column in sides) + (part.columns - len(sides)) * inside
    taps = part.batch * sum(part.down.taps((row, row + 1)) for row in edge_rows)
    beside = sum(share * cut[column] for column, share in careful.items())
    cut_bytes = taps * in_row + part.inner_rows * part.down.kernel * beside
    windows, last = round_up(part.pixels, 2), part.columns - 1
    if windows > part.pixels and (rows[-1] in edge_rows or last in sides):
        edges += 1
        cut_bytes += part.down.taps((rows[-1], rows[-1] + 1)) * cut.get(last, inside)
    return part.gathering(edges, 4, windows) | {"edge bytes": cut_bytes, "pairs": windows / 2}


def _paired(sides: Sequence[int], columns: int, rows: int) -> Mapping[int, float]:
    """For each column how often it is paired with one at an edge; in rows of odd length pairs cross their ends."""
    begins = (0, 1) if columns % 2 and rows > 1 else (0,)  # where the first pair of a row begins
    found: dict[int, float] = {}
    for begin in begins:
        partners = ((side - begin ^ 1) + begin for side in sides)
        there = {column % columns if len(begins) > 1 else min(column, columns - 1) for column in (*sides, *partners)}
        for column in there:
            found[column] = found.get(column, 0.0) + 1 / len(begins)
    return found


def _cut_bytes(part: ConvPart, column: int) -> int:
    """Bytes that are copied one by one, since their word is partly outside the image, over a row of the window."""
    across = part.across
    at = column * across.stride - across.pad
    if part.run == across.kernel * part.depth:
        begin, end = max(0, -at) * part.depth, min(across.kernel, across.size - at) * part.depth
        return max(0, end - begin) - 4 * max(0, end // 4 - round_up(begin, 4) // 4)
    return across.taps((column, column + 1)) * (part.depth % 4)


def _row(part: ConvPart, how: str, taps: int, has_threes: bool) -> KernelWork:
    """A row of a pointwise layer: two pixels at a time, of an odd number the last three."""
    threes = 3 * part.rows if has_threes and part.columns > 2 and part.columns % 2 else 0
    pairs = part.rows * round_up(part.columns, 2) if not threes else part.pixels - threes
    amounts = {
        "calls": 1,
        "pixels": pairs,
        "words": pairs * taps / 4,
        "cut words": part.pixels if part.depth % 4 else 0,
        "macs": pairs * round_up(part.channels, 2) * taps,
        "odd": part.pixels * (part.channels % 2),
        "threes": threes / 3,
        "threes words": threes * taps / 4,
        "threes macs": threes * part.channels * taps,
        f"threes outputs {how}": threes * part.channels,
        f"outputs {how}": pairs * round_up(part.channels, 2),
    }
    return KernelWork("conv-row int8", amounts)


def small_dense(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    taps, channels = site.shapes[1][-1], round_up(region.shape[-1], 2)
    amounts: Amounts = {"calls": 1, "words": round_up(taps, 4) / 4, "macs": channels * round_up(taps, 4)}
    return KernelWork("small-dense int8", amounts | {f"outputs {stored_how(site)}": channels})


def pixels(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """A pixel and four channels at a time."""
    if isinstance(site.op, Dense):
        return dense_work(site, region, stored_how(site, is_raw=True), depth=4, width=4)
    part = ConvPart(site, region)
    return KernelWork("tight-pointwise int8", _fours(site, part))


def windows(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """A window copied for each pixel, run by run; runs that do not meet the image are only filled."""
    part = ConvPart(site, region)
    across = part.across.taps(part.bounds[2]) if part.runs > part.down.kernel else part.columns
    met = part.batch * part.down.taps(part.bounds[1]) * across
    copied = {"runs": met, "outside runs": part.pixels * part.runs - met, "words": part.pixels * part.taps / 4}
    return KernelWork("tight-conv int8", _fours(site, part) | copied)


def _fours(site: Site, part: ConvPart) -> Amounts:
    done = part.pixels * round_up(part.channels, 4)
    return {
        "calls": 1,
        "rows": part.rows,
        "pixels": part.pixels,
        "macs": done * round_up(part.taps, 4),
        f"outputs {stored_how(site, is_raw=True)}": done,
        "odd": part.pixels * bool(part.channels % 4),
    }


def add_conv(site: Site, offer: Offer, region: Region, partial: Region | None) -> KernelWork:
    """Two pixels and two channels at a time; in several goes where memory for their columns is short."""
    assert isinstance(site.op, Conv2d) and partial is not None
    part = ConvPart(site, region, partial_needs(site.op, region, site.shapes, partial)[0].shape[-1])
    goes = -(-part.depth // offer["depth"])
    done = round_up(part.pixels, 2) * round_up(part.channels, 2)
    amounts = _gathered(part) | {
        "macs": done * part.runs * round_up(part.run, 4),
        "outputs": done * goes,
        "pixels": part.pixels * goes,
        "goes": goes,
        "odd": part.pixels * (part.channels % 2),
    }
    return KernelWork(f"sums-{'points' if part.is_pointwise else 'windows'} {unrounded_type(site)}", amounts)
