"""Copies from one strided tensor to another; by memcpy where nothing is shared or converted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...network import Arithmetic, DType
from ..call import CCall, CTensor
from ..printing.nest import Bounds, elements, joined_axes, loops
from ..printing.source import CWriter, Expr, advanced, at_least, at_most, offset, plus, times
from ..site import Site
from ..strided_tensor import Route
from .values import ComputeType, LoopOperand, pointed, reader, writer

Index = Callable[[Sequence[Expr]], Sequence[Expr]]  # indices of the output -> those of the input


def can_carry(site: Site, which: int = 0) -> bool:
    """Whether elements of input `which` can be converted to those of the output by a copy."""
    x, y = site.inputs[which].tensor, site.result
    if _keeps_bytes(site, which):
        return True
    if site.arithmetic is Arithmetic.TFLITE:
        return x.dtype is not DType.UINT8
    return not any(t.quant is not None and t.quant.is_per_channel for t in (x, y))


def _keeps_bytes(site: Site, which: int) -> bool:
    """Whether a stored value means the same in the output, so that bytes can be copied."""
    return site.inputs[which].tensor.quant == site.result.quant or not site.is_quantised


def is_raw(site: Site, which: int = 0) -> bool:
    """Whether what is stored passes through."""
    return _keeps_bytes(site, which) or site.arithmetic is Arithmetic.TFLITE


def carried(call: CCall, which: int = 0) -> tuple[LoopOperand, LoopOperand]:
    """How elements of input `which` are read, and how they are written to the output."""
    assert can_carry(call, which), call.layer
    compute = ComputeType.RAW if is_raw(call, which) else ComputeType.REAL
    return reader(call, which, compute), writer(call, compute)


@dataclass(frozen=True)
class Copy:
    """A copy of elements from one tensor into another."""

    call: CCall
    c: CWriter
    x: LoopOperand
    y: LoopOperand

    @property
    def in_runs(self) -> bool:
        """Whether bytes may be copied as they are, in any order."""
        return self.x.compute is ComputeType.RAW and not self.x.place.meets(self.y.place)

    def element(self, source: Expr, target: Expr) -> None:
        self.y.store(self.c, self.x.value((source,)), (target,))

    def nest(self, bounds: Bounds, source: Route, target: Route) -> None:
        """One loop nest over both tensors, where each axis has a fixed stride in both."""
        x, y = folded(self.x.place, source, len(bounds)), folded(self.y.place, target, len(bounds))
        if x is None or y is None:
            with loops(self.c, bounds, backward=self.call.is_backward) as at:
                self.element(*(_offset(p.place, r, at) for p, r in ((self.x, source), (self.y, target))))
            return
        straight = Copy(self.call, self.c, self.x.at(x), self.y.at(y))
        if not (self.in_runs and straight.runs(bounds)):
            with elements(self.c, bounds, [x, y], backward=self.call.is_backward) as ((a, b), _):
                straight.element(a, b)

    def runs(self, bounds: Bounds) -> bool:
        """As a nest of memcpy, where the innermost axis is dense in both and has a known length."""
        spans, strides, windows = joined_axes(list(bounds), [self.x.place, self.y.place])
        last = len(spans) - 1
        if not spans or any(steps[last] != 1 for steps in strides) or any(w and w[0] == last for w in windows):
            return False
        low, high = spans[last]
        if not isinstance(low, int) or not isinstance(high, int):
            return False
        with loops(self.c, spans[:last]) as at:
            x, y = (offset((*at, low), *way) for way in zip(strides, windows, strict=True))
            self.run(x, y, high - low)
        return True

    def line(self, source: Sequence[Expr], target: Sequence[Expr], span: tuple[Expr, Expr], ahead: Expr = 0) -> None:
        """Copies adjacent elements along the last axis; the source starts `ahead` elements further.

        No element may be written where another one of the line is still to be read.
        """
        low, high = span
        x, y = self.x.place, self.y.place
        is_dense = self.x.compute is ComputeType.RAW and x.strides[-1] == y.strides[-1] == 1
        if is_dense and isinstance(low, int) and isinstance(high, int):
            self.run(x.offset((*source, plus(ahead, low))), y.offset((*target, low)), high - low)
            return
        with loops(self.c, [span], "k") as (k,):
            self.element(x.offset((*source, plus(ahead, k))), y.offset((*target, k)))

    def run(self, source: Expr, target: Expr, count: int) -> None:
        size = count * self.y.tensor.dtype.bytes
        self.c.line(
            f"memcpy({advanced(self.y.place.pointer, target)}, {advanced(self.x.place.pointer, source)}, {size});"
        )


def folded(place: CTensor, route: Route, rank: int) -> CTensor | None:
    """The tensor as a loop nest of `rank` axes sees it, one stride each; None where a rolling window prevents that."""
    found = place.along(route, rank)
    if found is None or not found[1]:
        return found[0] if found else None
    return replace(found[0], pointer=f"({advanced(place.pointer, found[1])})")


def _offset(place: CTensor, route: Route, at: Sequence[Expr]) -> Expr:
    indices = [first if loop is None else plus(times(at[loop], step), first) for loop, first, step in route]
    return place.offset(indices)


def straight(rank: int) -> list[tuple[int | None, int, int]]:
    """The route in which loop i runs along axis i."""
    return [(axis, 0, 1) for axis in range(rank)]


@contextmanager
def open_copy(call: CCall, c: CWriter, which: int = 0) -> Iterator[Copy]:
    """The copy of an input into the output, behind local pointers."""
    x, y = carried(call, which)
    with c.block():
        yield Copy(call, c, pointed(c, x, "px"), pointed(c, y, "py", written=True))


def looked_up(call: CCall, c: CWriter, index: Index) -> None:
    """A copy in which `index` gives the source element of each output element."""
    with open_copy(call, c) as copy, loops(c, call.region, backward=call.is_backward) as at:
        copy.element(copy.x.place.offset(index(at)), copy.y.place.offset(at))


def shifted(span: tuple[Expr, Expr], by: int, size: int) -> tuple[Expr, Expr]:
    """The interval moved and cut to 0..size."""
    low, high = (plus(value, by) for value in span)
    return at_least(low, 0), at_most(high, size)
