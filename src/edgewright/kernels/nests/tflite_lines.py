"""Quantised operators that look along a line in TFLite's arithmetic: softmax, normalisation, reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...network import DType
from ...network.kernels.tflite_fixed import quantize_multiplier
from ...network.kernels.tflite_functions import step_table
from ...network.kernels.tflite_lines import difference_scale, reduce_factor
from ...network.kernels.tflite_scales import scale, zero
from ...network.operators import L2Normalize, LogSoftmax, Reduce, ReduceKind, Softmax
from ..call import Call as Site
from ..printing.constants import number
from ..printing.nest import loops
from ..printing.source import Expr, Source
from .tflite import applies, centred, placed
from .windows import grouped


def softmax(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Softmax)
    if not applies(site):
        return False
    if site.inputs[0].tensor.dtype is DType.INT16:
        return _wide_softmax(site, c, op)
    name, ctype = ("softmax", "uint8_t") if site.result.dtype.bytes == 1 else ("softmax_16", "int16_t")
    site.use(f"tflite_{name}")
    table = _line_table(site, op.beta)
    return _lines(site, c, ("uint8_t", ctype), lambda x, y, span: f"ew_{name}(&{table}, {x}, {y}, {span});")


def _line_table(site: Site, beta: float) -> str:
    """The parameters of an eight-bit line, as a struct."""
    factor, shift, least = difference_scale(beta, site.inputs[0].tensor)
    return site.unit.table("ew_softmax_line", [*_shape(site), factor, shift, least, _flip(site)])


def _shape(site: Site) -> tuple[int, int, int]:
    return site.shapes[0][-1], site.inputs[0].strides[-1], site.output.strides[-1]


def _flip(site: Site) -> int:
    """The bit that turns a signed byte into an unsigned one of the same order."""
    return 0x80 if site.inputs[0].tensor.dtype is DType.INT8 else 0


Call = Callable[[str, str, str], str]  # (line of the input, line of the output, "first, last") -> statement


def _lines(site: Site, c: Source, types: tuple[str, str], call: Call) -> bool:
    """The call for every line along the last axis."""
    with c.block():
        c.line(f"const {types[0]} *const px = (const {types[0]} *){site.place(0).pointer};")
        c.line(f"{types[1]} *const py = ({types[1]} *){site.output.pointer};")
        low, high = site.region[-1]
        with loops(c, site.region[:-1], backward=site.is_backward) as at:
            x, y = (
                _at(name, place.offset((*at, 0))) for name, place in (("px", site.inputs[0]), ("py", site.output))
            )
            c.line(call(x, y, f"{low}, {high}"))
    return True


def _at(pointer: str, offset: Expr) -> str:
    return pointer if offset == 0 else f"{pointer} + {grouped(offset)}"


def _wide_softmax(site: Site, c: Source, op: Softmax) -> bool:
    """16 bits: exp over -10..0 and 1 / (1 + x) over 0..1 from tables."""
    site.use("tflite_wide_softmax")
    span = 65535.0
    exps = step_table(np.exp, (10.0 / span, 2.0 / span), (32767, 0), np.float64)
    inverses = step_table(lambda v: 1 / (1 + v), (1.0 / span, 2.0 / span), (-32768, 0), np.float64)
    names = [
        site.unit.constants.add(values.astype(np.int16), note)
        for values, note in ((exps, "exp over -10..0"), (inverses, "1 / (1 + x) over 0..1"))
    ]
    x = site.inputs[0].tensor
    factor, shift = quantize_multiplier(float(scale(x) * np.float32(op.beta)) / (10.0 / span))
    table = site.unit.table("ew_wide_softmax_line", [*_shape(site), factor, shift, *names])
    return _lines(
        site, c, ("int16_t", "int16_t"), lambda x, y, span: f"ew_wide_softmax(&{table}, {x}, {y}, {span});"
    )


def log_softmax(site: Site, c: Source) -> bool:
    assert isinstance(site.op, LogSoftmax)
    if not applies(site):
        return False
    site.use("tflite_log_softmax")
    table = _line_table(site, 1.0)
    factor, shift, _ = difference_scale(1.0, site.inputs[0].tensor)
    back, back_shift = quantize_multiplier((1 << (31 - shift)) / factor)
    return _lines(
        site,
        c,
        ("uint8_t", "uint8_t"),
        lambda x, y, span: f"ew_log_softmax(&{table}, {back}, {back_shift}, {x}, {y}, {span});",
    )


def l2_normalize(site: Site, c: Source) -> bool:
    assert isinstance(site.op, L2Normalize)
    if not applies(site):
        return False
    site.use("tflite_l2")
    unsigned_zero = zero(site.inputs[0].tensor) + _flip(site)
    table = site.unit.table("ew_l2_line", [*_shape(site), unsigned_zero, _flip(site)])
    return _lines(
        site, c, ("uint8_t", "uint8_t"), lambda x, y, span: f"ew_l2_normalize(&{table}, {x}, {y}, {span});"
    )


def reduce(site: Site, c: Source) -> bool:
    op, x = site.op, site.inputs[0]
    assert isinstance(op, Reduce)
    if not applies(site):
        return False
    reduced = {axis % len(x.tensor.shape) for axis in op.axes}
    inner = [(0, x.tensor.shape[axis]) for axis in sorted(reduced)]
    start, collect, store = _way(site, op)
    with c.block():
        c.line(f"const {x.ctype} *const px = {site.place(0).pointer};")
        c.line(f"{site.output.ctype} *const py = {site.output.pointer};")
        with loops(c, site.region, backward=site.is_backward) as at, c.block():
            c.line(start)
            kept = iter([i for axis, i in enumerate(at) if not (op.keep and axis in reduced)])
            with loops(c, inner, "k") as along:
                ways = iter(along)
                place = [next(ways) if axis in reduced else next(kept) for axis in range(len(x.tensor.shape))]
                c.line(collect(f"px[{x.offset(place)}]"))
            c.line(f"py[{site.output.offset(at)}] = {store};")
    return True


def _way(site: Site, op: Reduce) -> tuple[str, Callable[[str], str], str]:
    """(declaration, what is done with an element, the result) of a reduction."""
    x = site.inputs[0]
    if op.kind in (ReduceKind.MAX, ReduceKind.MIN):
        info, sign = np.iinfo(x.tensor.dtype.numpy), ">" if op.kind is ReduceKind.MAX else "<"
        first = int(info.min if op.kind is ReduceKind.MAX else info.max)
        return (
            f"{x.ctype} best = {number(first, 'int32')};",
            lambda e: f"best = {e} {sign} best ? {e} : best;",
            "best",
        )
    site.use("fixed")
    factor, shift = reduce_factor(op, x.tensor, site.result)
    ctype = "int32_t" if x.tensor.size < 1 << 15 or x.tensor.dtype.bytes == 1 else "int64_t"
    steps = f"ew_multiply({'' if ctype == 'int32_t' else '(int32_t)'}total, {factor}, {shift})"
    return f"{ctype} total = 0;", lambda e: f"total += {centred(site, 0, e)};", placed(site, steps)
