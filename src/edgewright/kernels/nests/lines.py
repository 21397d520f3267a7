"""Along an axis: softmax and normalisations; each line is gone over first, then written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ...network import DType
from ...network.operators import L2Normalize, LogSoftmax, Lrn, Softmax
from ..call import Call as Site
from ..printing.constants import number
from ..printing.nest import Bounds, loops
from ..printing.source import Expr, Source, plus
from .reductions import arg_max, reduce
from .values import Stream, World, pointed, reader, world_of, writer

__all__ = ["arg_max", "l2_normalize", "log_softmax", "lrn", "reduce", "softmax"]

Element = Callable[[Expr], str]  # index along the line -> C expression of the input element, a float
Survey = Callable[[Source, Element, int], None]  # declares what all elements of a line share


def softmax(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Softmax)
    raised = _exponential("" if op.beta == 1 else f" * {number(op.beta)}")
    if _keeps_terms(site, op.axis):
        return _softmax_in_two(site, c, raised)
    return _lines(site, c, op.axis, _sum_of(raised), lambda x: f"{raised(x)} / sum")


def _keeps_terms(site: Site, axis: int) -> bool:
    """Whether exponentials can wait in the output for their sum: floats, whole lines, one after the other."""
    is_last = axis % len(site.region) == len(site.region) - 1
    return is_last and site.region[-1] == (0, site.shapes[0][-1]) and site.result.dtype is DType.FLOAT32


def _softmax_in_two(site: Site, c: Source, raised: Callable[[str], str]) -> bool:
    """Exponentials first, each once; then their share."""
    pair = _opened(site)
    if pair is None:
        return False
    span: Bounds = [(0, site.shapes[0][-1])]
    with _block(c, pair) as (x, y), loops(c, site.region[:-1], backward=site.is_backward) as at, c.block():
        c.line(f"float most = {_at(x, (*at, 0))}, sum = 0.0f;")
        with loops(c, span, "k") as (k,):
            c.line(f"most = ew_maximum(most, {_at(x, (*at, k))});")
        with loops(c, span, "k") as (k,), c.block():
            c.line(f"const float v = {raised(_at(x, (*at, k)))};")
            y.store(c, "v", (y.place.offset((*at, k)),))
            c.line("sum += v;")
        with loops(c, span, "k") as (k,):
            y.store(c, f"{_at(y, (*at, k))} / sum", (y.place.offset((*at, k)),))
    return True


def log_softmax(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, LogSoftmax)

    def survey(c: Source, x: Element, size: int) -> None:
        _sum_of(_exponential(""))(c, x, size)
        c.line("const float whole = logf(sum);")

    return _lines(site, c, op.axis, survey, lambda x: f"{x} - most - whole")


def l2_normalize(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, L2Normalize)

    def survey(c: Source, x: Element, size: int) -> None:
        c.line("float sum = 0.0f;")
        with loops(c, [(0, size)], "k") as (k,):
            c.line(f"sum += ew_square({x(k)});")
        c.line(f"const float norm = ew_at_least(sqrtf(sum), {number(op.epsilon)});")

    return _lines(site, c, op.axis, survey, lambda x: f"{x} / norm")


def lrn(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Lrn)
    pair = _opened(site)
    if pair is None:
        return False
    size = site.shapes[0][-1]
    with _block(c, pair) as (x, y), loops(c, site.region, backward=site.is_backward) as at:
        channel = at[-1]
        first = _limited("ew_max", plus(channel, -((op.size - 1) // 2)), 0)
        last = _limited("ew_min", plus(channel, op.size // 2 + 1), size)
        c.line("float sum = 0.0f;")
        with c.block(f"for (int32_t k = {first}; k < {last}; k++)"):
            c.line(f"sum += ew_square({_at(x, (*at[:-1], 'k'))});")
        base = f"{number(op.bias)} + {number(op.alpha / op.size)} * sum"
        y.store(c, f"{_at(x, at)} / powf({base}, {number(op.beta)})", (y.place.offset(at),))
    return True


def _limited(function: str, value: Expr, limit: int) -> Expr:
    if isinstance(value, int):
        return max(value, limit) if function == "ew_max" else min(value, limit)
    return f"{function}({value}, {limit})"


def _exponential(factor: str) -> Callable[[str], str]:
    """Of an element less the largest, so that none overflows."""
    return lambda x: f"expf(({x} - most){factor})"


def _sum_of(raised: Callable[[str], str]) -> Survey:
    """`most`, the largest element, and `sum`, that of the exponentials."""

    def survey(c: Source, x: Element, size: int) -> None:
        c.line(f"float most = {x(0)}, sum = 0.0f;")
        with loops(c, [(0, size)], "k") as (k,):
            c.line(f"most = ew_maximum(most, {x(k)});")
        with loops(c, [(0, size)], "k") as (k,):
            c.line(f"sum += {raised(x(k))};")

    return survey


def _at(stream: Stream, at: Sequence[Expr]) -> str:
    return stream.value((stream.place.offset(at),))


def _opened(site: Site) -> tuple[Stream, Stream] | None:
    """Real numbers in and out; None where TFLite's own rules apply, or each channel has a scale of its own."""
    site.use("math_functions")
    x, y = reader(site, 0, World.REAL), writer(site, World.REAL)
    return None if world_of(site) is None or len(x.places) > 1 or len(y.places) > 1 else (x, y)


@contextmanager
def _block(c: Source, pair: tuple[Stream, Stream]) -> Iterator[tuple[Stream, Stream]]:
    with c.block():
        yield pointed(c, pair[0], "px"), pointed(c, pair[1], "py", written=True)


def _lines(site: Site, c: Source, axis: int, survey: Survey, formula: Callable[[str], str]) -> bool:
    """Line by line. Lines across shared pixels are surveyed anew for every element: all must be read in order."""
    pair = _opened(site)
    if pair is None:
        return False
    axis %= len(site.region)
    whole = site.region[axis]
    crossing = axis != len(site.region) - 1 and site.shares()
    outer: Bounds = [b if i != axis or crossing else (0, 1) for i, b in enumerate(site.region)]
    with _block(c, pair) as (x, y), loops(c, outer, backward=site.is_backward) as at, c.block():
        survey(c, lambda k: _at(x, (*at[:axis], k, *at[axis + 1 :])), site.shapes[0][axis])
        span = (at[axis], plus(at[axis], 1)) if crossing else whole
        with loops(c, [span], "k") as (k,):
            here = (*at[:axis], k, *at[axis + 1 :])
            y.store(c, formula(_at(x, here)), (y.place.offset(here),))
    return True
