"""What layers of products ask of a core, whole or part by part added to running sums."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, prod

from ...network import Arithmetic, Region
from ...network.operators import Conv2d
from ...network.operators.partial_sums import partial_needs
from ...platform.target import TARGETS
from ...program import Sweep
from ...program.selection import Offer
from ..site import Site
from ..window import axes, round_up
from .loops import WindowLoops
from .work import (
    SHORT,
    Amounts,
    ConvPart,
    KernelWork,
    activation_work,
    is_circular,
    is_small,
    rounding,
    scaling,
    type_of,
    unrounded_type,
)
from .zeros import shares_of_zeros

FEW = {1: "single ", 2: "double "}  # products of a tap for which there is no loop


def dense_work(site: Site, region: Region, how: str, depth: int = 1, width: int = 1) -> KernelWork:
    """Rows of a dense layer, `depth` taps and `width` channels at a time."""
    taps, channels, rows = site.shapes[1][-1], region.shape[-1], prod(region.shape[:-1])
    done = rows * round_up(channels, width)
    amounts: Amounts = {"calls": 1, "rows": rows, "macs": done * round_up(taps, depth), "taps": rows * taps}
    return KernelWork("dense int8", amounts | {f"outputs {how}": done})


@dataclass(frozen=True, slots=True)
class _Windows:
    """What of the windows of a product layer's outputs meets the image."""

    pixels: int
    lines: int  # rows of windows
    taps: int
    depth: int  # products of a tap

    @staticmethod
    def of(site: Site, region: Region) -> _Windows:
        op, shapes, pixels = site.op, site.shapes, prod(region.shape[:-1])
        if not isinstance(op, Conv2d):
            depth = shapes[0][-1]
            taps = op.macs(region, shapes) // max(1, depth * region.shape[-1])  # of a transposed convolution, many
            return _Windows(pixels, taps, taps, depth)
        rows, columns = axes(op, shapes[1][1:3], shapes[0])
        met, batch = rows.taps(region.bounds[1]), region.shape[0]
        taps = met * columns.taps(region.bounds[2])
        return _Windows(pixels, batch * met * region.shape[2], batch * taps, shapes[1][3])


def _multiplied(site: Site, macs: float) -> Amounts:
    """Products; those with zeros apart where functions multiply real numbers, which are soon done with zeros."""
    if not site.inputs[0].tensor.dtype.is_float or TARGETS[site.facts.target.name].has_fpu:
        return {"macs": macs}
    zeros = site.facts.of_network("zeros", lambda: shares_of_zeros(site.network))
    share = zeros.get(site.inputs[0].tensor.name, 0.0)
    return {"macs": (1 - share) * macs, "zero macs": share * macs}


def real_work(site: Site, region: Region) -> KernelWork:
    """Products of real numbers, four channels at a time; weights of channels that a last block lacks are zero."""
    met, channels = _Windows.of(site, region), region.shape[-1]
    blocks, products = -(-channels // 4), met.taps * met.depth
    is_run = not isinstance(site.op, Conv2d) or site.op.dilation[1] == 1
    runs = blocks * (met.lines if is_run else met.taps)
    after = activation_work(site, region)
    amounts: Amounts = {
        "calls": 1,
        "pixels": met.pixels,
        "blocks": met.pixels * blocks,
        "runs": runs,
        "circular runs": runs if is_circular(site) else 0,
        "outputs": region.size,
        "stored twice": region.size if after else 0,
        "empty macs": (4 * blocks - channels) * products,
    }
    amounts |= after | _multiplied(site, channels * products)
    return KernelWork(f"{'conv' if isinstance(site.op, Conv2d) else 'dense'} {type_of(site)}", amounts)


def loops_work(site: Site, region: Region) -> KernelWork:
    """Products in plain loops, an output at a time.

    A single product of a tap has no loop; two are written out by all compilers, a few by some. Where there are two
    loops over taps, or clipped ones, registers are short inside them.
    """
    met, channels = _Windows.of(site, region), region.shape[-1]
    taps, small, is_plane = met.taps * channels, is_small(site), site.sweep is Sweep.CHANNELS
    is_nested, is_clipped, clips_columns = True, False, False
    if isinstance(site.op, Conv2d):
        window = WindowLoops.of(site, axes(site.op, site.shapes[1][1:3], site.shapes[0]), region)
        is_nested, is_clipped, clips_columns = window.is_nested, window.is_clipped, window.columns.rounds is None
    how = FEW.get(met.depth, "short " if met.depth <= SHORT else "")
    amounts: Amounts = {
        "calls": 1,
        "pixels": 0 if is_plane else met.pixels,
        "clipped pixels": met.pixels if clips_columns else 0,
        "planes": region.size if is_plane else 0,  # elements that are moved from where they were computed
        "runs": met.lines * channels if is_nested else 0,
        "taps": taps,
        "circular runs": taps if is_circular(site) else 0,
        "nested macs": taps * met.depth if is_nested else 0,
        "clipped macs": taps * met.depth if is_clipped else 0,
        _stored(site) if small else "outputs": region.size,
    }
    products = _multiplied(site, taps * met.depth)
    amounts |= activation_work(site, region) | {f"{how}{key}": value for key, value in products.items()}
    name = "windows" if isinstance(site.op, Conv2d) else type(site.op).__name__.lower()  # in groups and not
    return KernelWork(f"loops-{name} {'bytes' if small else type_of(site)}", amounts)


def _stored(site: Site) -> str:
    """The amount that outputs are, by whose rounding they follow, and whether channels are shifted by numbers of their
    own, which takes a call where one number for all is written out."""
    return f"outputs {rounding(site)}{' shifted' if site.facts.once('shifts', lambda: _has_shifts(site)) else ''}"


def _has_shifts(site: Site) -> bool:
    x, w, y = (tensor.quant for tensor in (*(place.tensor for place in site.inputs[:2]), site.result))
    if site.arithmetic is not Arithmetic.TFLITE or x is None or w is None or y is None:
        return False
    return len({frexp(x.scale[0] * scale / y.scale[0])[1] for scale in w.scale}) > 1


def _read(site: Site, region: Region, partial: Region | None) -> Region:
    assert partial is not None
    return partial_needs(site.op, region, site.shapes, partial)[0]


def add_conv_work(site: Site, _: Offer, region: Region, partial: Region | None) -> KernelWork:
    """Part of a convolution added to its running sums, tap by tap."""
    assert isinstance(site.op, Conv2d)
    part = ConvPart(site, region, _read(site, region, partial).shape[-1])
    amounts: Amounts = {"calls": 1, "pixels": part.pixels, "outputs": region.size}
    taps = part.pixels * part.channels * part.window
    amounts |= {"taps": taps, "macs": part.pixels * part.channels * part.taps}
    return KernelWork(f"sums-conv {unrounded_type(site)}", amounts)


def add_dense_work(site: Site, _: Offer, region: Region, partial: Region | None, multiple: int = 1) -> KernelWork:
    """Part of a dense layer added to its running sums, `multiple` taps and channels at a time."""
    rows = prod(region.shape[:-1])
    done = rows * round_up(region.shape[-1], multiple)
    macs = done * round_up(_read(site, region, partial).shape[-1], multiple)
    return KernelWork(f"sums-dense {unrounded_type(site)}", {"calls": 1, "rows": rows, "outputs": done, "macs": macs})


def add_mean_work(site: Site, _: Offer, region: Region, partial: Region | None) -> KernelWork:
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
    return KernelWork(f"sums-mean {unrounded_type(site)}", amounts)


def finish_mean_work(site: Site, _: Offer, __: Region, ___: Region | None) -> KernelWork:
    return _finish_work(site, "finish-mean", "outputs")


def finish_scaled_work(site: Site, _: Offer, __: Region, ___: Region | None) -> KernelWork:
    return finish_work(site, scaling(site))


def finish_work(site: Site, how: str) -> KernelWork:
    return _finish_work(site, "finish", f"outputs {how}" if is_small(site) else "outputs")


def _finish_work(site: Site, name: str, outputs: str) -> KernelWork:
    """Each sum is zeroed at first, and scaled and stored at last."""
    y = site.result
    return KernelWork(f"{name} {type_of(site)}", {"calls": 1, "pixels": prod(y.shape[:-1]), outputs: y.size})
