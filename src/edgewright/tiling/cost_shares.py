"""Work of running sums: shares that are added to them, and what becomes of them at the end."""

from __future__ import annotations

from math import prod

from ..kernels.dsp import conv as dsp_rows
from ..network import Layer, Region
from ..network.operators import Conv2d, Dense
from ..network.operators.shares import share_needs
from ..platform.target import Family
from .cost_facts import Facts
from .cost_geometry import Setting, up
from .cost_products import Amounts, Part


def added(facts: Facts, layer: Layer, region: Region, share: Region, setting: Setting) -> tuple[str, Amounts]:
    """The kind of kernel that adds a share, without the type of its elements, and its amounts."""
    shapes = facts.network.shapes(layer)
    read = share_needs(layer.op, region, shapes, share)[0]
    is_paired = facts.is_small(layer) and facts.target.family in (Family.DSP, Family.HELIUM)
    match layer.op:
        case Conv2d() if is_paired:
            return _by_pairs(Part(facts, layer, region, setting.is_bent, read.shape[-1]), setting.room)
        case Conv2d():
            part = Part(facts, layer, region, setting.is_bent, read.shape[-1])
            macs = part.pixels * part.channels * part.taps
            taps = part.pixels * part.channels * prod(shapes[1][1:3])
            amounts: Amounts = {"calls": 1, "pixels": part.pixels, "outputs": region.size}
            return "sums-conv", amounts | {"taps": taps, "macs": macs}
        case Dense():
            multiple = 4 if is_paired else 1
            rows = prod(region.shape[:-1])
            done = rows * up(region.shape[-1], multiple)
            macs = done * up(read.shape[-1], multiple)
            return "sums-dense", {"calls": 1, "rows": rows, "outputs": done, "macs": macs}
        case _:
            return "sums-mean", _mean(read)


def finished(facts: Facts, layer: Layer) -> tuple[str, Amounts]:
    """The kind of kernel that zeroes sums and makes them output, without the type of its elements, and its amounts."""
    y = facts.output(layer)
    is_product = isinstance(layer.op, Conv2d | Dense)
    how = f"outputs {facts.scaling(layer)}" if is_product and facts.is_small(layer) else "outputs"
    return "finish" if is_product else "finish-mean", {"calls": 1, "pixels": prod(y.shape[:-1]), how: y.size}


def _by_pairs(part: Part, room: int) -> tuple[str, Amounts]:
    """Two pixels and two channels at a time; in several goes where memory for their columns is short."""
    most = max(4, max(dsp_rows.STACK, room) // (4 * part.window) // 4 * 4)
    goes = -(-part.depth // most)
    done = up(part.pixels, 2) * up(part.channels, 2)
    amounts = part.common(2, 4) | {
        "macs": done * part.runs * up(part.run, 4),
        "outputs": done * goes,
        "pixels": part.pixels * goes,
        "goes": goes,
        "odd": part.pixels * (part.channels % 2),
    }
    return f"sums-{'points' if part.is_pointwise else 'windows'}", amounts


def _mean(read: Region) -> Amounts:
    lines, (pixels, channels) = prod(read.shape[:-2]), (1, *read.shape)[-2:]
    fours, rest = divmod(channels, 4)
    return {
        "calls": 1,
        "lines": lines,
        "blocks": lines * (fours + rest),
        "reads": lines * pixels * 4 * fours,
        "odd reads": lines * pixels * rest,
    }
