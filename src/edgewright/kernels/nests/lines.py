"""Operators along an axis: softmax and normalisations. Each line is read once for its sum or maximum, then written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ...network import DType
from ...network.operators import L2Normalize, LogSoftmax, Lrn, Softmax
from ..call import CCall
from ..kernel import Kernel, Offer, where
from ..printing.constants import number
from ..printing.nest import Bounds, loops
from ..printing.source import CWriter, Expr, at_least, at_most, plus
from ..site import Site
from .values import ComputeType, LoopOperand, compute_type, has_scales, pointed, reader, writer

Element = Callable[[Expr], str]  # index along the line -> C expression of the input element, a float
Survey = Callable[[CWriter, Element, int], None]  # declares what all elements of a line share


def suits(site: Site) -> bool:
    """Real numbers, unless TFLite's own rules apply, or each channel has a scale of its own."""
    return compute_type(site) is not None and not has_scales(site.inputs[0].tensor) and not has_scales(site.result)


def suits_terms(site: Site) -> bool:
    """For float outputs and whole lines: exponentials are kept in the output until their sum is known."""
    op, last = site.op_as(Softmax), len(site.most) - 1
    is_whole = op.axis % len(site.most) == last and site.bounds[last] == (0, site.shapes[0][last])
    return is_whole and site.result.dtype is DType.FLOAT32 and suits(site)


def _raised(op: Softmax) -> Callable[[str], str]:
    return _exponential("" if op.beta == 1 else f" * {number(op.beta)}")


def write_terms(call: CCall, _: Offer, c: CWriter) -> None:
    """Writes all exponentials first, each computed once, and then divides them by their sum."""
    op, span = call.op_as(Softmax), [(0, call.shapes[0][-1])]
    raised = _raised(op)
    with _opened(call, c) as (x, y), loops(c, call.region[:-1], backward=call.is_backward) as at, c.block():
        c.line(f"float most = {_at(x, (*at, 0))}, sum = 0.0f;")
        with loops(c, span, "k") as (k,):
            c.line(f"most = ew_maximum(most, {_at(x, (*at, k))});")
        with loops(c, span, "k") as (k,), c.block():
            c.line(f"const float v = {raised(_at(x, (*at, k)))};")
            y.store(c, "v", (y.place.offset((*at, k)),))
            c.line("sum += v;")
        with loops(c, span, "k") as (k,):
            y.store(c, f"{_at(y, (*at, k))} / sum", (y.place.offset((*at, k)),))


def write_softmax(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(Softmax)
    raised = _raised(op)
    _write_lines(call, c, op.axis, _sum_of(raised), lambda x: f"{raised(x)} / sum")


def write_log_softmax(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(LogSoftmax)

    def survey(c: CWriter, x: Element, size: int) -> None:
        _sum_of(_exponential(""))(c, x, size)
        c.line("const float whole = logf(sum);")

    _write_lines(call, c, op.axis, survey, lambda x: f"{x} - most - whole")


def write_l2_normalize(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(L2Normalize)

    def survey(c: CWriter, x: Element, size: int) -> None:
        c.line("float sum = 0.0f;")
        with loops(c, [(0, size)], "k") as (k,):
            c.line(f"sum += ew_square({x(k)});")
        c.line(f"const float norm = ew_at_least(sqrtf(sum), {number(op.epsilon)});")

    _write_lines(call, c, op.axis, survey, lambda x: f"{x} / norm")


def write_lrn(call: CCall, _: Offer, c: CWriter) -> None:
    op, size = call.op_as(Lrn), call.shapes[0][-1]
    with _opened(call, c) as (x, y), loops(c, call.region, backward=call.is_backward) as at:
        channel = at[-1]
        first = at_least(plus(channel, -((op.size - 1) // 2)), 0)
        last = at_most(plus(channel, op.size // 2 + 1), size)
        c.line("float sum = 0.0f;")
        with c.block(f"for (int32_t k = {first}; k < {last}; k++)"):
            c.line(f"sum += ew_square({_at(x, (*at[:-1], 'k'))});")
        base = f"{number(op.bias)} + {number(op.alpha / op.size)} * sum"
        y.store(c, f"{_at(x, at)} / powf({base}, {number(op.beta)})", (y.place.offset(at),))


def _exponential(factor: str) -> Callable[[str], str]:
    """C of exp(element - largest element), which never overflows."""
    return lambda x: f"expf(({x} - most){factor})"


def _sum_of(raised: Callable[[str], str]) -> Survey:
    """`most`, the largest element, and `sum`, that of the exponentials."""

    def survey(c: CWriter, x: Element, size: int) -> None:
        c.line(f"float most = {x(0)}, sum = 0.0f;")
        with loops(c, [(0, size)], "k") as (k,):
            c.line(f"most = ew_maximum(most, {x(k)});")
        with loops(c, [(0, size)], "k") as (k,):
            c.line(f"sum += {raised(x(k))};")

    return survey


def _at(operand: LoopOperand, at: Sequence[Expr]) -> str:
    return operand.value((operand.place.offset(at),))


@contextmanager
def _opened(call: CCall, c: CWriter) -> Iterator[tuple[LoopOperand, LoopOperand]]:
    """Real numbers in and out, behind local pointers."""
    call.use("math_functions")
    x, y = reader(call, 0, ComputeType.REAL), writer(call, ComputeType.REAL)
    with c.block():
        yield pointed(c, x, "px"), pointed(c, y, "py", written=True)


def _write_lines(call: CCall, c: CWriter, axis: int, survey: Survey, formula: Callable[[str], str]) -> None:
    """Line by line. Lines across shared pixels are surveyed again for every element: all must be read in order."""
    axis %= len(call.region)
    crossing = axis != len(call.region) - 1 and call.shares()
    outer: Bounds = [b if i != axis or crossing else (0, 1) for i, b in enumerate(call.region)]
    with _opened(call, c) as (x, y), loops(c, outer, backward=call.is_backward) as at, c.block():
        survey(c, lambda k: _at(x, (*at[:axis], k, *at[axis + 1 :])), call.shapes[0][axis])
        span = (at[axis], plus(at[axis], 1)) if crossing else call.region[axis]
        with loops(c, [span], "k") as (k,):
            here = (*at[:axis], k, *at[axis + 1 :])
            y.store(c, formula(_at(x, here)), (y.place.offset(here),))


SOFTMAX_TERMS = Kernel("softmax_kept_terms", (Softmax,), where(suits_terms), write_terms)
SOFTMAX = Kernel("loops_softmax", (Softmax,), where(suits), write_softmax)
LOG_SOFTMAX = Kernel("loops_log_softmax", (LogSoftmax,), where(suits), write_log_softmax)
L2_NORMALIZE = Kernel("loops_l2_normalize", (L2Normalize,), where(suits), write_l2_normalize)
LRN = Kernel("lrn", (Lrn,), where(suits), write_lrn)
