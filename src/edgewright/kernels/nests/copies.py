"""Copying between places: strided nests, with whole runs of bytes where nothing is shared or converted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...network import Arithmetic, DType, Tensor
from ..call import Call as Site
from ..printing.nest import Bounds, elements, joined_axes, loops
from ..printing.source import Expr, Source, moved, offset, plus, times
from ..printing.tensor import CTensor as Place
from .values import Stream, World, pointed, reader, writer

Route = Sequence[tuple[int | None, int, int]]  # for each axis of a place: (axis of the nest, start, step)
Index = Callable[[Sequence[Expr]], Sequence[Expr]]  # indices of the output -> those of the input


def carriers(site: Site, which: int = 0) -> tuple[Stream, Stream] | None:
    """How input `which` is read and the output written; None where the arithmetic has other rules."""
    x, y = site.inputs[which].tensor, site.result
    if x.quant == y.quant or not site.is_quantised:
        return reader(site, which, World.RAW), writer(site, World.RAW)
    if site.arithmetic is Arithmetic.TFLITE:
        return (reader(site, which, World.RAW), writer(site, World.RAW)) if x.dtype is not DType.UINT8 else None
    if any(t.quant is not None and t.quant.is_per_channel for t in (x, y)):
        return None
    return reader(site, which, World.REAL), writer(site, World.REAL)


@dataclass(frozen=True)
class Copy:
    """One tensor's elements on their way into another."""

    site: Site
    c: Source
    x: Stream
    y: Stream

    @property
    def in_runs(self) -> bool:
        """Whether bytes may be copied as they are, in any order."""
        return self.x.world is World.RAW and not self.x.place.meets(self.y.place)

    def element(self, source: Expr, target: Expr) -> None:
        self.y.store(self.c, self.x.value((source,)), (target,))

    def nest(self, bounds: Bounds, source: Route, target: Route) -> None:
        """Both places walked by one nest of loops, along routes that are straight."""
        x, y = folded(self.x.place, source, len(bounds)), folded(self.y.place, target, len(bounds))
        if x is None or y is None:
            with loops(self.c, bounds, backward=self.site.is_backward) as at:
                self.element(*(_offset(p.place, r, at) for p, r in ((self.x, source), (self.y, target))))
            return
        straight = Copy(self.site, self.c, self.x.at(x), self.y.at(y))
        if not (self.in_runs and straight.runs(bounds)):
            with elements(self.c, bounds, [x, y], backward=self.site.is_backward) as ((a, b), _):
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

    def line(
        self, source: Sequence[Expr], target: Sequence[Expr], span: tuple[Expr, Expr], ahead: Expr = 0
    ) -> None:
        """Elements side by side along the last axis; those of the input begin `ahead`.

        None of them may lie where one of the others is read.
        """
        low, high = span
        x, y = self.x.place, self.y.place
        is_dense = self.x.world is World.RAW and x.strides[-1] == y.strides[-1] == 1
        if is_dense and isinstance(low, int) and isinstance(high, int):
            self.run(x.offset((*source, plus(ahead, low))), y.offset((*target, low)), high - low)
            return
        with loops(self.c, [span], "k") as (k,):
            self.element(x.offset((*source, plus(ahead, k))), y.offset((*target, k)))

    def run(self, source: Expr, target: Expr, count: int) -> None:
        size = count * self.y.tensor.dtype.bytes
        self.c.line(
            f"memcpy({moved(self.y.place.pointer, target)}, {moved(self.x.place.pointer, source)}, {size});"
        )


def folded(place: Place, route: Route, rank: int) -> Place | None:
    """The place as a nest of `rank` axes sees it: one stride each. None where a rolling window bends the route."""
    strides, start = [0] * rank, 0
    window = None
    for axis, (loop, first, step) in enumerate(route):
        if place.window and place.window[0] == axis:
            if first or step != 1 or loop is None or strides[loop]:
                return None
            window = (loop, place.window[1])
        start += first * place.strides[axis]
        if loop is not None:
            strides[loop] += step * place.strides[axis]
    shape = tuple(2 if stride else 1 for stride in strides)  # so that no axis with a stride counts as broadcast
    tensor = Tensor(place.tensor.name, shape, place.tensor.dtype, place.tensor.quant)
    return replace(
        place,
        tensor=tensor,
        pointer=f"({moved(place.pointer, start)})" if start else place.pointer,
        strides=tuple(strides),
        window=window,
    )


def _offset(place: Place, route: Route, at: Sequence[Expr]) -> Expr:
    indices = [first if loop is None else plus(times(at[loop], step), first) for loop, first, step in route]
    return place.offset(indices)


def straight(rank: int) -> list[tuple[int | None, int, int]]:
    """The route on which loop and axis are the same."""
    return [(axis, 0, 1) for axis in range(rank)]


@contextmanager
def opened(site: Site, c: Source, which: int = 0) -> Iterator[Copy | None]:
    """The copy of an input into the output, behind local pointers."""
    pair = carriers(site, which)
    if pair is None:
        yield None
        return
    with c.block():
        x, y = pair
        yield Copy(site, c, pointed(c, x, "px"), pointed(c, y, "py", written=True))


def looked_up(site: Site, c: Source, index: Index) -> bool:
    """Every element comes from where `index` says."""
    with opened(site, c) as copy:
        if copy is None:
            return False
        with loops(c, site.region, backward=site.is_backward) as at:
            copy.element(copy.x.place.offset(index(at)), copy.y.place.offset(at))
    return True


def shifted(span: tuple[Expr, Expr], by: int, size: int) -> tuple[Expr, Expr]:
    """The interval moved and cut to 0..size."""
    low, high = (plus(value, by) for value in span)
    first = max(low, 0) if isinstance(low, int) else f"ew_max({low}, 0)"
    last = min(high, size) if isinstance(high, int) else f"ew_min({high}, {size})"
    return first, last
