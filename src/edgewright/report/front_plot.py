"""The picture of RAM against extra work: the front as steps, each of its points a button, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from .. import text
from ..program import Plan
from .axis import Axis, grid, opening

LEFT, RIGHT, TOP, FOOT = 84.0, 34.0, 30.0, 52.0  # px
LETTER = 6.2  # px, the mean width of a letter, generously
FAR = 2.0  # a plain plan so many times above all points is only named: its place would squash them


def front_svg(
    plans: Sequence[Plan], *, plain: Plan, width: int = 860, height: int = 380, standalone: bool = True
) -> str:
    """Peaks over MACs as one SVG element; points carry `data-point` for a page's script."""
    return "".join(_FrontPlot(plans, plain, width, height).lines(standalone))


def overhead(plan: Plan) -> float:
    """MACs beyond those of the network layer by layer, in percent."""
    return 100 * (plan.macs - plan.macs_plain) / plan.macs_plain if plan.macs_plain else 0.0


class _FrontPlot:
    def __init__(self, plans: Sequence[Plan], plain: Plan, width: int, height: int) -> None:
        self.plans, self.plain, self.width, self.height = plans, plain, width, height
        peaks = [plan.peak_bytes for plan in plans] or [plain.peak_bytes]
        self.is_far = plain.peak_bytes > FAR * max(peaks)
        most = max(peaks) if self.is_far else max(*peaks, plain.peak_bytes)
        low = 0.0 if min(peaks) < 0.4 * most else min(peaks) - 0.25 * (most - min(peaks) or most)
        self.y = Axis(max(0.0, low), most + 0.1 * (most - low or 1), height - FOOT, TOP)
        work = max((overhead(plan) for plan in plans), default=0.0)
        self.x = Axis(-0.04 * (work or 1), 1.08 * (work or 1), LEFT, width - RIGHT)

    def lines(self, standalone: bool) -> Iterator[str]:
        yield from opening("front points", self.width, self.height, "RAM against extra MACs", standalone)
        base = text.rounded_count(self.plain.macs_plain)
        work = f"multiply-accumulates beyond the {base} that the network takes"
        labels = ("+{} %", "{}")
        yield from grid(
            self.x, self.y, (work, "peak RAM, bytes"), labels=labels, is_shown=lambda value: value >= 0
        )
        yield from self._plain()
        yield from self._steps()
        yield from self._points()
        yield "</svg>"

    def _plain(self) -> Iterator[str]:
        """The plan to compare with: a line, or its figure above where it is far away."""
        size = text.size(self.plain.peak_bytes)
        if self.is_far:
            yield f'<text class="best" x="{LEFT + 8:g}" y="{TOP - 10:g}">plain: {size} ↑</text>'
            return
        y = self.y.at(self.plain.peak_bytes)
        yield f'<path class="best" d="M{LEFT:g} {y:.1f}H{self.x.end:g}"/>'
        yield f'<text class="best end" x="{self.x.end:g}" y="{y - 5:.1f}">plain: {size}</text>'

    def _steps(self) -> Iterator[str]:
        """The least peak for each amount of work: it stays until more work lowers it."""
        least, path = float("inf"), ""
        for plan in sorted(self.plans, key=lambda plan: (plan.macs, plan.peak_bytes)):
            if plan.peak_bytes < least:
                x, y = self.x.at(overhead(plan)), self.y.at(plan.peak_bytes)
                path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
                least = plan.peak_bytes
        if path:
            yield f'<path class="front" d="{path}H{self.x.end:g}"/>'

    def _points(self) -> Iterator[str]:
        labelled: list[tuple[float, float]] = []
        for number, plan in enumerate(self.plans):
            x, y = self.x.at(overhead(plan)), self.y.at(plan.peak_bytes)
            label = text.count(plan.peak_bytes)
            told = f"point {number + 1}: {text.size(plan.peak_bytes)}, {overhead(plan):.1f} % more MACs"
            yield (
                f'<g class="pick" data-point="{number}" role="button" tabindex="0" aria-label="{escape(told)}">'
                f'<title>{escape(told)}</title><circle class="halo" fill="none" cx="{x:.1f}" cy="{y:.1f}" r="11"/>'
                f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
            )
            if all(abs(x - a) > LETTER * len(label) or abs(y - b) > 13 for a, b in labelled):
                labelled.append((x, y))
                yield f'<text class="value" x="{x + 8:.1f}" y="{y - 8:.1f}">{label}</text>'
            yield "</g>"
