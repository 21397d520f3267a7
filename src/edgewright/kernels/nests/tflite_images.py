"""Quantised operators over images in TFLite's arithmetic: resize, and concat of bytes with different scales."""

from __future__ import annotations

import numpy as np

from ...network import Array, DType, Region
from ...network.kernels import Operand
from ...network.kernels.resize import nearest_places
from ...network.kernels.tflite_images import fixed_places, float_places, rescaled
from ...network.operators import Concat, Resize, ResizeMode
from ..call import Call as Site
from ..printing.nest import loops
from ..printing.source import Expr, Source, plus
from .lookup import answer, every_byte
from .tflite import applies
from .windows import channels


def concat(site: Site, c: Source) -> bool:
    """Bytes with other scales than the output's are looked up; everything else is for those who move elements."""
    op = site.op
    assert isinstance(op, Concat)
    tensors = [place.tensor for place in site.inputs]
    if (
        not applies(site)
        or site.result.dtype is not DType.UINT8
        or all(t.quant == site.result.quant for t in tensors)
    ):
        return False
    axis, begin, parts = op.axis % len(site.region), 0, []
    for which, tensor in enumerate(tensors):
        parts.append((which, begin))
        begin += tensor.shape[axis]
    with loops(c, site.region[:axis], backward=site.is_backward) as outer:
        for which, first in reversed(parts) if site.is_backward else parts:
            _part(site, c, which, axis, first, outer)
    return True


def _part(site: Site, c: Source, which: int, axis: int, first: int, outer: tuple[Expr, ...]) -> None:
    """One input's share of a line across the parts, in the order of the sweep."""
    x, y = site.place(which), site.output
    low, high = (plus(bound, -first) for bound in site.region[axis])
    size = x.tensor.shape[axis]
    span = (
        max(low, 0) if isinstance(low, int) else f"ew_max({low}, 0)",
        min(high, size) if isinstance(high, int) else f"ew_min({high}, {size})",
    )
    with loops(c, [span, *site.region[axis + 1 :]], "j", site.is_backward) as (along, *inner):
        element = f"{x.pointer}[{x.offset((*outer, along, *inner))}]"
        at = y.offset((*outer, plus(along, first), *inner))
        c.line(f"{y.pointer}[{at}] = {answer(site, which, element, _bytes_of(site, which))};")


def _bytes_of(site: Site, which: int) -> Array:
    tensor = site.inputs[which].tensor
    values = every_byte(tensor)
    return rescaled(Operand(values, Region.whole(values.shape), tensor), site.result)


def resize(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Resize)
    if not applies(site):
        return False
    with c.block():
        c.line(f"const {site.inputs[0].ctype} *const px = {site.place(0).pointer};")
        c.line(f"{site.output.ctype} *const py = {site.output.pointer};")
        with loops(c, site.region[:-1], backward=site.is_backward) as at:
            write = _nearest if op.mode is ResizeMode.NEAREST else _bilinear
            write(site, c, op, at)
    return True


def _nearest(site: Site, c: Source, op: Resize, at: tuple[Expr, ...]) -> None:
    whole, shape = Region.whole(site.result.shape), site.shapes[0]
    rows = [nearest_places(op, i, whole, shape[1 + i]) for i in range(2)]
    row, col = (_entry(site, table, at[1 + i], "places") for i, table in enumerate(rows))
    with channels(site, c) as channel:
        source = site.inputs[0].offset((at[0], row, col, channel))
        c.line(f"py[{site.output.offset((*at, channel))}] = px[{source}];")


def _entry(site: Site, values: Array, index: Expr, note: str) -> Expr:
    """The number that belongs to an output row or column: itself, or looked up in a table."""
    if isinstance(index, int) and np.issubdtype(values.dtype, np.integer):
        return int(values[index])
    kind = values.astype(np.int16) if np.issubdtype(values.dtype, np.integer) else values
    return f"{site.unit.constants.add(kind, f'{site.layer.name}: {note}')}[{index}]"


def _bilinear(site: Site, c: Source, op: Resize, at: tuple[Expr, ...]) -> None:
    """Between two rows and two columns: bytes without sign in float, others with 10 bits behind the point."""
    site.use("tflite_resize")
    is_float = site.result.dtype is DType.UINT8
    name = "float" if is_float else "wide" if site.result.dtype is DType.INT16 else "fixed"
    places, whole = float_places if is_float else fixed_places, Region.whole(site.result.shape)
    sides, shares = [], []
    for i, axis in enumerate(("dy", "dx")):
        first, second, share = places(op, i, whole, site.shapes[0][1 + i])
        sides.append([_entry(site, table, at[1 + i], "places") for table in (first, second)])
        shares.append(axis)
        value = _entry(site, share.astype(np.float32 if is_float else np.int16), at[1 + i], "shares")
        c.line(f"const {'float' if is_float else 'int32_t'} {axis} = {value};")
    with channels(site, c) as channel:
        corners = [
            f"px[{site.inputs[0].offset((at[0], row, col, channel))}]" for row in sides[0] for col in sides[1]
        ]
        c.line(
            f"py[{site.output.offset((*at, channel))}] = "
            f"({site.output.ctype})ew_bilinear_{name}({', '.join([*corners, *shares])});"
        )
