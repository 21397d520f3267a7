"""Quantised operators over images in TFLite's arithmetic: resize, and concat of bytes with different scales."""

from __future__ import annotations

import numpy as np

from ...network import Array, DType, Region
from ...network.kernels import Operand
from ...network.kernels.resize import nearest_places
from ...network.kernels.tflite_images import fixed_places, float_places, rescaled
from ...network.operators import Concat, Resize, ResizeMode
from ..call import CCall
from ..kernel import Kernel, Offer, where
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, plus
from ..site import Site
from .copies import shifted
from .lookup import answer, every_byte
from .tflite import applies
from .windows import channels


def suits_concat(site: Site) -> bool:
    """Bytes with other scales than the output's; everything else is for those who move elements."""
    is_rescaled = any(place.tensor.quant != site.result.quant for place in site.inputs)
    return applies(site) and site.result.dtype is DType.UINT8 and is_rescaled


def write_concat(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(Concat)
    axis, begin, parts = op.axis % len(call.region), 0, []
    for which, place in enumerate(call.inputs):
        parts.append((which, begin))
        begin += place.tensor.shape[axis]
    with loops(c, call.region[:axis], backward=call.is_backward) as outer:
        for which, first in reversed(parts) if call.is_backward else parts:
            _part(call, c, which, axis, first, outer)


def _part(call: CCall, c: CWriter, which: int, axis: int, first: int, outer: tuple[Expr, ...]) -> None:
    """One input's share of a line across the parts, in the order of the sweep."""
    x, y = call.place(which), call.output
    span = shifted(call.region[axis], -first, x.tensor.shape[axis])
    with loops(c, [span, *call.region[axis + 1 :]], "j", call.is_backward) as (along, *inner):
        element = f"{x.pointer}[{x.offset((*outer, along, *inner))}]"
        at = y.offset((*outer, plus(along, first), *inner))
        c.line(f"{y.pointer}[{at}] = {answer(call, which, element, _bytes_of(call, which))};")


def _bytes_of(call: CCall, which: int) -> Array:
    tensor = call.inputs[which].tensor
    values = every_byte(tensor)
    return rescaled(Operand(values, Region.whole(values.shape), tensor), call.result)


def suits_nearest(site: Site) -> bool:
    return applies(site) and site.op_as(Resize).mode is ResizeMode.NEAREST


def suits_linear(site: Site) -> bool:
    return applies(site) and site.op_as(Resize).mode is ResizeMode.LINEAR


def write_resize(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(Resize)
    with c.block():
        c.line(f"const {call.inputs[0].ctype} *const px = {call.place(0).pointer};")
        c.line(f"{call.output.ctype} *const py = {call.output.pointer};")
        with loops(c, call.region[:-1], backward=call.is_backward) as at:
            write = _nearest if op.mode is ResizeMode.NEAREST else _linear
            write(call, c, op, at)


def _nearest(call: CCall, c: CWriter, op: Resize, at: tuple[Expr, ...]) -> None:
    whole, shape = Region.whole(call.result.shape), call.shapes[0]
    rows = [nearest_places(op, i, whole, shape[1 + i]) for i in range(2)]
    row, col = (_entry(call, table, at[1 + i], "places") for i, table in enumerate(rows))
    with channels(call, c) as channel:
        source = call.inputs[0].offset((at[0], row, col, channel))
        c.line(f"py[{call.output.offset((*at, channel))}] = px[{source}];")


def _entry(call: CCall, values: Array, index: Expr, note: str) -> Expr:
    """The number that belongs to an output row or column: itself, or looked up in a table."""
    if np.issubdtype(values.dtype, np.integer):
        if isinstance(index, int):
            return int(values[index])
        values = values.astype(np.int16 if values.max() < 1 << 15 else np.int32)
    return f"{call.add(values, note)}[{index}]"


def _linear(call: CCall, c: CWriter, op: Resize, at: tuple[Expr, ...]) -> None:
    """Between two rows and two columns: bytes without sign in float, others with 10 bits behind the point."""
    call.use("tflite_resize")
    is_float = call.result.dtype is DType.UINT8
    name = "float" if is_float else "wide" if call.result.dtype is DType.INT16 else "fixed"
    places, whole = float_places if is_float else fixed_places, Region.whole(call.result.shape)
    sides, shares = [], []
    for i, axis in enumerate(("dy", "dx")):
        first, second, share = places(op, i, whole, call.shapes[0][1 + i])
        sides.append([_entry(call, table, at[1 + i], "places") for table in (first, second)])
        shares.append(axis)
        value = _entry(call, share.astype(np.float32 if is_float else np.int16), at[1 + i], "shares")
        c.line(f"const {'float' if is_float else 'int32_t'} {axis} = {value};")
    with channels(call, c) as channel:
        corners = [f"px[{call.inputs[0].offset((at[0], row, col, channel))}]" for row in sides[0] for col in sides[1]]
        c.line(
            f"py[{call.output.offset((*at, channel))}] = "
            f"({call.output.ctype})ew_bilinear_{name}({', '.join([*corners, *shares])});"
        )


CONCAT = Kernel("concat_rescaled_tflite", (Concat,), where(suits_concat), write_concat)
RESIZE_NEAREST = Kernel("resize_nearest_tflite", (Resize,), where(suits_nearest), write_resize)
RESIZE_LINEAR = Kernel("resize_linear_tflite", (Resize,), where(suits_linear), write_resize)
