"""int8 convolutions from columns, two pixels and two channels at a time, on cores with pairs of 16-bit products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...network import Array
from ...network.operators import Conv2d, Dense
from ...platform.target import Family
from ...program import Sweep
from ...program.nesting import split_channels
from ..call import CCall, image, image_of, part_pointer
from ..kernel import Kernel, Offer
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, Fields, struct_fields, times
from ..requantise.sums import flip
from ..site import ChannelRange, Site, is_split, unwrap
from ..window import round_up
from . import work
from .packing import LARGEST, fours_kernel, layer_numbers, packed, packed_fours, packs, packs_fours

STACK = 576  # bytes of columns that may lie on the stack when the arena has no room for them
SMALL = 64  # a dense layer with less than this part of all products is small
STEPS = ("row_stride", "stride", "row_step", "step", "top", "left")  # fields: from window to window, tap to tap; pads
THREES = ("plain", "general")  # ways of storing for which there is a kernel of three pixels


@dataclass(frozen=True)
class ConvColumns:
    """A convolution over an image, which a dense layer is as well: one window, one tap."""

    op: Conv2d
    size: tuple[int, int, int]  # of x: height, width, depth
    kernel: tuple[int, int]
    runs: Array  # (channels, runs, taps of a run): what lies side by side in x
    images: tuple[Fields, Fields]  # ew_image of x and of the output
    is_split: bool = False  # into four channels of all taps, then the next four

    @property
    def columns(self) -> int:
        """Bytes of the columns of two pixels."""
        return 4 * self.runs.shape[1] * round_up(self.runs.shape[2], 4)

    @property
    def fits_table(self) -> bool:
        """Whether all numbers fit the small types of ew_dsp_convolution."""
        bytes_ = (*self.kernel, *self.op.stride, *self.op.dilation)
        return max(self.size) <= LARGEST and max(bytes_) <= 255 and max(map(abs, self.op.pads)) <= 127

    @property
    def is_pointwise(self) -> bool:
        return self.kernel == (1, 1) and not any(self.op.pads)


def is_ours(site: Site) -> bool:
    return site.inputs[1].is_constant and bool(site.ranges)


def is_image_conv(site: Site) -> bool:
    """Whether all channels of an image are summed over, pixel by pixel."""
    op = site.op_as(Conv2d)
    lies_well = site.inputs[0].lies_by_pixels and site.output.lies_by_pixels
    return is_ours(site) and op.groups == 1 and site.sweep is not Sweep.CHANNELS and lies_well


def conv_window(site: Site) -> ConvColumns:
    op, (x, w) = site.op_as(Conv2d), site.shapes[:2]
    images = (image(site.inputs[0]), image(site.output))
    return ConvColumns(op, (x[1], x[2], x[3]), (w[1], w[2]), runs_of(site, op, site.weights), images)


def _split_window(site: Site) -> ConvColumns:
    """The window, split where slices of the layer need that: each tap is a run then."""
    window = conv_window(site)
    if not is_split(site):
        return window
    runs = split_channels(site.weights).reshape(len(site.weights), -1, window.size[2])
    return replace(window, runs=runs, is_split=True)


def runs_of(site: Site, op: Conv2d, weights: Array) -> Array:
    """The weights (channels, runs, taps of a run): a run is what lies side by side in memory."""
    channels, rows, columns, depth = weights.shape
    is_joined = columns == 1 or (op.dilation[1] == 1 and site.inputs[0].strides[2] == depth)
    return weights.reshape(channels, rows, -1) if is_joined else weights.reshape(channels, rows * columns, depth)


def _dense_window(site: Site) -> ConvColumns:
    depth = site.inputs[0].tensor.shape[-1]
    runs = site.weights.reshape(-1, 1, depth)
    return ConvColumns(Conv2d(), (1, 1, depth), (1, 1), runs, (image_of(0, 0), image_of(0, 0)))


def _fits(site: Site, window: ConvColumns) -> bool:
    """Whether all channels can be packed."""
    return window.fits_table and packs(site, window.runs, group=2, is_raw=False)


def offers_conv(site: Site) -> Iterator[Offer]:
    if not is_image_conv(site):
        return
    window = conv_window(site)
    if _fits(site, window):
        is_row = window.is_pointwise and site.most[1] == 1 < site.result.shape[1]  # one of several
        if is_row and _takes_threes(site):
            yield Offer.of(window.columns * 3 // 2, row=1, pixels=3)
        yield Offer.of(window.columns, row=int(is_row), pixels=2)


def _takes_threes(site: Site) -> bool:
    """Whether rows, or parts of them, have an odd number of pixels, of which the last three are computed at once."""
    numbers = layer_numbers(site, is_raw=False)
    is_even = all(channels.count % 2 == 0 for channels in site.ranges)
    width, whole = site.most[2], site.result.shape[2]
    is_odd = max(width % 2, whole % 2) == 1 and whole > 2
    return numbers is not None and numbers.kind in THREES and is_even and is_odd


def write_conv(call: CCall, offer: Offer, c: CWriter) -> None:
    window = _split_window(call)
    batch, rows, columns, _ = call.region
    table = _table(call, window)
    run, given = "ew_dsp_conv_circular" if call.inputs[0].window else "ew_dsp_conv", f"&{table}"
    if offer["row"]:
        run = "ew_dsp_odd_row" if offer["pixels"] == 3 else "ew_dsp_row"
        call.use(run.removeprefix("ew_"))
    if offer["pixels"] == 3:
        kernel = f"dsp_threes_{unwrap(layer_numbers(call, is_raw=False)).kind}"
        call.use(kernel)
        given = f"{given}, ew_{kernel}"
    _write(call, offer, c, f"{run}({given}", batch, (*rows, *columns))


def offers_small_dense(site: Site) -> Iterator[Offer]:
    """As a convolution of one pixel, where that kernel is linked anyway: slower, but it adds no code."""
    is_small = site.network.macs(site.layer) * SMALL < site.network.total_macs and "dsp_conv" in site.linked_kernels
    is_line = site.inputs[0].strides[-1] == 1 and all(bound == (0, 1) for bound in site.bounds[:-1])
    if is_small and is_line and is_ours(site):
        window = _dense_window(site)
        if _fits(site, window):
            yield Offer.of(window.columns, row=0, pixels=2)


def write_small_dense(call: CCall, offer: Offer, c: CWriter) -> None:
    _write(call, offer, c, f"ew_dsp_conv(&{_table(call, _dense_window(call))}", (0, 1), (0, 1, 0, 1))


def _table(call: CCall, window: ConvColumns) -> str:
    def fields(channels: ChannelRange) -> Fields:
        made = unwrap(packed(call, window.runs, channels.channels, group=2, is_raw=False))
        kernel = f"dsp_odd_{made.numbers.kind}" if made.count % 2 else f"dsp_{made.numbers.kind}"
        call.use("dsp_conv", kernel)
        return fields_of(call, window, made.fields(call), made.zero, kernel)

    return call.table("ew_dsp_convolution", fields)


def fields_of(call: CCall, window: ConvColumns, sums: Fields, zero: int, kernel: str) -> Fields:
    """The fields of ew_dsp_convolution."""
    op, rows, depth = window.op, window.kernel[0], window.size[2]
    _, runs, taps = window.runs.shape
    (x, y), steps = window.images, (*op.stride, *op.dilation, *op.pads[:2])
    return {
        "sums": sums,
        "pairs": f"ew_{kernel}",
        "x": x,
        "y": y,
        **struct_fields(("height", "width", "depth"), window.size),
        "rows": rows,
        "runs": runs // rows,
        "pixels": taps // depth,
        **struct_fields(STEPS, steps),
        "zero": zero,
        "flip": flip(call.inputs[0].tensor),
        "is_backward": int(call.is_backward),
        **call.split_field(window.is_split),
    }


def _write(call: CCall, offer: Offer, c: CWriter, begun: str, batch: tuple[Expr, Expr], part: tuple[Expr, ...]) -> None:
    """The call, of which the beginning is given, for every image of the batch."""
    rank = len(call.output.strides)
    with loops(c, [batch], "n", backward=call.is_backward) as (n,), c.block():
        where = part_pointer(call, c, part)
        buffer = call.scratch(c, "uint32_t", offer.scratch // 4, "columns")
        inner = (0,) * max(rank - 2, 0)
        x = call.inputs[0].address((n, *inner, 0)[-rank:])
        y = call.output.address((n, *inner, call.region[-1][0])[-rank:])
        c.line(f"{begun}, {x}, {y}, {where}, {buffer});")


DSP = frozenset({Family.DSP})
CONV = Kernel("dsp_conv", (Conv2d,), offers_conv, write_conv, DSP, stack=STACK, work=work.conv)
SMALL_DENSE = Kernel(
    "dsp_small_dense", (Dense,), offers_small_dense, write_small_dense, DSP, stack=STACK, work=work.small_dense
)


def offers_pixels(site: Site) -> Iterator[Offer]:
    is_product = (
        is_image_conv(site) and conv_window(site).is_pointwise if isinstance(site.op, Conv2d) else is_ours(site)
    )
    if is_product and site.inputs[0].strides[-1] == site.output.strides[-1] == 1:
        depth = site.inputs[0].tensor.shape[-1]
        if packs_fours(site, depth):
            yield Offer()


def write_pixels(call: CCall, _: Offer, c: CWriter) -> None:
    """A call for each pixel, which is read where it lies."""
    x, y, depth, kernel = call.inputs[0], call.output, call.shapes[0][-1], fours_kernel(call)
    call.use("dsp_dense", kernel)
    table = call.table("ew_dsp_sums", lambda r: unwrap(packed_fours(call, depth, r.channels)).fields(call))
    with loops(c, call.region[:-1], "n", backward=call.is_backward) as at:
        source = at
        if isinstance(call.op, Conv2d):
            source = tuple(times(i, s) for i, s in zip(at, (1, *call.op.stride), strict=True))
        pointers = f"{x.address((*source, 0))}, {y.address((*at, call.region[-1][0]))}"
        c.line(f"ew_dsp_dense(&{table}, ew_{kernel}, {pointers}, {depth});")


PIXELS = Kernel("dsp_pixels", (Conv2d, Dense), offers_pixels, write_pixels, DSP, work=work.pixels)
