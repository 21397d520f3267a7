"""Pooling as plain loops: any type, any arithmetic, any region."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ...network import Arithmetic, DType
from ...network.kernels.onnx_quant import sums_columns
from ...network.kernels.tflite_scales import activation_range
from ...network.operators import Activation, AvgPool2d, Clamp, MaxPool2d
from ...network.operators.window import is_global
from ..call import CCall
from ..cost.elements import pool_work
from ..kernel import Kernel, Offer, where
from ..printing.constants import number
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, plus, summand
from ..printing.taps import Taps
from ..site import Site, unwrap
from .activations import activated
from .finish import image_mean, narrowed, real_element, rounded_even, stored_even, stored_range, widened
from .windows import channels, fence, window_taps


def suits_max(site: Site) -> bool:
    """Plain integers have clamps as activations only, and of 64 bits none."""
    activation = site.activation
    is_plain = not site.is_quantised and not site.inputs[0].tensor.dtype.is_float
    has_clamp = isinstance(activation, Clamp) and site.result.dtype is not DType.INT64
    return not is_plain or activation is None or has_clamp


def write_max(call: CCall, _: Offer, c: CWriter) -> None:
    """Only taps within the image are compared, so that padding never wins; order is the same at every scale."""
    x, store = call.inputs[0], _largest_stored(call)
    is_float = x.tensor.dtype.is_float
    ctype = "float" if is_float else x.ctype
    if is_float:
        call.use("window", "real")
    least = "ew_least()" if is_float else number(int(np.iinfo(x.tensor.dtype.numpy).min), "int64")
    with _pixels(call, c) as (at, windows), channels(call, c) as channel:
        c.line(f"{ctype} best = {least};")
        with _elements(call, c, at[0], windows, channel):
            value = widened(call, x.tensor, "*tap")
            c.line(f"best = ew_maximum(best, {value});" if is_float else f"best = best > {value} ? best : {value};")
        c.line(f"py[{call.output.offset((*at, channel))}] = {store('best')};")


def suits_average(site: Site) -> bool:
    return mean_type(site) is not None


def write_average(call: CCall, _: Offer, c: CWriter) -> None:
    mean = mean_of(call)
    with _pixels(call, c) as (at, windows):
        if not is_scaled_once(call):
            c.line(f"const int32_t count = {_count(call, windows)};")
        with channels(call, c) as channel:
            c.line(f"{mean.ctype} total = 0;")
            if _sums_columns(call):
                _add_columns(call, c, at[0], windows, channel, mean)
            else:
                with _elements(call, c, at[0], windows, channel):
                    c.line(f"total += {mean.value('*tap')};")
            c.line(f"py[{call.output.offset((*at, channel))}] = {mean.stored};")


def _add_columns(call: CCall, c: CWriter, batch: Expr, windows: tuple[Taps, Taps], channel: Expr, mean: Mean) -> None:
    """Each column of the window, from the top, then the columns: the order decides the last bit of a float."""
    x = call.inputs[0]
    with windows[1].each(c) as (_, col), c.block():
        c.line("float column = 0;")
        with windows[0].each(c) as (_, row), c.block():
            c.line(f"const {x.ctype} *const tap = px + {summand(x.offset((batch, row, col, channel)))};")
            c.line(f"column += {mean.value('*tap')};")
        c.line("total += column;")


@contextmanager
def _pixels(call: CCall, c: CWriter) -> Iterator[tuple[tuple[Expr, Expr, Expr], tuple[Taps, Taps]]]:
    """Loops over the pixels of the region; gives the index of each, and the taps of its window."""
    n, rows, cols, _ = call.region
    with c.block():
        c.line(f"const {call.inputs[0].ctype} *const px = {call.place(0).pointer};")
        c.line(f"{call.output.ctype} *const py = {call.output.pointer};")
        with loops(c, [n, rows], backward=call.is_backward) as (batch, row):
            vertical = window_taps(call, c, 0, row)
            with loops(c, [cols], "j", call.is_backward) as (col,), c.block():
                yield (batch, row, col), (vertical, window_taps(call, c, 1, col))
                fence(call, c)


@contextmanager
def _elements(call: CCall, c: CWriter, batch: Expr, windows: tuple[Taps, Taps], channel: Expr) -> Iterator[None]:
    """Loops over the taps within the image; `tap` points to the element under each."""
    x = call.inputs[0]
    with windows[0].each(c) as (_, row), windows[1].each(c) as (_, col), c.block():
        c.line(f"const {x.ctype} *const tap = px + {summand(x.offset((batch, row, col, channel)))};")
        yield


def _count(call: CCall, windows: tuple[Taps, Taps]) -> Expr:
    """By how many taps a window's sum is divided."""
    op = call.op_as(AvgPool2d)
    counts: list[Expr] = []
    for i, window in enumerate(windows):
        if op.count_pads:
            end = call.shapes[0][1 + i] + op.pads[2 + i] - op.uncounted[i]
            counts.append(window.counted_to(end, op.kernel[i]))
        else:
            counts.append(window.count)
    if all(isinstance(count, int) for count in counts):
        return max(1, int(counts[0]) * int(counts[1]))
    return f"ew_max(1, {counts[0]} * {counts[1]})"


def _largest_stored(call: CCall) -> Callable[[str], str]:
    """How the largest element of a window is stored."""
    x, result, activation = call.inputs[0].tensor, call.result, call.activation
    if call.is_quantised and call.arithmetic is Arithmetic.TFLITE:
        return lambda best: _between(call, best, *activation_range(activation, result))
    if call.is_quantised and isinstance(activation, Clamp | None) and x.quant == result.quant:
        if activation is None:
            return lambda best: best
        return lambda best: _between(call, best, *stored_range(result, activation))
    if call.is_quantised:
        return lambda best: stored_even(call, real_element(call, 0)(best, 0), activation)
    if x.dtype.is_float:
        return lambda best: narrowed(call, activated(call, activation, best))
    if activation is None:
        return lambda best: best
    assert isinstance(activation, Clamp)
    info = np.iinfo(result.dtype.numpy)
    low, high = int(max(activation.low, info.min)), int(min(activation.high, info.max))
    return lambda best: _between(call, best, low, high)


def _between(call: CCall, value: str, low: int, high: int) -> str:
    info = np.iinfo(call.result.dtype.numpy)
    if low <= info.min and high >= info.max:
        return f"({call.output.ctype}){value}" if value != "best" else value
    return f"({call.output.ctype})ew_between({low}, {value}, {high})"


@dataclass(frozen=True)
class Mean:
    """How elements become their mean: `total` of so many, and in most cases a `count`."""

    ctype: str  # of the sum
    value: Callable[[str], str]  # of an element in the sum
    stored: str  # the mean as the output stores it


def mean_type(site: Site) -> str | None:
    """The C type in which elements are summed; None where the arithmetic has no such mean."""
    is_bare = isinstance(site.activation, Clamp | None)
    if not site.is_quantised:
        return "float" if site.inputs[0].tensor.dtype.is_float else "int64_t" if is_bare else None
    if site.arithmetic is Arithmetic.TFLITE or is_scaled_once(site):
        return "int32_t"
    # As float arithmetic between the scales: summed in double, since that decides ties.
    return "float" if _is_plain(site) and is_bare else "double"


def mean_of(call: CCall) -> Mean:
    ctype = mean_type(call)
    assert ctype is not None, call.layer
    x, activation = call.inputs[0].tensor, call.activation
    if not call.is_quantised and x.dtype.is_float:
        mean = activated(call, activation, "total / (float)count")
        return Mean(ctype, lambda e: widened(call, x, e), narrowed(call, mean))
    if not call.is_quantised:
        return Mean(ctype, lambda e: e, _whole_mean(call, activation))
    if call.arithmetic is Arithmetic.TFLITE:
        call.use("window")
        limits = activation_range(activation, call.result)
        return Mean(ctype, lambda e: e, _between(call, "ew_mean(total, count)", *limits))
    clamp = activation if isinstance(activation, Clamp) else None
    if is_scaled_once(call):
        return Mean(ctype, lambda e: e, _global_mean(call, clamp))
    real = real_element(call, 0)
    if ctype == "double":
        stored = stored_even(call, "(float)(total / count)", activation)
        return Mean(ctype, lambda e: f"(double){real(e, 0)}", stored)
    if call.arithmetic is Arithmetic.QLINEAR:
        return Mean(ctype, lambda e: real(e, 0), _pooled(call, clamp))
    return Mean(ctype, lambda e: real(e, 0), stored_even(call, "total / (float)count", activation))


def _is_plain(site: Site) -> bool:
    """Whether it has eight bits and one scale, which onnxruntime has a kernel for."""
    return all(t.dtype.bytes == 1 and t.quant is not None for t in (site.inputs[0].tensor, site.result))


def _is_global(site: Site) -> bool:
    return isinstance(site.op, AvgPool2d) and is_global(site.op, site.shapes[0])


def _is_onnx_average(site: Site) -> bool:
    """Whether it is an average of stored bytes as a QDQ file says: real numbers between the scales."""
    is_bare = isinstance(site.activation, Clamp | None)
    return site.arithmetic is Arithmetic.ONNX and site.is_quantised and is_bare and _is_plain(site)


def is_scaled_once(site: Site) -> bool:
    """Whether the average is an integer sum over the whole image, scaled by a constant."""
    return _is_onnx_average(site) and _is_global(site)


def _sums_columns(site: Site) -> bool:
    """Whether the average is one of real numbers that are summed up column by column."""
    is_ours = isinstance(site.op, AvgPool2d) and sums_columns(site.op)
    return is_ours and _is_onnx_average(site) and not _is_global(site)


def _global_mean(call: CCall, activation: Clamp | None) -> str:
    """An integer sum, scaled once."""
    start, scale = image_mean(call)
    return rounded_even(call, f"(float)({plus('total', start)}) * {number(scale)}", activation)


def _pooled(call: CCall, activation: Clamp | None) -> str:
    """QLinearAveragePool: the zero point is part of the number that is rounded."""
    quant = unwrap(call.result.quant)
    call.use("fixed")
    low, high = stored_range(call.result, activation)
    steps = f"total / (float)count / {number(quant.scale[0])} + {number(quant.zero[0])}"
    return f"({call.output.ctype})ew_round_even({steps}, {number(low)}, {number(high)})"


def _whole_mean(call: CCall, activation: Activation | None) -> str:
    """Plain integers: the mean in double, cut towards zero."""
    mean = "(double)total / count"
    if isinstance(activation, Clamp):
        low, high = (number(float(limit), "float64") for limit in (activation.low, activation.high))
        mean = f"({mean} < {low} ? {low} : {mean} > {high} ? {high} : {mean})"
    return f"({call.output.ctype})({mean})"


MAX_POOL = Kernel(
    "loops_max_pool", (MaxPool2d,), where(suits_max), write_max, work=lambda s, _, r, __: pool_work(s, r, in_loops=True)
)
AVERAGE_POOL = Kernel(
    "loops_average_pool",
    (AvgPool2d,),
    where(suits_average),
    write_average,
    work=lambda s, _, r, __: pool_work(s, r, in_loops=True, how="once-scaled-" if is_scaled_once(s) else ""),
)
