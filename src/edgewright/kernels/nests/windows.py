"""Convolutions as plain loops: any type, any arithmetic, any region. The last resort of every family."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...network.operators import AvgPool2d, Conv2d, ConvTranspose2d, MaxPool2d
from ...program import Sweep
from ..call import CCall
from ..cost.products import loops_work
from ..kernel import Kernel, Offer, of_region, where
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, plus, summand, times
from ..printing.taps import TapLoop, Taps, TransposedTaps, taps
from ..window import axes
from .accumulator import Accumulator, accumulator, can_accumulate
from .values import clashes


def write(call: CCall, _: Offer, c: CWriter) -> None:
    write_products(call, c, accumulator(call))


def write_products(call: CCall, c: CWriter, acc: Accumulator) -> None:
    """Every element of the region: its window times the weights of its channel, stored as the accumulator says."""
    with c.block():
        declare(call, c, acc)
        if call.sweep is Sweep.CHANNELS:
            _by_planes(call, c, acc)
        else:
            _by_pixels(call, c, acc)


def declare(call: CCall, c: CWriter, acc: Accumulator) -> None:
    """Pointers to input, weights and output."""
    c.line(f"const {call.inputs[0].ctype} *const px = {call.place(0).pointer};")
    c.line(f"const {acc.weights.ctype} *const pw = {acc.weights.pointer};")
    c.line(f"{call.output.ctype} *const py = {call.output.pointer};")


@contextmanager
def channels(call: CCall, c: CWriter) -> Iterator[Expr]:
    """A loop over the region's channels; gives the channel."""
    low, high = call.region[-1]
    if isinstance(low, int) and high == low + 1:
        with c.block():
            yield low
        return
    with c.block(f"for (int32_t channel = {low}; channel < {high}; channel++)"):
        yield "channel"


def _by_pixels(call: CCall, c: CWriter, acc: Accumulator) -> None:
    """All channels of a pixel, then the next pixel."""
    n, rows, cols, _ = call.region
    with loops(c, [n, rows], backward=call.is_backward) as (batch, row):
        vertical = _window(call, c, 0, row)
        with loops(c, [cols], "j", call.is_backward) as (col,):
            horizontal = _window(call, c, 1, col)
            with channels(call, c) as channel:
                _sum(call, c, acc, batch, (vertical, horizontal), channel)
                at = call.output.offset((batch, row, col, channel))
                c.line(f"py[{at}] = {acc.store('sum', channel)};")
            fence(call, c)


def fence(call: CCall, c: CWriter) -> None:
    """Keeps the compiler from reordering reads and writes of memory that is shared under different types."""
    if any(clashes(call, which) for which in range(len(call.inputs))):
        c.line("EW_FENCE();")


def _by_planes(call: CCall, c: CWriter, acc: Accumulator) -> None:
    """A whole channel is computed aside before it is written: a depthwise layer exactly in place."""
    n, rows, cols, _ = call.region
    ctype, width = call.output.ctype, call.result.shape[2]
    steps = (call.result.shape[1] * width, width, 1)
    assert call.plane_at is not None
    c.line(f"{ctype} *const pb = ({ctype} *)(void *){call.plane_at};")
    with channels(call, c) as channel:
        with loops(c, [n, rows]) as (batch, row):
            vertical = _window(call, c, 0, row)
            with loops(c, [cols], "j") as (col,):
                horizontal = _window(call, c, 1, col)
                _sum(call, c, acc, batch, (vertical, horizontal), channel)
                c.line(f"pb[{_flat((batch, row, col), steps)}] = {acc.store('sum', channel)};")
        with loops(c, [n, rows, cols]) as at:
            c.line(f"py[{call.output.offset((*at, channel))}] = pb[{_flat(at, steps)}];")


def _flat(at: tuple[Expr, ...], steps: tuple[int, ...]) -> Expr:
    return plus(*(times(index, step) for index, step in zip(at, steps, strict=True)))


def _window(call: CCall, c: CWriter, i: int, index: Expr) -> TapLoop:
    """The taps along axis i of the image for one output row or column."""
    op, size, kernel = call.op, call.shapes[0][1 + i], call.shapes[1][1 + i]
    if isinstance(op, ConvTranspose2d):
        pad, name = op.pads[i], ("ky", "kx")[i]
        return TransposedTaps(kernel, op.stride[i], op.dilation[i], plus(index, pad), min(0, pad), size, name)
    return window_taps(call, c, i, index)


def window_taps(call: CCall, c: CWriter, i: int, index: Expr) -> Taps:
    """The taps of a convolution or a pool along axis i of the image for one output row or column."""
    op = call.op
    assert isinstance(op, Conv2d | MaxPool2d | AvgPool2d)
    kernel = call.shapes[1][1:3] if isinstance(op, Conv2d) else op.kernel
    axis = axes(op, kernel, call.shapes[0])[i]
    return taps(c, axis, call.result.shape[1 + i], index, *(("top", "ky"), ("left", "kx"))[i])


def _sum(
    call: CCall, c: CWriter, acc: Accumulator, batch: Expr, windows: tuple[TapLoop, TapLoop], channel: Expr
) -> None:
    """`sum`: what the window holds times the weights of the channel."""
    x, weights, depth = call.inputs[0], acc.weights, call.shapes[1][3]
    c.line(f"{acc.ctype} sum = {acc.start(channel)};")
    first = _first_input(call, channel)
    with windows[0].each(c) as (ky, row), windows[1].each(c) as (kx, col):
        c.line(f"const {x.ctype} *const tap = px + {summand(x.offset((batch, row, col, first)))};")
        c.line(f"const {weights.ctype} *const weight = pw + {summand(weights.offset((channel, ky, kx, 0)))};")
        with loops(c, [(0, depth)], "depth") as (d,):
            a, b = (times(d, place.strides[3]) for place in (x, weights))
            c.line(f"sum += {acc.product(f'tap[{a}]', f'weight[{b}]', channel)};")


def _first_input(call: CCall, channel: Expr) -> Expr:
    """The first input channel of the group that an output channel belongs to."""
    op, depth = call.op, call.shapes[1][3]
    assert isinstance(op, Conv2d | ConvTranspose2d)
    if op.groups == 1:
        return 0
    per_group = call.shapes[1][0] // op.groups
    group = channel // per_group if isinstance(channel, int) else f"{channel} / {per_group}"
    return times(channel if per_group == 1 else group, depth)


CONV = Kernel("loops_conv", (Conv2d, ConvTranspose2d), where(can_accumulate), write, work=of_region(loops_work))
