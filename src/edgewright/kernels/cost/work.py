"""What a call asks of a core: the kind of work, and the amounts that decide its instructions.

Amounts count what kernels do: products in the blocks in which they are computed, outputs that are scaled, elements that
are gathered, rows and calls that are begun. Kernels say them of themselves; here is what they have in common, and the
work of running sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from ...network import Arithmetic, DType, Region, Shape
from ...network.kernels.scales import number
from ...network.kernels.tflite_scales import activation_range
from ...network.operators import AvgPool2d, Binary, Clamp, Conv2d, MaxPool2d, Reduce, Unary
from ...network.operators.shares import share_needs
from ...program.selection import Offer
from ..requantise.sums import requantised
from ..site import Site
from ..window import WindowAxis, axes, up

Amounts = dict[str, float]
BYTES = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}


@dataclass(frozen=True, slots=True)
class KernelWork:
    kind: str  # coefficients are kept by it
    amounts: Mapping[str, float]


def general(work: KernelWork) -> KernelWork:
    """The work as one of a kind that every target has coefficients for: what it does to elements of its type."""
    wanted = ("calls", "lines", "outputs", "shared", "bent", "reads")
    return KernelWork(f"other {work.kind.split()[-1]}", {key: work.amounts.get(key, 0) for key in wanted})


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
    x, y = site.inputs[0].tensor.dtype, site.result.dtype
    kind = y.value if x is y else f"{x.value}-{y.value}"
    return kind + (f"-{rounding(site)}" if DType.INT8 in (x, y) or DType.UINT8 in (x, y) else "")


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
        inner, words = self.pixels - edges, self.runs * up(self.run, word) // word
        return {
            "calls": 1,
            "rows": self.rows,
            "pixels": self.pixels,
            "runs": inner * self.runs,
            "bent runs": inner * self.runs if self.is_bent else 0,
            "words": inner * words,
            "cut words": inner * self.runs if self.run % word else 0,
            "edge runs": edges * self.runs,
            "edge words": edges * words,
        }


def dense_work(site: Site, region: Region, how: str, depth: int = 1, width: int = 1) -> KernelWork:
    """Rows of a dense layer, `depth` taps and `width` channels at a time."""
    taps, channels, rows = site.shapes[1][-1], region.shape[-1], prod(region.shape[:-1])
    done = rows * up(channels, width)
    amounts: Amounts = {"calls": 1, "rows": rows, "macs": done * up(taps, depth), "taps": rows * taps}
    return KernelWork("dense int8", amounts | {f"outputs {how}": done})


def loops_work(site: Site, region: Region) -> KernelWork:
    """Products of real numbers, four channels at a time; and integers of unusual kinds, in plain loops."""
    shapes, op = site.shapes, site.op
    taps, channels, pixels = prod(shapes[1][1:]), region.shape[-1], prod(region.shape[:-1])
    groups, kind, runs = 1, "dense", 1
    met: float = pixels * taps
    if isinstance(op, Conv2d):
        rows, columns = axes(op, shapes[1][1:3], shapes[0])
        met = rows.taps(region.bounds[1]) * columns.taps(region.bounds[2]) * shapes[1][3]
        groups, kind, runs = op.groups, "conv" if op.groups == 1 else "grouped", shapes[1][1]
    blocks = -(-channels // 4)
    macs = met * (blocks * 4 if groups == 1 else channels)
    scaled = f"outputs {rounding(site)}" if is_small(site) else "outputs"
    bent = is_bent(site)
    amounts = {
        "calls": 1,
        "pixels": pixels,
        "blocks": pixels * blocks,
        "runs": pixels * blocks * runs,
        "macs": macs,
        "bent": macs if bent else 0,
        "bent runs": pixels * blocks * runs if bent else 0,
        "taps": pixels * channels * prod(shapes[1][1:3]) if groups > 1 else 0,
        scaled: region.size,
    }
    return KernelWork(f"{kind} {'bytes' if is_small(site) else type_of(site)}", amounts)


def pool_work(site: Site, region: Region) -> KernelWork:
    """Windows of a pool, or of a mean over the whole image."""
    op, shape = site.op, site.shapes[0]
    if isinstance(op, MaxPool2d | AvgPool2d):
        name, window = "max" if isinstance(op, MaxPool2d) else "average", axes(op, op.kernel, shape)
    else:
        name, window = "mean", (WindowAxis(shape[1], 1, 1, 0, shape[1]), WindowAxis(shape[2], 1, 1, 0, shape[2]))
        region = Region(((0, 1), (0, 1), (0, 1), region.bounds[-1]))
    rows, columns = window
    _, height, width, channels = region.shape
    pixels, met = height * width, rows.taps(region.bounds[1]) * columns.taps(region.bounds[2])
    lanes, rest = divmod(channels, 4)
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
    return KernelWork(f"{name} {type_of(site)}", amounts)


def is_global_mean(op: Reduce, shape: Shape) -> bool:
    return op.kind.value == "mean" and len(shape) == 4 and {axis % 4 for axis in op.axes} == {1, 2}


def plain_work(site: Site, region: Region) -> KernelWork:
    """Element by element, or moved, or along lines."""
    if isinstance(site.op, Reduce) and is_global_mean(site.op, site.shapes[0]):
        return pool_work(site, region)
    needs = site.op.needs(region, site.shapes)
    activations, lines = set(site.network.activations(site.layer)), prod(region.shape[:-1])
    reads = sum(part.size for name, part in zip(site.layer.inputs, needs, strict=True) if name in activations)
    amounts = {
        "calls": 1,
        "lines": lines,
        "pieces": lines if region.shape[-1:] < site.result.shape[-1:] else 0,
        "outputs": region.size,
        "shared": region.size if site.shares(0) else 0,
        "bent": region.size if is_bent(site) else 0,
        "reads": reads,
        "macs": site.op.macs(region, site.shapes),
    }
    return KernelWork(f"{_name(site)} {type_of(site)}", amounts)


def _name(site: Site) -> str:
    match site.op:
        case Binary(kind=kind) | Unary(kind=kind):
            return kind.value
        case Reduce(kind=kind):
            return f"reduce-{kind.value}"
        case op:
            return type(op).__name__.lower()


def _read(site: Site, region: Region, partial: Region | None) -> Region:
    assert partial is not None
    return share_needs(site.op, region, site.shapes, partial)[0]


def add_conv_work(site: Site, _: Offer, region: Region, partial: Region | None) -> KernelWork:
    """Part of a convolution added to its running sums, tap by tap."""
    assert isinstance(site.op, Conv2d)
    part = ConvPart(site, region, _read(site, region, partial).shape[-1])
    amounts: Amounts = {"calls": 1, "pixels": part.pixels, "outputs": region.size}
    taps = part.pixels * part.channels * part.window
    amounts |= {"taps": taps, "macs": part.pixels * part.channels * part.taps}
    return KernelWork(f"sums-conv {type_of(site)}", amounts)


def add_dense_work(site: Site, _: Offer, region: Region, partial: Region | None, multiple: int = 1) -> KernelWork:
    """Part of a dense layer added to its running sums, `multiple` taps and channels at a time."""
    rows = prod(region.shape[:-1])
    done = rows * up(region.shape[-1], multiple)
    macs = done * up(_read(site, region, partial).shape[-1], multiple)
    return KernelWork(f"sums-dense {type_of(site)}", {"calls": 1, "rows": rows, "outputs": done, "macs": macs})


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
    return KernelWork(f"sums-mean {type_of(site)}", amounts)


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
