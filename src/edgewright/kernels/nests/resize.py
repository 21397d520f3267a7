"""Images scaled: nearest and linear."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import gcd

import numpy as np

from ...network import Array, DType, Region, Tensor
from ...network.kernels import Operand
from ...network.kernels.resize import nearest, pixels_per_step
from ...network.operators import Coordinates, Resize, ResizeMode
from ..call import CCall
from ..kernel import Kernel, Offer, where
from ..printing.constants import number
from ..printing.nest import loops
from ..printing.source import CWriter, Expr
from ..site import Site
from .copies import can_carry, open_copy
from .values import ComputeType, LoopOperand, compute_type, has_scales, pointed, reader, writer


def suits_nearest(site: Site) -> bool:
    return site.op_as(Resize).mode is ResizeMode.NEAREST and compute_type(site) is not None and can_carry(site)


def write_nearest(call: CCall, _: Offer, c: CWriter) -> None:
    op, (n, rows, cols, channels) = call.op_as(Resize), call.region
    with open_copy(call, c) as copy, loops(c, [n, rows, cols], backward=call.is_backward) as at:
        source_indices = [_source_indices(call, op, axis, at[1 + axis]) for axis in range(2)]
        copy.line((at[0], *source_indices), at, channels)  # a pixel never lies where it is itself read


def _source_indices(call: CCall, op: Resize, axis: int, index: Expr) -> Expr:
    """Which row or column of the input an output index shows: by division where that is right, else by a table."""
    table, size = source_indices(op, axis, call.shapes[0]), op.size[axis]
    if isinstance(index, int):
        return int(table[index])
    extent = call.shapes[0][1 + axis]
    if (table == np.arange(size)).all():
        return index
    if (table == np.arange(size) * extent // size).all():
        common = gcd(extent, size)
        scaled = index if extent == common else f"{index} * {extent // common}"
        return f"({scaled} / {size // common})"
    values = table.astype(np.uint8 if extent <= 256 else np.int16 if extent <= 1 << 15 else np.int32)
    return f"{call.add(values, ('rows', 'columns')[axis])}[{index}]"


def source_indices(op: Resize, axis: int, shape: Sequence[int]) -> Array:
    """The input row (axis 0) or column (1) of every output index, found by scaling an image of its own indices."""
    ramp = np.arange(shape[1 + axis]).reshape([-1 if i == 1 + axis else 1 for i in range(4)])
    image = np.broadcast_to(ramp, (1, shape[1], shape[2], 1))
    x = Operand(image, Region.whole(image.shape), Tensor("ramp", image.shape, DType.INT64))
    out = Region(tuple((0, op.size[axis]) if i == 1 + axis else (0, 1) for i in range(4)))
    return nearest(op, out, x).reshape(-1)


def suits_linear(site: Site) -> bool:
    """Unless there is a scale for each channel, which no runtime has."""
    has_tables = has_scales(site.inputs[0].tensor) or has_scales(site.result)
    return site.op_as(Resize).mode is ResizeMode.LINEAR and compute_type(site) is not None and not has_tables


def write_linear(call: CCall, _: Offer, c: CWriter) -> None:
    """The four neighbours of every place, weighted and added in onnxruntime's order."""
    op, (n, rows, cols, channels) = call.op_as(Resize), call.region
    x, y = reader(call, 0, ComputeType.REAL), writer(call, ComputeType.REAL)
    call.use("resize")
    with c.block():
        x, y = pointed(c, x, "px"), pointed(c, y, "py", written=True)
        with loops(c, [n, rows], backward=call.is_backward) as (batch, row):
            c.line(f"const ew_neighbours up = {_around(call, op, 0, row)};")
            with loops(c, [cols], "k", backward=call.is_backward) as (col,):
                c.line(f"const ew_neighbours side = {_around(call, op, 1, col)};")
                with loops(c, [channels], "d") as (channel,):
                    y.store(c, _blend(x, batch, channel), (y.place.offset((batch, row, col, channel)),))


def _blend(x: LoopOperand, batch: Expr, channel: Expr) -> str:
    terms = []
    for (row, down), (col, right) in product((("low", "before"), ("high", "after")), repeat=2):
        offset = x.place.offset((batch, f"up.{row}", f"side.{col}", channel))
        terms.append(f"side.{right} * up.{down} * {x.value((offset,))}")
    return " + ".join(terms)


def _around(call: CCall, op: Resize, axis: int, index: Expr) -> str:
    """The neighbours of an output index, computed in float as the runtime does."""
    extent, size = call.shapes[0][1 + axis], op.size[axis]
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


NEAREST = Kernel("resize_nearest", (Resize,), where(suits_nearest), write_nearest)
LINEAR = Kernel("resize_linear", (Resize,), where(suits_linear), write_linear)
