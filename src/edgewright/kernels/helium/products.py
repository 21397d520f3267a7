"""int8 convolutions and dense layers with M-profile vectors (Cortex-M55)."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...network import Region
from ...network.operators import Conv2d, Dense
from ...network.tensor import DType
from ...platform.target import Family
from ...program import Sweep
from ..call import CCall, is_image, window_sizes
from ..cost.products import dense_work
from ..cost.work import Amounts, ConvPart, KernelWork
from ..kernel import Kernel, Offer, where
from ..portable.blocked import STACK, Arrangement, Convolution, by_channels, by_taps, has_products, products_of
from ..portable.work import stored_how
from ..printing.nest import loops
from ..printing.source import CWriter, Fields
from ..site import ChannelRange, Site
from ..window import round_up


def _conv_work(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """Sixteen taps at a time."""
    part, how = ConvPart(site, region), f"outputs {stored_how(site)}"
    done = part.pixels * part.channels
    amounts = part.gathering(part.edges(1), 1, part.pixels) | {"macs": done * round_up(part.taps, 16), how: done}
    if part.is_pointwise:
        amounts = {key: amounts[key] for key in ("calls", "rows", "pixels", "macs", how)}
    return KernelWork(f"{'pointwise' if part.is_pointwise else 'conv'} int8", amounts)


def _depthwise_work(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """Four channels in a vector, four vectors at a time."""
    rows, columns, channels = region.shape[1:]
    pixels, taps, fours = rows * columns, prod(site.shapes[1][1:]), round_up(channels, 4)
    sixteens, rest = divmod(fours, 16)
    amounts: Amounts = {
        "calls": 1,
        "lines": rows,
        "taps": pixels * taps,
        "blocks": pixels * (sixteens + bool(rest)),
        "block taps": pixels * (sixteens + bool(rest)) * taps,
        "outputs": pixels * fours,
        "macs": pixels * fours * taps,
    }
    return KernelWork("depthwise-vectors int8", amounts)


def _dense_work(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    return dense_work(site, region, stored_how(site), depth=16)


MOST_TAPS = 32  # of a depthwise window: EW_MOST_TAPS
# Channels from which on vectors take fewer instructions than a channel at a time with pairs of products.
LEAST_CHANNELS, LEAST_CHANNELS_STRIDED = 128, 16


def _is_image_conv(site: Site) -> bool:
    is_ours = site.sweep is not Sweep.CHANNELS and is_image(site.inputs[0]) and is_image(site.output)
    return is_ours and has_products(site, allows_all=isinstance(site.op, Conv2d) and site.op.groups == 1)


def offers_conv(site: Site) -> Iterator[Offer]:
    """From the window of one pixel, gathered; single taps of int8 are read as they lie."""
    op, w = site.op_as(Conv2d), site.shapes[1]
    if op.groups != 1 or not _is_image_conv(site):
        return
    is_direct = w[1:3] == (1, 1) and op.pads == (0, 0, 0, 0) and site.inputs[0].tensor.dtype is DType.INT8
    yield Offer() if is_direct else Offer.of(prod(w[1:]))


def write_conv(call: CCall, offer: Offer, c: CWriter) -> None:
    call.use("helium_conv")
    with c.block():
        column = "NULL"
        if offer.scratch:
            column = (
                f"(int8_t *){call.arena_scratch}"
                if call.arena_scratch
                else call.scratch(c, "int8_t", offer.scratch, "column")
            )
        _write(call, c, 1 if offer.scratch else 0, by_channels, ("ew_helium_conv", f", {column}"))


def suits_depthwise(site: Site) -> bool:
    """Where each output channel reads the input channel of its own number, and there are enough of them."""
    op, (x, w) = site.op_as(Conv2d), site.shapes[:2]
    is_plain = 1 < op.groups == x[3] == w[0] and site.inputs[0].tensor.dtype is DType.INT8
    least = LEAST_CHANNELS_STRIDED if max(op.stride) > 1 else LEAST_CHANNELS
    return is_plain and w[1] * w[2] <= MOST_TAPS and x[3] >= least and _is_image_conv(site)


def write_depthwise(call: CCall, _: Offer, c: CWriter) -> None:
    call.use("helium_depthwise")
    _write(call, c, 0, by_taps, ("ew_helium_depthwise", ""))


def _write(call: CCall, c: CWriter, pixels: int, arranged: Arrangement, kernel: tuple[str, str]) -> None:
    """A call for each image of the batch; of the kernel its name and its last arguments are given."""
    source, target = call.inputs[0], call.output
    (name, rest), (batch, rows, columns, (first, _)) = kernel, call.region
    table = Convolution((source, target), window_sizes(call, call.shapes[0][3]), pixels).table(call, arranged)
    ctype, first_read = ("int8_t", first) if call.op_as(Conv2d).groups > 1 else ("uint8_t", 0)
    part = f"ew_part_of({rows[0]}, {rows[1]}, {columns[0]}, {columns[1]})"
    with loops(c, [batch], "n", backward=call.is_backward) as (n,):
        from_, to = source.address((n, 0, 0, first_read)), target.address((n, 0, 0, first))
        c.line(f"{name}(&{table}, (const {ctype} *){from_}, (uint8_t *){to}, {part}{rest});")


def suits_dense(site: Site) -> bool:
    """Where rows lie densely: each is multiplied where it is."""
    places = (site.inputs[0], site.output)
    lies_well = all(place.window is None and place.strides[-1] == 1 for place in places)
    return lies_well and site.inputs[0].tensor.dtype is DType.INT8 and has_products(site, allows_all=True)


def write_dense(call: CCall, _: Offer, c: CWriter) -> None:
    call.use("helium")

    def fields(channels: ChannelRange) -> Fields:
        return products_of(call, channels.channels).fields(call, by_channels)

    table, first = call.table("ew_products", fields), call.region[-1][0]
    with loops(c, call.region[:-1], "n", backward=call.is_backward) as at:
        x, y = call.inputs[0].address((*at, 0)), call.output.address((*at, first))
        c.line(f"ew_helium_pixel(&{table}, (const int8_t *){x}, (uint8_t *){y});")


HELIUM = frozenset({Family.HELIUM})
CONV = Kernel("helium_conv", (Conv2d,), offers_conv, write_conv, HELIUM, stack=STACK, work=_conv_work)
DEPTHWISE = Kernel("helium_depthwise", (Conv2d,), where(suits_depthwise), write_depthwise, HELIUM, work=_depthwise_work)
DENSE = Kernel("helium_dense", (Dense,), where(suits_dense), write_dense, HELIUM, work=_dense_work)
