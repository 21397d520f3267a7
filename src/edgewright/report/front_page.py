"""The page of a plan search: RAM against MACs, and for each point its memory map, graph and compile command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil
from shlex import quote

from markupsafe import Markup

from .. import text
from ..kernels.cost.estimate import Estimate
from ..kernels.cost.run_time import RunTime
from ..program import Plan
from ..program.techniques import Technique, layer_techniques
from .charts import FOOT, LEFT, LETTER, RIGHT, TOP, Axis, asset, grid, html_page, opening
from .graph import network_graph_svg, technique_class
from .memory_map import memory_map_svg
from .page import plan_style

MAP_HEIGHT = 260  # px
HIGHEST = 3  # times a point's own peak; a higher plain plan does not set the scale of its map


@dataclass(frozen=True, slots=True)
class PointRow:
    """A point of the front, for its table row and its panel."""

    number: int
    peak: int
    share: str  # of the plain plan's peak
    load: float  # the same as a number, 0..1
    macs: int
    overhead: str
    techniques: tuple[tuple[Technique, int], ...]  # with the number of layers
    time: str
    instructions: str
    proof: str
    command: str
    memory_map: Markup
    graph: Markup


def front_page(
    plans: Sequence[Plan],
    *,
    plain: Plan,
    commands: Sequence[str],
    estimates: Sequence[Estimate] = (),
    times: Sequence[RunTime] = (),
) -> str:
    """A self-contained HTML document.

    `plain` is the baseline of the points, `commands` compile them; `estimates` and `times` are the instructions and the
    time of one run, if known.
    """
    highest = plain.peak_bytes if plain.peak_bytes <= HIGHEST * max((p.peak_bytes for p in plans), default=0) else 0
    return html_page(
        "front.html",
        plain.network.name,
        plan_style() + asset("charts.css") + asset("front.css"),
        script=asset("front.js"),
        plain=plain,
        rows=tuple(_row(plan, at, plain, highest, estimates, times, commands) for at, plan in enumerate(plans)),
        time_words=times[0].words if times else "",
        board=text.printable(plain.board) if plain.board else "",
        least=min(plans, key=lambda plan: (plan.peak_bytes, plan.macs), default=plain),
        overhead=_percent,
        technique_class=technique_class,
        plot=Markup(front_svg(plans, plain)),
        same_scale=bool(highest),
        plain_map=Markup(_map(plain, highest or plain.peak_bytes)),
    )


def limits(plan: Plan) -> str:
    """The options that ask for a plan with at most this much RAM and work."""
    extra = ceil(10 * overhead(plan) - 1e-9) / 10
    board = f"--board {quote(plan.board)} " if plan.board else ""
    return f"{board}--ram {plan.peak_bytes} --max-overhead {extra:g}%"


def _row(
    plan: Plan,
    number: int,
    plain: Plan,
    highest: int,
    estimates: Sequence[Estimate],
    times: Sequence[RunTime],
    commands: Sequence[str],
) -> PointRow:
    used = Counter(layer_techniques(plan).values())
    return PointRow(
        number,
        plan.peak_bytes,
        text.percent(plan.peak_bytes, plain.peak_bytes),
        plan.peak_bytes / plain.peak_bytes if plain.peak_bytes else 0.0,
        plan.macs,
        _percent(plan),
        tuple((kind, used[kind]) for kind in Technique if used[kind] and kind is not Technique.FREE),
        text.duration(times[number].seconds) if times else "",
        text.rounded_count(estimates[number].instructions) if estimates else "",
        plan.quality,
        text.printable(commands[number]),
        Markup(_map(plan, highest)),
        Markup(network_graph_svg(plan, standalone=False, light=True)),
    )


def _map(plan: Plan, highest: int) -> str:
    return memory_map_svg(plan, width=570, height=MAP_HEIGHT, standalone=False, highest=highest)


def _percent(plan: Plan) -> str:
    return f"{overhead(plan):+.1f} %" if plan.macs != plan.macs_plain else "0 %"


WIDTH, HEIGHT = 1120.0, 380.0  # px, of the plot
FAR = 2.0  # a plain plan this many times above all points is only labelled, not drawn to scale


def front_svg(plans: Sequence[Plan], plain: Plan) -> str:
    """Peak over MACs as an SVG element; points carry `data-point` for the page's script."""
    return "".join(_FrontPlot(plans, plain).lines())


def overhead(plan: Plan) -> float:
    """Extra MACs relative to layer-by-layer execution, in percent."""
    return 100 * (plan.macs - plan.macs_plain) / plan.macs_plain if plan.macs_plain else 0.0


class _FrontPlot:
    def __init__(self, plans: Sequence[Plan], plain: Plan) -> None:
        self.plans, self.plain = plans, plain
        peaks = [plan.peak_bytes for plan in plans] or [plain.peak_bytes]
        self.is_far = plain.peak_bytes > FAR * max(peaks)
        most = max(peaks) if self.is_far else max(*peaks, plain.peak_bytes)
        low = 0.0 if min(peaks) < 0.4 * most else min(peaks) - 0.25 * (most - min(peaks) or most)
        self.y = Axis(max(0.0, low), most + 0.1 * (most - low or 1), HEIGHT - FOOT, TOP)
        work = max((overhead(plan) for plan in plans), default=0.0)
        self.x = Axis(-0.04 * (work or 1), 1.08 * (work or 1), LEFT, WIDTH - RIGHT)

    def lines(self) -> Iterator[str]:
        yield from opening("front points", WIDTH, HEIGHT, "RAM against extra MACs", False)
        base = text.rounded_count(self.plain.macs_plain)
        work = f"multiply-accumulates beyond the {base} that the network takes"
        labels = ("+{} %", "{}")
        yield from grid(self.x, self.y, (work, "peak RAM, bytes"), labels=labels, is_shown=lambda value: value >= 0)
        yield from self._plain()
        yield from self._steps()
        yield from self._points()
        yield "</svg>"

    def _plain(self) -> Iterator[str]:
        """The baseline as a line, or as a label at the top if it is far above."""
        size = text.size(self.plain.peak_bytes)
        if self.is_far:
            yield f'<text class="best" x="{LEFT + 8:g}" y="{TOP - 10:g}">plain: {size} ↑</text>'
            return
        y = self.y.at(self.plain.peak_bytes)
        yield f'<path class="best" d="M{LEFT:g} {y:.1f}H{self.x.end:g}"/>'
        yield f'<text class="best end" x="{self.x.end:g}" y="{y - 5:.1f}">plain: {size}</text>'

    def _steps(self) -> Iterator[str]:
        """The lowest peak for each amount of work, as a step function."""
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
