"""int8 transposed convolutions as one ordinary convolution for each phase, on cores with pairs of 16-bit products.

Outputs whose places agree modulo the stride read the same taps: they are a convolution of stride one with these taps in
opposite order, and its image is every n-th row and column of the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ...network import Region
from ...network.operators import Conv2d, ConvTranspose2d
from ..call import CCall, image, image_of, part_of
from ..cost.work import Amounts, KernelWork
from ..kernel import Kernel, Offer
from ..printing.nest import loops
from ..printing.source import CWriter, Fields
from ..site import ChannelRange, Site, unwrap
from ..window import round_up
from .conv import DSP, STACK, ConvColumns, fields_of, is_ours
from .packing import packed, packs
from .work import stored_how


@dataclass(frozen=True)
class AxisPhase:
    """The outputs first, first + stride, ... along one axis; output n of them reads inputs from n - pad on."""

    first: int
    count: int
    taps: tuple[int, ...]  # of the kernel, in the order of the inputs that they meet
    pad: int


def axis_phases(op: ConvTranspose2d, axis: int, kernel: int, size: int) -> Iterator[AxisPhase]:
    """The phases of an axis, of which `size` outputs exist."""
    stride, pad = op.stride[axis], op.pads[axis]
    for rest in range(stride):
        taps = tuple(range(rest, kernel, stride))[::-1]
        begin = -((rest - pad) // stride)  # the place over the stride, rounded up
        first = begin * stride + rest - pad
        count = -(-(size - first) // stride)
        if count > 0:
            yield AxisPhase(first, count, taps, len(taps) - 1 - begin)


@dataclass(frozen=True)
class PhaseWindow:
    rows: AxisPhase
    columns: AxisPhase
    window: ConvColumns


def phases(site: Site) -> Iterator[PhaseWindow]:
    """The convolutions that a transposed one is made of."""
    op, (x, w) = site.op_as(ConvTranspose2d), site.shapes[:2]
    down, across = op.stride
    row, pixel = site.output.strides[1:3]
    images = image(site.inputs[0]), image_of(row * down, pixel * across)
    vertical = axis_phases(op, 0, w[1], site.result.shape[1])
    horizontal = axis_phases(op, 1, w[2], site.result.shape[2])
    for rows, columns in product([*vertical], [*horizontal]):
        weights = site.weights[:, rows.taps][:, :, columns.taps]
        made = Conv2d(pads=(rows.pad, columns.pad, 0, 0))
        runs = weights.reshape(len(weights), len(rows.taps), -1)
        kernel = len(rows.taps), len(columns.taps)
        yield PhaseWindow(rows, columns, ConvColumns(made, (x[1], x[2], x[3]), kernel, runs, images))


def offers(site: Site) -> Iterator[Offer]:
    """For whole outputs that lie apart from the input, and kernels that have taps for every phase."""
    op, kernel = site.op_as(ConvTranspose2d), site.shapes[1][1:3]
    has_taps = all(size >= stride for size, stride in zip(kernel, op.stride, strict=True))
    is_plain = op.groups == 1 and op.dilation == (1, 1) and has_taps and site.is_whole and is_ours(site)
    lies_well = is_plain and site.inputs[0].lies_by_pixels and site.output.lies_by_pixels
    if not lies_well or site.inputs[0].window or site.output.window or site.shares():
        return
    windows = [phase.window for phase in phases(site)]
    if all(window.fits_table and packs(site, window.runs, group=2, is_raw=False) for window in windows):
        yield Offer.of(max(window.columns for window in windows))


def write(call: CCall, offer: Offer, c: CWriter) -> None:
    batch, *_, (channel, _) = call.region
    with loops(c, [batch], "n", backward=call.is_backward) as (n,), c.block():
        buffer = call.scratch(c, "uint32_t", offer.scratch // 4, "columns")
        x = call.inputs[0].address((n, 0, 0, 0))
        for phase in phases(call):
            table = _table(call, phase.window)
            y = call.output.address((n, phase.rows.first, phase.columns.first, channel))
            part = call.module.table("ew_part", part_of((0, phase.rows.count, 0, phase.columns.count)))
            c.line(f"ew_dsp_conv(&{table}, {x}, {y}, &{part}, {buffer});")


def _table(call: CCall, window: ConvColumns) -> str:
    def fields(channels: ChannelRange) -> Fields:
        made = unwrap(packed(call, window.runs, channels.channels, group=2, is_raw=False))
        kernel = f"dsp_odd_{made.numbers.kind}" if made.count % 2 else f"dsp_{made.numbers.kind}"
        call.use("dsp_conv", kernel)
        return fields_of(call, window, made.fields(call), made.zero, kernel)

    return call.table("ew_dsp_convolution", fields)


def work(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """Two pixels and two channels at a time in each phase."""
    depth, channels, how = site.shapes[0][3], region.shape[3], f"outputs {stored_how(site)}"
    total: Amounts = {}
    for phase in phases(site):
        height, width = phase.window.kernel
        pixels, run = region.shape[0] * phase.rows.count * phase.columns.count, width * depth
        inside = max(0, phase.rows.count - height + 1) * max(0, phase.columns.count - width + 1)
        edges = pixels - region.shape[0] * inside
        done = round_up(pixels, 2) * round_up(channels, 2)
        amounts = {
            "calls": 1,
            "rows": region.shape[0] * phase.rows.count,
            "pixels": round_up(pixels, 2),
            "pairs": round_up(pixels, 2) / 2,
            "runs": (pixels - edges) * height,
            "words": (pixels - edges) * height * (run // 4),
            "cut words": (pixels - edges) * height * bool(run % 4),
            "edge runs": edges * height,
            "edge words": edges * height * round_up(run, 4) / 4,
            "macs": done * height * round_up(run, 4),
            "odd": pixels * (channels % 2),
            how: done,
        }
        total = {key: total.get(key, 0) + amount for key, amount in amounts.items()}
    return KernelWork("conv int8", total)


TRANSPOSED = Kernel("dsp_transposed", (ConvTranspose2d,), offers, write, DSP, stack=STACK, work=work)
