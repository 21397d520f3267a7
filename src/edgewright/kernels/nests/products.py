"""Products of matrices as plain loops: any type, any arithmetic, any region."""

from __future__ import annotations

from dataclasses import replace

from ...network.operators import MatMul
from ..call import Call as Site
from ..printing.nest import loops
from ..printing.source import Expr, Source, times
from .sums import sums_of
from .windows import channels, declare, fence, grouped


def dense(site: Site, c: Source) -> bool:
    sums = sums_of(site)
    if sums is None or not sums.weights.is_dense:
        return False
    x, features = site.inputs[0], site.shapes[0][-1]
    with c.block():
        declare(site, c, sums)
        with loops(c, site.region[:-1], backward=site.is_backward) as lead, channels(site, c) as channel:
            c.line(f"const {x.ctype} *const tap = px + {grouped(x.offset((*lead, 0)))};")
            c.line(f"const {sums.weights.ctype} *const weight = pw + {times(channel, features)};")
            c.line(f"{sums.ctype} sum = {sums.start(channel)};")
            with loops(c, [(0, features)], "depth") as (d,):
                a = times(d, x.strides[-1])
                c.line(f"sum += {sums.product(f'tap[{a}]', f'weight[{d}]', channel)};")
            c.line(f"py[{site.output.offset((*lead, channel))}] = {sums.store('sum', channel)};")
            fence(site, c)
    return True


def matmul(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, MatMul)
    sums = sums_of(site)
    if sums is None:
        return False
    rank = len(site.result.shape)
    left, right = site.place(0).spread(rank), sums.weights.spread(rank)
    inner = site.shapes[0][-2 if op.transpose_a else -1]
    with c.block():
        declare(site, c, replace(sums, weights=right))
        with loops(c, site.region[:-1], backward=site.is_backward) as lead, channels(site, c) as channel:
            *batch, row = lead
            c.line(f"{sums.ctype} sum = {sums.start(channel)};")
            with loops(c, [(0, inner)], "depth") as (d,):
                a = left.offset((*batch, *_matrix(row, d, op.transpose_a)))
                b = right.offset((*batch, *_matrix(d, channel, op.transpose_b)))
                c.line(f"sum += {sums.product(f'px[{a}]', f'pw[{b}]', channel)};")
            c.line(f"py[{site.output.offset((*lead, channel))}] = {sums.store('sum', channel)};")
            fence(site, c)
    return True


def _matrix(row: Expr, col: Expr, transposed: bool) -> tuple[Expr, Expr]:
    return (col, row) if transposed else (row, col)
