"""int8 dense layers and pointwise convolutions on cores with pairs of 16-bit products: pixels are read as they lie."""

from __future__ import annotations

from collections.abc import Iterator

from ...network.operators import Conv2d, Dense
from ..call import CCall
from ..kernel import Kernel, Offer
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, times
from ..site import ChannelRange, Site
from . import work
from .conv import DSP, conv_window, is_image_conv, is_ours
from .packing import fours_kernel, packed_fours, packs_fours


def offers(site: Site) -> Iterator[Offer]:
    is_product = (
        is_image_conv(site) and conv_window(site).is_pointwise if isinstance(site.op, Conv2d) else is_ours(site)
    )
    if is_product and site.inputs[0].strides[-1] == site.output.strides[-1] == 1:
        depth = site.inputs[0].tensor.shape[-1]
        if packs_fours(site, depth):
            yield Offer()


def write(call: CCall, _: Offer, c: CWriter) -> None:
    """One pixel after the other."""
    x, y, depth, kernel = call.inputs[0], call.output, call.shapes[0][-1], fours_kernel(call)
    call.use("dsp_dense", kernel)

    def fields(channels: ChannelRange) -> tuple[Expr, ...]:
        made = packed_fours(call, depth, channels.channels)
        assert made is not None
        return made.fields(call)

    table = call.table("ew_dsp_sums", fields)
    with loops(c, call.region[:-1], "n", backward=call.is_backward) as at:
        source = at
        if isinstance(call.op, Conv2d):
            source = tuple(times(i, s) for i, s in zip(at, (1, *call.op.stride), strict=True))
        pointers = f"{x.address((*source, 0))}, {y.address((*at, call.region[-1][0]))}"
        c.line(f"ew_dsp_dense(&{table}, ew_{kernel}, {pointers}, {depth});")


PIXELS = Kernel("dsp_pixels", (Conv2d, Dense), offers, write, DSP, work=work.pixels)
