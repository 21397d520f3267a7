"""Trade-offs as SVG: buffer size against period, and map size against code size and accesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from .. import text
from ..dataflow.buffers.schedule import Weight
from ..dataflow.throughput.pareto import Pareto, Point
from .charts import FOOT, LEFT, RIGHT, TOP, Axis, ChartPoint, dots, exact, grid, opening

if TYPE_CHECKING:  # which needs libclang
    from ..hal.layout.front import FrontPoint

WIDTH, HEIGHT = 860.0, 420.0  # px


def pareto_svg(front: Pareto, weight: Weight, *, unit: str = "", standalone: bool = True) -> str:
    """The front as an SVG element; `standalone` includes style and background, which a page already has."""
    return "".join(_ParetoPlot(front, weight, unit).lines(standalone))


class _ParetoPlot:
    def __init__(self, front: Pareto, weight: Weight, unit: str) -> None:
        self.front, self.weight, self.unit = front, weight, unit
        shown = [*front.points, *([front.next] if front.next else [])]
        self.x = Axis.around([self._size(point) for point in shown] or [0], LEFT, WIDTH - RIGHT)
        periods = [float(point.period) for point in shown] + [float(front.best_period)]
        low, high = min(periods), max(periods)
        low = 0.0 if low <= 0.5 * high else low - 0.15 * (high - low or high or 1)
        self.y = Axis(low, high + 0.08 * (high - low or 1), HEIGHT - FOOT, TOP)

    def lines(self, standalone: bool) -> Iterator[str]:
        yield from opening("front", WIDTH, HEIGHT, "buffer size against period", standalone)
        unit = f", {escape(self.unit)}" if self.unit else ""
        titles = f"total of all channels, {self.weight}", f"time per iteration{unit}"
        yield from grid(self.x, self.y, titles, is_shown=float.is_integer)  # tokens are whole numbers
        yield from self._best()
        yield from self._steps()
        yield from self._points()
        yield "</svg>"

    def _size(self, point: Point) -> int:
        return point.bytes if self.weight == "bytes" else point.tokens

    def _best(self) -> Iterator[str]:
        y = self.y.at(self.front.best_period)
        yield f'<path class="best" d="M{LEFT:g} {y:.1f}H{self.x.end:g}"/>'
        words_ = f"best with channels of any size: {exact(self.front.best_period)}"
        yield f'<text class="best" x="{LEFT + 8:g}" y="{y + 15:.1f}">{words_}</text>'

    def _steps(self) -> Iterator[str]:
        """The period for each size as a step function."""
        points = self.front.points
        if not points:
            return
        path = f"M{self.x.at(self._size(points[0])):.1f} {TOP:g}"
        path += "".join(f"H{self.x.at(self._size(p)):.1f}V{self.y.at(p.period):.1f}" for p in points)
        until = self.x.high if self.front.complete else min(self.x.high, self.front.proven)
        yield f'<path class="front" d="{path}H{self.x.at(until):.1f}"/>'
        if self.front.next is not None:
            last, beyond = points[-1], self.front.next
            yield (
                f'<path class="front open" d="M{self.x.at(until):.1f} {self.y.at(last.period):.1f}'
                f'H{self.x.at(self._size(beyond)):.1f}V{self.y.at(beyond.period):.1f}"/>'
            )

    def _points(self) -> Iterator[str]:
        yield from dots((self._point(point, "point", exact(point.period)) for point in self.front.points), WIDTH)
        if self.front.next is not None:
            label = f"{exact(self.front.next.period)}, not proven"
            yield from dots([self._point(self.front.next, "point open", label)], WIDTH + RIGHT)

    def _point(self, point: Point, style: str, label: str) -> ChartPoint:
        told = f"{text.plural(point.tokens, 'token')}, {text.size(point.bytes)}\n"
        told += f"period {exact(point.period)} {self.unit}"
        return ChartPoint(self.x.at(self._size(point)), self.y.at(point.period), told.rstrip(), label, style)


PLOT, PLOT_HEIGHT = 400.0, 280.0  # px, of each of two plots


def layout_plot_svg(front: Sequence[FrontPoint], *, standalone: bool = True) -> str:
    """Two plots side by side in one SVG element."""
    step = LEFT + PLOT + 20
    lines = [*opening("front", 2 * step, PLOT_HEIGHT, "map size against code and accesses", standalone)]
    lines += _plot(front, [point.code for point in front], "estimated code, bytes", LEFT)
    lines += _plot(front, [point.accesses for point in front], "estimated accesses", LEFT + step)
    return "".join([*lines, "</svg>"])


def _plot(front: Sequence[FrontPoint], values: Sequence[int], title: str, left: float) -> Iterator[str]:
    sizes = [point.map_bytes for point in front]
    x, y = Axis.around(sizes, left, left + PLOT), Axis.around(values, PLOT_HEIGHT - FOOT, TOP)
    yield from grid(x, y, ("register map, bytes", title), most=6)
    yield from dots(
        (
            ChartPoint(x.at(size), y.at(value), f"map {size:,} B, {title}: {value:,}")
            for size, value in zip(sizes, values, strict=True)
        ),
        x.end,
    )
