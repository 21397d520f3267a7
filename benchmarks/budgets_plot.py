"""The picture of searches under budgets of RAM: best accuracy and hypervolume of two kinds of pricing, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from statistics import mean

from edgewright.report.charts import Axis, opening

WIDTH, HEIGHT, LEFT, RIGHT, TOP, FOOT = 860, 340, 70.0, 20.0, 44.0, 52.0  # px
GAP, BESIDE, SPACE = 90.0, 14.0, 0.05  # px between panels, px from a budget's middle, share above and below the values
STYLE = (
    "<style>.budgets .s0{fill:var(--c-one);stroke:var(--c-one)}.budgets .s1{fill:var(--c-two);stroke:var(--c-two)}"
    ".budgets circle{fill-opacity:.6;stroke:none}.budgets .mean{stroke-width:3}</style>"
)
Values = Mapping[str, Sequence[float]]  # of each budget: one for each seed
Panel = tuple[str, Mapping[str, Values]]  # a title, and values of each kind of pricing


def budgets_svg(panels: Sequence[Panel]) -> str:
    """One panel beside the other. Dots are seeds, lines their means."""
    return "".join(_lines(panels)) + "\n"


def _lines(panels: Sequence[Panel]) -> Iterator[str]:
    yield from opening("budgets", WIDTH, HEIGHT, "searches under budgets of RAM", True)
    yield STYLE
    width = (WIDTH - LEFT - RIGHT - GAP * (len(panels) - 1)) / len(panels)
    for number, (title, series) in enumerate(panels):
        left = LEFT + number * (width + GAP)
        yield from _panel(left, left + width, title, series)
    for number, name in enumerate(panels[0][1]):
        x = LEFT + 240 * number
        yield f'<circle class="s{number}" cx="{x:g}" cy="16" r="5"/><text x="{x + 12:g}" y="20">{escape(name)}</text>'
    yield "</svg>"


def _panel(left: float, right: float, title: str, series: Mapping[str, Values]) -> Iterator[str]:
    every = [value for values in series.values() for seeds in values.values() for value in seeds]
    margin = SPACE * ((max(every) - min(every)) or 1.0)
    y = Axis(min(every) - margin, max(every) + margin, HEIGHT - FOOT, TOP)
    for share in range(5):
        value = y.low + (y.high - y.low) * share / 4
        yield f'<path class="grid" d="M{left:g} {y.at(value):.1f}H{right:g}"/>'
        yield f'<text class="tick end" x="{left - 8:g}" y="{y.at(value) + 4:.1f}">{value:.3g}</text>'
    yield f'<text class="middle" x="{(left + right) / 2:g}" y="{HEIGHT - 10:g}">{escape(title)}</text>'
    for number, values in enumerate(series.values()):
        for at, (budget, seeds) in enumerate(values.items()):
            middle = left + (right - left) * (at + 0.5) / len(values)
            x = middle + BESIDE * (2 * number - 1)
            yield f'<text class="tick middle" x="{middle:.1f}" y="{HEIGHT - FOOT + 18:g}">{escape(budget)}</text>'
            for seed in seeds:
                yield f'<circle class="s{number}" cx="{x:.1f}" cy="{y.at(seed):.1f}" r="4"/>'
            yield f'<path class="mean s{number}" d="M{x - 9:.1f} {y.at(mean(seeds)):.1f}h18"/>'
