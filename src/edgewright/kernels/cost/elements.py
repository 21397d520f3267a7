"""What layers without weights ask of a core: pools, elements one by one, moves."""

from __future__ import annotations

from math import prod

from ...network import Arithmetic, Region, Shape
from ...network.operators import ACTIVATIONS, AvgPool2d, Binary, BinaryKind, Clamp, MaxPool2d, Quantize, Reduce
from ...network.operators.elementwise import Elementwise
from ...program.selection import Offer
from ..printing.nest import joined_axes
from ..site import Site
from ..window import WindowAxis, axes
from .loops import WindowLoops, known_loop
from .work import ACTIVATION, KernelWork, activation_work, is_circular, type_of, unrounded_type


def pool_work(site: Site, region: Region, *, in_loops: bool = False, how: str = "") -> KernelWork:
    """Windows of a pool, or of a mean over the whole image; `in_loops`: an output at a time, `how` as others not."""
    op, shape = site.op, site.shapes[0]
    if isinstance(op, MaxPool2d | AvgPool2d):
        name, window = "max" if isinstance(op, MaxPool2d) else "average", axes(op, op.kernel, shape)
        loops = WindowLoops.of(site, window, region)
    else:
        loops = WindowLoops(*map(known_loop, shape[1:3]))
        name, window = "mean", (WindowAxis(shape[1], 1, 1, 0, shape[1]), WindowAxis(shape[2], 1, 1, 0, shape[2]))
        region = Region((region.bounds[0], (0, 1), (0, 1), region.bounds[-1]))
    rows, columns = window
    batch, height, width, channels = region.shape
    lines = batch * rows.taps(region.bounds[1])
    pixels, met = batch * height * width, lines * columns.taps(region.bounds[2])
    lanes, rest = (0, channels) if in_loops else divmod(channels, 4)
    is_clipped = in_loops and loops.is_clipped
    way = "odd" if not in_loops else "double" if loops.is_written_out else "odd" if loops.is_nested else "flat"
    amounts = {
        "calls": 1,
        "pixels": pixels,
        "clipped pixels": pixels if in_loops and loops.columns.rounds is None else 0,
        "blocks": pixels * (lanes + bool(rest)),
        "lines": lines * width * (lanes + rest) if loops.is_nested or not in_loops else 0,  # rows of windows
        "reads": met * lanes * 4,
        f"{way} reads": met * rest,
        "circular": met * channels if is_circular(site) else 0,
        "padded": met * channels if is_clipped or (not in_loops and any(getattr(op, "pads", ()))) else 0,
        "outputs": region.size,
    }
    is_scaled = name == "max" and site.inputs[0].tensor.quant != site.result.quant
    prefix = "" if not in_loops else "loops-scaled-" if is_scaled else "loops-"
    kind = unrounded_type(site) if name == "max" and not is_scaled else type_of(site)
    return KernelWork(f"{prefix}{how}{name} {kind}", amounts)


def is_global_mean(op: Reduce, shape: Shape) -> bool:
    return op.kind.value == "mean" and len(shape) == 4 and {axis % 4 for axis in op.axes} == {1, 2}


def plain_work(site: Site, region: Region) -> KernelWork:
    """Element by element, or moved, or along lines."""
    if isinstance(site.op, Reduce) and is_global_mean(site.op, site.shapes[0]):
        return pool_work(site, region, in_loops=True)
    needs = site.op.needs(region, site.shapes)
    activations, lines = set(site.network.activations(site.layer)), prod(region.shape[:-1])
    reads = sum(part.size for name, part in zip(site.layer.inputs, needs, strict=True) if name in activations)
    if isinstance(site.op, Elementwise) and region.shape:
        lines, reads = _loops(site, region)
    amounts = activation_work(site, region) | {
        "calls": 1,
        "lines": lines,
        "pieces": lines if region.shape[-1:] < site.result.shape[-1:] else 0,
        "outputs": region.size,
        "shared": region.size if site.shares(0) else 0,
        "circular": region.size if is_circular(site) else 0,
        "reads": reads,
        "macs": site.op.macs(region, site.shapes),
        "clamped": region.size if isinstance(getattr(site.op, "activation", None), Clamp) else 0,
    }
    if isinstance(site.op, Reduce) and (len(site.shapes[0]) - 1) not in {
        axis % len(site.shapes[0]) for axis in site.op.axes
    }:
        amounts["strided reads"] = reads
    return KernelWork(f"{_name(site)} {type_of(site)}", amounts)


def _loops(site: Site, region: Region) -> tuple[int, int]:
    """Innermost loops over the elements of all inputs, and elements read in them.

    Where neighbouring axes lie alike in all tensors, one loop is over both; what does not move along the innermost
    axis is read once for each.
    """
    places = [place.broadcast(len(region.bounds)) for place in (*site.inputs, site.output)]
    spans, strides, _ = joined_axes([*region.bounds], places)
    counts = [int(high) - int(low) for low, high in spans]
    inner = max((axis for axis, count in enumerate(counts) if count > 1), default=-1)
    lines = prod(count for axis, count in enumerate(counts) if axis != inner)
    return lines, sum(region.size if inner >= 0 and steps[inner] else lines for steps in strides[:-1])


def in_loops(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """Element by element where others have a kernel for the same."""
    work = plain_work(site, region)
    return KernelWork(f"loops-{work.kind}", work.amounts)


def lookup_work(site: Site, region: Region) -> KernelWork:
    """Bytes by way of a table, or compared with limits where that says as much."""
    work = plain_work(site, region)
    kept = {key: amount for key, amount in work.amounts.items() if not key.startswith(ACTIVATION)}
    return KernelWork("lookup bytes", kept | {"clamped": region.size if _is_clamp(site) else 0})


def _is_clamp(site: Site) -> bool:
    """Whether all that happens to a byte is that it is kept between limits."""
    x, y = site.inputs[0].tensor.quant, site.result.quant
    return isinstance(site.op, Clamp | Quantize) and x is not None and y is not None and x.scale == y.scale


def _name(site: Site) -> str:
    match site.op:
        case op if isinstance(op, ACTIVATIONS) and not isinstance(op, Clamp):
            return "activation"
        case Binary(kind=BinaryKind.SUB) if site.is_quantised and site.arithmetic is not Arithmetic.TFLITE:
            return BinaryKind.ADD.value  # real numbers between the scales, which are most of the work
        case Binary(kind=kind):
            return kind.value
        case Reduce(kind=kind):
            return f"reduce-{kind.value}"
        case op:
            return type(op).__name__.lower()
