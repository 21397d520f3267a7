"""Fronts as SVG: buffer size against period, with steps and labels; map size against code size and accesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from .. import text
from ..dataflow.buffers.schedule import Weight
from ..dataflow.speed.pareto import Pareto, Point
from ..hal.layout.front import FrontPoint
from .charts import Axis, exact, grid, opening

LEFT, RIGHT, TOP, FOOT = 84.0, 30.0, 26.0, 52.0  # px
LETTER = 6.2  # px, the mean width of a letter, generously


def pareto_svg(
    front: Pareto, weight: Weight, *, unit: str = "", width: int = 860, height: int = 420, standalone: bool = True
) -> str:
    """The front as one SVG element; `standalone` brings style and background, which a page has already."""
    return "".join(_ParetoPlot(front, weight, unit, width, height).lines(standalone))


class _ParetoPlot:
    def __init__(self, front: Pareto, weight: Weight, unit: str, width: int, height: int) -> None:
        self.front, self.weight, self.unit = front, weight, unit
        self.width, self.height = width, height
        shown = [*front.points, *([front.next] if front.next else [])]
        sizes = [self._size(point) for point in shown] or [0]
        margin = max(1.0, 0.06 * (max(sizes) - min(sizes)))
        self.x = Axis(min(sizes) - margin, max(sizes) + margin, LEFT, width - RIGHT)
        periods = [float(point.period) for point in shown] + [float(front.best_period)]
        low, high = min(periods), max(periods)
        low = 0.0 if low <= 0.5 * high else low - 0.15 * (high - low or high or 1)
        self.y = Axis(low, high + 0.08 * (high - low or 1), height - FOOT, TOP)

    def lines(self, standalone: bool) -> Iterator[str]:
        yield from opening("front", self.width, self.height, "buffer size against period", standalone)
        unit = f", {escape(self.unit)}" if self.unit else ""
        titles = f"total of all channels, {self.weight}", f"time per iteration{unit}"
        yield from grid(self.x, self.y, titles, is_shown=float.is_integer)  # there are no halves of a token
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
        """The period that each size allows: it stays until a size that allows a shorter one."""
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
        free = LEFT  # to the right of the last label
        for point in self.front.points:
            label = exact(point.period)
            x = self.x.at(self._size(point))
            has_room = x + 6 >= free and x + 6 + LETTER * len(label) < self.width
            yield from self._point(point, "point", label if has_room else "")
            free = x + 12 + LETTER * len(label) if has_room else free
        if self.front.next is not None:
            yield from self._point(self.front.next, "point open", f"{exact(self.front.next.period)}, not proven")

    def _point(self, point: Point, style: str, label: str) -> Iterator[str]:
        x, y = self.x.at(self._size(point)), self.y.at(point.period)
        told = f"{text.plural(point.tokens, 'token')}, {text.size(point.bytes)}\n"
        told += f"period {exact(point.period)} {self.unit}"
        yield f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{escape(told.rstrip())}</title></circle>'
        if label:
            yield f'<text class="value" x="{x + 6:.1f}" y="{y - 7:.1f}">{escape(label)}</text>'


LEFT, TOP, FOOT, PLOT, HEIGHT = 62.0, 26.0, 46.0, 400.0, 280.0  # px


def layout_plot_svg(front: Sequence[FrontPoint], *, standalone: bool = True) -> str:
    """Two plots side by side in one SVG element."""
    width = 2 * (LEFT + PLOT + 20)
    lines = [*opening("front", width, HEIGHT, "map size against code and accesses", standalone)]
    lines += _plot(front, [point.code for point in front], "estimated code, bytes", LEFT)
    lines += _plot(front, [point.accesses for point in front], "estimated accesses", 2 * LEFT + PLOT + 20)
    return "".join([*lines, "</svg>"])


def _plot(front: Sequence[FrontPoint], values: Sequence[int], title: str, left: float) -> Iterator[str]:
    sizes = [point.map_bytes for point in front]
    x = _axis(sizes, left, left + PLOT)
    y = _axis(values, HEIGHT - FOOT, TOP)
    for value, label in x.ticks(7):
        yield f'<path class="grid" d="M{x.at(value):.1f} {TOP:g}V{HEIGHT - FOOT:g}"/>'
        yield f'<text class="middle" x="{x.at(value):.1f}" y="{HEIGHT - FOOT + 16:g}">{label}</text>'
    for value, label in y.ticks(6):
        yield f'<path class="grid" d="M{left:g} {y.at(value):.1f}H{left + PLOT:g}"/>'
        yield f'<text class="end" x="{left - 6:g}" y="{y.at(value) + 4:.1f}">{label}</text>'
    yield f'<text class="middle" x="{left + PLOT / 2:g}" y="{HEIGHT - 8:g}">register map, bytes</text>'
    yield f'<text class="name" x="{left:g}" y="{TOP - 10:g}">{title}</text>'
    for size, value in zip(sizes, values, strict=True):
        told = f"<title>map {size:,} B, {title}: {value:,}</title>"
        yield f'<circle class="point" cx="{x.at(size):.1f}" cy="{y.at(value):.1f}" r="4.5">{told}</circle>'


def _axis(values: Sequence[int], start: float, end: float) -> Axis:
    margin = max(1.0, 0.08 * (max(values) - min(values)))
    return Axis(min(values) - margin, max(values) + margin, start, end)
