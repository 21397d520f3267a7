"""float32 convolutions and dense layers as products of packed tiles with panels of weights."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ...network import Array
from ...network.operators import Conv2d, Dense
from ...program import Sweep
from ..call import CCall, part_of
from ..kernel import Kernel, Offer
from ..printing.source import CWriter, Fields, designated
from ..site import ChannelRange, Site, unwrap
from ..window import round_up
from .epilogue import Epilogue, epilogue_of, write_second_pass
from .packing import ALIGNMENT, PANEL, can_join, joined_groups, padded, panels
from .sites import (
    ROOM,
    SIMD,
    batch_items,
    dense_lines,
    first_channel,
    is_image_of_ranges,
    is_of_all_channels,
    is_real,
    tiles,
    window_fields,
    working_room,
)

DEPTH, PITCH, ROWS = 192, 272, 112  # EW_SIMD_DEPTH at least, EW_SIMD_PITCH at most, EW_SIMD_ROWS


def offers_conv(site: Site) -> Iterator[Offer]:
    op = site.op_as(Conv2d)
    if not is_real(site) or not is_image_of_ranges(site) or site.sweep is Sweep.CHANNELS:
        return
    groups, taps = _turns(site, op), site.shapes[1][1:]
    if op.groups > 1 and not is_of_all_channels(site):
        return
    is_depthwise = groups > 1 and taps[2] == 1
    if not is_depthwise and (groups == op.groups or can_join(op.groups)):
        yield from tiles(_pixel(site, prod(taps) * op.groups // groups), ROWS)


def _turns(site: Site, op: Conv2d) -> int:
    """Groups that are computed one after the other; where that would write pixels before all of them are read, one
    group does the work of all."""
    return 1 if site.shares(0) else op.groups


def _pixel(site: Site, depth: int) -> int:
    """Bytes of a tile for each pixel, with its sums where they cannot wait in the output."""
    has_sums = site.shares(0) and depth > DEPTH
    return 4 * (PITCH + (site.most[-1] if has_sums else 0))


def write_conv(call: CCall, offer: Offer, c: CWriter) -> None:
    op = call.op_as(Conv2d)
    groups, end = _turns(call, op), epilogue_of(op.activation)
    w = call.weights
    joined = w if groups == op.groups else joined_groups(w, op.groups)

    def fields(channels: ChannelRange) -> Fields:
        window = window_fields(call, channels.count, groups)
        return _fields(call, window, offer["rows"], end, _packed(call, joined, channels, groups))

    call.use("simd_conv")
    table = call.table("ew_simd_conv", fields)
    with batch_items(call, c) as (x, y):
        room = working_room(call, offer, c, "float")
        if groups == 1:
            c.line(f"ew_simd_conv_run(&{table}, {x}, {first_channel(call, y)}, part, {room});")
        else:
            _write_turns(call, c, table, groups, (x, y, room))
    write_second_pass(call, c, end)


def _fields(call: CCall, window: Fields, rows: int, end: Epilogue, packed: tuple[Array, Array]) -> Fields:
    """Of an ew_simd_conv."""
    weights = call.add(packed[0], "weights in panels", ALIGNMENT)
    bias = call.add(packed[1], "bias", ALIGNMENT)
    flags = {"rows": rows, "is_shared": int(call.shares(0)), "is_backward": int(call.is_backward)}
    return {"weights": weights, "bias": bias, **window, **flags, **end.fields}


def _packed(site: Site, w: Array, channels: ChannelRange, groups: int) -> tuple[Array, Array]:
    """Weights and bias of these channels in panels, group after group."""
    part = slice(*channels.channels)
    matrices = np.split(w.reshape(w.shape[0], -1)[part], groups)
    bias = np.split(real_bias(site)[part], groups)
    return np.stack([panels(m) for m in matrices]), np.stack([padded(b) for b in bias])


def real_bias(site: Site) -> Array:
    if len(site.inputs) > 2:
        return site.network.constants[site.inputs[2].tensor.name]
    return np.zeros(site.shapes[1][0], np.float32)


def _write_turns(call: CCall, c: CWriter, table: str, groups: int, places: tuple[str, str, str]) -> None:
    channels, depth = call.shapes[1][0] // groups, prod(call.shapes[1][1:])
    size = round_up(channels, PANEL)
    x, y, room = places
    with c.block(f"for (int32_t group = 0; group < {groups}; group++)"):
        c.line(f"ew_simd_conv one = {table};")
        c.line(f"one.weights += group * {size * depth};")
        c.line(f"one.bias += group * {size};")
        read, write = f"{x} + group * {call.shapes[1][3]}", f"{y} + group * {channels}"
        c.line(f"ew_simd_conv_run(&one, {read}, {write}, part, {room});")


def offers_dense(site: Site) -> Iterator[Offer]:
    """Lines are the pixels of an image with one row; a single one is multiplied where it lies."""
    lines = dense_lines(site)
    if not is_real(site) or lines is None:
        return
    if lines.count == 1:
        yield Offer.of(rows=1)
    else:
        yield from tiles(_pixel(site, site.shapes[0][-1]), ROWS)


def write_dense(call: CCall, offer: Offer, c: CWriter) -> None:
    lines, end, weights = unwrap(dense_lines(call)), epilogue_of(call.activation), call.weights

    def fields(channels: ChannelRange) -> Fields:
        window = lines.window(call, channels.count)
        return _fields(call, window, offer["rows"], end, _packed(call, weights, channels, 1))

    call.use("simd_conv")
    table = call.table("ew_simd_conv", fields)
    x, y = call.inputs[0].pointer, first_channel(call, call.output.pointer)
    with c.block():
        if lines.count == 1:
            read, write = (lines.first * step for step in lines.steps)
            c.line(f"ew_simd_conv_line(&{table}, {x} + {read}, {y} + {write});")
        else:
            c.line(f"const ew_part part = {designated(part_of((0, 1, lines.first, lines.end)))};")
            room = working_room(call, offer, c, "float")
            c.line(f"ew_simd_conv_run(&{table}, {x}, {y}, part, {room});")
    write_second_pass(call, c, end)


CONV = Kernel("simd_conv", (Conv2d,), offers_conv, write_conv, SIMD, stack=ROOM)
DENSE = Kernel("simd_dense", (Dense,), offers_dense, write_dense, SIMD, stack=ROOM)
