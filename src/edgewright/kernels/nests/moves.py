"""Operators that move elements without computing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ...network import Shape
from ...network.operators import Concat, DepthToSpace, Gather, Reshape, Slice, SpaceToDepth, Transpose
from ..call import Call as Site
from ..printing.nest import Bounds, loops
from ..printing.source import Expr, Source, modulo, plus, times
from .copies import Copy, Route, carriers, looked_up, opened, shifted, straight
from .values import Stream, World, pointed, reader


def _routed(site: Site, c: Source, route: Route) -> bool:
    """Every element comes from where a straight route leads."""
    with opened(site, c) as copy:
        if copy is None:
            return False
        copy.nest(site.region, route, straight(len(site.region)))
    return True


def reshape(site: Site, c: Source) -> bool:
    op, x = site.op, site.shapes[0]
    assert isinstance(op, Reshape)
    if not site.inputs[0].is_dense and not (site.output.is_dense and site.is_whole):
        return looked_up(site, c, lambda at: _unravelled(_ravelled(at, op.shape), x))
    with opened(site, c) as copy:
        if copy is None:
            return False
        if site.inputs[0].is_dense:
            seen = Copy(site, c, _shaped(copy.x, op.shape), copy.y)
            seen.nest(site.region, straight(len(op.shape)), straight(len(op.shape)))
        else:
            seen = Copy(site, c, copy.x, _shaped(copy.y, x))
            seen.nest([(0, size) for size in x], straight(len(x)), straight(len(x)))
    return True


def _shaped(stream: Stream, shape: Shape) -> Stream:
    """A dense tensor seen under another shape."""
    tensor = replace(stream.tensor, shape=shape)
    return stream.at(replace(stream.place, tensor=tensor, strides=_steps(shape)))


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


def transpose(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Transpose)
    route = [(op.perm.index(axis), 0, 1) for axis in range(len(op.perm))]
    return _routed(site, c, route)


def slice_(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Slice)
    return _routed(site, c, [(axis, *pair) for axis, pair in enumerate(zip(op.starts, op.steps, strict=True))])


def expand(site: Site, c: Source) -> bool:
    x = site.shapes[0]
    lead = len(site.region) - len(x)
    return _routed(site, c, [(None if size == 1 else lead + axis, 0, 1) for axis, size in enumerate(x)])


def tile(site: Site, c: Source) -> bool:
    return looked_up(site, c, lambda at: [modulo(i, n) for i, n in zip(at, site.shapes[0], strict=True)])


def space_to_depth(site: Site, c: Source) -> bool:
    op, channels = site.op, site.shapes[0][3]
    assert isinstance(op, SpaceToDepth)
    k = op.block
    if site.region[3] == (0, k * k * channels):
        return _gathered_blocks(site, c, k, channels)

    def index(at: Sequence[Expr]) -> list[Expr]:
        n, row, col, channel = at
        part = _quotient(channel, channels)
        down, right = _quotient(part, k), modulo(part, k)
        return [n, plus(times(row, k), down), plus(times(col, k), right), modulo(channel, channels)]

    return looked_up(site, c, index)


def _gathered_blocks(site: Site, c: Source, k: int, channels: int) -> bool:
    """All channels of a pixel of a block at once."""
    with opened(site, c) as copy:
        if copy is None:
            return False
        with loops(c, [*site.region[:3], (0, k), (0, k)]) as (n, row, col, down, right):
            source = (n, plus(times(row, k), down), plus(times(col, k), right))
            part = times(plus(times(down, k), right), channels)
            x, y = copy.x.place, copy.y.place
            if copy.x.world is World.RAW and x.strides[3] == y.strides[3] == 1:
                copy.run(x.offset((*source, 0)), y.offset((n, row, col, part)), channels)
            else:
                with loops(c, [(0, channels)], "d") as (d,):
                    copy.element(x.offset((*source, d)), y.offset((n, row, col, plus(part, d))))
    return True


def depth_to_space(site: Site, c: Source) -> bool:
    op, channels = site.op, site.result.shape[3]
    assert isinstance(op, DepthToSpace)
    k = op.block
    with opened(site, c) as copy:
        if copy is None:
            return False
        with loops(c, site.region[:3]) as (n, row, col):
            part = plus(times(modulo(row, k), k), modulo(col, k))
            source = (n, _quotient(row, k), _quotient(col, k))
            if not op.channel_major:
                copy.line(source, (n, row, col), site.region[3], ahead=times(part, channels))
                return True
            with loops(c, [site.region[3]], "d") as (d,):
                depth = plus(times(d, k * k), part)
                copy.element(copy.x.place.offset((*source, depth)), copy.y.place.offset((n, row, col, d)))
    return True


def gather(site: Site, c: Source) -> bool:
    op, rank = site.op, len(site.shapes[1])
    assert isinstance(op, Gather)
    axis = op.axis % len(site.shapes[0])
    site.use("moves")
    with opened(site, c) as copy:
        if copy is None:
            return False
        chosen = pointed(c, reader(site, 1, World.RAW), "pa").place
        with loops(c, site.region[: axis + rank]) as outer, c.block():
            element = f"{chosen.pointer}[{chosen.offset(outer[axis:])}]"
            c.line(f"const int32_t at = ew_index({element}, {site.shapes[0][axis]});")
            rest = site.region[axis + rank :]
            if not rest:
                copy.element(copy.x.place.offset((*outer[:axis], "at")), copy.y.place.offset(outer))
                return True
            with loops(c, rest[:-1], "j") as inner:
                copy.line((*outer[:axis], "at", *inner), (*outer, *inner), rest[-1])
    return True


def concat(site: Site, c: Source) -> bool:
    """In exact row-major order, whichever part an element comes from."""
    op = site.op
    assert isinstance(op, Concat)
    axis = op.axis % len(site.region)
    if any(carriers(site, which) is None for which in range(len(site.inputs))):
        return False
    outer, (low, high) = site.region[:axis], site.region[axis]
    parts, begin = [], 0
    for which, shape in enumerate(site.shapes):
        if not _misses(low, high, begin, shape[axis]):
            parts.append((which, begin))
        begin += shape[axis]
    if not any(site.shares(which) for which, _ in parts):
        for which, start in parts:
            _part(site, c, which, axis, start, ())
        return True
    with loops(c, outer, "k", backward=site.is_backward) as at:
        for which, start in reversed(parts) if site.is_backward else parts:
            _part(site, c, which, axis, start, at)
    return True


def _misses(low: Expr, high: Expr, begin: int, size: int) -> bool:
    """Whether a part certainly lies outside the region."""
    return (isinstance(low, int) and low >= begin + size) or (isinstance(high, int) and high <= begin)


def _part(site: Site, c: Source, which: int, axis: int, begin: int, at: Sequence[Expr]) -> None:
    """One input's share of the region; indices of the first axes may be given by loops around."""
    size = site.shapes[which][axis]
    fixed: Bounds = [(i, plus(i, 1)) for i in at]
    span = shifted(site.region[axis], -begin, size)
    bounds = [*fixed, *site.region[len(at) : axis], span, *site.region[axis + 1 :]]
    with opened(site, c, which) as copy:
        assert copy is not None
        target = straight(len(bounds))
        target[axis] = (axis, begin, 1)
        copy.nest(bounds, straight(len(bounds)), target)
