"""Products of matrices as plain loops: any type, any arithmetic, any region."""

from __future__ import annotations

from dataclasses import replace

from ...network.operators import Dense, MatMul
from ..call import CCall
from ..cost.products import loops_work
from ..kernel import Kernel, Offer, of_region, where
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, summand, times
from ..site import Site
from .accumulator import Accumulator, accumulator, can_accumulate
from .windows import channels, declare, fence


def suits_dense(site: Site) -> bool:
    return can_accumulate(site) and site.inputs[1].is_dense


def write_dense(call: CCall, _: Offer, c: CWriter) -> None:
    write_products(call, c, accumulator(call))


def write_products(call: CCall, c: CWriter, acc: Accumulator) -> None:
    """Every element of the region: a line of the input times the weights of its channel."""
    x, features = call.inputs[0], call.shapes[0][-1]
    with c.block():
        declare(call, c, acc)
        with loops(c, call.region[:-1], backward=call.is_backward) as lead, channels(call, c) as channel:
            c.line(f"const {x.ctype} *const tap = px + {summand(x.offset((*lead, 0)))};")
            c.line(f"const {acc.weights.ctype} *const weight = pw + {times(channel, features)};")
            c.line(f"{acc.ctype} sum = {acc.start(channel)};")
            with loops(c, [(0, features)], "depth") as (d,):
                a = times(d, x.strides[-1])
                c.line(f"sum += {acc.product(f'tap[{a}]', f'weight[{d}]', channel)};")
            c.line(f"py[{call.output.offset((*lead, channel))}] = {acc.store('sum', channel)};")
            fence(call, c)


def write_matmul(call: CCall, _: Offer, c: CWriter) -> None:
    op, acc = call.op_as(MatMul), accumulator(call)
    rank = len(call.result.shape)
    left, right = call.place(0).broadcast(rank), acc.weights.broadcast(rank)
    inner = call.shapes[0][-2 if op.transpose_a else -1]
    with c.block():
        declare(call, c, replace(acc, place=lambda: right))
        with loops(c, call.region[:-1], backward=call.is_backward) as lead, channels(call, c) as channel:
            *batch, row = lead
            c.line(f"{acc.ctype} sum = {acc.start(channel)};")
            with loops(c, [(0, inner)], "depth") as (d,):
                a = left.offset((*batch, *_matrix(row, d, op.transpose_a)))
                b = right.offset((*batch, *_matrix(d, channel, op.transpose_b)))
                c.line(f"sum += {acc.product(f'px[{a}]', f'pw[{b}]', channel)};")
            c.line(f"py[{call.output.offset((*lead, channel))}] = {acc.store('sum', channel)};")
            fence(call, c)


def _matrix(row: Expr, col: Expr, transposed: bool) -> tuple[Expr, Expr]:
    return (col, row) if transposed else (row, col)


DENSE = Kernel("loops_dense", (Dense,), where(suits_dense), write_dense, work=of_region(loops_work))
MATMUL = Kernel("loops_matmul", (MatMul,), where(can_accumulate), write_matmul)
