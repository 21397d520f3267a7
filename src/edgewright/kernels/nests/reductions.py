"""Reductions along axes, arg-max, top-k and the best of boxes that overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...network import Arithmetic, DType
from ...network.operators import ArgMax, NonMaxSuppression, Reduce, ReduceKind, TopK
from ...platform.target import Family
from ..call import CCall
from ..kernel import Kernel, Offer, anywhere, where
from ..printing.constants import number
from ..printing.nest import Bounds, is_single, loops
from ..printing.source import CWriter, Expr, advanced
from ..site import Site
from .finish import image_mean
from .values import ComputeType, LoopOperand, compute_type, has_scales, is_byte, pointed, reader, writer

_EXTREMES = (ReduceKind.MAX, ReduceKind.MIN)


@dataclass(frozen=True)
class Fold:
    """How elements become one: `total` starts, takes each element as `v`, and ends as what the output stores."""

    ctype: str
    start: str
    step: str
    end: str


def write_pooled(call: CCall, _: Offer, c: CWriter) -> None:
    op, y = call.op_as(Reduce), writer(call, ComputeType.REAL)
    _write_folded(call, c, op, reader(call, 0, ComputeType.RAW), y, lambda _: pooled(call, y))


def suits_reduce(site: Site) -> bool:
    """Everything that TFLite has no rules of its own for, unless each channel has a scale of its own."""
    compute, tensors = _compute_type(site), (site.inputs[0].tensor, site.result)
    return compute is not None and not (compute is ComputeType.REAL and any(map(has_scales, tensors)))


def write_reduce(call: CCall, _: Offer, c: CWriter) -> None:
    op, compute = call.op_as(Reduce), _compute_type(call)
    assert compute is not None
    x, y = reader(call, 0, compute), writer(call, compute)
    _write_folded(call, c, op, x, y, lambda first: _fold(call, op, compute, y, first))


def _compute_type(site: Site) -> ComputeType | None:
    """The largest and least of stored integers is one of them."""
    op, compute = site.op_as(Reduce), compute_type(site)
    is_raw = op.kind in _EXTREMES and site.inputs[0].tensor.quant == site.result.quant
    is_integer = not site.result.dtype.is_float and not site.inputs[0].tensor.dtype.is_float
    return ComputeType.RAW if compute is not None and is_raw and is_integer else compute


def _write_folded(
    call: CCall, c: CWriter, op: Reduce, x: LoopOperand, y: LoopOperand, fold_of: Callable[[str], Fold]
) -> None:
    """One output element after the other, each from all that it is made of."""
    reduced = {axis % len(call.shapes[0]) for axis in op.axes}
    spans: Bounds = [(0, size) if i in reduced else (0, 1) for i, size in enumerate(call.shapes[0])]
    with c.block():
        x, y = pointed(c, x, "px"), pointed(c, y, "py", written=True)
        with loops(c, call.region) as at, c.block():
            start = _source(at, [0] * len(spans), reduced, op.keep)
            fold = fold_of(x.value((x.place.offset(start),)))
            c.line(f"{fold.ctype} total = {fold.start};")
            with _each_source(c, x, start, spans) as from_:
                value = x.value((x.place.offset(_source(at, from_, reduced, op.keep)),)) if from_ else _pointed_at(x)
                c.line(f"const {fold.ctype} v = {value};")
                c.line(fold.step)
            c.line(f"{y.place.pointer}[{y.place.offset(at)}] = {fold.end};")


@contextmanager
def _each_source(c: CWriter, x: LoopOperand, start: Sequence[Expr], spans: Bounds) -> Iterator[tuple[Expr, ...]]:
    """Loops over what an output is made of: indices, or along one axis the pointer `from`, which compilers keep."""
    long = [axis for axis, (low, high) in enumerate(spans) if not is_single(low, high)]
    if len(long) != 1 or x.place.window:
        with loops(c, spans, "k") as inner, c.block():
            yield inner
        return
    (axis,) = long
    c.line(f"const {x.place.ctype} *from = {advanced(x.place.pointer, x.place.offset(start))};")
    with c.block(f"for (int32_t k = {spans[axis][1]}; k > 0; k--, from += {x.place.strides[axis]})"):
        yield ()


def _pointed_at(x: LoopOperand) -> str:
    return x.at(replace(x.place, pointer="from")).value((0,))


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


def _fold(call: CCall, op: Reduce, compute: ComputeType, y: LoopOperand, first: str) -> Fold:
    if op.kind in _EXTREMES:
        sign = ">" if op.kind is ReduceKind.MAX else "<"
        ctype = (
            "float"
            if compute is ComputeType.REAL
            else call.inputs[0].ctype
            if compute is ComputeType.RAW
            else "int64_t"
        )
        return Fold(ctype, first, f"total = v {sign} total ? v : total;", y.stored("total"))
    count = call.inputs[0].tensor.size // max(1, call.result.size)
    return _whole_fold(call, op, y, count) if compute is ComputeType.WHOLE else _real_fold(call, op, y, count)


def _real_fold(call: CCall, op: Reduce, y: LoopOperand, count: int) -> Fold:
    """In double where that costs nothing, or where a last bit decides what is stored."""
    ctype = "double" if call.target.family is Family.SIMD or call.is_quantised else "float"
    suffix = "" if ctype == "double" else "f"
    if op.kind is ReduceKind.L2:
        call.use("math_functions")
    ends = {
        ReduceKind.MEAN: f"total / {number(count, 'float64' if ctype == 'double' else 'float32')}",
        ReduceKind.L2: "ew_root(total)" if ctype == "double" else "sqrtf(total)",
    }
    end = ends.get(op.kind, "total")
    real = end if ctype == "float" else f"(float)({end})"
    return Fold(ctype, f"{_first(op)}.0{suffix}", _STEPS[op.kind], y.stored(real))


def _whole_fold(call: CCall, op: Reduce, y: LoopOperand, count: int) -> Fold:
    """Sums wrap as numpy's do; a mean and a root are cut towards zero."""
    call.use("whole")
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


def is_pooled(site: Site) -> bool:
    """Whether it is onnxruntime's QLinearGlobalAveragePool."""
    op = site.op_as(Reduce)
    is_plain = is_byte(site.inputs[0].tensor) and is_byte(site.result)
    over_image = len(site.shapes[0]) == 4 and {axis % 4 for axis in op.axes} == {1, 2}
    return is_plain and over_image and op.kind is ReduceKind.MEAN and site.arithmetic is not Arithmetic.TFLITE


def pooled(call: CCall, y: LoopOperand) -> Fold:
    """An integer sum, scaled once."""
    start, scale = image_mean(call)
    return Fold("int32_t", str(start), "total += v;", y.rounded(f"(float)total * {number(scale)}"))


def write_arg_max(call: CCall, _: Offer, c: CWriter) -> None:
    """The first of several equal elements, or the last; what is stored is compared."""
    op = call.op_as(ArgMax)
    is_real = call.inputs[0].tensor.dtype.is_float
    x = reader(call, 0, ComputeType.REAL if is_real else ComputeType.RAW)
    rank = len(call.shapes[0])
    axis = op.axes[0] % rank
    sign = ("<" if op.least else ">") + ("=" if op.last else "")
    with c.block():
        x = pointed(c, x, "px")
        y = pointed(c, writer(call, ComputeType.RAW), "py", written=True)
        with loops(c, call.region) as at, c.block():

            def value(k: Expr) -> str:
                source = _source(at, [k if i == axis else 0 for i in range(rank)], {axis}, op.keep)
                return x.value((x.place.offset(source),))

            c.line(f"{'float' if is_real else x.place.ctype} best = {value(0)};")
            c.line("int32_t found = 0;")
            rest = f"for (int32_t k = 1; k < {call.shapes[0][axis]}; k++)"
            with c.block(rest), c.block(f"if ({value('k')} {sign} best)"):
                c.line(f"best = {value('k')};")
                c.line("found = k;")
            c.line(f"{y.place.pointer}[{y.place.offset(at)}] = ({y.place.ctype})found;")


def write_top_k(call: CCall, _: Offer, c: CWriter) -> None:
    """Each is the best of those that come after the one before: a pass over the line for each, and no scratch."""
    op = call.op_as(TopK)
    is_real = call.inputs[0].tensor.dtype.is_float
    x = reader(call, 0, ComputeType.REAL if is_real else ComputeType.RAW)
    axis = op.axis % len(call.region)
    first, last = call.region[axis]
    better, worse = ("<", ">") if op.least else (">", "<")
    with c.block():
        x = pointed(c, x, "px")
        y = pointed(c, writer(call, ComputeType.RAW), "py", written=True)
        with loops(c, [(0, 1) if i == axis else b for i, b in enumerate(call.region)]) as at, c.block():

            def along(k: Expr) -> tuple[Expr, ...]:
                return (*at[:axis], k, *at[axis + 1 :])

            ctype = "float" if is_real else x.place.ctype
            c.line(f"{ctype} before = 0;")
            c.line("int32_t taken = -1;")
            with c.block(f"for (int32_t j = 0; j < {last}; j++)"):
                c.line(f"{ctype} best = 0;")
                c.line("int32_t found = -1;")
                with c.block(f"for (int32_t k = 0; k < {call.shapes[0][axis]}; k++)"):
                    c.line(f"const {ctype} v = {x.value((x.place.offset(along('k')),))};")
                    free = f"taken < 0 || v {worse} before || (v == before && k > taken)"
                    with c.block(f"if (({free}) && (found < 0 || v {better} best))"):
                        c.line("best = v;")
                        c.line("found = k;")
                c.line("before = best;")
                c.line("taken = found < 0 ? 0 : found;")
                with c.block(f"if (j >= {first})"):
                    c.line(f"{y.place.pointer}[{y.place.offset(along('j'))}] = ({y.place.ctype})taken;")


def offers_boxes(site: Site) -> Iterator[Offer]:
    """All at once, into the output; parts of it are copied from a list of all."""
    if all(place.tensor.dtype is DType.FLOAT32 for place in site.inputs) and site.result.dtype is DType.INT32:
        is_whole = site.most == site.result.shape and site.output.strides == (1,)
        yield Offer() if is_whole else Offer.of(4 * site.result.size)


def write_boxes(call: CCall, offer: Offer, c: CWriter) -> None:
    op, (boxes, scores) = call.op_as(NonMaxSuppression), call.inputs
    call.use("boxes")
    with c.block():
        found = call.scratch(c, "int32_t", op.count, "found") if offer.scratch else call.output.pointer
        c.line(f"const ew_boxes boxes = {{{call.place(0).pointer}, {boxes.strides[0]}, {boxes.strides[1]}}};")
        limits = f"{number(op.score_threshold)}, {number(op.iou_threshold)}"
        given = f"{call.place(1).pointer}, {scores.strides[0]}, {call.shapes[1][0]}"
        c.line(f"ew_select_boxes(&boxes, {given}, {limits}, {op.count}, {found});")
        if offer.scratch:
            with loops(c, call.region) as (i,):
                c.line(f"{call.output.pointer}[{call.output.offset((i,))}] = {found}[{i}];")


POOLED_MEAN = Kernel("mean_qlinear", (Reduce,), where(is_pooled), write_pooled)
REDUCE = Kernel("loops_reduce", (Reduce,), where(suits_reduce), write_reduce)
ARG_MAX = Kernel("arg_max", (ArgMax,), anywhere, write_arg_max)
TOP_K = Kernel("top_k", (TopK,), anywhere, write_top_k)
BOXES = Kernel("select_boxes", (NonMaxSuppression,), offers_boxes, write_boxes, stack=1 << 14)
