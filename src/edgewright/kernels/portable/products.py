"""int8 convolutions and dense layers in plain C, blocked for few registers (Cortex-M0+, RV32)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import prod

from ...network.operators import Conv2d, Dense
from ...network.tensor import DType
from ...platform.target import Architecture
from ...program import Sweep
from ..call import CCall, CTensor, is_image, part_pointer, window_sizes
from ..kernel import Kernel, Offer, where
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, Fields
from ..site import ChannelRange, Site
from . import work
from .blocked import STACK, Convolution, has_products, interleaved, products_of

AT_ONCE = 4  # pixels of a block
CONV_BLOCKS = (4,)  # channels of blocks, widest first
DENSE_BLOCKS = (16, 4)  # where there is one pixel only
PAIR_BYTES = 4  # of two pixels in one number
PAIR_STACK = 1152  # bytes of columns that may lie on the stack of cores with many registers: pairs are worth it


def offers_conv(site: Site) -> Iterator[Offer]:
    """On cores with few registers: four pixels at once, or one, gathered as bytes."""
    if not _has_registers(site) and _is_ours(site):
        yield from _offers_bytes(site)


def offers_pairs(site: Site) -> Iterator[Offer]:
    """On other cores two pixels lie in one number, if channels come in whole blocks and there is room."""
    if not _has_registers(site) or not _is_ours(site):
        return
    if all(channels.count % CONV_BLOCKS[0] == 0 for channels in site.ranges):
        depth = _depth(site)
        yield Offer.of(AT_ONCE // 2 * (depth + depth % 2) * PAIR_BYTES, pixels=AT_ONCE, pairs=1)
    yield from _offers_bytes(site)


def _offers_bytes(site: Site) -> Iterator[Offer]:
    for pixels in (AT_ONCE, 1):
        yield Offer.of(pixels * _depth(site), pixels=pixels, pairs=0)


def _has_registers(site: Site) -> bool:
    return site.target.architecture is not Architecture.CORTEX_M


def _depth(site: Site) -> int:
    """How many products are summed up for one output."""
    return prod(site.shapes[1][1:])


def _is_ours(site: Site) -> bool:
    """Whether it is a convolution, or a dense layer of several rows, over images that the kernels can walk."""
    if isinstance(site.op, Conv2d):
        is_product = site.op.groups == 1 and site.sweep is not Sweep.CHANNELS
    else:
        is_product = _lies_in_rows(site) and not _is_row(site)
    return is_product and is_image(site.inputs[0]) and is_image(site.output) and has_products(site, allows_all=True)


def _lies_in_rows(site: Site) -> bool:
    return all(place.window is None and place.strides[-1] == 1 for place in (site.inputs[0], site.output))


def _is_row(site: Site) -> bool:
    """Whether calls of a dense layer compute one row of int8, as the kernel for that reads it."""
    bounds = site.bounds[-2] if len(site.bounds) > 1 else (0, 1)
    is_one = bounds is not None and bounds[1] - bounds[0] == 1
    return is_one and site.inputs[0].tensor.dtype is not DType.UINT8


@dataclass(frozen=True)
class _Image:
    """What is computed of one image."""

    places: tuple[CTensor, CTensor]  # of x and the output, at their first channels
    window: tuple[int, ...]
    part: tuple[Expr, ...]  # rows and columns


def write_conv(call: CCall, offer: Offer, c: CWriter) -> None:
    lead = call.region[:1] if isinstance(call.op, Conv2d) else call.region[:-2]
    made = _conv_image if isinstance(call.op, Conv2d) else _dense_image
    with loops(c, lead, "n", backward=call.is_backward) as at, c.block():
        _write(call, offer, c, made(call, at))


def _conv_image(call: CCall, at: tuple[Expr, ...]) -> _Image:
    _, rows, columns, (first, _) = call.region
    source, target = (
        replace(place, pointer=place.address((*at, 0, 0, channel)))
        for place, channel in ((call.inputs[0], 0), (call.output, first))
    )
    return _Image((source, target), window_sizes(call, call.shapes[0][3]), (*rows, *columns))


def _dense_image(call: CCall, at: tuple[Expr, ...]) -> _Image:
    """A dense layer as a convolution of one tap over an image of one line."""
    *_, rows, (first, _) = ((0, 1), *call.region)
    x = call.inputs[0].tensor.shape
    size, depth = (x[-2] if len(x) > 1 else 1), x[-1]
    source, target = _line(call.inputs[0], at, 0), _line(call.output, at, first)
    return _Image((source, target), (1, size, depth, *((1,) * 6), 0, 0), (0, 1, *rows))


def _line(place: CTensor, at: tuple[Expr, ...], channel: Expr) -> CTensor:
    is_line = len(place.strides) > 1
    index, step = ((*at, 0, channel), place.strides[-2]) if is_line else ((channel,), 0)
    return replace(place, pointer=place.address(index), strides=(0, 0, step, 1))


def _write(call: CCall, offer: Offer, c: CWriter, image: _Image) -> None:
    """The call, in a block of its own where columns lie on the stack."""
    has_pairs = bool(offer["pairs"])
    kernel, ctype, size = ("portable_pairs", "int32_t", 4) if has_pairs else ("portable_conv", "int8_t", 1)
    call.use(kernel)
    table = Convolution(image.places, image.window, offer["pixels"]).table(
        call, interleaved(CONV_BLOCKS), 1 + has_pairs
    )
    x, y = (place.pointer for place in image.places)
    part = part_pointer(call, c, image.part) if has_pairs else f"ew_part_of({', '.join(map(str, image.part))})"
    given = f"&{table}, (const uint8_t *){x}, (uint8_t *){y}, {part}"
    with nullcontext() if call.arena_scratch else c.block():
        columns = call.scratch(c, ctype, offer.scratch // size, "columns")
        c.line(f"ew_{kernel}({given}, {columns});")


def suits_dense(site: Site) -> bool:
    """One row, by a kernel of its own."""
    return _lies_in_rows(site) and _is_row(site) and has_products(site, allows_all=True)


def write_dense(call: CCall, _: Offer, c: CWriter) -> None:
    """The row as it lies. Few channels do without the block of sixteen, and so without its code."""

    def fields(channels: ChannelRange) -> Fields:
        return products_of(call, channels.channels).fields(call, interleaved(DENSE_BLOCKS))

    table, first = call.table("ew_products", fields), call.region[-1][0]
    with loops(c, call.region[:-1], "n", backward=call.is_backward) as at:
        x, y = call.inputs[0].address((*at, 0)), call.output.address((*at, first))
        pointers = f"(const int8_t *){x}, (uint8_t *){y}"
        if max(channels.count for channels in call.ranges) >= DENSE_BLOCKS[0]:
            call.use("portable_dense")
            c.line(f"ew_portable_dense(&{table}, {pointers});")
        else:
            call.use("portable")
            weights = call.pointer(lambda channels: str(fields(channels)["weights"]))
            c.line(f"ew_portable_pixel(&{table}, 0, {weights}, {pointers});")


DENSE = Kernel("portable_dense", (Dense,), where(suits_dense), write_dense, work=work.dense)
PAIRS = Kernel("portable_pairs", (Conv2d, Dense), offers_pairs, write_conv, stack=PAIR_STACK, work=work.conv)
CONV = Kernel("portable_conv", (Conv2d, Dense), offers_conv, write_conv, stack=STACK, work=work.conv)
