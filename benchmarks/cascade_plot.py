"""The picture of cascades: accuracy and mean instructions against the threshold, one row for each data set, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from edgewright.report.charts import Axis, grid, opening

WIDTH, HEIGHT = 430.0, 280.0  # px, of one chart
LEFT, RIGHT, TOP, FOOT = 84.0, 20.0, 44.0, 52.0
STYLE = (
    "<style>.cascade .both{fill:none;stroke:var(--c-one);stroke-width:2}"
    ".cascade .alone{stroke:var(--c-muted);stroke-dasharray:6 4}"
    ".cascade .chosen{stroke:var(--c-best)}.cascade .value{fill:var(--c-best)}</style>"
)


@dataclass(frozen=True, slots=True)
class CascadeCurve:
    """Points (threshold, accuracy, instructions) by threshold, both networks alone, and the threshold chosen."""

    title: str
    points: tuple[tuple[float, float, float], ...]
    small: tuple[float, float]  # accuracy, instructions
    large: tuple[float, float]
    chosen: float


def cascade_svg(curves: Sequence[CascadeCurve]) -> str:
    """Two charts beside each other for each cascade."""
    lines = [*opening("cascade", 2 * WIDTH, HEIGHT * len(curves), "cascades against their threshold", True), STYLE]
    for row, curve in enumerate(curves):
        lines += _chart(curve, 0.0, row * HEIGHT, "accuracy, %", lambda pair: 100 * pair[0])
        lines += _chart(curve, WIDTH, row * HEIGHT, "million instructions", lambda pair: pair[1] / 1e6)
    return "".join([*lines, "</svg>\n"])


def _chart(
    curve: CascadeCurve, left: float, top: float, name: str, figure: Callable[[tuple[float, float]], float]
) -> Iterator[str]:
    points = [(threshold, figure((accuracy, cost))) for threshold, accuracy, cost in curve.points]
    alone = [("small alone", figure(curve.small), -4.0), ("large alone", figure(curve.large), 14.0)]
    values = [value for _, value in points] + [value for _, value, _ in alone]
    margin = 0.08 * (max(values) - min(values) or 1.0)
    x = Axis(0.0, points[-1][0], left + LEFT, left + WIDTH - RIGHT)
    y = Axis(min(values) - margin, max(values) + margin, top + HEIGHT - FOOT, top + TOP)
    yield from grid(x, y, ("threshold: least margin of a sure result", name), most=6)
    yield f'<text class="middle" x="{(x.start + x.end) / 2:.0f}" y="{top + 22:g}">{curve.title}</text>'
    for label, value, below in alone:
        yield f'<path class="alone" d="M{x.start:g} {y.at(value):.1f}H{x.end:g}"/>'
        yield f'<text class="tick end" x="{x.end - 4:g}" y="{y.at(value) + below:.1f}">{label}</text>'
    path = " ".join(f"{x.at(threshold):.1f},{y.at(value):.1f}" for threshold, value in points)
    yield f'<polyline class="both" points="{path}"/>'
    at = x.at(curve.chosen)
    yield f'<path class="chosen" d="M{at:.1f} {y.end:g}V{y.start:g}"/>'
    yield f'<text class="value" x="{at + 4:.1f}" y="{(y.start + y.end) / 2:g}">chosen</text>'
