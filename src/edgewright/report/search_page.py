"""The page of an architecture search: all candidates in parallel coordinates and pairwise, the progress of the search,
and for each point of the front its figures, plan and compile command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from markupsafe import Markup

from .. import text
from ..program import Plan
from ..search.candidates import CnnCandidate, architectures
from ..search.front import DesignPoint, Measure
from ..search.outcome import SearchOutcome
from .charts import FOOT, LEFT, RIGHT, TOP, Axis, Card, asset, grid, html_page, opening
from .graph import network_graph_svg
from .memory_map import memory_map_svg
from .page import plan_style

WIDTH = 1120.0  # px, of parallel coordinates and of the search over time
PARALLEL_HEIGHT, TIME_HEIGHT = 360.0, 300.0
PAIR_WIDTH, PAIR_HEIGHT = 540.0, 330.0
MAP_WIDTH, MAP_HEIGHT = 1120, 260

TITLES = {
    Measure.ACCURACY: "accuracy, %",
    Measure.MACRO_F1: "macro F1, %",
    Measure.RAM: "RAM, bytes",
    Measure.FLASH: "flash, bytes",
    Measure.INSTRUCTIONS: "instructions of a frame",
    Measure.LATENCY: "time of a frame, ms",
    Measure.THROUGHPUT: "frames per second",
    Measure.ENERGY: "energy of a frame, mJ",
}
FACTORS = {
    Measure.ACCURACY: 100.0,
    Measure.MACRO_F1: 100.0,
    Measure.LATENCY: 1e3,
    Measure.ENERGY: 1e3,
}


class LogAxis(Axis):
    """A logarithmic axis; `low` and `high` are above 0."""

    def at(self, value: float) -> float:  # type: ignore[override]
        share = log10(value / self.low) / (log10(self.high / self.low) or 1)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> Iterator[tuple[float, str]]:
        """Powers of ten with their double and fivefold; only the powers if there are many."""
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        factors = (1, 2, 5) if 3 * (len(powers) - 1) <= 2 * most else (1,)
        for power in powers:
            for factor in factors:
                value = factor * 10.0**power
                if self.low <= value <= self.high:
                    yield value, text.rounded_count(round(value)) if value >= 1 else f"{value:g}"


@dataclass(frozen=True, slots=True)
class ShownCandidate:
    """A candidate as drawn; points of the front have a name."""

    number: int
    name: str
    values: Mapping[Measure, float]  # in the units of `TITLES`

    @property
    def told(self) -> str:
        return f"{self.name or f'candidate {self.number}'}\n" + "\n".join(
            f"{TITLES[measure]}: {text.three_digits(value)}" for measure, value in self.values.items()
        )


@dataclass(frozen=True, slots=True)
class PointPanel:
    """The panel of one point of the front."""

    point: DesignPoint
    number: int
    memory_map: Markup
    graph: Markup


def search_page(outcome: SearchOutcome, command: str, plans: Mapping[str, Plan] | None = None) -> str:
    """The page, a self-contained HTML document. `command` repeats the search, `plans` maps point names to plans."""
    shown, plans = shown_candidates(outcome), plans or {}
    measures = tuple(shown[0].values) if shown else ()
    metric = Measure(outcome.front.metric)
    pairs = [pair_svg(shown, other, metric, at) for at, other in enumerate(measures) if other is not metric]
    return html_page(
        "search.html",
        outcome.front.task,
        plan_style() + asset("charts.css") + asset("search.css"),
        script=asset("search.js"),
        front=outcome.front,
        cards=_cards(outcome),
        notes=[text.printable(note) for note in outcome.notes],
        parallel=Markup(parallel_svg(shown, measures)),
        pairs=[Markup(pair) for pair in pairs],
        timeline=Markup(time_svg(outcome)),
        panels=[_panel(outcome, point, plans.get(point.name)) for point in outcome.front.points],
        titles=TITLES,
        time_words=outcome.pricer.time_words,
        has_held_out=any(point.held_out_macro_f1 is not None for point in outcome.front.points),
        command=text.printable(command),
        count=len(shown),
    )


def _cards(outcome: SearchOutcome) -> list[Card]:
    points = outcome.front.points
    trained = [one for one in outcome.candidates if one.is_trained]
    trained_architectures = len(architectures(trained))
    refused = sum(bool(one.refusal) for one in outcome.candidates)
    best = max(points, key=lambda point: (getattr(point, outcome.front.metric), -point.ram_bytes))
    least = min(points, key=lambda point: (point.ram_bytes, point.name))
    metric = TITLES[Measure(outcome.front.metric)].removesuffix(", %")

    def share(point: DesignPoint) -> str:
        return f"{100 * getattr(point, outcome.front.metric):.1f} %"

    return [
        Card("Best", share(best), f"{metric} of {best.name} in int8, {text.size(best.ram_bytes)} of RAM"),
        Card("Least RAM", text.size(least.ram_bytes), f"{least.name}: {share(least)}"),
        Card("Architectures", text.count(trained_architectures), f"{text.plural(len(trained), 'slice')} of training"),
        Card("Refused", text.count(refused), "beyond a limit: priced and not trained"),
    ]


def shown_candidates(outcome: SearchOutcome) -> list[ShownCandidate]:
    """Each trained architecture once, with its best training; points of the front with their int8 figures."""
    measures = list(dict.fromkeys([*outcome.front.measures, Measure.RAM, Measure.FLASH, Measure.INSTRUCTIONS]))
    metric = measures[0]
    points = {outcome.points[point.name]: point for point in outcome.front.points}
    best: dict[str, CnnCandidate] = {}
    for one in outcome.candidates:
        if one.is_trained:
            known = best.get(one.architecture.key)
            if (
                known is None
                or (known.number not in points and one.cost(metric) < known.cost(metric))
                or (one.number in points)
            ):
                best[one.architecture.key] = one
    shown = []
    for one in best.values():
        source = points.get(one.number, one)
        costs = {m: source.cost(m) if isinstance(source, CnnCandidate) else m.cost(source) for m in measures}
        values = {m: abs(cost) * FACTORS.get(m, 1.0) for m, cost in costs.items()}
        name = source.name if isinstance(source, DesignPoint) else ""
        shown.append(ShownCandidate(one.number, name, values))
    return sorted(shown, key=lambda one: (bool(one.name), one.number))  # draw points of the front last


def _axis(shown: Sequence[ShownCandidate], measure: Measure, start: float, end: float) -> Axis:
    values = [one.values[measure] for one in shown] or [1.0]
    low, high = min(values), max(values)
    if measure in (Measure.ACCURACY, Measure.MACRO_F1) or high < 8 * low:
        return Axis(max(0.0, low - 0.04 * (high - low or 1)), high + 0.04 * (high - low or 1), start, end)
    return LogAxis((low or 1e-9) / 1.1, (high or 1e-9) * 1.1, start, end)


def parallel_svg(shown: Sequence[ShownCandidate], measures: Sequence[Measure]) -> str:
    """One axis per measure, best at the top, and one line per candidate."""
    top, floor = TOP + 18, PARALLEL_HEIGHT - 24
    step = (WIDTH - LEFT - RIGHT - 40) / max(1, len(measures) - 1)
    axes = []
    for measure in measures:
        ends = (floor, top) if measure.is_maximised else (top, floor)
        axes.append(_axis(shown, measure, *ends))
    lines = [*opening("search parallel", WIDTH, PARALLEL_HEIGHT, "all candidates in parallel coordinates", False)]
    for at, measure in enumerate(measures):
        x = LEFT + at * step
        lines.append(f'<text class="name middle" x="{x:.1f}" y="{TOP - 6:g}">{TITLES[measure]}</text>')
        lines.append(f'<path class="axis" d="M{x:.1f} {top:g}V{floor:g}"/>')
        for value, label in axes[at].ticks(6):
            y = axes[at].at(value)
            lines.append(f'<path class="axis" d="M{x - 4:.1f} {y:.1f}h4"/>')
            lines.append(f'<text class="tick end" x="{x - 7:.1f}" y="{y + 4:.1f}">{label}</text>')
    for one in shown:
        ys = [axes[at].at(one.values[measure]) for at, measure in enumerate(measures)]
        path = "L".join(f"{LEFT + at * step:.1f} {y:.1f}" for at, y in enumerate(ys))
        lines.append(f'<path{_marks(one, "line")} data-y="{" ".join(f"{y:.1f}" for y in ys)}" d="M{path}">')
        lines.append(f"<title>{escape(one.told)}</title></path>")
    for at, _ in enumerate(measures):
        x = LEFT + at * step
        lines.append(
            f'<rect class="brushable" data-axis="{at}" x="{x - 12:.1f}" y="{top:g}" width="24" '
            f'height="{floor - top:g}"/>'
        )
    return "".join([*lines, "</svg>"])


def pair_svg(shown: Sequence[ShownCandidate], across: Measure, up: Measure, number: int) -> str:
    """One measure against the metric: all candidates, and the front as steps."""
    x = _axis(shown, across, LEFT, PAIR_WIDTH - RIGHT)
    y = _axis(shown, up, PAIR_HEIGHT - FOOT, TOP)
    titles = (TITLES[across], TITLES[up])
    lines = [*opening("search pair front", PAIR_WIDTH, PAIR_HEIGHT, f"{titles[1]} against {titles[0]}", False)]
    lines += grid(x, y, titles)
    place = f'x="{LEFT:g}" y="{TOP:g}" width="{x.end - x.start:g}" height="{y.start - y.end:g}"'
    lines.append(f'<rect class="brushable" data-pair="{number}" {place}/>')
    best, path = float("-inf"), ""
    sign = -1 if across.is_maximised else 1
    for one in sorted((one for one in shown if one.name), key=lambda one: (sign * one.values[across], one.number)):
        if one.values[up] > best:
            best = one.values[up]
            px, py = x.at(one.values[across]), y.at(best)
            path += f"H{px:.1f}V{py:.1f}" if path else f"M{px:.1f} {py:.1f}"
    if path:
        lines.append(f'<path class="front" d="{path}H{x.end if sign > 0 else x.start:g}"/>')
    for one in shown:
        radius = 5 if one.name else 3
        centre = f'cx="{x.at(one.values[across]):.1f}" cy="{y.at(one.values[up]):.1f}" r="{radius}"'
        lines.append(f"<circle{_marks(one, 'dot')} {centre}><title>{escape(one.told)}</title></circle>")
    return "".join([*lines, "</svg>"])


def _marks(one: ShownCandidate, kind: str) -> str:
    """The attributes that identify a candidate for the page's script; points of the front are selectable."""
    marks = f' class="{kind} {"of-front" if one.name else "other"}" data-id="{one.number}"'
    if one.name:
        marks += f' data-pick="{one.number}" role="button" tabindex="0" aria-label="{escape(one.name)}"'
    return marks


def time_svg(outcome: SearchOutcome) -> str:
    """The metric of every training slice in candidate order, the best so far, and refused candidates."""
    metric = Measure(outcome.front.metric)
    trained = [one for one in outcome.candidates if one.is_trained]
    values = [-100 * one.cost(metric) for one in trained] or [0.0]
    x = Axis(-0.5, len(outcome.candidates) + 0.5, LEFT, WIDTH - RIGHT)
    y = Axis.around(values, TIME_HEIGHT - FOOT - 14, TOP)
    lines = [*opening("search time front", WIDTH, TIME_HEIGHT, "the search over time", False)]
    total = max(outcome.seconds.values(), default=0.0)
    title = f"candidates in their order ({text.duration(total)} of searching)"
    lines += grid(x, y, (title, f"{TITLES[metric]}, validation data, float32"))
    path, best = "", float("-inf")
    for one, value in zip(trained, values, strict=False):
        px, py = x.at(one.number), y.at(value)
        if value > best:
            best, path = value, path + (f"H{px:.1f}V{py:.1f}" if path else f"M{px:.1f} {py:.1f}")
        told = f"candidate {one.number}, {one.proposal.origin.value}, generation {one.generation}\n{value:.1f} %"
        mark = f'class="dot {one.proposal.origin.name.lower()}" data-id="{one.number}"'
        lines.append(f'<circle {mark} cx="{px:.1f}" cy="{py:.1f}" r="3"><title>{escape(told)}</title></circle>')
    if path:
        lines.append(f'<path class="front" d="{path}H{x.end:g}"/>')
    for one in outcome.candidates:
        if one.refusal:
            told = f"candidate {one.number}: {escape(one.refusal)}"
            lines.append(
                f'<path class="refused" d="M{x.at(one.number):.1f} {y.start:g}v10"><title>{told}</title></path>'
            )
    return "".join([*lines, "</svg>"])


def _panel(outcome: SearchOutcome, point: DesignPoint, plan: Plan | None) -> PointPanel:
    memory_map = memory_map_svg(plan, width=MAP_WIDTH, height=MAP_HEIGHT, standalone=False) if plan else ""
    graph = network_graph_svg(plan, standalone=False, light=True) if plan else ""
    return PointPanel(point, outcome.points[point.name], Markup(memory_map), Markup(graph))
