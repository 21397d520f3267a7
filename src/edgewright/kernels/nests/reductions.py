"""Reductions along axes, and arg-max."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ...network import Arithmetic
from ...network.operators import ArgMax, Reduce, ReduceKind
from ...platform.target import Family
from ..call import Call as Site
from ..printing.constants import number
from ..printing.nest import Bounds, loops
from ..printing.source import Expr, Source, plus
from .values import Stream, World, pointed, reader, world_of, writer

_EXTREMES = (ReduceKind.MAX, ReduceKind.MIN)


@dataclass(frozen=True)
class Fold:
    """How elements become one: `total` starts, takes each element as `v`, and ends as what the output stores."""

    ctype: str
    start: str
    step: str
    end: str


def reduce(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Reduce)
    world = _world(site, op)
    if world is None:
        return False
    x, y = reader(site, 0, world), writer(site, world)
    if len(x.places) > 1 or len(y.places) > 1:
        return False
    if is_pooled(site, op):
        x = reader(site, 0, World.RAW)
        return _folded(site, c, op.axes, op.keep, x, y, lambda first: pooled(site, op, y))
    return _folded(site, c, op.axes, op.keep, x, y, lambda first: _fold(site, op, world, y, first))


def _world(site: Site, op: Reduce) -> World | None:
    world = world_of(site)
    is_raw = op.kind in _EXTREMES and site.inputs[0].tensor.quant == site.result.quant
    is_integer = not site.result.dtype.is_float and not site.inputs[0].tensor.dtype.is_float
    return World.RAW if world is not None and is_raw and is_integer else world


def _folded(
    site: Site,
    c: Source,
    axes: Sequence[int],
    keep: bool,
    x: Stream,
    y: Stream,
    fold_of: Callable[[str], Fold],
) -> bool:
    """One output element after the other, each from all that it is made of."""
    reduced = {axis % len(site.shapes[0]) for axis in axes}
    spans: Bounds = [(0, size) if i in reduced else (0, 1) for i, size in enumerate(site.shapes[0])]
    with c.block():
        x, y = pointed(c, x, "px"), pointed(c, y, "py", written=True)
        with loops(c, site.region) as at, c.block():
            start = _source(at, [0] * len(spans), reduced, keep)
            fold = fold_of(x.value((x.place.offset(start),)))
            c.line(f"{fold.ctype} total = {fold.start};")
            with loops(c, spans, "k") as inner:
                value = x.value((x.place.offset(_source(at, inner, reduced, keep)),))
                with c.block():
                    c.line(f"const {fold.ctype} v = {value};")
                    c.line(fold.step)
            c.line(f"{y.place.pointer}[{y.place.offset(at)}] = {fold.end};")
    return True


def _source(at: Sequence[Expr], inner: Sequence[Expr], reduced: set[int], keep: bool) -> list[Expr]:
    """The indices of an input element: of reduced axes from the inner loops, of the others from the output's."""
    kept = iter(at)
    found = []
    for axis, index in enumerate(inner):
        if axis in reduced:
            found.append(index)
            if keep:
                next(kept)
        else:
            found.append(next(kept))
    return found


def _fold(site: Site, op: Reduce, world: World, y: Stream, first: str) -> Fold:
    if op.kind in _EXTREMES:
        sign = ">" if op.kind is ReduceKind.MAX else "<"
        ctype = "float" if world is World.REAL else site.inputs[0].ctype if world is World.RAW else "int64_t"
        return Fold(ctype, first, f"total = v {sign} total ? v : total;", y.stored("total"))
    count = site.inputs[0].tensor.size // max(1, site.result.size)
    return _whole_fold(site, op, y, count) if world is World.WHOLE else _real_fold(site, op, y, count)


def _real_fold(site: Site, op: Reduce, y: Stream, count: int) -> Fold:
    """In double where that costs nothing, or where a last bit decides what is stored."""
    ctype = "double" if site.target.family is Family.SIMD or site.is_quantised else "float"
    suffix = "" if ctype == "double" else "f"
    if op.kind is ReduceKind.L2:
        site.use("math_functions")
    ends = {
        ReduceKind.MEAN: f"total / {number(count, 'float64' if ctype == 'double' else 'float32')}",
        ReduceKind.L2: "ew_root(total)" if ctype == "double" else "sqrtf(total)",
    }
    end = ends.get(op.kind, "total")
    real = end if ctype == "float" else f"(float)({end})"
    return Fold(ctype, f"{_first(op)}.0{suffix}", _STEPS[op.kind], y.stored(real))


def _whole_fold(site: Site, op: Reduce, y: Stream, count: int) -> Fold:
    """Sums wrap as numpy's do; a mean and a root are cut towards zero."""
    site.use("whole")
    steps = {
        ReduceKind.PROD: "total = ew_whole_mul(total, v);",
        ReduceKind.L1: "total = ew_whole_add(total, ew_whole_abs(v));",
        ReduceKind.L2: "total = ew_whole_add(total, ew_whole_square(v));",
        ReduceKind.SUM_SQUARE: "total = ew_whole_add(total, ew_whole_square(v));",
    }
    ends = {ReduceKind.MEAN: f"total / {count}", ReduceKind.L2: "ew_whole_root(total)"}
    step = steps.get(op.kind, "total = ew_whole_add(total, v);")
    return Fold("int64_t", str(_first(op)), step, y.stored(ends.get(op.kind, "total")))


def _first(op: Reduce) -> int:
    return int(op.kind is ReduceKind.PROD)


_STEPS = {
    ReduceKind.MEAN: "total += v;",
    ReduceKind.SUM: "total += v;",
    ReduceKind.PROD: "total *= v;",
    ReduceKind.L1: "total += v < 0 ? -v : v;",
    ReduceKind.L2: "total += v * v;",
    ReduceKind.SUM_SQUARE: "total += v * v;",
}


def is_pooled(site: Site, op: Reduce) -> bool:
    """Whether it is onnxruntime's QLinearGlobalAveragePool."""
    tensors = (site.inputs[0].tensor, site.result)
    is_plain = all(t.dtype.bytes == 1 and t.quant is not None and not t.quant.is_per_channel for t in tensors)
    over_image = len(site.shapes[0]) == 4 and {axis % 4 for axis in op.axes} == {1, 2}
    return is_plain and over_image and op.kind is ReduceKind.MEAN and site.arithmetic is not Arithmetic.TFLITE


def pooled(site: Site, op: Reduce, y: Stream) -> Fold:
    """An integer sum, scaled once."""
    x, result = site.inputs[0].tensor.quant, site.result.quant
    assert x is not None and result is not None
    count = prod(site.shapes[0][1:3])
    scale = np.float32(x.scale[0]) / (np.float32(result.scale[0]) * np.float32(count))
    start = plus(-count * x.zero[0])
    return Fold("int32_t", str(start), "total += v;", y.rounded(f"(float)total * {number(scale)}"))


def arg_max(site: Site, c: Source) -> bool:
    """The first of several equal elements, or the last; what is stored is compared."""
    op = site.op
    assert isinstance(op, ArgMax)
    is_real = site.inputs[0].tensor.dtype.is_float
    x = reader(site, 0, World.REAL if is_real else World.RAW)
    rank = len(site.shapes[0])
    axis = op.axes[0] % rank
    sign = ("<" if op.least else ">") + ("=" if op.last else "")
    with c.block():
        x = pointed(c, x, "px")
        y = pointed(c, writer(site, World.RAW), "py", written=True)
        with loops(c, site.region) as at, c.block():

            def value(k: Expr) -> str:
                source = _source(at, [k if i == axis else 0 for i in range(rank)], {axis}, op.keep)
                return x.value((x.place.offset(source),))

            c.line(f"{'float' if is_real else x.place.ctype} best = {value(0)};")
            c.line("int32_t found = 0;")
            rest = f"for (int32_t k = 1; k < {site.shapes[0][axis]}; k++)"
            with c.block(rest), c.block(f"if ({value('k')} {sign} best)"):
                c.line(f"best = {value('k')};")
                c.line("found = k;")
            c.line(f"{y.place.pointer}[{y.place.offset(at)}] = ({y.place.ctype})found;")
    return True
