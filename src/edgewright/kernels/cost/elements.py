"""What layers without weights ask of a core: pools, elements one by one, moves."""

from __future__ import annotations

from math import prod

from ...network import Region, Shape
from ...network.operators import ACTIVATIONS, AvgPool2d, Binary, Clamp, Concat, Gather, MaxPool2d, Reduce
from ..printing.nest import joined_axes
from ..site import Site
from ..window import WindowAxis, axes
from .work import ACTIVATION, KernelWork, activation_work, is_bent, type_of


def pool_work(site: Site, region: Region, *, in_loops: bool = False) -> KernelWork:
    """Windows of a pool, or of a mean over the whole image; `in_loops`: an output at a time."""
    op, shape = site.op, site.shapes[0]
    if isinstance(op, MaxPool2d | AvgPool2d):
        name, window = "max" if isinstance(op, MaxPool2d) else "average", axes(op, op.kernel, shape)
    else:
        name, window = "mean", (WindowAxis(shape[1], 1, 1, 0, shape[1]), WindowAxis(shape[2], 1, 1, 0, shape[2]))
        region = Region(((0, 1), (0, 1), (0, 1), region.bounds[-1]))
    rows, columns = window
    _, height, width, channels = region.shape
    pixels, met = height * width, rows.taps(region.bounds[1]) * columns.taps(region.bounds[2])
    lanes, rest = (0, channels) if in_loops else divmod(channels, 4)
    amounts = {
        "calls": 1,
        "pixels": pixels,
        "blocks": pixels * (lanes + bool(rest)),
        "lines": rows.taps(region.bounds[1]) * width * (lanes + rest),  # rows of windows
        "reads": met * lanes * 4,
        "odd reads": met * rest,
        "bent": met * channels if is_bent(site) else 0,
        "padded": met * channels if any(getattr(op, "pads", ())) else 0,
        "outputs": region.size,
    }
    is_scaled = name == "max" and site.inputs[0].tensor.quant != site.result.quant
    prefix = "" if not in_loops else "loops-scaled-" if is_scaled else "loops-"
    return KernelWork(f"{prefix}{name} {type_of(site)}", amounts)


def is_global_mean(op: Reduce, shape: Shape) -> bool:
    return op.kind.value == "mean" and len(shape) == 4 and {axis % 4 for axis in op.axes} == {1, 2}


def plain_work(site: Site, region: Region) -> KernelWork:
    """Element by element, or moved, or along lines."""
    if isinstance(site.op, Reduce) and is_global_mean(site.op, site.shapes[0]):
        return pool_work(site, region, in_loops=True)
    needs = site.op.needs(region, site.shapes)
    activations, lines = set(site.network.activations(site.layer)), _lines(site, region)
    reads = sum(part.size for name, part in zip(site.layer.inputs, needs, strict=True) if name in activations)
    amounts = activation_work(site, region) | {
        "calls": 1,
        "lines": lines,
        "pieces": lines if region.shape[-1:] < site.result.shape[-1:] else 0,
        "outputs": region.size,
        "shared": region.size if site.shares(0) else 0,
        "bent": region.size if is_bent(site) else 0,
        "reads": reads,
        "macs": site.op.macs(region, site.shapes),
    }
    if isinstance(site.op, Reduce) and (len(site.shapes[0]) - 1) not in {
        axis % len(site.shapes[0]) for axis in site.op.axes
    }:
        amounts["strided reads"] = reads
    if isinstance(site.op, Concat):
        parts = zip(site.inputs, needs, strict=True)
        amounts["scaled"] = sum(part.size for place, part in parts if place.tensor.quant != site.result.quant)
    return KernelWork(f"{_name(site)} {type_of(site)}", amounts)


def _lines(site: Site, region: Region) -> int:
    """Innermost loops; where neighbouring axes lie alike in all tensors, one loop is over both."""
    places = [place for place in (*site.inputs, site.output) if place.tensor.shape == site.result.shape]
    if len(places) < 1 + len(site.inputs) or not region.shape:
        return prod(region.shape[:-1])
    spans, _, _ = joined_axes([*region.bounds], [place.broadcast(len(region.bounds)) for place in places])
    counts = [int(high) - int(low) for low, high in spans]
    return prod([count for count in counts if count > 1][:-1])


def gather_work(site: Site, region: Region) -> KernelWork:
    """Lines that are copied from where indices say: in place if they are short enough for that, else by a call."""
    assert isinstance(site.op, Gather)
    first = site.op.axis % len(site.shapes[0]) + len(site.shapes[1])  # axis from which on elements lie side by side
    length = region.shape[-1] if first < len(region.shape) else 1
    lines, size = region.size // max(1, length), length * site.result.dtype.bytes
    how = next((f" up to {most}" for most in SHORT_COPIES if size <= most), "")
    blocks, rest = divmod(size, 16) if not how else (0, size)
    is_odd = size % 4 != 0
    amounts = {
        "calls": 1,
        f"lines{how}": lines,
        "blocks": 0 if is_odd else lines * blocks,
        f"words{how}": 0 if is_odd else lines * (rest // 4),
        f"bytes{how}": lines * size if is_odd else 0,
    }
    return KernelWork(f"gather {8 * site.result.dtype.bytes} bits", amounts)


SHORT_COPIES = (16, 64)  # bytes that compilers move without a call, some more than others


def lookup_work(site: Site, region: Region) -> KernelWork:
    """Bytes by way of a table."""
    work = plain_work(site, region)
    kept = {key: amount for key, amount in work.amounts.items() if not key.startswith(ACTIVATION)}
    return KernelWork("lookup bytes", kept)


def _name(site: Site) -> str:
    match site.op:
        case op if isinstance(op, ACTIVATIONS) and not isinstance(op, Clamp):
            return "activation"
        case Binary(kind=kind):
            return kind.value
        case Reduce(kind=kind):
            return f"reduce-{kind.value}"
        case op:
            return type(op).__name__.lower()
