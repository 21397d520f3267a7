"""What a call asks of a core: the kind of work, and the amounts that decide its instructions.

Amounts count what kernels do: products in the blocks in which they are computed, outputs that are scaled, elements that
are gathered, rows and calls that are begun. Kernels say them of themselves; here is what they have in common, and the
work of running sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from ...network import Arithmetic, DType, Network, Region, Shape
from ...network.kernels.scales import number
from ...network.kernels.tflite_scales import activation_range
from ...network.operators import (
    ACTIVATIONS,
    AvgPool2d,
    Binary,
    Clamp,
    Concat,
    Conv2d,
    Gather,
    MaxPool2d,
    Reduce,
    Reshape,
    Slice,
    Transpose,
    Unary,
)
from ...network.operators.partial_sums import partial_needs
from ...program import Sweep
from ...program.selection import Offer
from ..printing.nest import joined_axes
from ..requantise.sums import requantised
from ..site import Site
from ..window import WindowAxis, axes, up

Amounts = dict[str, float]
ACTIVATION = "activation "  # begins the amounts that cost the same wherever they occur: functions of a real number
BYTES = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}


@dataclass(frozen=True, slots=True)
class KernelWork:
    kind: str  # coefficients are kept by it
    amounts: Mapping[str, float]

    def terms(self) -> Iterator[tuple[str, str, float]]:
        """Kind, amount by name, and amount: those of activations are of a kind of their own."""
        for key, amount in self.amounts.items():
            yield ("activations" if key.startswith(ACTIVATION) else self.kind), key, amount


def general(work: KernelWork) -> KernelWork:
    """The work as one of a kind that every target has coefficients for: what it does to elements of its type."""
    wanted = ("calls", "lines", "outputs", "shared", "bent", "reads")
    kept = {key: amount for key, amount in work.amounts.items() if key.startswith(ACTIVATION)}
    return KernelWork(f"other {work.kind.split()[-1]}", {key: work.amounts.get(key, 0) for key in wanted} | kept)


def is_small(site: Site) -> bool:
    """Whether inputs and outputs are both of eight bits."""
    return site.inputs[0].tensor.dtype in BYTES and site.result.dtype in BYTES


def is_bent(site: Site) -> bool:
    """Whether rows of an input or of the output lie in a rolling window."""
    return any(place.window for place in (*site.inputs, site.output))


def scaling(site: Site) -> str:
    """How sums become bytes: "signed" ones round sums below zero otherwise, as TFLite's convolutions do."""
    sums = requantised(site)
    return "signed" if sums is not None and sums.drop_bits is not None else "plain"


def is_narrow(site: Site) -> bool:
    """Whether the activation keeps outputs to less than the range of their eight bits."""
    return site.facts.once("limits", lambda: _limits(site)) != BYTES[site.result.dtype]


def _limits(site: Site) -> tuple[int, int]:
    """The stored values between which the activation keeps the output."""
    y = site.result
    low, high = BYTES[y.dtype]
    activation = getattr(site.op, "activation", None)
    if not isinstance(activation, Clamp) or y.quant is None:
        return low, high
    if site.arithmetic is Arithmetic.TFLITE:
        return activation_range(activation, y)
    first, last = (int(np.clip(number(v, y), low, high)) for v in (activation.low, activation.high))
    return first, last


def type_of(site: Site) -> str:
    """The element types that coefficients are kept by, and for bytes whose rounding is followed: `int8-tflite`."""
    found = unrounded_type(site)
    return found + (f"-{rounding(site)}" if "int8" in found.split("-") else "")


def unrounded_type(site: Site) -> str:
    """The element types alone. Bytes cost the same with and without a sign."""
    types = [tensor.dtype for tensor in (site.inputs[0].tensor, site.result)]
    x, y = ("int8" if dtype in BYTES else dtype.value for dtype in types)
    return y if x == y else f"{x}-{y}"


def rounding(site: Site) -> str:
    """Whose rounding is priced: QLinear kernels cost about what the file's own layers do."""
    known = Arithmetic.TFLITE if site.arithmetic is Arithmetic.TFLITE else Arithmetic.ONNX
    return known.value


class ConvPart:
    """Part of a convolution: how often kernels do what."""

    def __init__(self, site: Site, region: Region, depth: int | None = None) -> None:
        op, shapes = site.op, site.shapes
        assert isinstance(op, Conv2d)
        _, height, width, whole = shapes[1]
        self.depth = whole if depth is None else depth  # channels of the input that are summed over
        self.window = height * width
        is_joined = width == 1 or op.dilation[1] == 1
        self.run, self.runs = (width * self.depth, height) if is_joined else (self.depth, height * width)
        self.taps = self.run * self.runs
        self.is_pointwise = height == width == 1 and not any(op.pads)
        batch, self.rows, self.columns, self.channels = region.shape
        self.rows *= batch
        self.pixels = self.rows * self.columns
        self.batch, self.bounds = batch, region.bounds
        self.down, self.across = axes(op, shapes[1][1:3], shapes[0])
        above, below = self.down.outside(region.bounds[1])
        self.inner_rows = self.rows - (above + below) * batch
        self.sides = self.across.outside(region.bounds[2])
        self.is_bent = is_bent(site)

    def edges(self, block: int) -> int:
        """Pixels with checks of bounds: their window, or that of another pixel of their block, leaves the image."""
        sides = min(self.columns, sum(up(side, block) for side in self.sides))
        return self.inner_rows * sides + (self.rows - self.inner_rows) * self.columns

    def gathering(self, edges: float, word: int) -> Amounts:
        """Amounts of gathering windows, `word` taps at a time; `edges` of the pixels with checks of bounds."""
        runs, (words, rest) = (self.pixels - edges) * self.runs, divmod(self.run, word)
        short = 0 if words else runs  # without a whole word
        return {
            "calls": 1,
            "rows": self.rows,
            "pixels": self.pixels,
            "runs": runs - short,
            "bent runs": runs if self.is_bent else 0,
            "words": runs * words,
            "cut words": runs - short if rest else 0,
            "short runs": short,
            "short taps": short * rest,
            "edge runs": edges * self.runs,
            "edge words": edges * self.runs * (up(self.run, word) // word),
        }


def dense_work(site: Site, region: Region, how: str, depth: int = 1, width: int = 1) -> KernelWork:
    """Rows of a dense layer, `depth` taps and `width` channels at a time."""
    taps, channels, rows = site.shapes[1][-1], region.shape[-1], prod(region.shape[:-1])
    done = rows * up(channels, width)
    amounts: Amounts = {"calls": 1, "rows": rows, "macs": done * up(taps, depth), "taps": rows * taps}
    return KernelWork("dense int8", amounts | {f"outputs {how}": done})


def activation_work(site: Site, region: Region) -> Amounts:
    """What an activation that is more than a clamp adds for each output.

    Bytes lie all over their range, real numbers near zero, where some functions take fewer instructions.
    """
    op = site.op
    activation = op if isinstance(op, ACTIVATIONS) else getattr(op, "activation", None)
    if activation is None or isinstance(activation, Clamp):
        return {}
    name = activation.kind.value if isinstance(activation, Unary) else type(activation).__name__.lower()
    stored = " of bytes" if site.inputs[0].tensor.dtype in BYTES else ""
    return {f"{ACTIVATION}{name}{stored}": region.size}


def share_of_zeros(network: Network, tensor: str) -> float:
    """How many of a tensor's numbers are likely zero: half of those behind a ReLU, fewer behind a pool of them.

    Products with zero take few of the instructions of others where there is no floating point. Neighbours are alike,
    so that a window counts as its side.
    """
    made = network.producers.get(tensor)
    if made is None:
        return 0.0
    op = made.op
    activation = op if isinstance(op, Clamp) else getattr(op, "activation", None)
    if isinstance(activation, Clamp) and activation.low == 0:
        return 0.5
    before = share_of_zeros(network, made.inputs[0]) if isinstance(op, _KEEP_ZEROS) else 0.0
    return before ** prod(op.kernel) ** 0.5 if isinstance(op, MaxPool2d | AvgPool2d) else before


_KEEP_ZEROS = (MaxPool2d, AvgPool2d, Reshape, Slice, Concat, Transpose)


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


def _product_kind(site: Site) -> str:
    op = site.op
    if not isinstance(op, Conv2d):
        return type(op).__name__.lower()
    return "conv" if op.groups == 1 else "grouped"


def _multiplied(site: Site, macs: float) -> Amounts:
    """Products of real numbers, those with zeros apart."""
    if not site.inputs[0].tensor.dtype.is_float:
        return {"macs": macs}
    zeros = share_of_zeros(site.network, site.inputs[0].tensor.name)
    return {"macs": (1 - zeros) * macs, "zero macs": zeros * macs}


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
        "bent runs": runs if is_bent(site) else 0,
        "outputs": region.size,
        "stored twice": region.size if after else 0,
        "empty macs": (4 * blocks - channels) * products,
    }
    amounts |= after | _multiplied(site, channels * products)
    return KernelWork(f"{_product_kind(site)} {type_of(site)}", amounts)


def loops_work(site: Site, region: Region) -> KernelWork:
    """Products in plain loops, an output at a time; single products of a tap have no loop."""
    met, channels = _Windows.of(site, region), region.shape[-1]
    taps, is_deep = met.taps * channels, met.depth > 1
    small, bent, is_plane = is_small(site), is_bent(site), site.sweep is Sweep.CHANNELS
    amounts: Amounts = {
        "calls": 1,
        "pixels": 0 if is_plane else met.pixels,
        "planes": region.size if is_plane else 0,  # elements that are moved from where they were computed
        "runs": met.lines * channels,
        "taps": taps,
        "bent runs": taps if bent else 0,
        f"outputs {rounding(site)}" if small else "outputs": region.size,
    }
    amounts |= activation_work(site, region) | _multiplied(site, taps * met.depth if is_deep else 0)
    if not is_deep:
        amounts |= {f"single {key}": value for key, value in _multiplied(site, taps).items()}
    return KernelWork(f"loops-{_product_kind(site)} {'bytes' if small else type_of(site)}", amounts)


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
    spans, _, _ = joined_axes([*region.bounds], [place.spread(len(region.bounds)) for place in places])
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
    done = rows * up(region.shape[-1], multiple)
    macs = done * up(_read(site, region, partial).shape[-1], multiple)
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
