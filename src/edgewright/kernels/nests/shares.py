"""Convolutions and dense layers share by share as plain loops: any type, any arithmetic, any part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...network.operators import Conv2d
from ..call import Call as Site
from ..printing.nest import loops
from ..printing.source import Expr, Source, times
from ..printing.taps import Axis, Taps, taps
from ..printing.tensor import CTensor as Place
from ..requantise.sums import requantised
from ..shares_form import Form, form_of, missing, share_of, summed_type, sums_place
from .finish import activation_of, per_channel
from .sums import Sums, sums_of
from .windows import channels, grouped


def add_conv2d(site: Site, c: Source) -> bool:
    sums = _sums(site)
    if sums is None:
        return False
    n, rows, columns, _ = site.region
    form = form_of(site)
    with c.block():
        place = _declare(site, c, sums)
        with loops(c, [n, rows]) as (batch, row):
            vertical = _taps(site, c, 0, row)
            with loops(c, [columns], "j") as (column,):
                horizontal = _taps(site, c, 1, column)
                with channels(site, c) as channel:
                    _sum(site, c, _kept(form, sums), batch, (vertical, horizontal), channel)
                    form.put(site, c, place, (batch, row, column, channel))
    return True


def add_dense(site: Site, c: Source) -> bool:
    sums = _sums(site)
    if sums is None:
        return False
    x, features, form = site.inputs[0], site.shapes[0][-1], form_of(site)
    kept = _kept(form, sums)
    with c.block():
        place = _declare(site, c, sums)
        with loops(c, site.region[:-1]) as lead, channels(site, c) as channel:
            c.line(f"const {x.ctype} *const tap = px + {grouped(x.offset((*lead, 0)))};")
            c.line(f"const {sums.weights.ctype} *const weight = pw + {grouped(times(channel, features))};")
            c.line(f"{kept.ctype} sum = 0;")
            _add_products(site, c, kept, channel)
            form.put(site, c, place, (*lead, channel))
    return True


def _sums(site: Site) -> Sums | None:
    """How products are summed; None where 32 bits do not do."""
    sums = sums_of(site)
    return sums if sums is not None and sums.ctype == summed_type(site) else None


def _kept(form: Form, sums: Sums) -> Sums:
    """The same where x keeps its zero point."""
    return replace(sums, left=lambda element, _: element) if form.is_raw else sums


def _declare(site: Site, c: Source, sums: Sums) -> Place:
    """Pointers to input, weights and sums; the place of these."""
    c.line(f"const {site.inputs[0].ctype} *const px = {site.inputs[0].pointer};")
    c.line(f"const {sums.weights.ctype} *const pw = {sums.weights.pointer};")
    c.line(f"{summed_type(site)} *const ps = {sums_place(site).pointer};")
    return sums_place(site, "ps")


def _taps(site: Site, c: Source, i: int, index: Expr) -> Taps:
    """The taps along axis i of the image for one output row or column."""
    op = site.op
    assert isinstance(op, Conv2d)
    sizes = site.shapes[0][1 + i], site.result.shape[1 + i]
    axis = Axis(site.shapes[1][1 + i], op.stride[i], op.dilation[i], op.pads[i], *sizes)
    return taps(c, axis, index, *(("top", "ky"), ("left", "kx"))[i])


def _sum(site: Site, c: Source, sums: Sums, batch: Expr, windows: tuple[Taps, Taps], channel: Expr) -> None:
    """`sum`: the share of a window times the weights of the channel."""
    x, weights = site.inputs[0], sums.weights
    c.line(f"{sums.ctype} sum = 0;")
    with windows[0].each(c) as (ky, row), windows[1].each(c) as (kx, column), c.block():
        c.line(f"const {x.ctype} *const tap = px + {grouped(x.offset((batch, row, column, 0)))};")
        c.line(f"const {weights.ctype} *const weight = pw + {grouped(weights.offset((channel, ky, kx, 0)))};")
        _add_products(site, c, sums, channel)


def _add_products(site: Site, c: Source, sums: Sums, channel: Expr) -> None:
    with loops(c, [share_of(site, len(site.shapes[0]) - 1)], "depth") as (d,):
        a = times(d, site.inputs[0].strides[-1])
        c.line(f"sum += {sums.product(f'tap[{a}]', f'weight[{d}]', channel)};")


def finish(site: Site, c: Source) -> bool:
    """Bias, scale and activation of complete sums."""
    sums, form = _sums(site), form_of(site)
    if sums is None:
        return False
    if summed_type(site) == "float" and len(site.inputs) < 3 and activation_of(site) is None:
        return True  # sums of real numbers are the output
    place, start = sums_place(site, "ps"), _start(site, form, sums)
    with c.block():
        c.line(f"const {sums.ctype} *const ps = {sums_place(site).pointer};")
        c.line(f"{site.output.ctype} *const py = {site.output.pointer};")
        with loops(c, site.region[:-1]) as lead, channels(site, c) as channel:
            c.line(f"const {sums.ctype} sum = {form.sum(site, place, (*lead, channel))} + {start(channel)};")
            c.line(f"py[{site.output.offset((*lead, channel))}] = {sums.store('sum', channel)};")
    return True


def _start(site: Site, form: Form, sums: Sums) -> Callable[[Expr], str]:
    """What a channel's sum begins with: its bias, and what x kept of its zero point."""
    whole = requantised(site) if form.is_raw else None
    if whole is None:
        return sums.start
    return per_channel(site, missing(whole, True).astype(np.int32), "bias less zero points")
