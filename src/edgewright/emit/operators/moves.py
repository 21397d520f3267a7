"""Operators that move elements without computing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod

import numpy as np

from ...network import Arithmetic, DType, Shape
from ...network.kernels.scales import number as stored_number
from ...network.kernels.tflite_scales import stored_number as tflite_number
from ...network.operators import (
    Concat,
    DepthToSpace,
    Gather,
    Pad,
    PadMode,
    Reshape,
    Slice,
    SpaceToDepth,
    Transpose,
)
from ..constants import number
from ..nest import Bounds, elements, loops
from ..site import Site
from ..source import Expr, Source, modulo, plus, times
from .copies import Copy, Route, carriers, straight
from .values import Stream, World, pointed, reader, writer

Index = Callable[[Sequence[Expr]], Sequence[Expr]]  # indices of the output -> those of the input


@contextmanager
def _copy(site: Site, c: Source, which: int = 0) -> Iterator[Copy | None]:
    """The copy of an input into the output, behind local pointers."""
    pair = carriers(site, which)
    if pair is None:
        yield None
        return
    with c.block():
        x, y = pair
        yield Copy(site, c, pointed(c, x, "px"), pointed(c, y, "py", written=True))


def _routed(site: Site, c: Source, route: Route) -> bool:
    """Every element comes from where a straight route leads."""
    with _copy(site, c) as copy:
        if copy is None:
            return False
        copy.nest(site.region, route, straight(len(site.region)))
    return True


def _looked_up(site: Site, c: Source, index: Index) -> bool:
    """Every element comes from where `index` says."""
    with _copy(site, c) as copy:
        if copy is None:
            return False
        with loops(c, site.region, backward=site.is_backward) as at:
            copy.element(copy.x.place.offset(index(at)), copy.y.place.offset(at))
    return True


def reshape(site: Site, c: Source) -> bool:
    op, x = site.op, site.shapes[0]
    assert isinstance(op, Reshape)
    if not site.inputs[0].is_dense and not (site.output.is_dense and site.is_whole):
        return _looked_up(site, c, lambda at: _unravelled(_ravelled(at, op.shape), x))
    with _copy(site, c) as copy:
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
    return _looked_up(site, c, lambda at: [modulo(i, n) for i, n in zip(at, site.shapes[0], strict=True)])


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

    return _looked_up(site, c, index)


def _gathered_blocks(site: Site, c: Source, k: int, channels: int) -> bool:
    """All channels of a pixel of a block at once."""
    with _copy(site, c) as copy:
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
    with _copy(site, c) as copy:
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
    with _copy(site, c) as copy:
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
    span = _shifted(site.region[axis], -begin, size)
    bounds = [*fixed, *site.region[len(at) : axis], span, *site.region[axis + 1 :]]
    with _copy(site, c, which) as copy:
        assert copy is not None
        target = straight(len(bounds))
        target[axis] = (axis, begin, 1)
        copy.nest(bounds, straight(len(bounds)), target)


def _shifted(span: tuple[Expr, Expr], by: int, size: int) -> tuple[Expr, Expr]:
    """The interval moved and cut to 0..size."""
    low, high = (plus(value, by) for value in span)
    first = max(low, 0) if isinstance(low, int) else f"ew_max({low}, 0)"
    last = min(high, size) if isinstance(high, int) else f"ew_min({high}, {size})"
    return first, last


def pad(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Pad)
    if op.mode is not PadMode.CONSTANT:
        site.use("moves")
        return _looked_up(site, c, lambda at: [_mirrored(site, op, axis, i) for axis, i in enumerate(at)])
    if site.shares():
        return _pad_in_order(site, c, op)
    return _pad_apart(site, c, op)


def _filling(site: Site, op: Pad) -> str:
    """The element that pads hold, as stored."""
    y = site.result
    if y.quant is not None and not y.dtype.is_float:
        stored = tflite_number if site.arithmetic is Arithmetic.TFLITE else stored_number
        return number(int(stored(op.value, y)), "int32")
    if y.dtype is DType.FLOAT16:
        return number(int(np.float16(op.value).view(np.uint16)), "int32")
    if not np.isfinite(op.value):
        site.use("math_functions")
    return number(op.value, y.dtype.value)


def _pad_apart(site: Site, c: Source, op: Pad) -> bool:
    """All of the region filled, then the image put into it."""
    rank = len(site.region)
    spans = zip(site.region, op.before, site.shapes[0], strict=True)
    # The nest counts from where both the image and the region begin, so that no address lies before either.
    bounds = [_shifted(span, -max(a, 0), n - max(-a, 0)) for span, a, n in spans]
    if carriers(site) is None:
        return False
    with c.block():
        py = pointed(c, writer(site, World.RAW), "py", written=True).place
        with elements(c, site.region, [py]) as ((at,), _):
            c.line(f"py[{at}] = {_filling(site, op)};")
    if any(isinstance(a, int) and isinstance(b, int) and b <= a for a, b in bounds):
        return True
    with _copy(site, c) as copy:
        assert copy is not None
        source = [(axis, max(-op.before[axis], 0), 1) for axis in range(rank)]
        target = [(axis, max(op.before[axis], 0), 1) for axis in range(rank)]
        copy.nest(bounds, source, target)
    return True


def _pad_in_order(site: Site, c: Source, op: Pad) -> bool:
    """Element by element: the image moves within its own memory."""
    x = site.shapes[0]
    if carriers(site) is None:
        return False
    with _copy(site, c) as copy, loops(c, site.region, backward=site.is_backward) as at:
        assert copy is not None
        inside = [
            f"{i} >= {before} && {i} < {before + size}"
            for i, before, after, size in zip(at, op.before, op.after, x, strict=True)
            if before > 0 or after > 0
        ]
        source = copy.x.place.offset([plus(i, -before) for i, before in zip(at, op.before, strict=True)])
        read = copy.y.stored(copy.x.value((source,)))
        element = f"({' && '.join(inside)}) ? {read} : {_filling(site, op)}" if inside else read
        target = copy.y.place.offset(at)
        c.line(f"{copy.y.place.pointer}[{target}] = ({copy.y.place.ctype})({element});")
    return True


def _mirrored(site: Site, op: Pad, axis: int, index: Expr) -> Expr:
    """Which element of an axis an output index shows. Negative pads crop first."""
    before, after, extent = op.before[axis], op.after[axis], site.shapes[0][axis]
    low, size = max(0, -before), extent + min(0, before) + min(0, after)
    inner = plus(index, -max(0, before))
    if before <= 0 and after <= 0:
        return plus(inner, low)
    function = {
        PadMode.EDGE: f"ew_between(0, {inner}, {size - 1})",
        PadMode.REFLECT: f"ew_reflected({inner}, {size})",
        PadMode.SYMMETRIC: f"ew_mirrored({inner}, {size})",
    }
    return plus(function[op.mode], low)
