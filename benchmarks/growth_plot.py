"""The picture of search time against layers, both logarithmic: chains as lines, models as dots, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, floor, log10

from edgewright.report.charts import Axis, opening
from tiling_bars import LARGE_SECONDS, SECONDS

LEFT, RIGHT, TOP, FOOT = 70.0, 30.0, 26.0, 52.0  # px
STYLE = (
    "<style>.growth .c0{stroke:var(--c-one)}.growth .c1{stroke:var(--c-two)}.growth .line{fill:none;stroke-width:2}"
    ".growth .dot{fill:var(--c-paper);stroke-width:2}.growth .model{fill:var(--c-best);fill-opacity:.75}"
    ".growth .bar{stroke:var(--c-muted);stroke-dasharray:6 4}</style>"
)
Dot = tuple[int, float, str]  # layers, seconds, name


def growth_svg(curves: Mapping[str, Sequence[Dot]], dots: Sequence[Dot], *, width: int = 860, height: int = 440) -> str:
    """Chains and models as one SVG file."""
    return "".join(_Plot(curves, dots, width, height).lines()) + "\n"


class _Plot:
    def __init__(self, curves: Mapping[str, Sequence[Dot]], dots: Sequence[Dot], width: int, height: int) -> None:
        self.curves, self.dots, self.width, self.height = curves, dots, width, height
        shown = [dot for curve in (*curves.values(), dots) for dot in curve]
        layers = [log10(count) for count, _, _ in shown]
        times = [log10(seconds) for _, seconds, _ in shown]
        self.x = Axis(min(layers) - 0.1, max(layers) + 0.1, LEFT, width - RIGHT)
        self.y = Axis(floor(min(times)), max(ceil(max(times)), ceil(log10(LARGE_SECONDS))), height - FOOT, TOP)

    def lines(self) -> Iterator[str]:
        yield from opening("growth", self.width, self.height, "search time against layers", True)
        yield STYLE
        yield from self._grid()
        yield from self._bars()
        for number, curve in enumerate(self.curves.values()):
            yield from self._curve(number, curve)
        for dot in self.dots:
            yield f'<circle class="model" {self._at(dot)} r="4">{_title(dot)}</circle>'
        yield from self._legend()
        yield "</svg>"

    def _grid(self) -> Iterator[str]:
        bottom = self.y.start
        for value in _round_values(self.x):
            x = self.x.at(log10(value))
            yield f'<path class="grid" d="M{x:.1f} {TOP:g}V{bottom + 4:g}"/>'
            yield f'<text class="tick middle" x="{x:.1f}" y="{bottom + 18:g}">{value:,g}</text>'
        for power in range(ceil(self.y.low), floor(self.y.high) + 1):
            y = self.y.at(power)
            yield f'<path class="grid" d="M{LEFT:g} {y:.1f}H{self.x.end:g}"/>'
            yield f'<text class="tick end" x="{LEFT - 8:g}" y="{y + 4:.1f}">{10.0**power:,g}</text>'
        across = (LEFT + self.x.end) / 2
        yield f'<text class="middle" x="{across:.0f}" y="{bottom + 38:g}">layers</text>'
        place = f"translate(16 {(TOP + bottom) / 2:.0f}) rotate(-90)"
        yield f'<text class="middle" transform="{place}">seconds of search</text>'

    def _bars(self) -> Iterator[str]:
        """How long a search may take."""
        for seconds, name in ((SECONDS, "networks for microcontrollers"), (LARGE_SECONDS, "large networks")):
            y = self.y.at(log10(seconds))
            yield f'<path class="bar" d="M{LEFT:g} {y:.1f}H{self.x.end:g}"/>'
            yield f'<text x="{LEFT + 8:g}" y="{y - 5:.1f}">{seconds:g} s: bar for {name}</text>'

    def _curve(self, number: int, curve: Sequence[Dot]) -> Iterator[str]:
        points = " ".join(f"{self.x.at(log10(n)):.1f},{self.y.at(log10(s)):.1f}" for n, s, _ in curve)
        yield f'<polyline class="line c{number}" points="{points}"/>'
        for dot in curve:
            yield f'<circle class="dot c{number}" {self._at(dot)} r="4">{_title(dot)}</circle>'

    def _at(self, dot: Dot) -> str:
        return f'cx="{self.x.at(log10(dot[0])):.1f}" cy="{self.y.at(log10(dot[1])):.1f}"'

    def _legend(self) -> Iterator[str]:
        """Which line is which, in the corner where few points are."""
        x, y = self.x.end - 150, self.y.start - 50
        styles = [(f"dot c{number}", family) for number, family in enumerate(self.curves)]
        for style, name in (*styles, ("model", "models")):
            yield f'<circle class="{style}" cx="{x:g}" cy="{y - 4:g}" r="4"/>'
            yield f'<text class="name" x="{x + 12:g}" y="{y:g}">{escape(name)}</text>'
            y += 18


def _title(dot: Dot) -> str:
    return f"<title>{escape(dot[2])}: {dot[0]} layers, {dot[1]:.2f} s</title>"


def _round_values(axis: Axis) -> list[float]:
    """1, 2, 5, 10, 20, … within a logarithmic axis."""
    powers = range(floor(axis.low), ceil(axis.high) + 1)
    values = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    return [value for value in values if axis.low <= log10(value) <= axis.high]
