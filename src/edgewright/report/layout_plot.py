"""The picture of map size against code size and accesses: one dot for each layout worth having, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..hal.layout.front import FrontPoint
from .axis import Axis, opening

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
