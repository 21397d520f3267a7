"""The picture of a register map's size against code and bus accesses: two charts, one below the other, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from edgewright.report.charts import Axis, opening

WIDTH, HEIGHT = 860.0, 300.0  # px, of one chart
LEFT, RIGHT, TOP, FOOT = 84.0, 40.0, 30.0, 52.0
CLEAR = 26.0, 13.0  # px around a figure, across and up


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A layout, compiled and run."""

    map_bytes: int
    code: int
    accesses: int


def front_svg(points: Sequence[Point], conventional: Point) -> str:
    """Code and accesses over the size of the map, with the conventional driver as a line to be below."""
    charts = (
        _Chart(points, conventional, "code, bytes", lambda point: point.code, 0.0),
        _Chart(points, conventional, "bus accesses", lambda point: point.accesses, HEIGHT),
    )
    lines = list(opening("front", WIDTH, 2 * HEIGHT, "code and accesses against the register map", True))
    return "".join([*lines, *(line for chart in charts for line in chart.lines()), "</svg>\n"])


class _Chart:
    def __init__(
        self, points: Sequence[Point], fixed: Point, name: str, figure: Callable[[Point], int], top: float
    ) -> None:
        self.points, self.fixed, self.name, self.figure, self.top = points, fixed, name, figure, top
        sizes = [point.map_bytes for point in (*points, fixed)]
        values = [figure(point) for point in (*points, fixed)]
        margin = 0.12 * (max(values) - min(values) or 1)
        self.x = Axis(0, 1.06 * max(sizes), LEFT, WIDTH - RIGHT)
        self.y = Axis(max(0, min(values) - margin), max(values) + margin, top + HEIGHT - FOOT, top + TOP)

    def lines(self) -> Iterator[str]:
        yield from self._grid()
        yield from self._conventional()
        yield from self._steps()
        labelled: list[tuple[float, float]] = []
        for point in self.points:
            yield from self._point(point, labelled)

    def _grid(self) -> Iterator[str]:
        floor = self.y.start
        for value, label in self.x.ticks(8):
            x = self.x.at(value)
            yield f'<path class="grid" d="M{x:.1f} {self.y.end:g}V{floor + 4:g}"/>'
            yield f'<text class="tick middle" x="{x:.1f}" y="{floor + 18:g}">{label}</text>'
        for value, label in self.y.ticks(5):
            y = self.y.at(value)
            yield f'<path class="grid" d="M{LEFT:g} {y:.1f}H{self.x.end:g}"/>'
            yield f'<text class="tick end" x="{LEFT - 8:g}" y="{y + 4:.1f}">{label}</text>'
        across, middle = (LEFT + self.x.end) / 2, (self.y.start + self.y.end) / 2
        yield f'<text class="middle" x="{across:.0f}" y="{floor + 38:g}">register map, bytes</text>'
        yield f'<text class="middle" transform="translate(16 {middle:.0f}) rotate(-90)">{self.name}</text>'

    def _conventional(self) -> Iterator[str]:
        x, y = self.x.at(self.fixed.map_bytes), self.y.at(self.figure(self.fixed))
        yield f'<path class="best" d="M{LEFT:g} {y:.1f}H{self.x.end:g}"/>'
        told = f"conventional: {self.figure(self.fixed)} with {self.fixed.map_bytes} bytes"
        yield f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{told}</title></circle>'
        yield f'<text class="best end" x="{self.x.end:g}" y="{y - 6:.1f}">{told}</text>'

    def _steps(self) -> Iterator[str]:
        """The least figure for each size of the map: it stays until a larger map lowers it."""
        least, path = float("inf"), ""
        for point in sorted(self.points):
            if self.figure(point) < least:
                least = self.figure(point)
                x, y = self.x.at(point.map_bytes), self.y.at(least)
                path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
        if path:
            yield f'<path class="front" d="{path}H{self.x.end:g}"/>'

    def _point(self, point: Point, labelled: list[tuple[float, float]]) -> Iterator[str]:
        """A dot, and its figure where no other stands in the way."""
        x, y = self.x.at(point.map_bytes), self.y.at(self.figure(point))
        told = f"{point.map_bytes} bytes: {self.figure(point)}"
        yield f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{told}</title></circle>'
        if all(abs(x - a) > CLEAR[0] or abs(y - b) > CLEAR[1] for a, b in labelled):
            labelled.append((x, y))
            yield f'<text class="value" x="{x + 8:.1f}" y="{y - 8:.1f}">{self.figure(point)}</text>'
