"""Depthwise convolutions from rows that are kept as floats, float32 and eight-bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ...network import Array
from ...network.operators import Conv2d
from ...program import Sweep
from ..call import CCall, image, part_of, window_sizes
from ..kernel import Kernel, Offer
from ..printing.nest import loops
from ..printing.source import CWriter, Fields, designated, struct_fields
from ..site import ChannelRange, Site, unwrap
from .conv import real_bias
from .epilogue import epilogue_of, write_second_pass
from .finish import ByteLayer, byte_layer, finish_fields
from .packing import ALIGNMENT, PANEL, padded
from .sites import ROOM, SIMD, WINDOW, batch_items, first_channel, is_image_of_ranges, is_real, rooms, working_room

MOST_TAPS = 32  # EW_SIMD_TAPS
COLUMNS = (32, 16, 8, 4, 2)  # of a row at a time where there is no room for more
MOST_SUM = 1 << 24  # whole numbers below it are exact as floats
DIRECT, NO_ROWS = -1, 0  # in place of channels at a time: few rows that share no memory; or no rows are kept


def offers_real(site: Site) -> Iterator[Offer]:
    if _is_ours(site) and is_real(site):
        if site.shares(0) or site.most[1] >= site.shapes[1][1]:  # as many rows as a window has
            yield from _offers(site)
        else:
            yield Offer.of(group=DIRECT, columns=0)


def offers_int8(site: Site) -> Iterator[Offer]:
    layer = byte_layer(site) if _is_ours(site) else None
    if layer is not None and _is_exact(layer):
        yield from _offers(site)


def _is_ours(site: Site) -> bool:
    op = site.op_as(Conv2d)
    if not op.groups == site.shapes[0][3] == site.result.shape[3] or not is_image_of_ranges(site):
        return False
    rows = site.shapes[1][1]
    if site.sweep is Sweep.CHANNELS and not 0 <= op.pads[0] <= (rows - 1) * op.dilation[0]:
        return False  # in place, a row is written only after it was kept
    return rows <= MOST_TAPS


def _is_exact(layer: ByteLayer) -> bool:
    weights = np.abs(layer.weights.reshape(len(layer.weights), -1).astype(np.int64))
    return bool(weights.sum(axis=1).max() * 255 < MOST_SUM)


def _offers(site: Site) -> Iterator[Offer]:
    """As many channels at a time as there is room for their rows; where memory is shared otherwise than in place, all
    of them, of some columns if need be, or no rows are kept."""
    panels, width, in_place = -(-site.most[3] // PANEL), site.most[2], site.sweep is Sweep.CHANNELS
    least = panels if site.shares(0) and not in_place else 1
    for size, count in rooms(_panel(site, width), panels, least):
        yield Offer.of(size, group=count * PANEL, columns=0)
    if not in_place:
        for columns in COLUMNS:
            yield Offer.of(panels * _panel(site, columns), group=panels * PANEL, columns=columns)
        yield Offer.of(group=NO_ROWS, columns=0)


def _panel(site: Site, columns: int) -> int:
    """Bytes of the rows that are kept for so many columns of the output, and a panel of channels."""
    op = site.op_as(Conv2d)
    down, right = ((k - 1) * d for k, d in zip(site.shapes[1][1:3], op.dilation, strict=True))
    return 4 * PANEL * (down + 1) * ((columns - 1) * op.stride[1] + right + 1)


def write_real(call: CCall, offer: Offer, c: CWriter) -> None:
    weights, end = call.weights, epilogue_of(call.activation)

    def fields(channels: ChannelRange) -> Fields:
        bias = call.add(padded(real_bias(call)[slice(*channels.channels)]), "bias", ALIGNMENT)
        return {"windows": _windows(call, weights, channels, offer), "bias": bias, **end.fields}

    _write(call, offer, c, "ew_simd_depthwise_run", call.table("ew_simd_depthwise", fields))
    write_second_pass(call, c, end)


def write_int8(call: CCall, offer: Offer, c: CWriter) -> None:
    layer = unwrap(byte_layer(call))

    def fields(channels: ChannelRange) -> Fields:
        bias = call.add(padded(layer.bias[slice(*channels.channels)]), "bias", ALIGNMENT)
        finish = finish_fields(call, layer, channels.channels)
        windows = _windows(call, layer.weights.astype(np.float32), channels, offer)
        ends = {"is_signed": int(layer.is_signed), "zero": layer.zero}
        return {"windows": windows, "bias": bias, "finish": finish, **ends}

    _write(call, offer, c, "ew_simd_depthwise8_run", call.table("ew_simd_depthwise8", fields))


def _windows(call: CCall, weights: Array, channels: ChannelRange, offer: Offer) -> Fields:
    """The ew_simd_windows of these channels."""
    call.use("simd_depthwise")
    taps = padded(weights[slice(*channels.channels)].reshape(channels.count, -1)).T
    name = call.add(np.ascontiguousarray(taps), "weights by tap", ALIGNMENT)
    return {
        "weights": name,
        **struct_fields(("height", "width", "channels", *WINDOW), window_sizes(call, channels.count)),
        "in": image(call.inputs[0]),
        "out": image(call.output),
        "group": offer["group"],
        "is_backward": int(call.is_backward),
    }


def _write(call: CCall, offer: Offer, c: CWriter, run: str, table: str) -> None:
    """The kernel for the part that the step computes, or for a few columns of a row at a time."""
    with batch_items(call, c) as images:
        x, y = (first_channel(call, pointer) for pointer in images)
        rows = working_room(call, offer, c, "float") if offer.scratch else "NULL"
        if not offer["columns"]:
            c.line(f"{run}(&{table}, {x}, {y}, part, {rows});")
            return
        with _pieces(call, c, offer["columns"]) as piece:
            c.line(f"const ew_part piece = {piece};")
            c.line(f"{run}(&{table}, {x}, {y}, piece, {rows});")


@contextmanager
def _pieces(call: CCall, c: CWriter, columns: int) -> Iterator[str]:
    """Loops over pieces of `part`, row by row; gives an ew_part."""
    left, right = "part.left + done", f"ew_min(part.left + done + {columns}, part.right)"
    if call.is_backward:
        left, right = f"ew_max(part.left, part.right - done - {columns})", "part.right - done"
    with (
        loops(c, [("part.top", "part.bottom")], "row", backward=call.is_backward) as (row,),
        c.block(f"for (int32_t done = 0; done < part.right - part.left; done += {columns})"),
    ):
        yield designated(part_of((row, f"{row} + 1", left, right)))


DEPTHWISE = Kernel("simd_depthwise", (Conv2d,), offers_real, write_real, SIMD, stack=ROOM)
DEPTHWISE_INT8 = Kernel("simd_depthwise_int8", (Conv2d,), offers_int8, write_int8, SIMD, stack=ROOM)
