"""The picture of firings over time: a lane for each actor, a bar for each firing, as SVG."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape

from .. import text
from ..dataflow.graph import Actor, Graph
from ..dataflow.throughput.selftimed import Firing
from .charts import Axis, escaped, exact, opening

MOST_LANES = 60
LANE, GAP = 20.0, 4.0  # px, of a lane and between two
MOST_ROWS = 5  # of one lane, for firings that overlap; beyond, bars lie on one another
LETTER = 6.2  # px, the mean width of a letter, generously
THINNEST = 1.2  # px of a bar; shorter ones that touch are drawn as one
TOP, FOOT, RIGHT = 8.0, 44.0, 24.0  # px
SHADES = 4


def gantt_svg(
    graph: Graph,
    firings: Sequence[Firing],
    repetitions: Mapping[str, int],
    *,
    unit: str = "",
    width: int = 1160,
    standalone: bool = True,
) -> str:
    """The firings as an SVG element. `standalone` includes style and background, which a page already has.

    The shade shows the phase, the colour the iteration.
    """
    return "".join(_Chart(graph, firings, repetitions, unit, width).lines(standalone))


@dataclass(frozen=True, slots=True)
class _Bar:
    """Firings of one actor drawn as one bar: they overlap or follow each other without a visible gap."""

    first: Firing
    last: int  # index of the last one
    end: Fraction
    count: int = 1
    at_once: int = 1  # maximum number that overlap


class _Chart:
    def __init__(
        self, graph: Graph, firings: Sequence[Firing], repetitions: Mapping[str, int], unit: str, width: int
    ) -> None:
        self.graph = graph
        self.repetitions = repetitions
        self.unit = unit
        self.lanes = _lanes(graph, firings)
        self.left = 18 + LETTER * max((len(_label(actor)) for actor, _ in self.lanes), default=0)
        self.end = max((firing.end for firing in firings), default=Fraction(0))
        self.axis = Axis(0.0, float(self.end) or 1.0, self.left, width - RIGHT)
        self.width = width
        self.base = TOP + len(self.lanes) * (LANE + GAP)

    def lines(self, standalone: bool) -> Iterator[str]:
        hidden = len(self.graph.actors) - len(self.lanes)
        height = self.base + FOOT + (18 if hidden else 0)
        title = f"firings of {escaped(self.graph.name)} over time"
        yield from opening("gantt", self.width, height, title, standalone)
        yield from self._names()
        yield from self._grid()
        for number, (actor, firings) in enumerate(self.lanes):
            yield from self._lane(actor, firings, self._top(number))
        if hidden:
            more = f"{text.plural(hidden, 'actor')} that work less are left out"
            yield f'<text class="note" x="{self.left:.0f}" y="{self.base + 52:.0f}">{more}</text>'
        yield "</svg>"

    def _grid(self) -> Iterator[str]:
        for value, label in self.axis.ticks(10):
            x = self.axis.at(value)
            yield f'<path class="grid" d="M{x:.1f} {TOP:g}V{self.base + 4:.1f}"/>'
            yield f'<text class="tick middle" x="{x:.1f}" y="{self.base + 18:.1f}">{label}</text>'
        title = f"time{f', {self.unit}' if self.unit else ''}; the last firing ends at {exact(self.end)}"
        x = (self.axis.start + self.axis.end) / 2
        yield f'<text class="middle" x="{x:.0f}" y="{self.base + 36:.1f}">{escape(title)}</text>'

    def _top(self, number: int) -> float:
        return TOP + number * (LANE + GAP)

    def _names(self) -> Iterator[str]:
        """The lanes and the names of their actors."""
        left, wide = self.left, self.axis.end - self.left
        for number, (actor, _) in enumerate(self.lanes):
            y = self._top(number)
            yield f'<rect class="lane" x="{left:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{LANE:g}"/>'
            middle = y + LANE / 2 + 4
            yield f'<text class="name end" x="{left - 8:.1f}" y="{middle:.1f}">{escape(_label(actor))}</text>'

    def _lane(self, actor: Actor, firings: Sequence[Firing], top: float) -> Iterator[str]:
        rows = _rows(firings)
        if len(rows) > MOST_ROWS:
            rows, at_once = [sorted(firings, key=lambda one: one.start)], len(rows)
        else:
            at_once = 1
        tall = LANE / max(1, len(rows))
        for number, row in enumerate(rows):
            for bar in self._bars(actor, row, at_once):
                yield from self._bar(actor, bar, top + number * tall, tall)

    def _bars(self, actor: Actor, row: Sequence[Firing], at_once: int) -> Iterator[_Bar]:
        """The firings of a row; firings too short to be seen are merged with their neighbours."""
        bar: _Bar | None = None
        for firing in row:
            if bar is not None and self._melts(actor, bar, firing):
                bar = replace(bar, last=firing.index, end=max(bar.end, firing.end), count=bar.count + 1)
                continue
            if bar is not None:
                yield bar
            bar = _Bar(firing, firing.index, firing.end, at_once=at_once)
        if bar is not None:
            yield bar

    def _melts(self, actor: Actor, bar: _Bar, firing: Firing) -> bool:
        """Whether a firing is merged into the bar: it overlaps, or both are too short to be told apart."""
        if self._iteration(actor, firing) != self._iteration(actor, bar.first):
            return False
        at = self.axis.at
        mean = (at(bar.end) - at(bar.first.start)) / bar.count
        is_short = at(firing.end) - at(firing.start) < THINNEST and mean < THINNEST
        return firing.start < bar.end or (is_short and at(firing.start) - at(bar.end) < 0.5)

    def _iteration(self, actor: Actor, firing: Firing) -> int:
        return max(0, firing.index - actor.initial_phases) // self.repetitions[actor.name]

    def _bar(self, actor: Actor, bar: _Bar, y: float, tall: float) -> Iterator[str]:
        x, end = self.axis.at(bar.first.start), self.axis.at(bar.end)
        wide = max(end - x, THINNEST)
        shade = "many" if bar.count > 1 else f"s{bar.first.index % SHADES}"
        colour = f"i{self._iteration(actor, bar.first) % 2}"
        yield f'<g class="{colour} {shade}"><title>{escape(self._words(actor, bar))}</title>'
        yield f'<rect class="firing" x="{x:.2f}" y="{y + 1:.2f}" width="{wide:.2f}" height="{tall - 2:.2f}" rx="1.5"/>'
        label = str(bar.first.index + 1)
        if bar.count == 1 and tall >= 12 and wide >= LETTER * len(label) + 6:
            yield f'<text class="in middle" x="{x + wide / 2:.1f}" y="{y + tall / 2 + 3.5:.1f}">{label}</text>'
        yield "</g>"

    def _words(self, actor: Actor, bar: _Bar) -> str:
        if bar.count > 1:
            firing = f"firings {bar.first.index + 1:,} to {bar.last + 1:,}"
            firing += f", up to {bar.at_once:,} at once" if bar.at_once > 1 else ""
        else:
            firing = f"firing {bar.first.index + 1:,}{_phase(actor, bar.first.index)}"
        lines = [text.printable(actor.name), text.printable(actor.note), firing]
        lines.append(f"from {exact(bar.first.start)} to {exact(bar.end)} {self.unit}".rstrip())
        return "\n".join(line for line in lines if line)


def _lanes(graph: Graph, firings: Sequence[Firing]) -> list[tuple[Actor, list[Firing]]]:
    """The actors in order, with their firings; of many, those with the most work."""
    by_actor: dict[str, list[Firing]] = {actor.name: [] for actor in graph.actors}
    for firing in firings:
        by_actor[firing.actor].append(firing)
    busy = {name: sum((one.end - one.start for one in mine), Fraction(0)) for name, mine in by_actor.items()}
    kept = set(sorted(by_actor, key=lambda name: -busy[name])[:MOST_LANES])
    return [(actor, by_actor[actor.name]) for actor in graph.actors if actor.name in kept]


def _rows(firings: Sequence[Firing]) -> list[list[Firing]]:
    """Assigns overlapping firings to as few rows as possible."""
    rows: list[list[Firing]] = []
    ends: list[tuple[Fraction, int]] = []  # end of the last firing in each row, the earliest first
    for firing in sorted(firings, key=lambda one: (one.start, one.index)):
        if ends and ends[0][0] <= firing.start:
            number = heapq.heapreplace(ends, (firing.end, ends[0][1]))[1]
            rows[number].append(firing)
        else:
            heapq.heappush(ends, (firing.end, len(rows)))
            rows.append([firing])
    return rows


def _label(actor: Actor) -> str:
    return text.shortened(text.printable(actor.name), 26)


def _phase(actor: Actor, index: int) -> str:
    if index < actor.initial_phases:
        return f", initial phase {index + 1} of {actor.initial_phases}"
    if actor.phases == 1:
        return ""
    return f", phase {(index - actor.initial_phases) % actor.phases + 1:,} of {actor.phases:,}"
