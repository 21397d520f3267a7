"""Pooling as plain loops: any type, any arithmetic, any region."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod

import numpy as np

from ...network import Arithmetic, DType
from ...network.kernels.onnx_quant import is_global, sums_columns
from ...network.kernels.tflite_scales import activation_range
from ...network.operators import Activation, AvgPool2d, Clamp, MaxPool2d
from ..call import Call as Site
from ..printing.constants import number
from ..printing.nest import loops
from ..printing.source import Expr, Source
from ..printing.taps import Axis, Taps, taps
from .activations import activated
from .finish import (
    activation_of,
    narrowed,
    plus_number,
    real_element,
    rounded_even,
    stored_even,
    stored_range,
    widened,
)
from .windows import channels, fence, grouped


def max_pool2d(site: Site, c: Source) -> bool:
    """Only taps within the image are compared, so that padding never wins; order is the same at every scale."""
    store = _largest_stored(site)
    if store is None:
        return False
    x = site.inputs[0]
    is_float = x.tensor.dtype.is_float
    ctype = "float" if is_float else x.ctype
    if is_float:
        site.use("window", "real")
    least = "ew_least()" if is_float else number(int(np.iinfo(x.tensor.dtype.numpy).min), "int64")
    with _pixels(site, c) as (at, windows), channels(site, c) as channel:
        c.line(f"{ctype} best = {least};")
        with _elements(site, c, at[0], windows, channel):
            value = widened(site, x.tensor, "*tap")
            c.line(
                f"best = ew_maximum(best, {value});" if is_float else f"best = best > {value} ? best : {value};"
            )
        c.line(f"py[{site.output.offset((*at, channel))}] = {store('best')};")
    return True


def avg_pool2d(site: Site, c: Source) -> bool:
    way = mean_of(site)
    if way is None:
        return False
    ctype, value, store = way
    with _pixels(site, c) as (at, windows):
        if not _is_scaled_once(site):
            c.line(f"const int32_t count = {_count(site, windows)};")
        with channels(site, c) as channel:
            c.line(f"{ctype} total = 0;")
            if _sums_columns(site):
                _add_columns(site, c, at[0], windows, channel, value)
            else:
                with _elements(site, c, at[0], windows, channel):
                    c.line(f"total += {value('*tap')};")
            c.line(f"py[{site.output.offset((*at, channel))}] = {store('total')};")
    return True


def _add_columns(
    site: Site, c: Source, batch: Expr, windows: tuple[Taps, Taps], channel: Expr, value: Callable[[str], str]
) -> None:
    """Each column of the window, from the top, then the columns: the order decides the last bit of a float."""
    x = site.inputs[0]
    with windows[1].each(c) as (_, col), c.block():
        c.line("float column = 0;")
        with windows[0].each(c) as (_, row), c.block():
            c.line(f"const {x.ctype} *const tap = px + {grouped(x.offset((batch, row, col, channel)))};")
            c.line(f"column += {value('*tap')};")
        c.line("total += column;")


@contextmanager
def _pixels(site: Site, c: Source) -> Iterator[tuple[tuple[Expr, Expr, Expr], tuple[Taps, Taps]]]:
    """Loops over the pixels of the region; gives the index of each, and the taps of its window."""
    n, rows, cols, _ = site.region
    with c.block():
        c.line(f"const {site.inputs[0].ctype} *const px = {site.place(0).pointer};")
        c.line(f"{site.output.ctype} *const py = {site.output.pointer};")
        with loops(c, [n, rows], backward=site.is_backward) as (batch, row):
            vertical = taps(c, _axis(site, 0), row, "top", "ky")
            with loops(c, [cols], "j", site.is_backward) as (col,), c.block():
                yield (batch, row, col), (vertical, taps(c, _axis(site, 1), col, "left", "kx"))
                fence(site, c)


def _axis(site: Site, i: int) -> Axis:
    op = site.op
    assert isinstance(op, MaxPool2d | AvgPool2d)
    size, outputs = site.shapes[0][1 + i], site.result.shape[1 + i]
    return Axis(op.kernel[i], op.stride[i], op.dilation[i], op.pads[i], size, outputs)


@contextmanager
def _elements(site: Site, c: Source, batch: Expr, windows: tuple[Taps, Taps], channel: Expr) -> Iterator[None]:
    """Loops over the taps within the image; `tap` points to the element under each."""
    x = site.inputs[0]
    with windows[0].each(c) as (_, row), windows[1].each(c) as (_, col), c.block():
        c.line(f"const {x.ctype} *const tap = px + {grouped(x.offset((batch, row, col, channel)))};")
        yield


def _count(site: Site, windows: tuple[Taps, Taps]) -> Expr:
    """By how many taps a window's sum is divided."""
    op = site.op
    assert isinstance(op, AvgPool2d)
    counts: list[Expr] = []
    for i, window in enumerate(windows):
        if op.count_pads:
            end = site.shapes[0][1 + i] + op.pads[2 + i] - op.uncounted[i]
            counts.append(window.counted_to(end, op.kernel[i]))
        else:
            counts.append(window.count)
    if all(isinstance(count, int) for count in counts):
        return max(1, int(counts[0]) * int(counts[1]))
    return f"ew_max(1, {counts[0]} * {counts[1]})"


def _largest_stored(site: Site) -> Callable[[str], str] | None:
    """How the largest element of a window is stored; None where a plain integer has no such activation."""
    x, result, activation = site.inputs[0].tensor, site.result, activation_of(site)
    if site.is_quantised and site.arithmetic is Arithmetic.TFLITE:
        return lambda best: _between(site, best, *activation_range(activation, result))
    if site.is_quantised and isinstance(activation, Clamp | None) and x.quant == result.quant:
        if activation is None:
            return lambda best: best
        return lambda best: _between(site, best, *stored_range(activation, result))
    if site.is_quantised:
        return lambda best: stored_even(site, real_element(site, 0)(best, 0), activation)
    if x.dtype.is_float:
        return lambda best: narrowed(site, activated(site, activation, best))
    return _whole_clamp(site, activation)


def _whole_clamp(site: Site, activation: Activation | None) -> Callable[[str], str] | None:
    if activation is None:
        return lambda best: best
    if not isinstance(activation, Clamp) or site.result.dtype is DType.INT64:
        return None
    info = np.iinfo(site.result.dtype.numpy)
    low, high = int(max(activation.low, info.min)), int(min(activation.high, info.max))
    return lambda best: _between(site, best, low, high)


def _between(site: Site, value: str, low: int, high: int) -> str:
    info = np.iinfo(site.result.dtype.numpy)
    if low <= info.min and high >= info.max:
        return f"({site.output.ctype}){value}" if value != "best" else value
    return f"({site.output.ctype})ew_between({low}, {value}, {high})"


Way = tuple[
    str, Callable[[str], str], Callable[[str], str]
]  # (type of the sum, an element's value, sum -> stored)


def mean_of(site: Site) -> Way | None:
    x, activation = site.inputs[0].tensor, activation_of(site)
    if not site.is_quantised:
        if x.dtype.is_float:
            mean = "total / (float)count"
            return (
                "float",
                lambda e: widened(site, x, e),
                lambda _: narrowed(site, activated(site, activation, mean)),
            )
        return _whole_mean(site, activation)
    if site.arithmetic is Arithmetic.TFLITE:
        site.use("window")
        limits = activation_range(activation, site.result)
        return "int32_t", lambda e: e, lambda _: _between(site, "ew_mean(total, count)", *limits)
    real = real_element(site, 0)
    if _is_plain(site) and isinstance(activation, Clamp | None):
        if site.arithmetic is Arithmetic.QLINEAR:
            return "float", lambda e: real(e, 0), lambda _: _pooled(site, activation)
        if _is_global(site):
            return "int32_t", lambda e: e, lambda _: _global_mean(site, activation)
        mean = "total / (float)count"
        return "float", lambda e: real(e, 0), lambda _: stored_even(site, mean, activation)
    # As float arithmetic between the scales: summed in double, since that decides ties.
    return (
        "double",
        lambda e: f"(double){real(e, 0)}",
        lambda _: stored_even(site, "(float)(total / count)", activation),
    )


def _is_plain(site: Site) -> bool:
    """Eight bits with one scale: onnxruntime has a kernel for it."""
    return all(t.dtype.bytes == 1 and t.quant is not None for t in (site.inputs[0].tensor, site.result))


def _is_global(site: Site) -> bool:
    return isinstance(site.op, AvgPool2d) and is_global(site.op, site.shapes[0])


def _is_onnx_average(site: Site) -> bool:
    """Whether it is an average of stored bytes as a QDQ file says: real numbers between the scales."""
    is_bare = isinstance(activation_of(site), Clamp | None)
    return site.arithmetic is Arithmetic.ONNX and site.is_quantised and is_bare and _is_plain(site)


def _is_scaled_once(site: Site) -> bool:
    """Whether the average is an integer sum over the whole image, scaled by a constant."""
    return _is_onnx_average(site) and _is_global(site)


def _sums_columns(site: Site) -> bool:
    """Whether the average is one of real numbers that are summed up column by column."""
    is_ours = isinstance(site.op, AvgPool2d) and sums_columns(site.op)
    return is_ours and _is_onnx_average(site) and not _is_global(site)


def _global_mean(site: Site, activation: Clamp | None) -> str:
    """An integer sum, scaled once."""
    x, y = site.inputs[0].tensor.quant, site.result.quant
    assert x is not None and y is not None
    count = prod(site.shapes[0][1:3])
    scale = np.float32(x.scale[0]) / (np.float32(y.scale[0]) * np.float32(count))
    return rounded_even(site, f"(float)({plus_number('total', -count * x.zero[0])}) * {number(scale)}", activation)


def _pooled(site: Site, activation: Clamp | None) -> str:
    """QLinearAveragePool: the zero point is part of the number that is rounded."""
    quant = site.result.quant
    assert quant is not None
    site.use("fixed")
    info = np.iinfo(site.result.dtype.numpy)
    low, high = stored_range(activation, site.result) if activation else (int(info.min), int(info.max))
    steps = f"total / (float)count / {number(quant.scale[0])} + {number(quant.zero[0])}"
    return f"({site.output.ctype})ew_round_even({steps}, {number(low)}, {number(high)})"


def _whole_mean(site: Site, activation: Activation | None) -> Way | None:
    """Plain integers: the mean in double, cut towards zero."""
    if not isinstance(activation, Clamp | None):
        return None
    mean = "(double)total / count"
    if isinstance(activation, Clamp):
        low, high = (number(float(limit), "float64") for limit in (activation.low, activation.high))
        mean = f"({mean} < {low} ? {low} : {mean} > {high} ? {high} : {mean})"
    return "int64_t", lambda e: e, lambda _: f"({site.output.ctype})({mean})"
