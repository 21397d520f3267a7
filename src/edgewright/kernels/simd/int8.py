"""Eight-bit convolutions and dense layers as products of packed tiles with panels of weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from ...network import Array
from ...network.operators import Conv2d, Dense
from ...program import Sweep
from ..call import CCall, part_of
from ..kernel import Kernel, Offer
from ..printing.source import CWriter, Fields, designated
from ..site import ChannelRange, Site, unwrap
from .finish import ByteLayer, byte_layer, finish_fields
from .packing import ALIGNMENT, byte_panels, can_join, joined_groups, starts
from .sites import (
    ROOM,
    SIMD,
    batch_items,
    dense_lines,
    first_channel,
    is_image_of_ranges,
    tiles,
    window_fields,
    working_room,
)

BYTES, STEP, ROWS = 1024, 1088, 56  # EW_SIMD_BYTES, EW_SIMD_STEP, EW_SIMD_LINES


def pixel_bytes(depth: int) -> int:
    """Bytes of a tile for each pixel: all that is read for it."""
    return STEP * -(-depth // BYTES)


def offers_conv(site: Site) -> Iterator[Offer]:
    op = site.op_as(Conv2d)
    if not is_image_of_ranges(site) or site.sweep is Sweep.CHANNELS or not can_join(op.groups):
        return
    if byte_layer(site) is not None:
        yield from tiles(pixel_bytes(prod(site.shapes[1][1:]) * op.groups), ROWS)


def write_conv(call: CCall, offer: Offer, c: CWriter) -> None:
    layer = unwrap(byte_layer(call))
    weights = joined_groups(layer.weights, call.op_as(Conv2d).groups)
    table = _table(call, layer, weights, lambda count: window_fields(call, count), offer["rows"])
    with batch_items(call, c) as (x, y):
        room = working_room(call, offer, c, "uint8_t")
        c.line(f"ew_simd_int8_run(&{table}, {x}, {first_channel(call, y)}, part, {room});")


def offers_dense(site: Site) -> Iterator[Offer]:
    """Lines are the pixels of an image with one row."""
    lines = dense_lines(site)
    if lines is not None and byte_layer(site) is not None:
        yield from tiles(pixel_bytes(site.shapes[0][-1]), min(ROWS, lines.count))


def write_dense(call: CCall, offer: Offer, c: CWriter) -> None:
    layer, lines = unwrap(byte_layer(call)), unwrap(dense_lines(call))
    table = _table(call, layer, layer.weights, lambda count: lines.window(call, count), offer["rows"])
    x, y = call.inputs[0].pointer, first_channel(call, call.output.pointer)
    with c.block():
        c.line(f"const ew_part part = {designated(part_of((0, 1, lines.first, lines.end)))};")
        room = working_room(call, offer, c, "uint8_t")
        c.line(f"ew_simd_int8_run(&{table}, {x}, {y}, part, {room});")


def _table(call: CCall, layer: ByteLayer, weights: Array, window: Callable[[int], Fields], rows: int) -> str:
    """C of an ew_simd_int8 for the channels of the call; `window` are the fields that depend on their number."""
    call.use("simd_int8")

    def fields(channels: ChannelRange) -> Fields:
        matrix = weights.reshape(len(weights), -1)[slice(*channels.channels)]
        finish = finish_fields(call, layer, channels.channels)
        start, unsigned = starts(matrix, layer.bias[slice(*channels.channels)], layer.is_signed, layer.zero)
        return {
            "weights": call.add(byte_panels(matrix), "weights in panels", ALIGNMENT),
            "start": call.add(start, "start of sums", ALIGNMENT, unsigned),
            "finish": finish,
            **window(channels.count),
            "rows": rows,
            "is_backward": int(call.is_backward),
            "is_signed": int(layer.is_signed),
            "zero": layer.zero,
            "is_share": 0,
        }

    return call.table("ew_simd_int8", fields)


CONV_INT8 = Kernel("simd_conv_int8", (Conv2d,), offers_conv, write_conv, SIMD, stack=ROOM)
DENSE_INT8 = Kernel("simd_dense_int8", (Dense,), offers_dense, write_dense, SIMD, stack=ROOM)
