"""Images scaled: nearest and linear."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import gcd

import numpy as np

from ...network import Arithmetic, Array, DType, Region, Tensor
from ...network.kernels import Operand
from ...network.kernels.resize import nearest, pixels_per_step
from ...network.operators import Coordinates, Resize, ResizeMode
from ..call import Call as Site
from ..printing.constants import number
from ..printing.nest import loops
from ..printing.source import Expr, Source
from .copies import Copy, carriers
from .values import Stream, World, pointed, reader, writer


def resize(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Resize)
    if site.is_quantised and site.arithmetic is Arithmetic.TFLITE:
        return False
    return _nearest(site, c, op) if op.mode is ResizeMode.NEAREST else _linear(site, c, op)


def _nearest(site: Site, c: Source, op: Resize) -> bool:
    pair = carriers(site)
    if pair is None:
        return False
    n, rows, cols, channels = site.region
    with c.block():
        copy = Copy(site, c, pointed(c, pair[0], "px"), pointed(c, pair[1], "py", written=True))
        with loops(c, [n, rows, cols], backward=site.is_backward) as at:
            shown = [_shown(site, op, axis, at[1 + axis]) for axis in range(2)]
            copy.line((at[0], *shown), at, channels)  # a pixel never lies where it is itself read
    return True


def _shown(site: Site, op: Resize, axis: int, index: Expr) -> Expr:
    """Which row or column of the input an output index shows: by division where that is right, else by a table."""
    table, size = shown(op, axis, site.shapes[0]), op.size[axis]
    if isinstance(index, int):
        return int(table[index])
    extent = site.shapes[0][1 + axis]
    if (table == np.arange(size)).all():
        return index
    if (table == np.arange(size) * extent // size).all():
        common = gcd(extent, size)
        scaled = index if extent == common else f"{index} * {extent // common}"
        return f"({scaled} / {size // common})"
    values = table.astype(np.uint8 if extent <= 256 else np.int16 if extent <= 1 << 15 else np.int32)
    name = site.unit.constants.add(values, f"{site.layer.name}: {('rows', 'columns')[axis]}")
    return f"{name}[{index}]"


def shown(op: Resize, axis: int, shape: Sequence[int]) -> Array:
    """The input row (axis 0) or column (1) of every output index, found by scaling an image of its own indices."""
    ramp = np.arange(shape[1 + axis]).reshape([-1 if i == 1 + axis else 1 for i in range(4)])
    image = np.broadcast_to(ramp, (1, shape[1], shape[2], 1))
    x = Operand(image, Region.whole(image.shape), Tensor("ramp", image.shape, DType.INT64))
    out = Region(tuple((0, op.size[axis]) if i == 1 + axis else (0, 1) for i in range(4)))
    return nearest(op, out, x).reshape(-1)


def _linear(site: Site, c: Source, op: Resize) -> bool:
    """The four neighbours of every place, weighted and added in onnxruntime's order."""
    x, y = reader(site, 0, World.REAL), writer(site, World.REAL)
    if len(x.places) > 1 or len(y.places) > 1:  # a scale for each channel: no runtime has that
        return False
    site.use("resize")
    n, rows, cols, channels = site.region
    with c.block():
        x, y = pointed(c, x, "px"), pointed(c, y, "py", written=True)
        with loops(c, [n, rows], backward=site.is_backward) as (batch, row):
            c.line(f"const ew_neighbours up = {_around(site, op, 0, row)};")
            with loops(c, [cols], "k", backward=site.is_backward) as (col,):
                c.line(f"const ew_neighbours side = {_around(site, op, 1, col)};")
                with loops(c, [channels], "d") as (channel,):
                    y.store(c, _blend(x, batch, channel), (y.place.offset((batch, row, col, channel)),))
    return True


def _blend(x: Stream, batch: Expr, channel: Expr) -> str:
    terms = []
    for (row, down), (col, right) in product((("low", "before"), ("high", "after")), repeat=2):
        offset = x.place.offset((batch, f"up.{row}", f"side.{col}", channel))
        terms.append(f"side.{right} * up.{down} * {x.value((offset,))}")
    return " + ".join(terms)


def _around(site: Site, op: Resize, axis: int, index: Expr) -> str:
    """The neighbours of an output index, computed in float as the runtime does."""
    extent, size = site.shapes[0][1 + axis], op.size[axis]
    if op.by_product:
        step, is_half = number(pixels_per_step(op, axis, extent)), op.coordinates is Coordinates.HALF_PIXEL
        place = f"((float){index} + 0.5f) * {step} - 0.5f" if is_half else f"(float){index} * {step}"
        return f"ew_around({place}, {extent - 1})"
    ratio = number(np.float32(op.scale[axis] if op.scale else size / extent))
    match op.coordinates:
        case Coordinates.ASYMMETRIC:
            place = f"(float){index} / {ratio}"
        case Coordinates.ALIGN_CORNERS:
            place = f"(float){index} * {number(extent - 1)} / {number(size - 1)}" if size > 1 else "0.0f"
        case Coordinates.PYTORCH_HALF_PIXEL if size == 1:
            place = "0.0f"
        case _:
            place = f"((float){index} + 0.5f) / {ratio} - 0.5f"
    return f"ew_around({place}, {extent - 1})"
