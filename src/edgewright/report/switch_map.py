"""The common arena of all scenarios as SVG: the bytes that each scenario uses over its stages."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .. import text
from ..adaptive.front import SwitchLayout
from ..program import Buffer, Plan
from .charts import LETTER, Axis, free_line

WIDTH, HEIGHT = 1160.0, 380.0  # px, of the picture and of its map
LEFT, RIGHT, TOP, FOOT = 92.0, 20.0, 46.0, 30.0  # px
LINE = 12.0  # px between two labels
BETWEEN = 14.0  # px between two scenarios


def switch_map_svg(layout: SwitchLayout) -> str:
    """The map as an SVG element for a page with its own style: a column for each scenario."""
    return "".join(_lines(layout))


def _lines(layout: SwitchLayout) -> Iterator[str]:
    total, base = TOP + HEIGHT + FOOT, TOP + HEIGHT
    addresses = Axis(0, max(1, layout.arena_bytes), base, TOP)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="memory-map" viewBox="0 0 {WIDTH:g} {total:g}" '
        f'width="{WIDTH:g}" height="{total:g}" role="img" aria-label="memory map of all scenarios">'
    )
    for value, label in addresses.ticks(8):
        y = addresses.at(value)
        yield f'<path class="grid" d="M{LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}"/>'
        yield f'<text class="tick" x="{LEFT - 6:g}" y="{y + 3.5:.1f}">{label}</text>'
    yield f'<text class="title" transform="translate(13 {TOP + HEIGHT / 2:.0f}) rotate(-90)">address, bytes</text>'
    for (name, plan), column in zip(layout.plans.items(), _columns(layout), strict=True):
        wide = column.end - column.start
        yield f'<rect class="ground" x="{column.start:.1f}" y="{TOP:g}" width="{wide:.1f}" height="{HEIGHT:g}"/>'
        shown = escape(text.shortened(text.printable(name), max(4, int(wide / LETTER))))
        yield f'<text class="number name" x="{column.start + wide / 2:.1f}" y="{TOP - 26:g}">{shown}</text>'
        yield from _buffers(plan, column, addresses)
    y = addresses.at(layout.arena_bytes)
    yield f'<path class="peak" d="M{LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}"/>'
    said = f"the arena: {text.size(layout.arena_bytes)}"
    yield f'<text class="peak" x="{WIDTH - RIGHT:g}" y="{y - 5:.1f}">{said}</text>'
    yield f'<text class="number" x="{(LEFT + WIDTH) / 2:.0f}" y="{total - 8:g}">stages of each scenario</text>'
    yield "</svg>"


def _columns(layout: SwitchLayout) -> Iterator[Axis]:
    """The stages of each scenario, from left to right."""
    counts = [max(1, len(plan.program.stages)) for plan in layout.plans.values()]
    free = WIDTH - LEFT - RIGHT - BETWEEN * (len(counts) - 1)
    at = LEFT
    for count in counts:
        end = at + free * (4 + count) / sum(4 + each for each in counts)
        yield Axis(0, count, at, end)
        at = end + BETWEEN


def _buffers(plan: Plan, column: Axis, addresses: Axis) -> Iterator[str]:
    """The buffers of the arena, the largest first, so that small ones stay visible."""
    own = (buffer for buffer in plan.buffers if buffer.memory in plan.arenas)
    labels: list[tuple[float, float, float]] = []  # that are drawn: from x to x, and where their lines lie
    for buffer in sorted(own, key=lambda b: -b.size):
        start, end = column.at(max(0, buffer.first)), column.at(min(column.high, buffer.last + 1))
        top, bottom = addresses.at(buffer.offset + buffer.size), addresses.at(buffer.offset)
        told = f"{text.printable(buffer.name)}\n{text.size(buffer.size)} at {text.count(buffer.offset)}"
        wide, tall = max(0.8, end - start), max(0.8, bottom - top)
        yield f'<g class="b {_kind(plan, buffer)}"><title>{escape(told)}</title>'
        yield f'<rect class="buffer" x="{start:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{tall:.1f}"/>'
        letters = int((wide - 8) / LETTER)
        if tall >= 14 and letters >= min(len(buffer.name), 5):
            shown = text.shortened(text.printable(buffer.name), letters)
            y = free_line(labels, LINE, start, start + 8 + len(shown) * LETTER, top + LINE)
            if y < bottom:
                labels.append((start, start + 8 + len(shown) * LETTER, y))
                yield f'<text class="size" x="{start + 4:.1f}" y="{y - 0.5:.1f}">{escape(shown)}</text>'
        yield "</g>"


def _kind(plan: Plan, buffer: Buffer) -> str:
    """The kind of contents, which is also the CSS class."""
    tensors = {tensor for tensor, view in plan.views.items() if view.buffer == buffer.name}
    for kind, names in (("input", plan.network.inputs), ("output", plan.network.outputs)):
        if tensors & set(names):
            return kind
    return "intermediate" if tensors else "scratch"
