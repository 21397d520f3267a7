"""Convolutions and dense layers in partial sums as plain loops: any type, any arithmetic, any part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...network.operators import Conv2d, Dense
from ..call import CCall, CTensor
from ..cost.products import add_conv_work, add_dense_work, finish_scaled_work
from ..kernel import CallKind, Kernel, Offer, where
from ..partial_layout import PartialLayout, missing, partial_layout, partial_range, summed_type, sums_place
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, summand, times
from ..printing.taps import Taps
from ..requantise.sums import requantised
from ..site import Site
from .accumulator import Accumulator, accumulator, accumulator_type, can_accumulate
from .finish import per_channel
from .windows import channels, window_taps


def suits(site: Site) -> bool:
    """Where no running sum leaves 32 bits."""
    return can_accumulate(site) and accumulator_type(site) == summed_type(site)


def write_conv(call: CCall, _: Offer, c: CWriter) -> None:
    n, rows, columns = call.region[:3]
    layout, acc = partial_layout(call), accumulator(call)
    with c.block():
        place = _declare(call, c, acc)
        with loops(c, [n, rows]) as (batch, row):
            vertical = window_taps(call, c, 0, row)
            with loops(c, [columns], "j") as (column,):
                horizontal = window_taps(call, c, 1, column)
                with channels(call, c) as channel:
                    _sum(call, c, _kept(layout, acc), batch, (vertical, horizontal), channel)
                    layout.put(call, c, place, (batch, row, column, channel))


def write_dense(call: CCall, _: Offer, c: CWriter) -> None:
    x, features, layout, acc = call.inputs[0], call.shapes[0][-1], partial_layout(call), accumulator(call)
    kept = _kept(layout, acc)
    with c.block():
        place = _declare(call, c, acc)
        with loops(c, call.region[:-1]) as lead, channels(call, c) as channel:
            c.line(f"const {x.ctype} *const tap = px + {summand(x.offset((*lead, 0)))};")
            c.line(f"const {acc.weights.ctype} *const weight = pw + {summand(times(channel, features))};")
            c.line(f"{kept.ctype} sum = 0;")
            _add_products(call, c, kept, channel)
            layout.put(call, c, place, (*lead, channel))


def _kept(layout: PartialLayout, acc: Accumulator) -> Accumulator:
    """The accumulator, less the subtraction of x's zero point where the layout says that x keeps it."""
    return replace(acc, left=lambda element, _: element) if layout.is_raw else acc


def _declare(call: CCall, c: CWriter, acc: Accumulator) -> CTensor:
    """Pointers to input, weights and sums; the place of these."""
    c.line(f"const {call.inputs[0].ctype} *const px = {call.inputs[0].pointer};")
    c.line(f"const {acc.weights.ctype} *const pw = {acc.weights.pointer};")
    c.line(f"{summed_type(call)} *const ps = {sums_place(call).pointer};")
    return sums_place(call, "ps")


def _sum(call: CCall, c: CWriter, acc: Accumulator, batch: Expr, windows: tuple[Taps, Taps], channel: Expr) -> None:
    """`sum`: the part of a window that the call sums over, times the weights of the channel."""
    x, weights = call.inputs[0], acc.weights
    c.line(f"{acc.ctype} sum = 0;")
    with windows[0].each(c) as (ky, row), windows[1].each(c) as (kx, column), c.block():
        c.line(f"const {x.ctype} *const tap = px + {summand(x.offset((batch, row, column, 0)))};")
        c.line(f"const {weights.ctype} *const weight = pw + {summand(weights.offset((channel, ky, kx, 0)))};")
        _add_products(call, c, acc, channel)


def _add_products(call: CCall, c: CWriter, acc: Accumulator, channel: Expr) -> None:
    with loops(c, [partial_range(call, len(call.shapes[0]) - 1)], "depth") as (d,):
        a = times(d, call.inputs[0].strides[-1])
        c.line(f"sum += {acc.product(f'tap[{a}]', f'weight[{d}]', channel)};")


def write_finish(call: CCall, _: Offer, c: CWriter) -> None:
    """Bias, scale and activation of complete sums."""
    acc, layout = accumulator(call), partial_layout(call)
    if summed_type(call) == "float" and len(call.inputs) < 3 and call.activation is None:
        return  # sums of real numbers are the output
    place, start = sums_place(call, "ps"), _start(call, layout, acc)
    with c.block():
        c.line(f"const {acc.ctype} *const ps = {sums_place(call).pointer};")
        c.line(f"{call.output.ctype} *const py = {call.output.pointer};")
        with loops(c, call.region[:-1]) as lead, channels(call, c) as channel:
            c.line(f"const {acc.ctype} sum = {layout.sum(call, place, (*lead, channel))} + {start(channel)};")
            c.line(f"py[{call.output.offset((*lead, channel))}] = {acc.store('sum', channel)};")


def _start(call: CCall, layout: PartialLayout, acc: Accumulator) -> Callable[[Expr], str]:
    """What a channel's sum begins with: its bias, and what x kept of its zero point."""
    whole = requantised(call) if layout.is_raw else None
    if whole is None:
        return acc.start
    return per_channel(call, missing(whole, True).astype(np.int32), "bias less zero points")


ADD_CONV = Kernel("loops_add_conv", (Conv2d,), where(suits), write_conv, kind=CallKind.ADD, work=add_conv_work)
ADD_DENSE = Kernel("loops_add_dense", (Dense,), where(suits), write_dense, kind=CallKind.ADD, work=add_dense_work)
FINISH = Kernel(
    "loops_finish", (Conv2d, Dense), where(suits), write_finish, kind=CallKind.FINISH, work=finish_scaled_work
)
