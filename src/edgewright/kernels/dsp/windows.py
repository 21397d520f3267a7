"""Convolutions one pixel at a time on cores with pairs of 16-bit products, where there is little memory for columns."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...network.operators import Conv2d
from ...program.nesting import split_channels
from ..call import CCall, image, part_pointer, window_sizes
from ..kernel import Kernel, Offer
from ..printing.nest import loops
from ..printing.source import CWriter, Fields, struct_fields
from ..requantise.sums import flip
from ..site import ChannelRange, Site, is_split, unwrap
from . import work
from .conv import DSP, STEPS, conv_window, is_image_conv
from .packing import fours_kernel, packed_fours, packs_fours

STACK = 1152  # bytes of a window that may lie on the stack when the arena has no room for it


def offers(site: Site) -> Iterator[Offer]:
    """For windows of several taps, and images whose numbers fit the small types of ew_dsp_windows."""
    if not is_image_conv(site):
        return
    window, taps = conv_window(site), prod(site.shapes[1][1:])
    is_ours = window.fits_table and not window.is_pointwise
    if is_ours and packs_fours(site, taps):
        yield Offer.of(taps)


def write(call: CCall, offer: Offer, c: CWriter) -> None:
    table = call.table("ew_dsp_windows", lambda channels: _fields(call, channels))
    batch, rows, columns, (first, _) = call.region
    with loops(c, [batch], "n", backward=call.is_backward) as (n,), c.block():
        part = part_pointer(call, c, (*rows, *columns))
        buffer = call.scratch(c, "uint8_t", offer.scratch, "window")
        x, y = call.inputs[0].address((n, 0, 0, 0)), call.output.address((n, 0, 0, first))
        c.line(f"ew_dsp_windows_run(&{table}, {x}, {y}, {part}, {buffer});")


def _fields(call: CCall, channels: ChannelRange) -> Fields:
    kernel = fours_kernel(call)
    split = is_split(call)
    weights = split_channels(call.weights) if split else call.weights
    made = unwrap(packed_fours(call, prod(call.shapes[1][1:]), channels.channels, weights))
    call.use("dsp_windows", kernel)
    return {
        "sums": made.fields(call),
        "fours": f"ew_{kernel}",
        "x": image(call.inputs[0]),
        "y": image(call.output),
        **struct_fields(("height", "width", "depth", "rows", "columns", *STEPS), window_sizes(call, call.shapes[0][3])),
        "zero": (made.zero + flip(call.inputs[0].tensor)) & 255,
        "is_backward": int(call.is_backward),
        **call.split_field(split),
    }


WINDOWS = Kernel("dsp_windows", (Conv2d,), offers, write, DSP, stack=STACK, work=work.windows)
