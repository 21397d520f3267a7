"""Shares of convolutions and dense layers by the vector kernels of whole layers: they go on from the sums there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...network import Array
from ...network.operators import Conv2d
from ...network.tensor import DType
from ...platform.target import Family
from ...program.shares import SUM_BYTES
from ..call import Call as Site
from ..printing.images import image
from ..printing.nest import loops
from ..printing.source import Expr, Source, braced
from ..shares_form import share_of, sums_place
from .conv import PITCH, is_real, padded, panels
from .finish import byte_weights
from .int8 import BYTES, ROWS, STEP, byte_panels
from .sites import Ending, is_image, room_for, working_room


@dataclass(frozen=True)
class _Part:
    """Weights of the share, and where it begins."""

    weights: Array  # (channels, ..., depth)
    first: int  # channel of the output
    low: int  # channel of x


def add_conv2d(site: Site, c: Source) -> bool:
    op, part = site.op, _part(site)
    assert isinstance(op, Conv2d)
    if part is None or not is_image(site.inputs[0]) or not is_image(sums_place(site)):
        return False
    (_, height, width, _), (channels, kernel_y, kernel_x, depth) = site.shapes[0], part.weights.shape
    sizes = (height, width, depth, kernel_y, kernel_x, *op.stride, *op.dilation, *op.pads[:2], channels)
    window = (*sizes, image(site.inputs[0]), _sums_image(site))
    batch, rows, columns, _ = site.region
    room = _room(site, part.weights[0].size, ROWS)
    if room is None:
        return False
    with loops(c, [batch], "n") as (n,):
        _run(site, c, part, window, ((n, 0, 0), (*rows, *columns)), room)
    return True


def add_dense(site: Site, c: Source) -> bool:
    """Each line is an image of one pixel."""
    part = _part(site)
    places = (site.inputs[0], sums_place(site))
    room = _room(site, part.weights.shape[1], 1) if part else None
    if part is None or room is None or any(place.strides[-1] != 1 for place in places):
        return False
    channels, depth = part.weights.shape
    window = (1, 1, depth, 1, 1, 1, 1, 1, 1, 0, 0, channels, "{0, 0, 0}", "{0, 0, 0}")
    with loops(c, site.region[:-1], "n") as at:
        _run(site, c, part, window, (at, (0, 1, 0, 1)), room)
    return True


def _part(site: Site) -> _Part | None:
    bounds = (*site.region[-1], *share_of(site, len(site.shapes[0]) - 1))
    if site.target.family is not Family.SIMD or not all(isinstance(bound, int) for bound in bounds):
        return None
    weights = site.network.constants[site.inputs[1].tensor.name] if is_real(site) else byte_weights(site)
    first, last, low, high = map(int, bounds)
    return None if weights is None else _Part(weights[first:last, ..., low:high], first, low)


def _sums_image(site: Site) -> str:
    """An ew_image: of floats, or of bytes for the sums of bytes."""
    if site.result.dtype.is_float:
        return image(site.output)
    row, pixel = sums_place(site).strides[1:3]
    return braced((SUM_BYTES * row, SUM_BYTES * pixel, 0))


Room = tuple[str | None, int, int]  # where, bytes, pixels at a time


def _room(site: Site, depth: int, most: int) -> Room | None:
    """For the tile of `most` pixels, or of fewer."""
    row = 4 * PITCH if site.result.dtype.is_float else STEP * -(-depth // BYTES)
    where, size = room_for(site, row, row * most)
    return (where, size, min(most, size // row)) if size else None


def _run(
    site: Site,
    c: Source,
    part: _Part,
    window: Sequence[Expr],
    region: tuple[tuple[Expr, ...], tuple[Expr, ...]],
    room: Room,
) -> None:
    """The kernel's call for one image, whose first pixel is known by its indices, and a part of it."""
    (at, bounds), (where, size, rows) = region, room
    kernel = "simd_conv" if site.result.dtype.is_float else "simd_int8"
    site.use(kernel)
    table = site.unit.table(f"ew_{kernel}", _fields(site, part, window, rows))
    x, y = site.inputs[0].address((*at, part.low)), sums_place(site).address((*at, part.first))
    with c.block():
        c.line(f"const ew_part part = {braced(bounds)};")
        ctype = "float" if site.result.dtype.is_float else "uint8_t"
        c.line(f"ew_{kernel}_run(&{table}, {x}, {y}, part, {working_room(c, where, size, ctype)});")


def _fields(site: Site, part: _Part, window: Sequence[Expr], rows: int) -> tuple[Expr, ...]:
    """Of ew_simd_conv or ew_simd_int8, without a bias: sums go on."""
    add, note = site.unit.constants.add, f"{site.layer.name}: weights of a share in panels"
    matrix = part.weights.reshape(len(part.weights), -1)
    if site.result.dtype.is_float:
        return (add(panels(matrix), note, 64), 0, *window, rows, 0, 0, *Ending().fields)
    totals = padded(matrix.astype(np.int32).sum(axis=1, dtype=np.int32))
    x = site.inputs[0].tensor
    assert x.quant is not None
    tables = (add(byte_panels(matrix), note, 64), add(totals, f"{site.layer.name}: sums of weights", 64))
    nothing = braced((0,) * 8)
    return (*tables, nothing, *window, rows, 0, int(x.dtype is DType.INT8), x.quant.zero[0])
