"""Quantised operators that look along a line in TFLite's arithmetic: softmax, normalisation, reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...network import Array, DType, Region
from ...network.kernels.tflite_fixed import quantize_multiplier
from ...network.kernels.tflite_functions import step_table
from ...network.kernels.tflite_lines import difference_scale, exponentials, reduce_factor
from ...network.kernels.tflite_scales import scale, zero
from ...network.operators import L2Normalize, LogSoftmax, Reduce, ReduceKind, Softmax
from ..call import CCall
from ..cost.elements import plain_work
from ..cost.work import KernelWork
from ..kernel import Kernel, Offer, of_region, where
from ..printing.constants import number
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, Fields, struct_fields, summand
from ..site import Site
from .tflite import applies, centred, placed

TABLE_PAYS = 16  # bytes of exponentials that each element of a softmax is worth,
SERIES = 320  # beside those of the code that computes them, which a table makes unnecessary
COUNTS = 1 << 11  # exponentials below it change neither a sum in Q12 nor a share in 8 bits
Statement = Callable[[str, str, str], str]  # (line of the input, line of the output, "first, last") -> C


def suits_softmax(site: Site) -> bool:
    return applies(site) and site.inputs[0].tensor.dtype is not DType.INT16


def write_softmax(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(Softmax)
    name, ctype = ("softmax", "uint8_t") if call.result.dtype.bytes == 1 else ("softmax_16", "int16_t")
    call.use(f"tflite_{name}")
    table = _line_table(call, op.beta)
    _write_lines(call, c, ("uint8_t", ctype), lambda x, y, span: f"ew_{name}(&{table}, {x}, {y}, {span});")


def suits_softmax_table(site: Site) -> bool:
    """Bytes to bytes, where the table of exponentials pays."""
    if not suits_softmax(site) or site.result.dtype.bytes > 1:
        return False
    return _exponentials(site).nbytes <= TABLE_PAYS * site.result.size + SERIES


def _exponentials(site: Site) -> Array:
    """By the distance to the largest element, up to the last that counts."""
    op = site.op_as(Softmax)
    exps = exponentials(op.beta, site.inputs[0].tensor)
    return exps[: np.flatnonzero(exps >= COUNTS)[-1] + 1].astype(np.int32)


def write_softmax_table(call: CCall, _: Offer, c: CWriter) -> None:
    call.use("tflite_softmax_table")
    exps = _exponentials(call)
    name = call.module.constants.add(exps, "exp of a byte's distance to the largest")
    numbers: Fields = {"flip": _flip(call), "count": len(exps), "exps": name}
    table = call.module.table("ew_softmax_table_line", {**_shape(call), **numbers})
    _write_lines(call, c, ("uint8_t", "uint8_t"), lambda x, y, span: f"ew_softmax_table(&{table}, {x}, {y}, {span});")


def softmax_table_work(site: Site, region: Region) -> KernelWork:
    work = plain_work(site, region)
    return KernelWork(f"table-{work.kind}", work.amounts)


def _line_table(call: CCall, beta: float) -> str:
    """The parameters of an eight-bit line, as a struct."""
    factor, shift, least = difference_scale(beta, call.inputs[0].tensor)
    numbers = {"factor": factor, "shift": shift, "least": least, "flip": _flip(call)}
    return call.module.table("ew_softmax_line", {**_shape(call), **numbers})


def _shape(site: Site) -> Fields:
    """The fields of a line's size, and of the steps from element to element."""
    x, y = site.inputs[0], site.output
    return {"size": site.shapes[0][-1], "x_step": x.strides[-1], "y_step": y.strides[-1]}


def _flip(site: Site) -> int:
    """The bit that turns a signed byte into an unsigned one of the same order."""
    return 0x80 if site.inputs[0].tensor.dtype is DType.INT8 else 0


def _write_lines(call: CCall, c: CWriter, types: tuple[str, str], statement: Statement) -> None:
    """The statement for every line along the last axis."""
    with c.block():
        c.line(f"const {types[0]} *const px = (const {types[0]} *){call.place(0).pointer};")
        c.line(f"{types[1]} *const py = ({types[1]} *){call.output.pointer};")
        low, high = call.region[-1]
        with loops(c, call.region[:-1], backward=call.is_backward) as at:
            x, y = (_at(name, place.offset((*at, 0))) for name, place in (("px", call.inputs[0]), ("py", call.output)))
            c.line(statement(x, y, f"{low}, {high}"))


def _at(pointer: str, offset: Expr) -> str:
    return pointer if offset == 0 else f"{pointer} + {summand(offset)}"


def suits_wide_softmax(site: Site) -> bool:
    return applies(site) and site.inputs[0].tensor.dtype is DType.INT16


def write_wide_softmax(call: CCall, _: Offer, c: CWriter) -> None:
    """16 bits: exp over -10..0 and 1 / (1 + x) over 0..1 from tables."""
    op = call.op_as(Softmax)
    call.use("tflite_wide_softmax")
    span = 65535.0
    exps = step_table(np.exp, (10.0 / span, 2.0 / span), (32767, 0), np.float64)
    inverses = step_table(lambda v: 1 / (1 + v), (1.0 / span, 2.0 / span), (-32768, 0), np.float64)
    names = [
        call.module.constants.add(values.astype(np.int16), note)
        for values, note in ((exps, "exp over -10..0"), (inverses, "1 / (1 + x) over 0..1"))
    ]
    x = call.inputs[0].tensor
    factor, shift = quantize_multiplier(float(scale(x) * np.float32(op.beta)) / (10.0 / span))
    numbers = {"factor": factor, "shift": shift, **struct_fields(("exps", "reciprocals"), names)}
    table = call.module.table("ew_wide_softmax_line", {**_shape(call), **numbers})
    types = ("int16_t", "int16_t")
    _write_lines(call, c, types, lambda x, y, span: f"ew_wide_softmax(&{table}, {x}, {y}, {span});")


def write_log_softmax(call: CCall, _: Offer, c: CWriter) -> None:
    call.use("tflite_log_softmax")
    table = _line_table(call, 1.0)
    factor, shift, _least = difference_scale(1.0, call.inputs[0].tensor)
    back, back_shift = quantize_multiplier((1 << (31 - shift)) / factor)
    begun = f"ew_log_softmax(&{table}, {back}, {back_shift}"
    _write_lines(call, c, ("uint8_t", "uint8_t"), lambda x, y, span: f"{begun}, {x}, {y}, {span});")


def write_l2_normalize(call: CCall, _: Offer, c: CWriter) -> None:
    call.use("tflite_l2")
    unsigned_zero = zero(call.inputs[0].tensor) + _flip(call)
    table = call.module.table("ew_l2_line", {**_shape(call), "zero": unsigned_zero, "flip": _flip(call)})
    types = ("uint8_t", "uint8_t")
    _write_lines(call, c, types, lambda x, y, span: f"ew_l2_normalize(&{table}, {x}, {y}, {span});")


def write_reduce(call: CCall, _: Offer, c: CWriter) -> None:
    op, x = call.op_as(Reduce), call.inputs[0]
    reduced = {axis % len(x.tensor.shape) for axis in op.axes}
    inner = [(0, x.tensor.shape[axis]) for axis in sorted(reduced)]
    start, collect, store = _fold(call, op)
    with c.block():
        c.line(f"const {x.ctype} *const px = {call.place(0).pointer};")
        c.line(f"{call.output.ctype} *const py = {call.output.pointer};")
        with loops(c, call.region, backward=call.is_backward) as at, c.block():
            c.line(start)
            kept = iter([i for axis, i in enumerate(at) if not (op.keep and axis in reduced)])
            with loops(c, inner, "k") as along:
                ways = iter(along)
                place = [next(ways) if axis in reduced else next(kept) for axis in range(len(x.tensor.shape))]
                c.line(collect(f"px[{x.offset(place)}]"))
            c.line(f"py[{call.output.offset(at)}] = {store};")


def _fold(call: CCall, op: Reduce) -> tuple[str, Callable[[str], str], str]:
    """(declaration, what is done with an element, the result) of a reduction."""
    x = call.inputs[0]
    if op.kind in (ReduceKind.MAX, ReduceKind.MIN):
        info, sign = np.iinfo(x.tensor.dtype.numpy), ">" if op.kind is ReduceKind.MAX else "<"
        first = int(info.min if op.kind is ReduceKind.MAX else info.max)
        return (
            f"{x.ctype} best = {number(first, 'int32')};",
            lambda e: f"best = {e} {sign} best ? {e} : best;",
            "best",
        )
    call.use("fixed")
    factor, shift = reduce_factor(op, x.tensor, call.result)
    ctype = "int32_t" if x.tensor.size < 1 << 15 or x.tensor.dtype.bytes == 1 else "int64_t"
    steps = f"ew_multiply({'' if ctype == 'int32_t' else '(int32_t)'}total, {factor}, {shift})"
    return f"{ctype} total = 0;", lambda e: f"total += {centred(call, 0, e)};", placed(call, steps)


SOFTMAX_TABLE = Kernel(
    "softmax_tflite_table",
    (Softmax,),
    where(suits_softmax_table),
    write_softmax_table,
    work=of_region(softmax_table_work),
)
SOFTMAX = Kernel("softmax_tflite", (Softmax,), where(suits_softmax), write_softmax)
WIDE_SOFTMAX = Kernel("softmax_tflite_16", (Softmax,), where(suits_wide_softmax), write_wide_softmax)
LOG_SOFTMAX = Kernel("log_softmax_tflite", (LogSoftmax,), where(applies), write_log_softmax)
L2_NORMALIZE = Kernel("l2_normalize_tflite", (L2Normalize,), where(applies), write_l2_normalize)
REDUCE = Kernel("reduce_tflite", (Reduce,), where(applies), write_reduce)
