"""Partial sums of convolutions and dense layers by the vector kernels of whole layers, which go on from given sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...network import Array
from ...network.operators import Conv2d, Dense
from ...network.tensor import DType
from ...program.steps import SUM_BYTES
from ..call import CCall, image, image_of, part_of, window_sizes
from ..kernel import CallKind, Kernel, Offer
from ..nests.finish import zero_of
from ..partial_layout import partial_range, sums_place
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, Fields, designated, struct_fields
from ..site import ChannelRange, Site, unwrap
from ..strided_tensor import dense_strides
from .conv import PITCH
from .epilogue import Epilogue
from .finish import FINISH, byte_weights
from .int8 import ROWS, pixel_bytes
from .packing import ALIGNMENT, byte_panels, panels, starts
from .sites import ROOM, SIMD, SIZES, is_image, is_real, one_tap, tiles, working_room


def offers_conv(site: Site) -> Iterator[Offer]:
    """For images; complete sums of bytes, which lie densely, always are one."""
    is_sums = not site.result.dtype.is_float or is_image(site.output)
    if is_image(site.inputs[0]) and is_sums and _weights(site) is not None:
        yield from _tiles(site, ROWS)


def offers_dense(site: Site) -> Iterator[Offer]:
    """Each line is an image of one pixel."""
    is_sums = not site.result.dtype.is_float or site.output.strides[-1] == 1
    if site.inputs[0].strides[-1] == 1 and is_sums and _weights(site) is not None:
        yield from _tiles(site, 1)


def _tiles(site: Site, most: int) -> Iterator[Offer]:
    """Of so many pixels, or of fewer, for the channels of x that calls sum over at most."""
    parts = [_part(site, channels) for channels in site.ranges]
    if parts:
        depth = max(part[0].size for part in parts)
        yield from tiles(4 * PITCH if site.result.dtype.is_float else pixel_bytes(depth), most)


def _weights(site: Site) -> Array | None:
    return site.weights if is_real(site) else byte_weights(site)


def _part(site: Site, channels: ChannelRange) -> Array:
    """The weights (channels, ..., depth) of a partial sum."""
    (first, last), (low, high) = channels.channels, channels.partial or (0, 0)
    return unwrap(_weights(site))[first:last, ..., low:high]


def write_conv(call: CCall, offer: Offer, c: CWriter) -> None:
    def fields(channels: ChannelRange) -> Fields:
        part = _part(call, channels)
        sizes = struct_fields(SIZES, window_sizes(call, part.shape[-1]))
        window = {**sizes, "channels": len(part), "in": image(call.inputs[0]), "out": _sums_image(call)}
        return _fields(call, part, window, offer["rows"])

    batch, rows, columns, _ = call.region
    with loops(c, [batch], "n") as (n,):
        _run(call, offer, c, fields, (n, 0, 0), (*rows, *columns))


def write_dense(call: CCall, offer: Offer, c: CWriter) -> None:
    def fields(channels: ChannelRange) -> Fields:
        count, depth = (part := _part(call, channels)).shape
        return _fields(call, part, one_tap(1, depth, count, image_of(0, 0), image_of(0, 0)), offer["rows"])

    with loops(c, call.region[:-1], "n") as at:
        _run(call, offer, c, fields, at, (0, 1, 0, 1))


def _sums_image(call: CCall) -> Fields:
    """An ew_image: of floats, or of bytes for the sums of bytes."""
    if call.result.dtype.is_float:
        return image(call.output)
    row, pixel = dense_strides(call.result)[1:3]
    return image_of(SUM_BYTES * row, SUM_BYTES * pixel)


def _fields(call: CCall, part: Array, window: Fields, rows: int) -> Fields:
    """Of ew_simd_conv, without a bias, or of ew_simd_int8: sums go on."""
    note, matrix = "weights of a share in panels", part.reshape(len(part), -1)
    if call.result.dtype.is_float:
        weights = call.add(panels(matrix), note, ALIGNMENT)
        flags = {"rows": rows, "is_shared": 0, "is_backward": 0}
        return {"weights": weights, "bias": 0, **window, **flags, **Epilogue().fields}
    x = call.inputs[0].tensor
    is_signed, zero = x.dtype is DType.INT8, zero_of(x)
    start, unsigned = starts(matrix, np.zeros(len(part), np.int32), is_signed, zero)
    return {
        "weights": call.add(byte_panels(matrix), note, ALIGNMENT),
        "start": call.add(start, "start of sums", ALIGNMENT, unsigned),
        "finish": struct_fields(FINISH, (0,) * len(FINISH)),
        **window,
        "rows": rows,
        "is_backward": 0,
        "is_signed": int(is_signed),
        "zero": zero,
        "is_share": 1,
    }


def _run(
    call: CCall,
    offer: Offer,
    c: CWriter,
    fields: Callable[[ChannelRange], Fields],
    at: tuple[Expr, ...],
    bounds: tuple[Expr, ...],
) -> None:
    """The kernel's call for one image, whose first pixel is known by its indices, and a part of it."""
    kernel, ctype = ("simd_conv", "float") if call.result.dtype.is_float else ("simd_int8", "uint8_t")
    call.use(kernel)
    table, (low, _), (first, _) = call.table(f"ew_{kernel}", fields), partial_range(call, len(at)), call.region[-1]
    x, y = call.inputs[0].address((*at, low)), sums_place(call).address((*at, first))
    with c.block():
        c.line(f"const ew_part part = {designated(part_of(bounds))};")
        room = working_room(call, offer, c, ctype)
        c.line(f"ew_{kernel}_run(&{table}, {x}, {y}, part, {room});")


ADD_CONV = Kernel("simd_add_conv", (Conv2d,), offers_conv, write_conv, SIMD, CallKind.ADD, ROOM)
ADD_DENSE = Kernel("simd_add_dense", (Dense,), offers_dense, write_dense, SIMD, CallKind.ADD, ROOM)
