"""Operators that move elements without computing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ...network import Region, Shape
from ...network import operators as ops
from ..call import CCall
from ..cost.copies import CopyPart, copy_work, gather_work
from ..cost.work import KernelWork
from ..kernel import Kernel, Offer, of_region, where
from ..printing.nest import Bounds, loops
from ..printing.source import CWriter, Expr, modulo, plus, times
from ..site import Site
from ..strided_tensor import Route
from .copies import Copy, can_carry, is_raw, looked_up, open_copy, shifted, straight
from .values import ComputeType, LoopOperand, pointed, reader


def route_of(site: Site) -> Route:
    """Where elements come from that a straight route leads to."""
    match site.op:
        case ops.Transpose(perm):
            return [(perm.index(axis), 0, 1) for axis in range(len(perm))]
        case ops.Slice(starts, _, steps):
            return [(axis, *pair) for axis, pair in enumerate(zip(starts, steps, strict=True))]
    shape = site.shapes[0]  # of what is repeated along its axes of size 1
    lead = len(site.result.shape) - len(shape)
    return [(None if size == 1 else lead + axis, 0, 1) for axis, size in enumerate(shape)]


def write_routed(call: CCall, _: Offer, c: CWriter) -> None:
    with open_copy(call, c) as copy:
        copy.nest(call.region, route_of(call), straight(len(call.region)))


def work_routed(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    return copy_work(site, [CopyPart(0, region, route_of(site), straight(len(region.shape)), is_raw(site))])


def write_reshape(call: CCall, _: Offer, c: CWriter) -> None:
    op, x = call.op_as(ops.Reshape), call.shapes[0]
    if not call.inputs[0].is_dense and not (call.output.is_dense and call.is_whole):
        looked_up(call, c, lambda at: _unravelled(_ravelled(at, op.shape), x))
        return
    with open_copy(call, c) as copy:
        if call.inputs[0].is_dense:
            seen = Copy(call, c, _shaped(copy.x, op.shape), copy.y)
            seen.nest(call.region, straight(len(op.shape)), straight(len(op.shape)))
        else:
            seen = Copy(call, c, copy.x, _shaped(copy.y, x))
            seen.nest([(0, size) for size in x], straight(len(x)), straight(len(x)))


def _shaped(operand: LoopOperand, shape: Shape) -> LoopOperand:
    """A dense tensor seen under another shape."""
    tensor = replace(operand.tensor, shape=shape)
    return operand.at(replace(operand.place, tensor=tensor, strides=_steps(shape)))


def _steps(shape: Shape) -> tuple[int, ...]:
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


def _ravelled(at: Sequence[Expr], shape: Shape) -> Expr:
    return plus(*(times(i, step) for i, step in zip(at, _steps(shape), strict=True)))


def _unravelled(flat: Expr, shape: Shape) -> list[Expr]:
    """The indices of an element of known number."""
    pairs = list(zip(shape, _steps(shape), strict=True))
    return [modulo(_quotient(flat, step), size) if size > 1 else 0 for size, step in pairs]


def _quotient(value: Expr, n: int) -> Expr:
    if isinstance(value, int) or n == 1:
        return value // n if isinstance(value, int) else value
    return f"({value}) / {n}"


def write_tile(call: CCall, _: Offer, c: CWriter) -> None:
    looked_up(call, c, lambda at: [modulo(i, n) for i, n in zip(at, call.shapes[0], strict=True)])


def write_space_to_depth(call: CCall, _: Offer, c: CWriter) -> None:
    op, channels = call.op_as(ops.SpaceToDepth), call.shapes[0][3]
    k = op.block
    if call.region[3] == (0, k * k * channels):
        _gather_blocks(call, c, k, channels)
        return

    def index(at: Sequence[Expr]) -> list[Expr]:
        n, row, col, channel = at
        part = _quotient(channel, channels)
        down, right = _quotient(part, k), modulo(part, k)
        return [n, plus(times(row, k), down), plus(times(col, k), right), modulo(channel, channels)]

    looked_up(call, c, index)


def _gather_blocks(call: CCall, c: CWriter, k: int, channels: int) -> None:
    """All channels of a pixel of a block at once."""
    with open_copy(call, c) as copy, loops(c, [*call.region[:3], (0, k), (0, k)]) as (n, row, col, down, right):
        source = (n, plus(times(row, k), down), plus(times(col, k), right))
        part = times(plus(times(down, k), right), channels)
        x, y = copy.x.place, copy.y.place
        if copy.x.compute is ComputeType.RAW and x.strides[3] == y.strides[3] == 1:
            copy.run(x.offset((*source, 0)), y.offset((n, row, col, part)), channels)
        else:
            with loops(c, [(0, channels)], "d") as (d,):
                copy.element(x.offset((*source, d)), y.offset((n, row, col, plus(part, d))))


def write_depth_to_space(call: CCall, _: Offer, c: CWriter) -> None:
    op, channels = call.op_as(ops.DepthToSpace), call.result.shape[3]
    k = op.block
    with open_copy(call, c) as copy, loops(c, call.region[:3]) as (n, row, col):
        part = plus(times(modulo(row, k), k), modulo(col, k))
        source = (n, _quotient(row, k), _quotient(col, k))
        if not op.channel_major:
            copy.line(source, (n, row, col), call.region[3], ahead=times(part, channels))
            return
        with loops(c, [call.region[3]], "d") as (d,):
            depth = plus(times(d, k * k), part)
            copy.element(copy.x.place.offset((*source, depth)), copy.y.place.offset((n, row, col, d)))


def write_gather(call: CCall, _: Offer, c: CWriter) -> None:
    op, rank = call.op_as(ops.Gather), len(call.shapes[1])
    axis = op.axis % len(call.shapes[0])
    call.use("moves")
    with open_copy(call, c) as copy:
        chosen = pointed(c, reader(call, 1, ComputeType.RAW), "pa").place
        with loops(c, call.region[: axis + rank]) as outer, c.block():
            element = f"{chosen.pointer}[{chosen.offset(outer[axis:])}]"
            c.line(f"const int32_t at = ew_index({element}, {call.shapes[0][axis]});")
            rest = call.region[axis + rank :]
            if not rest:
                copy.element(copy.x.place.offset((*outer[:axis], "at")), copy.y.place.offset(outer))
                return
            with loops(c, rest[:-1], "j") as inner:
                copy.line((*outer[:axis], "at", *inner), (*outer, *inner), rest[-1])


def write_gather_elements(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(ops.GatherElements)
    axis = op.axis % len(call.region)
    call.use("moves")
    with open_copy(call, c) as copy:
        chosen = pointed(c, reader(call, 1, ComputeType.RAW), "pa").place
        with loops(c, call.region) as at, c.block():
            element = f"{chosen.pointer}[{chosen.offset(at)}]"
            c.line(f"const int32_t k = ew_index({element}, {call.shapes[0][axis]});")
            copy.element(copy.x.place.offset((*at[:axis], "k", *at[axis + 1 :])), copy.y.place.offset(at))


def _carries_all(site: Site) -> bool:
    return all(can_carry(site, which) for which in range(len(site.inputs)))


def write_concat(call: CCall, _: Offer, c: CWriter) -> None:
    """In exact row-major order, whichever part an element comes from."""
    op = call.op_as(ops.Concat)
    axis = op.axis % len(call.region)
    outer, (low, high) = call.region[:axis], call.region[axis]
    parts, begin = [], 0
    for which, shape in enumerate(call.shapes):
        if not _misses(low, high, begin, shape[axis]):
            parts.append((which, begin))
        begin += shape[axis]
    if not any(call.shares(which) for which, _ in parts):
        for which, start in parts:
            _part(call, c, which, axis, start, ())
        return
    with loops(c, outer, "k", backward=call.is_backward) as at:
        for which, start in reversed(parts) if call.is_backward else parts:
            _part(call, c, which, axis, start, at)


def work_concat(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """A copy of each input's share of the region."""
    op, parts, begin = site.op_as(ops.Concat), [], 0
    axis, rank = op.axis % len(region.shape), len(region.shape)
    for which, shape in enumerate(site.shapes):
        low, high = (min(max(end - begin, 0), shape[axis]) for end in region.bounds[axis])
        if low < high:
            target = straight(rank)
            target[axis] = (axis, begin, 1)
            share = region.with_axis(axis, (low, high))
            parts.append(CopyPart(which, share, straight(rank), target, is_raw(site, which)))
        begin += shape[axis]
    return copy_work(site, parts)


def _misses(low: Expr, high: Expr, begin: int, size: int) -> bool:
    """Whether a part certainly lies outside the region."""
    return (isinstance(low, int) and low >= begin + size) or (isinstance(high, int) and high <= begin)


def _part(call: CCall, c: CWriter, which: int, axis: int, begin: int, at: Sequence[Expr]) -> None:
    """One input's share of the region; indices of the first axes may be given by loops around."""
    size = call.shapes[which][axis]
    fixed: Bounds = [(i, plus(i, 1)) for i in at]
    span = shifted(call.region[axis], -begin, size)
    bounds = [*fixed, *call.region[len(at) : axis], span, *call.region[axis + 1 :]]
    with open_copy(call, c, which) as copy:
        target = straight(len(bounds))
        target[axis] = (axis, begin, 1)
        copy.nest(bounds, straight(len(bounds)), target)


RESHAPE = Kernel("reshape", (ops.Reshape,), where(can_carry), write_reshape)
TRANSPOSE = Kernel("transpose", (ops.Transpose,), where(can_carry), write_routed, work=work_routed)
SLICE = Kernel("slice", (ops.Slice,), where(can_carry), write_routed, work=work_routed)
EXPAND = Kernel("expand", (ops.Expand,), where(can_carry), write_routed, work=work_routed)
TILE = Kernel("tile", (ops.Tile,), where(can_carry), write_tile)
SPACE_TO_DEPTH = Kernel("space_to_depth", (ops.SpaceToDepth,), where(can_carry), write_space_to_depth)
DEPTH_TO_SPACE = Kernel("depth_to_space", (ops.DepthToSpace,), where(can_carry), write_depth_to_space)
GATHER_ELEMENTS = Kernel("gather_elements", (ops.GatherElements,), where(can_carry), write_gather_elements)
GATHER = Kernel("gather", (ops.Gather,), where(can_carry), write_gather, work=of_region(gather_work))
CONCAT = Kernel("concat", (ops.Concat,), where(_carries_all), write_concat, work=work_concat)
