"""Eight-bit convolutions and dense layers as products of packed tiles with panels of weights."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...network import Array
from ...network.operators import Conv2d, Dense
from ...program import Sweep
from ..call import CCall
from ..kernel import Kernel, Offer
from ..printing.source import CWriter, Expr
from ..site import Site
from .finish import ByteLayer, byte_layer, finish_fields
from .packing import ALIGNMENT, byte_panels, can_join, joined_groups, totals
from .sites import ROOM, SIMD, dense_lines, is_plain_image, pictures, tiles, window_fields, working_room

BYTES, STEP, ROWS = 1024, 1088, 56  # EW_SIMD_BYTES, EW_SIMD_STEP, EW_SIMD_LINES


def pixel_bytes(depth: int) -> int:
    """Bytes of a tile for each pixel: all that is read for it."""
    return STEP * -(-depth // BYTES)


def offers_conv(site: Site) -> Iterator[Offer]:
    op = site.op
    assert isinstance(op, Conv2d)
    if not is_plain_image(site) or site.sweep is Sweep.CHANNELS or not can_join(op.groups):
        return
    if byte_layer(site) is not None:
        yield from tiles(pixel_bytes(prod(site.shapes[1][1:]) * op.groups), ROWS)


def write_conv(call: CCall, offer: Offer, c: CWriter) -> None:
    op, layer = call.op, byte_layer(call)
    assert isinstance(op, Conv2d) and layer is not None
    weights = joined_groups(layer.weights, op.groups)
    table = _table(call, layer, weights, window_fields(call, op), offer["rows"])
    with pictures(call, c) as (x, y):
        room = working_room(call, offer, c, "uint8_t")
        c.line(f"ew_simd_int8_run(&{table}, {x}, {y}, part, {room});")


def offers_dense(site: Site) -> Iterator[Offer]:
    """Lines are the pixels of an image with one row."""
    lines = dense_lines(site)
    if lines is not None and byte_layer(site) is not None:
        yield from tiles(pixel_bytes(site.shapes[0][-1]), min(ROWS, lines.count))


def write_dense(call: CCall, offer: Offer, c: CWriter) -> None:
    layer, lines = byte_layer(call), dense_lines(call)
    assert layer is not None and lines is not None
    table = _table(call, layer, layer.weights, lines.window(call), offer["rows"])
    with c.block():
        c.line(f"const ew_part part = {{0, 1, {lines.first}, {lines.end}}};")
        room = working_room(call, offer, c, "uint8_t")
        c.line(f"ew_simd_int8_run(&{table}, {call.inputs[0].pointer}, {call.output.pointer}, part, {room});")


def _table(call: CCall, layer: ByteLayer, weights: Array, window: tuple[Expr, ...], rows: int) -> str:
    call.use("simd_int8")
    finish, matrix = finish_fields(call, layer), weights.reshape(len(weights), -1)
    tables = (
        call.add(byte_panels(matrix), "weights in panels", ALIGNMENT),
        call.add(totals(matrix), "sums of weights", ALIGNMENT),
    )
    fields = (*tables, finish, *window, rows, int(call.is_backward), int(layer.is_signed), layer.zero)
    return call.module.table("ew_simd_int8", fields)


CONV_INT8 = Kernel("simd_conv_int8", (Conv2d,), offers_conv, write_conv, SIMD, stack=ROOM)
DENSE_INT8 = Kernel("simd_dense_int8", (Dense,), offers_dense, write_dense, SIMD, stack=ROOM)
