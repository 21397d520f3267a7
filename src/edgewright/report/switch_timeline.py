"""One switch over time as SVG: the steps of the old and the new scenario on their processors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from .. import text
from ..adaptive.transition import StepRun, Timeline
from .charts import LETTER, Axis, escaped, opening

WIDTH, RIGHT, TOP, FOOT = 1160.0, 30.0, 58.0, 64.0  # px
LANE, GAP = 34.0, 12.0  # px, of a processor and between two
THINNEST = 1.0  # px of a step
UNITS = ((0.9, 1.0, "s"), (0.9e-3, 1e-3, "ms"), (0.0, 1e-6, "us"))  # from this time on, seconds, name


def switch_timeline_svg(timeline: Timeline, *, standalone: bool = False) -> str:
    """The chart as an SVG element, from the start of the old frame to the last step of both scenarios."""
    return "".join(_TimelineChart(timeline).lines(standalone))


@dataclass(frozen=True)
class _TimelineChart:
    timeline: Timeline

    @property
    def first_result(self) -> float:
        return self.timeline.arrival + self.timeline.delay

    def lines(self, standalone: bool) -> Iterator[str]:
        one, runs = self.timeline.transition, self.timeline.runs
        lanes = sorted({run.processor for run in runs})
        names = {lane: f"processor {lane + 1}" for lane in lanes}
        left = 20 + LETTER * max(map(len, names.values()))
        begin, end = min(0.0, *(run.start for run in runs)), max(run.end for run in runs)
        per, unit = next((per, unit) for least, per, unit in UNITS if end - begin >= least)
        across = Axis(begin / per, end / per, left, WIDTH - RIGHT)
        floor = TOP + len(lanes) * (LANE + GAP)
        title = f"switch from {escaped(one.old.name)} to {escaped(one.new.name)}"
        yield from opening("switching", WIDTH, floor + FOOT, title, standalone)
        for value, label in across.ticks(10):
            x = across.at(value)
            yield f'<path class="grid" d="M{x:.1f} {TOP - 6:g}V{floor:g}"/>'
            yield f'<text class="tick middle" x="{x:.1f}" y="{floor + 16:g}">{label}</text>'
        yield f'<text class="middle" x="{(left + WIDTH - RIGHT) / 2:.0f}" y="{floor + 34:g}">time, {unit}</text>'
        for number, lane in enumerate(lanes):
            y = TOP + number * (LANE + GAP)
            yield f'<rect class="lane" x="{left:g}" y="{y:g}" width="{WIDTH - RIGHT - left:g}" height="{LANE:g}"/>'
            yield f'<text class="name end" x="{left - 8:g}" y="{y + LANE / 2 + 4:g}">{names[lane]}</text>'
            for run in runs:
                if run.processor == lane:
                    yield from self._step(run, across, per, y)
        for at, style, said, level in (
            (self.timeline.arrival, "request", "request", 12.0),
            (
                self.first_result,
                "result",
                f"first result of {one.new.name}, {text.duration(self.timeline.delay)} later",
                28.0,
            ),
        ):
            yield from _moment(across.at(at / per), floor, style, said, level)
        yield from self._legend(left, floor + FOOT - 8)
        yield "</svg>"

    def _step(self, run: StepRun, across: Axis, per: float, y: float) -> Iterator[str]:
        one = self.timeline.transition
        scenario = one.new if run.is_new else one.old
        step = scenario.steps[run.step]
        x, end = across.at(run.start / per), across.at(run.end / per)
        wide = max(THINNEST, end - x)
        told = f"{scenario.name}: {step.name}\nfrom {text.duration(max(0.0, run.start))}, {text.duration(step.time)}"
        yield f'<g class="{"new" if run.is_new else "old"}"><title>{escape(text.printable_lines(told))}</title>'
        yield f'<rect class="step" x="{x:.2f}" y="{y:g}" width="{wide:.2f}" height="{LANE:g}"/>'
        letters = int((wide - 8) / LETTER)
        if letters >= min(len(step.name), 6):
            shown = escape(text.shortened(text.printable(step.name), letters))
            yield f'<text class="in middle" x="{x + wide / 2:.1f}" y="{y + LANE / 2 + 4:g}">{shown}</text>'
        yield "</g>"

    def _legend(self, x: float, y: float) -> Iterator[str]:
        one = self.timeline.transition
        for style, name in (("old", f"{one.old.name}, the old scenario"), ("new", f"{one.new.name}, the new one")):
            yield f'<g class="{style}"><rect class="step" x="{x:.1f}" y="{y - 10:g}" width="14" height="12"/></g>'
            yield f'<text x="{x + 20:.1f}" y="{y:g}">{escaped(name)}</text>'
            x += 48 + LETTER * len(name)


def _moment(x: float, floor: float, style: str, said: str, level: float) -> Iterator[str]:
    """A vertical line through all processors, with a label on the side that has space."""
    is_left = x + LETTER * len(said) + 10 > WIDTH
    yield f'<path class="{style}" d="M{x:.1f} {level - 8:g}V{floor:g}"/>'
    place = f'class="{style} end" x="{x - 6:.1f}"' if is_left else f'class="{style}" x="{x + 6:.1f}"'
    yield f'<text {place} y="{level:g}">{escaped(said)}</text>'
