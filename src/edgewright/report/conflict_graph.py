"""The picture of a conflict graph: accesses on a circle, edges between those that must not become one (S 6.4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from math import cos, pi, sin

from .. import text
from ..hal.analysis.functions import Function
from ..hal.analysis.regions import Regions
from .axis import opening

COLOURS = 8  # of regions in the style sheet; they repeat
MOST = 48  # accesses; beyond, nothing can be seen any more
SPACE = 34.0  # px on the circle for each access


def conflict_graph_svg(function: Function, regions: Regions) -> str:
    """One SVG element; empty where there is nothing to see, or too much."""
    if not 2 <= len(function.accesses) <= MOST:
        return ""
    return "".join(_Graph(function, regions).lines())


class _Graph:
    def __init__(self, function: Function, regions: Regions) -> None:
        self.function, self.regions = function, regions
        count = len(function.accesses)
        self.radius = max(46.0, SPACE * count / (2 * pi))
        self.size = 2 * (self.radius + 20)
        middle = self.size / 2
        angles = {a.number: 2 * pi * n / count - pi / 2 for n, a in enumerate(function.accesses)}
        self.at: Mapping[int, tuple[float, float]] = {
            number: (middle + self.radius * cos(angle), middle + self.radius * sin(angle))
            for number, angle in angles.items()
        }

    def lines(self) -> Iterator[str]:
        name = escape(text.printable(self.function.name), quote=True)
        yield from opening("conflicts", self.size, self.size, f"conflict graph of {name}", False)
        for conflict in self.regions.conflicts or ():
            (x, y), (u, v) = self.at[conflict.first], self.at[conflict.second]
            told = escape(text.printable(f"{conflict.first} and {conflict.second}: {conflict.reason}"))
            yield f'<path class="edge" d="M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}"><title>{told}</title></path>'
        regions = region_numbers(self.regions)
        for access in self.function.accesses:
            x, y = self.at[access.number]
            told = escape(text.printable(f"{access.number}: {access.kind.value} {access.name}"))
            style = f"node r{regions.get(access.number, 0) % COLOURS} {access.kind.value}"
            yield f'<g class="{style}"><title>{told}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="12"/>'
            yield f'<text class="middle" x="{x:.1f}" y="{y + 4:.1f}">{access.number}</text></g>'
        yield "</svg>"


def region_numbers(regions: Regions) -> dict[int, int]:
    """The region of each access."""
    return {number: n for n, region in enumerate(regions.regions) for number in region}
