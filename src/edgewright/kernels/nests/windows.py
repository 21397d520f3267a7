"""Convolutions as plain loops: any type, any arithmetic, any region. The last resort of every family."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...network.operators import Conv2d, ConvTranspose2d
from ...program import Sweep
from ..call import Call as Site
from ..printing.nest import loops
from ..printing.source import Expr, Source, plus, times
from ..printing.taps import Axis, Meetings, Window, taps
from .sums import Sums, sums_of
from .values import clashes


def conv2d(site: Site, c: Source) -> bool:
    sums = sums_of(site)
    if sums is None:
        return False
    with c.block():
        declare(site, c, sums)
        if site.sweep is Sweep.CHANNELS:
            _by_planes(site, c, sums)
        else:
            _by_pixels(site, c, sums)
    return True


def conv_transpose2d(site: Site, c: Source) -> bool:
    return conv2d(site, c)


def declare(site: Site, c: Source, sums: Sums) -> None:
    """Pointers to input, weights and output."""
    c.line(f"const {site.inputs[0].ctype} *const px = {site.place(0).pointer};")
    c.line(f"const {sums.weights.ctype} *const pw = {sums.weights.pointer};")
    c.line(f"{site.output.ctype} *const py = {site.output.pointer};")


@contextmanager
def channels(site: Site, c: Source) -> Iterator[Expr]:
    """A loop over the region's channels; gives the channel."""
    low, high = site.region[-1]
    if isinstance(low, int) and high == low + 1:
        with c.block():
            yield low
        return
    with c.block(f"for (int32_t channel = {low}; channel < {high}; channel++)"):
        yield "channel"


def _by_pixels(site: Site, c: Source, sums: Sums) -> None:
    """All channels of a pixel, then the next pixel."""
    n, rows, cols, _ = site.region
    with loops(c, [n, rows], backward=site.is_backward) as (batch, row):
        vertical = _window(site, c, 0, row)
        with loops(c, [cols], "j", site.is_backward) as (col,):
            horizontal = _window(site, c, 1, col)
            with channels(site, c) as channel:
                _sum(site, c, sums, batch, (vertical, horizontal), channel)
                at = site.output.offset((batch, row, col, channel))
                c.line(f"py[{at}] = {sums.store('sum', channel)};")
            fence(site, c)


def fence(site: Site, c: Source) -> None:
    """Keeps the compiler from reordering reads and writes of memory that is shared under different types."""
    if any(clashes(site, which) for which in range(len(site.inputs))):
        c.line("EW_FENCE();")


def _by_planes(site: Site, c: Source, sums: Sums) -> None:
    """A whole channel is computed aside before it is written: a depthwise layer exactly in place."""
    n, rows, cols, _ = site.region
    ctype, width = site.output.ctype, site.result.shape[2]
    steps = (site.result.shape[1] * width, width, 1)
    assert site.plane_at is not None
    c.line(f"{ctype} *const pb = ({ctype} *)(void *){site.plane_at};")
    with channels(site, c) as channel:
        with loops(c, [n, rows]) as (batch, row):
            vertical = _window(site, c, 0, row)
            with loops(c, [cols], "j") as (col,):
                horizontal = _window(site, c, 1, col)
                _sum(site, c, sums, batch, (vertical, horizontal), channel)
                c.line(f"pb[{_flat((batch, row, col), steps)}] = {sums.store('sum', channel)};")
        with loops(c, [n, rows, cols]) as at:
            c.line(f"py[{site.output.offset((*at, channel))}] = pb[{_flat(at, steps)}];")


def _flat(at: tuple[Expr, ...], steps: tuple[int, ...]) -> Expr:
    return plus(*(times(index, step) for index, step in zip(at, steps, strict=True)))


def _window(site: Site, c: Source, i: int, index: Expr) -> Window:
    """The taps along axis i of the image for one output row or column."""
    op, size, kernel = site.op, site.shapes[0][1 + i], site.shapes[1][1 + i]
    start, name = (("top", "ky"), ("left", "kx"))[i]
    if isinstance(op, ConvTranspose2d):
        return Meetings(kernel, op.stride[i], op.dilation[i], plus(index, op.pads[i]), size, name)
    assert isinstance(op, Conv2d)
    axis = Axis(kernel, op.stride[i], op.dilation[i], op.pads[i], size, site.result.shape[1 + i])
    return taps(c, axis, index, start, name)


def _sum(site: Site, c: Source, sums: Sums, batch: Expr, windows: tuple[Window, Window], channel: Expr) -> None:
    """`sum`: what the window holds times the weights of the channel."""
    x, weights, depth = site.inputs[0], sums.weights, site.shapes[1][3]
    c.line(f"{sums.ctype} sum = {sums.start(channel)};")
    first = _first_input(site, channel)
    with windows[0].each(c) as (ky, row), windows[1].each(c) as (kx, col):
        c.line(f"const {x.ctype} *const tap = px + {grouped(x.offset((batch, row, col, first)))};")
        c.line(f"const {weights.ctype} *const weight = pw + {grouped(weights.offset((channel, ky, kx, 0)))};")
        with loops(c, [(0, depth)], "depth") as (d,):
            a, b = (times(d, place.strides[3]) for place in (x, weights))
            c.line(f"sum += {sums.product(f'tap[{a}]', f'weight[{b}]', channel)};")


def _first_input(site: Site, channel: Expr) -> Expr:
    """The first input channel of the group that an output channel belongs to."""
    op, depth = site.op, site.shapes[1][3]
    assert isinstance(op, Conv2d | ConvTranspose2d)
    if op.groups == 1:
        return 0
    per_group = site.shapes[1][0] // op.groups
    group = channel // per_group if isinstance(channel, int) else f"{channel} / {per_group}"
    return times(channel if per_group == 1 else group, depth)


def grouped(offset: Expr) -> str:
    """An offset that stands behind a plus."""
    text = str(offset)
    return f"({text})" if " " in text else text
