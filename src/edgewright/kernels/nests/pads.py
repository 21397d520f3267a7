"""Pads: an image with a border of constants, or of its own elements; negative ones crop."""

from __future__ import annotations

import numpy as np

from ...network import Arithmetic, DType, Region
from ...network.kernels.scales import number as stored_number
from ...network.kernels.tflite_scales import stored_number as tflite_number
from ...network.operators import Pad, PadMode
from ..call import CCall
from ..cost.copies import CopyPart, copy_work
from ..cost.elements import plain_work
from ..cost.work import KernelWork
from ..kernel import Kernel, Offer, where
from ..printing.constants import number
from ..printing.nest import elements, loops
from ..printing.source import CWriter, Expr, plus
from ..site import Site
from .copies import can_carry, is_raw, looked_up, open_copy, shifted
from .values import ComputeType, pointed, writer


def write(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(Pad)
    if op.mode is not PadMode.CONSTANT:
        call.use("moves")
        looked_up(call, c, lambda at: [_mirrored(call, op, axis, i) for axis, i in enumerate(at)])
    elif call.shares():
        _pad_in_order(call, c, op)
    else:
        _fill_then_copy(call, c, op)


def _filling(call: CCall, op: Pad) -> str:
    """The element that pads hold, as stored."""
    y = call.result
    if y.quant is not None and not y.dtype.is_float:
        stored = tflite_number if call.arithmetic is Arithmetic.TFLITE else stored_number
        return number(int(stored(op.value, y)), "int32")
    if y.dtype is DType.FLOAT16:
        return number(int(np.float16(op.value).view(np.uint16)), "int32")
    if not np.isfinite(op.value):
        call.use("math_functions")
    return number(op.value, y.dtype.value)


def _fill_then_copy(call: CCall, c: CWriter, op: Pad) -> None:
    """All of the region filled, then the image put into it."""
    rank = len(call.region)
    spans = zip(call.region, op.before, call.shapes[0], strict=True)
    # The nest counts from where both the image and the region begin, so that no address lies before either.
    bounds = [shifted(span, -max(a, 0), n - max(-a, 0)) for span, a, n in spans]
    with c.block():
        py = pointed(c, writer(call, ComputeType.RAW), "py", written=True).place
        with elements(c, call.region, [py]) as ((at,), _):
            c.line(f"py[{at}] = {_filling(call, op)};")
    if any(isinstance(a, int) and isinstance(b, int) and b <= a for a, b in bounds):
        return
    with open_copy(call, c) as copy:
        source = [(axis, max(-op.before[axis], 0), 1) for axis in range(rank)]
        target = [(axis, max(op.before[axis], 0), 1) for axis in range(rank)]
        copy.nest(bounds, source, target)


def _pad_in_order(call: CCall, c: CWriter, op: Pad) -> None:
    """Element by element: the image moves within its own memory."""
    x = call.shapes[0]
    with open_copy(call, c) as copy, loops(c, call.region, backward=call.is_backward) as at:
        inside = [
            f"{i} >= {before} && {i} < {before + size}"
            for i, before, after, size in zip(at, op.before, op.after, x, strict=True)
            if before > 0 or after > 0
        ]
        source = copy.x.place.offset([plus(i, -before) for i, before in zip(at, op.before, strict=True)])
        read = copy.y.stored(copy.x.value((source,)))
        element = f"({' && '.join(inside)}) ? {read} : {_filling(call, op)}" if inside else read
        target = copy.y.place.offset(at)
        c.line(f"{copy.y.place.pointer}[{target}] = ({copy.y.place.ctype})({element});")


def _mirrored(call: CCall, op: Pad, axis: int, index: Expr) -> Expr:
    """Which element of an axis an output index shows. Negative pads crop first."""
    before, after, extent = op.before[axis], op.after[axis], call.shapes[0][axis]
    low, size = max(0, -before), extent + min(0, before) + min(0, after)
    inner = plus(index, -max(0, before))
    if before <= 0 and after <= 0:
        return plus(inner, low)
    function = {
        PadMode.EDGE: f"ew_between(0, {inner}, {size - 1})",
        PadMode.REFLECT: f"ew_reflected({inner}, {size})",
        PadMode.SYMMETRIC: f"ew_mirrored({inner}, {size})",
    }
    return plus(function[op.mode], low)


def work(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """The region filled, and the image copied into it; where they share memory, element by element."""
    op, rank = site.op_as(Pad), len(region.shape)
    if op.mode is not PadMode.CONSTANT or site.shares():
        return plain_work(site, region)
    spans = zip(region.bounds, op.before, site.shapes[0], strict=True)
    inside = [(max(low - max(a, 0), 0), min(high - max(a, 0), n - max(-a, 0))) for (low, high), a, n in spans]
    source, target = ([(axis, max(sign * op.before[axis], 0), 1) for axis in range(rank)] for sign in (-1, 1))
    is_empty = any(high <= low for low, high in inside)
    parts = [] if is_empty else [CopyPart(0, Region(tuple(inside)), source, target, is_raw(site))]
    copied = copy_work(site, parts)
    return KernelWork(f"pad {copied.kind}", {**copied.amounts, "filled": region.size})


PAD = Kernel("pad", (Pad,), where(can_carry), write, work=work)
