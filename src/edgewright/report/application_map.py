"""The memory map of an application as SVG: arena addresses over the stages of all networks, and their relations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape

from .. import text
from ..application.description import ApplicationFile, RelationEntry
from ..application.outcome import AppOutcome
from ..memory.joint.conflicts import JointBuffer
from ..memory.joint.layout import JointLayout
from .charts import Axis, free_line
from .memory_map import LETTER

WIDTH, HEIGHT = 1160.0, 420.0  # px, of the picture and of its map
LEFT, RIGHT, ROW, FOOT = 92.0, 20.0, 20.0, 62.0  # px; a row for each relation
LINE = 12.0  # px between two labels
BETWEEN = 12.0  # px between two networks
BAND = 8.0  # px, height of the band that marks where a network may be interrupted
HATCH = (
    '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M0 0V5"/></pattern></defs>'
)
KINDS = {
    "intermediate": "of one network",
    "output": "handed over; pale while it waits",
    "input": "slot of a pipeline",
    "scratch": "the firmware's own, or kept",
}


def application_map_svg(outcome: AppOutcome, memory: str, ram: int | None = None) -> str:
    """The map of one memory's arena as an SVG element without its own style. `ram` is drawn as a limit unless it is far
    above the arena."""
    assert outcome.joint is not None, "only joint plans have a map"
    return "".join(_ApplicationMap(outcome.application.file, outcome.joint.layout, memory, ram).lines())


@dataclass(frozen=True)
class _ApplicationMap:
    file: ApplicationFile
    layout: JointLayout
    memory: str
    ram: int | None

    @cached_property
    def _labels(self) -> list[tuple[float, float, float]]:
        """The labels placed so far: start, end and y."""
        return []

    @cached_property
    def buffers(self) -> tuple[JointBuffer, ...]:
        return tuple(b for b in self.layout.buffers if self.layout.home(b.name) == self.memory)

    @cached_property
    def columns(self) -> dict[str, Axis]:
        """The stages of each part, from left to right."""
        stages = {name: max(1, len(plan.program.stages)) for name, plan in self.layout.plans.items()}
        free = WIDTH - LEFT - RIGHT - BETWEEN * (len(stages) - 1)
        weights = {name: 8 + count**0.5 for name, count in stages.items()}
        at, axes = LEFT, {}
        for name, count in stages.items():
            end = at + free * weights[name] / sum(weights.values())
            axes[name] = Axis(0, count, at, end)
            at = end + BETWEEN
        return axes

    @cached_property
    def relations(self) -> tuple[RelationEntry, ...]:
        return self.file.relations

    @cached_property
    def top(self) -> float:
        return ROW * (len(self.relations) + 1) + 40

    @cached_property
    def addresses(self) -> Axis:
        peak = max(1, self.layout.arenas[self.memory])
        most = self.ram if self.ram is not None and peak < self.ram <= 1.35 * peak else peak
        return Axis(0, most, self.top + HEIGHT, self.top)

    def lines(self) -> Iterator[str]:
        total = self.top + HEIGHT + FOOT
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="memory-map" viewBox="0 0 {WIDTH:g} {total:g}" '
            f'width="{WIDTH:g}" height="{total:g}" role="img" aria-label="memory map of all networks">'
        )
        yield from self._relations()
        yield from self._axes()
        for buffer in sorted(self.buffers, key=lambda b: -b.size):
            yield from self._buffer(buffer)
        yield from self._interruptions()
        yield from self._levels()
        yield from self._legend(total - 18)
        yield "</svg>"

    def _middle(self, name: str) -> float:
        """The x of a network's dot: the middle of its column, or of all its partitions."""
        parts = [part.name for part in self.layout.deployment.parts if name in (part.name, part.owner)]
        return (self.columns[parts[0]].start + self.columns[parts[-1]].end) / 2

    def _relations(self) -> Iterator[str]:
        for number, relation in enumerate(self.relations):
            y, dots = ROW * (number + 1), [self._middle(name) for name in relation.networks]
            told = f"{relation.kind.value}: {', '.join(relation.networks)}"
            yield f'<g class="relation"><title>{escape(told)}</title>'
            yield f'<text class="tick" x="{LEFT - 6:g}" y="{y + 4:g}">{relation.kind.value}</text>'
            yield f'<path class="link" d="M{min(dots):.1f} {y:g}H{max(dots):.1f}"/>'
            for place, x in enumerate(dots):
                yield f'<circle class="{"first" if not place else "other"}" cx="{x:.1f}" cy="{y:g}" r="4.5"/>'
            yield "</g>"

    def _axes(self) -> Iterator[str]:
        for value, label in self.addresses.ticks(8):
            y = self.addresses.at(value)
            yield f'<path class="grid" d="M{LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}"/>'
            yield f'<text class="tick" x="{LEFT - 6:g}" y="{y + 3.5:.1f}">{label}</text>'
        for name, column in self.columns.items():
            width = column.end - column.start
            yield (
                f'<rect class="ground" x="{column.start:.1f}" y="{self.top:g}" width="{width:.1f}" '
                f'height="{HEIGHT:g}"/>'
            )
            setter = " peak" if self.layout.deployment.part_named[name].owner in self.layout.setters else ""
            shown = text.shortened(name, max(4, int(width / LETTER)))
            middle = (column.start + column.end) / 2
            yield (
                f'<text class="number{setter}" style="text-anchor:middle" x="{middle:.1f}" '
                f'y="{self.top - 26:g}">{escape(shown)}<title>{escape(name)}</title></text>'
            )
        middle = self.top + HEIGHT / 2
        yield f'<text class="title" transform="translate(13 {middle:.0f}) rotate(-90)">address, bytes</text>'

    def _buffer(self, buffer: JointBuffer) -> Iterator[str]:
        """A buffer's rectangle over its lifetime, paler while it only waits for a reader."""
        kind = buffer_kind(buffer)
        at = self.layout.at(buffer.name)
        told = f"{text.printable(buffer.name)}\n{text.size(buffer.size)} at {text.count(at)}"
        yield f'<g class="b {kind}"><title>{escape(told)}</title>'
        used = {use.part for use in buffer.uses}
        for name, column in self.columns.items():
            spans = [(column.at(u.first), column.at(u.last + 1), "buffer") for u in buffer.uses if u.part == name]
            if buffer.is_always or name in buffer.during:
                spans = [(column.start, column.end, "buffer")]
            elif buffer.is_waiting and name not in used:
                spans = [(column.start, column.end, "waiting")]
            for start, end, style in spans:
                yield from self._box(buffer, at, start, end, style)
        yield "</g>"

    def _box(self, buffer: JointBuffer, at: int, start: float, end: float, style: str) -> Iterator[str]:
        top, bottom = self.addresses.at(at + buffer.size), self.addresses.at(at)
        height = max(0.8, bottom - top)
        yield (
            f'<rect class="{style}" x="{start:.1f}" y="{top:.1f}" width="{max(0.8, end - start):.1f}" '
            f'height="{height:.1f}"/>'
        )
        name = text.printable(buffer.name.split(" = ")[0].partition(":")[2] or buffer.name)
        letters = int((end - start - 8) / LETTER)
        if style == "buffer" and height >= 14 and letters >= min(len(name), 5):
            shown = text.shortened(name, letters)
            ends = start + 4, start + 8 + LETTER * len(shown)
            y = free_line(self._labels, LINE, *ends, top + 11.5)
            if y <= bottom - 2:
                self._labels.append((*ends, y))
                yield f'<text class="size" x="{start + 4:.1f}" y="{y:.1f}">{escape(shown)}</text>'

    def _interruptions(self) -> Iterator[str]:
        """Marks where networks may be interrupted: a dashed line at the end of a stage, a hatched band between rows or
        anywhere."""
        preemptions = self.layout.deployment.preemptions
        if preemptions:
            yield HATCH
        for preemption in preemptions:
            (high, low), points = preemption.parts, preemption.points
            column, told = self.columns[low], escape(f"{high} may interrupt {low}")
            if points is None:
                yield self._band(column.start, column.end, f"{told} anywhere")
                continue
            for stage in sorted(points.after):
                yield f'<g class="preempt"><title>{told} after stage {stage + 1}</title>'
                yield f'<path d="M{column.at(stage + 1):.1f} {self.top - BAND:g}v{HEIGHT + BAND:g}"/></g>'
            program = self.layout.plans[low].program
            for stage in sorted({at for at, _ in points.rows}):
                count = len(list(program.turns(program.stages[stage])))
                after = sorted(turn for at, turn in points.rows if at == stage)
                start, end = (column.at(stage + turn / count) for turn in (after[0], after[-1] + 1))
                yield self._band(start, end, f"{told} between {len(after)} rows of stage {stage + 1}")

    def _band(self, start: float, end: float, told: str) -> str:
        return (
            f'<g class="preempt"><title>{told}</title><rect x="{start:.1f}" y="{self.top - BAND:g}" '
            f'width="{max(0.8, end - start):.1f}" height="{BAND:g}"/></g>'
        )

    def _levels(self) -> Iterator[str]:
        peak = self.layout.arenas[self.memory]
        levels = [("peak", peak, f"the arena: {text.size(peak)}")]
        if self.ram is not None and self.ram <= self.addresses.high:
            levels.append(("limit", self.ram, f"there are {text.size(self.ram)}"))
        for style, value, label in levels:
            y = self.addresses.at(value)
            yield f'<path class="{style}" d="M{LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}"/>'
            yield f'<text class="{style}" style="text-anchor:end" x="{WIDTH - RIGHT:g}" y="{y - 5:.1f}">{label}</text>'

    def _legend(self, y: float) -> Iterator[str]:
        x = LEFT
        there = {buffer_kind(buffer) for buffer in self.buffers}
        for kind, label in KINDS.items():
            if kind in there:
                yield (
                    f'<g class="b {kind} legend"><rect class="swatch" x="{x:g}" y="{y - 10:g}" width="14" height="12"/>'
                    f'<text x="{x + 20:g}" y="{y:g}">{label}</text></g>'
                )
                x += 46 + LETTER * len(label)
        if self.layout.deployment.preemptions:
            yield (
                f'<g class="preempt legend"><path d="M{x + 2:g} {y - 10:g}v12"/>'
                f'<rect x="{x + 7:g}" y="{y - 8:g}" width="14" height="{BAND:g}"/></g>'
                f'<g class="legend"><text x="{x + 27:g}" y="{y:g}">may be interrupted; hatched: between rows</text></g>'
            )


def buffer_kind(buffer: JointBuffer) -> str:
    """The buffer's key in KINDS, which is also its CSS class."""
    if buffer.fifo is not None:
        return "input"
    if buffer.is_always or not buffer.uses:
        return "scratch"
    return "output" if buffer.is_waiting else "intermediate"
