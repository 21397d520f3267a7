"""Shared parts of pages and charts: templates, cards, chart frames, axes, labelled points."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from math import ceil, floor, log10
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from .. import text

LEFT, RIGHT, TOP, FOOT = 84.0, 30.0, 26.0, 52.0  # px around a plot, for ticks and titles
LETTER = 6.2  # px, mean width of a character, rounded up


@cache
def asset(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def escaped(value: str) -> str:
    """Text from a file or a model, escaped for a picture."""
    return escape(text.printable(value))


def html_page(template: str, title: str, style: str, *, script: str = "", **values: Any) -> str:
    """A self-contained HTML document; the same values give the same bytes.

    The page names the hash of its script, so that no other script can run, whatever a model's names contain.
    """
    environment = Environment(
        loader=FunctionLoader(asset), autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    return environment.get_template(template).render(
        text=text,
        title=text.printable(title),
        style=Markup(style),
        script=Markup(script),
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        **values,
    )


@dataclass(frozen=True, slots=True)
class Card:
    title: str
    figure: str
    detail: str
    is_proven: bool = False
    less: str = ""  # what would take less


def opening(kind: str, width: float, height: float, title: str, standalone: bool) -> Iterator[str]:
    """The opening lines of a chart; a standalone chart includes its style and a background."""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart {kind}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{title}">'
    )
    if standalone:
        yield f'<style>{asset("charts.css")}</style><rect class="paper" width="100%" height="100%" rx="6"/>'


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis that maps `low`..`high` to `start`..`end` in px; `start` may be larger."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float) -> Axis:
        """An axis over these values with a margin at both ends."""
        margin = max(1.0, 0.06 * (max(values) - min(values)))
        return cls(min(values) - margin, max(values) + margin, start, end)

    def at(self, value: float | Fraction) -> float:
        share = (float(value) - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> Iterator[tuple[float, str]]:
        """Round values on the axis, with their labels."""
        step = round_step((self.high - self.low) / max(1, most))
        for i in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1):
            yield i * step, tick_label(i * step, step, self.high)


def grid(
    across: Axis,
    up: Axis,
    titles: tuple[str, str],
    *,
    labels: tuple[str, str] = ("{}", "{}"),
    most: int = 7,
    is_shown: Callable[[float], bool] = lambda _: True,
) -> Iterator[str]:
    """Grid lines, labels and titles of both axes; `is_shown` selects the labels of the horizontal one."""
    left, top, floor = across.start, up.end, up.start
    for value, label in across.ticks(8):
        if is_shown(value):
            x, shown = across.at(value), labels[0].format(label)
            yield f'<path class="grid" d="M{x:.1f} {top:g}V{floor + 4:g}"/>'
            yield f'<text class="tick middle" x="{x:.1f}" y="{floor + 18:g}">{shown}</text>'
    for value, label in up.ticks(most):
        y, shown = up.at(value), labels[1].format(label)
        yield f'<path class="grid" d="M{left:g} {y:.1f}H{across.end:g}"/>'
        yield f'<text class="tick end" x="{left - 8:g}" y="{y + 4:.1f}">{shown}</text>'
    yield f'<text class="middle" x="{(left + across.end) / 2:.0f}" y="{floor + 38:g}">{titles[0]}</text>'
    place = f"translate({left - 68:g} {(top + floor) / 2:.0f}) rotate(-90)"
    yield f'<text class="middle" transform="{place}">{titles[1]}</text>'


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A dot at a position in px, with its tooltip and label."""

    x: float
    y: float
    told: str
    label: str = ""
    style: str = "point"
    radius: float = 4.5


def dots(points: Iterable[ChartPoint], right: float) -> Iterator[str]:
    """Draws the points from left to right; a label is left out if it would overlap the one before or exceed `right`."""
    free = 0.0  # to the right of the last label
    for point in points:
        place = f'cx="{point.x:.1f}" cy="{point.y:.1f}" r="{point.radius:.3g}"'
        yield f'<circle class="{point.style}" {place}><title>{escape(point.told)}</title></circle>'
        x, width = point.x + point.radius + 2, LETTER * len(point.label)
        if point.label and x >= free and x + width < right:
            yield f'<text class="value" x="{x:.1f}" y="{point.y - 8:.1f}">{escape(point.label)}</text>'
            free = x + width + 6


def round_step(least: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, … (or 0.5, 0.2, …) that is not below `least`."""
    if least <= 0:
        return 1.0
    power = 10.0 ** floor(log10(least))
    return power * next((factor for factor in (1, 2, 5) if factor * power >= least * (1 - 1e-9)), 10)


def tick_label(value: float, step: float, high: float) -> str:
    """The value in a unit suitable for an axis up to `high`: 1.5 M rather than 1,500,000."""
    for unit, name in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if value and high >= unit and step >= unit / 100:
            return f"{value / unit:,.10g}{name}"
    return f"{value:,.10g}"


def exact(value: Fraction) -> str:
    """A time as an exact number: 1,088 or 4/3."""
    if value.denominator == 1:
        return text.count(value.numerator)
    return f"{value.numerator:,}/{value.denominator:,}"


def speed(best: Fraction, period: Fraction) -> str:
    """The speed at a period, as a share of the best possible, rounded down: only the best is 100 %."""
    return f"{floor(1000 * best / period) / 10:.1f} %" if period else "–"


def free_line(labels: Sequence[tuple[float, float, float]], line: float, start: float, end: float, y: float) -> float:
    """A free place for a label at `y` or on a line below: (start, end, y)."""
    for low, high, taken in sorted(labels, key=lambda label: label[2]):
        if low < end and start < high and abs(taken - y) < line:
            y = taken + line
    return y
