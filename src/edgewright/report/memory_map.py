"""The memory map of a plan as SVG: addresses over stages, one rectangle per buffer, live bytes below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from .. import text
from ..network import describe
from ..program import Buffer, Plan
from .charts import asset, escaped
from .occupancy import Occupancy, Role

NARROWEST = 700.0  # px, the minimum for the legend
WIDEST_STAGE = 150.0  # px; keeps plans of few stages narrow
MOST_NAMES = 56  # stages up to this number are named below the map; more are numbered
LEFT, RIGHT, TOP = 70.0, 16.0, 26.0  # px around the map; the peak's label stands in the top margin
PROFILE = 60.0  # px for the bytes live per stage
GAP = 16.0  # px between map and profile
LINE = 18.0  # px from line to line of the legend
LETTER = 6.5  # px, mean width of a character of a label, rounded up
BOLD_LETTER = 7.8  # px, of bold names


def memory_map_svg(
    plan: Plan,
    *,
    critical: Sequence[str] = (),
    ram: int | None = None,
    width: int = 1160,
    height: int = 400,
    interactive: bool = False,
    standalone: bool = True,
    highest: int = 0,
) -> str:
    """Addresses over stages as an SVG element, one panel for each memory. `width` is a maximum, `height` the map's own
    height.

    `standalone` includes style and background, which a page already has. `interactive` leaves them out and adds the
    attributes that the page's script uses. Maps with the same `highest` address have the same scale.
    """
    occupancy = Occupancy(plan)
    bare = interactive or not standalone
    return "".join(_lines(occupancy, occupancy.named(critical), ram, width, height, interactive, bare, highest))


def side_by_side(before: Plan, after: Plan, *, width: int = 570, height: int = 300) -> tuple[str, str]:
    """The maps of two plans at the same scale, for a page with its own style."""
    highest = max((*before.arenas.values(), *after.arenas.values()), default=0)
    first, second = (
        memory_map_svg(plan, width=width, height=height, standalone=False, highest=highest) for plan in (before, after)
    )
    return first, second


@dataclass(frozen=True, slots=True)
class _Frame:
    """The scales of the canvas; the same for every panel except memory and address scale."""

    step: float  # px per stage
    stages: int
    height: float  # px of the map
    scale: float  # px per byte
    base: float  # y of address 0

    def x(self, stage: float) -> float:
        return LEFT + stage * self.step

    def y(self, address: float) -> float:
        return self.base - address * self.scale

    @property
    def right(self) -> float:
        return self.x(self.stages)


def _lines(
    occupancy: Occupancy,
    critical: frozenset[str],
    ram: int | None,
    width: int,
    height: int,
    interactive: bool,
    bare: bool,
    highest: int,
) -> Iterator[str]:
    plan = occupancy.plan
    stages = max(1, len(plan.program.stages))
    step = min(WIDEST_STAGE, (width - LEFT - RIGHT) / stages)
    names = [text.shortened(text.printable(name), 24) for name in plan.order]
    named = len(names) <= MOST_NAMES and step >= 14
    # Names hang at 60 degrees; numbers need one line.
    foot = 18 + (max(map(len, names), default=0) * LETTER * 0.87 if named else 14)
    panel = TOP + height + GAP + PROFILE + foot
    memories = plan.arenas
    across = max(LEFT + stages * step + RIGHT, min(width, NARROWEST))
    legend = _legend_entries({occupancy.role(b.name) for b in plan.buffers}, critical, occupancy, across)
    top_of_legend = panel * max(1, len(memories)) + 8
    total = top_of_legend + 22 + LINE * max((line for _, _, _, line in legend), default=0)
    data = f' data-x0="{LEFT:g}" data-step="{step:.4f}" data-stages="{stages}"' if interactive else ""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="memory-map" viewBox="0 0 {across:.0f} {total:.0f}" '
        f'width="{across:.0f}" height="{total:.0f}" role="{"group" if interactive else "img"}" '
        f'aria-label="memory map of {escaped(plan.network.name)}"{data}>'
    )
    yield "<defs>"
    if not bare:
        yield f"<style>{asset('map.css')}</style>"
    yield (
        '<pattern id="shared-bytes" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path class="hatch" d="M0 0V6"/></pattern></defs>'
    )
    if not bare:
        yield '<rect class="paper" width="100%" height="100%" rx="6"/>'
    for i, (memory, used) in enumerate(memories.items()):
        limit = ram if len(memories) == 1 else None
        # A limit far above the map is drawn as a label only.
        top = max(used, limit) if limit is not None and limit <= 1.35 * used else used
        top = max(top, highest)
        frame = _Frame(step, stages, height, height / max(1, top), panel * i + TOP + height)
        yield '<g class="panel">'
        yield from _axes(frame, memory if len(memories) > 1 else "address", top)
        yield from _buffers(frame, occupancy, memory, critical)
        yield from _levels(frame, used, limit, top)
        yield from _profile(frame, occupancy.plan.occupied[memory])
        yield from _stage_labels(frame, names, named)
        if interactive:
            h = height + GAP + PROFILE
            yield (
                f'<rect class="column" x="{LEFT:g}" y="{frame.base - height:.1f}" '
                f'width="{max(step, 1.5):.2f}" height="{h:g}"/>'
            )
        yield "</g>"
    yield from _legend(top_of_legend, legend)
    yield "</svg>"


def _axes(frame: _Frame, title: str, top: int) -> Iterator[str]:
    """Grid lines at round addresses, at most eight, in a suitable unit."""
    tick = 1
    while top / tick > 8:
        tick *= 2
    unit, name = next((u, n) for u, n in ((text.MIB, "MiB"), (text.KIB, "KiB"), (1, "B")) if tick >= u)
    for address in range(0, top + 1, tick):
        y = frame.y(address)
        yield f'<path class="grid" d="M{LEFT:g} {y:.1f}H{frame.right:.1f}"/>'
        yield f'<text class="tick" x="{LEFT - 6:g}" y="{y + 3.5:.1f}">{address // unit} {name}</text>'
    middle = frame.base - frame.height / 2
    yield f'<text class="title" transform="translate(13 {middle:.0f}) rotate(-90)">{escaped(title)}</text>'


def _buffers(frame: _Frame, occupancy: Occupancy, memory: str, critical: frozenset[str]) -> Iterator[str]:
    """Draws large buffers first, so that small ones stay on top; outlines of critical buffers come last."""
    mine = [buffer for buffer in occupancy.plan.buffers if buffer.memory == memory]
    mine.sort(key=lambda b: (b.name in critical, -b.size * (b.last - b.first + 1)))
    for buffer in mine:
        w, h = (buffer.last - buffer.first + 1) * frame.step, buffer.size * frame.scale
        mark = " critical" if buffer.name in critical else ""
        yield f'<g class="b {occupancy.role(buffer.name).value}{mark}" data-b="{occupancy.numbers[buffer.name]}">'
        yield f"<title>{escape(buffer_words(occupancy, buffer))}</title>"
        yield (
            f'<rect class="buffer" x="{frame.x(buffer.first):.2f}" y="{frame.y(buffer.end):.2f}" '
            f'width="{max(w, 0.8):.2f}" height="{max(h, 0.8):.2f}"/></g>'
        )
    for pair in occupancy.shared:
        if pair.older.memory == memory:
            yield (
                f'<rect class="shared" x="{frame.x(pair.first):.2f}" y="{frame.y(pair.high):.2f}" '
                f'width="{(pair.last - pair.first + 1) * frame.step:.2f}" '
                f'height="{(pair.high - pair.low) * frame.scale:.2f}"/>'
            )
    yield from _names(frame, occupancy, mine)


def _names(frame: _Frame, occupancy: Occupancy, buffers: Sequence[Buffer]) -> Iterator[str]:
    """The name and size of each buffer, where they fit, preferably beside the stages it shares with another buffer."""
    begin = {buffer.name: buffer.first for buffer in buffers}
    end = {buffer.name: buffer.last + 1 for buffer in buffers}
    for pair in occupancy.shared:
        if pair.older.name in end:
            begin[pair.younger.name] = max(begin[pair.younger.name], pair.last + 1)
            end[pair.older.name] = min(end[pair.older.name], pair.first)
    for buffer in buffers:
        start, stop = begin[buffer.name], end[buffer.name]
        top, h = frame.y(buffer.end) + 12, buffer.size * frame.scale
        if stop <= buffer.first:  # covered from its first stage on: the later buffer's name is at the top
            start, stop = buffer.first, buffer.last + 1
            top, h = frame.y(buffer.offset) - 18, h - 26
        elif stop <= start:
            start = buffer.first
        letters = int(((stop - start) * frame.step - 10) / BOLD_LETTER)
        if letters < min(len(buffer.name), 7) or h < 14:
            continue  # too short to be useful
        x, label = frame.x(start) + 5, text.shortened(text.printable(buffer.name), letters)
        yield f'<text class="name" x="{x:.1f}" y="{top:.1f}">{escape(label)}</text>'
        if h >= 28 and letters >= len(text.size(buffer.size)):
            yield f'<text class="size" x="{x:.1f}" y="{top + 13:.1f}">{text.size(buffer.size)}</text>'


def _levels(frame: _Frame, used: int, limit: int | None, top: int) -> Iterator[str]:
    """The peak, labelled at the right, and the memory's limit, labelled at the left."""
    y = frame.y(used)
    yield f'<path class="peak" d="M{LEFT:g} {y:.1f}H{frame.right:.1f}"/>'
    right = max(frame.right, LEFT + 200)
    yield f'<text class="peak" x="{right:.1f}" y="{y - 6:.1f}">peak {text.size(used)}</text>'
    if limit is None:
        return
    if limit > top:
        yield f'<text class="limit" x="{LEFT:g}" y="{y - 6:.1f}">RAM {text.size(limit)} ↑</text>'
        return
    y = frame.y(limit)
    yield f'<path class="limit" d="M{LEFT:g} {y:.1f}H{frame.right:.1f}"/>'
    yield f'<text class="limit" x="{LEFT + 4:g}" y="{y - 6:.1f}">RAM {text.size(limit)}</text>'


def _profile(frame: _Frame, live: Sequence[int]) -> Iterator[str]:
    """The live bytes of each stage as steps, with their own scale."""
    floor = frame.base + GAP + PROFILE
    most = max(live, default=0)
    scale = PROFILE / max(1, most)
    points = "".join(
        f"V{floor - n * scale:.1f}H{frame.x(i + 1):.2f}"
        for i, n in enumerate(live)
        if i == 0 or i == len(live) - 1 or n != live[i - 1] or n != live[i + 1]
    )
    yield f'<path class="live" d="M{LEFT:g} {floor:.1f}{points}V{floor:.1f}Z"/>'
    yield f'<path class="grid" d="M{LEFT:g} {floor:.1f}H{frame.right:.1f}"/>'
    yield f'<text class="tick" x="{LEFT - 6:g}" y="{floor - PROFILE + 9:.1f}">{text.rounded_size(most)}</text>'
    yield f'<text class="tick" x="{LEFT - 6:g}" y="{floor:.1f}">live</text>'


def _stage_labels(frame: _Frame, names: Sequence[str], named: bool) -> Iterator[str]:
    """Stage names if all of them fit; otherwise stage numbers at a round distance."""
    floor = frame.base + GAP + PROFILE
    if named:
        for i, name in enumerate(names):
            place = f"translate({frame.x(i + 0.5) + 3:.1f} {floor + 12:.1f}) rotate(-60)"
            yield f'<text class="stage" transform="{place}">{escape(name)}</text>'
        return
    every = next(n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if n * frame.step >= 28)
    for i in range(0, len(names), every):
        x = frame.x(i + 0.5)
        yield f'<path class="grid" d="M{x:.1f} {floor:.1f}v4"/>'
        yield f'<text class="number" x="{x:.1f}" y="{floor + 15:.1f}">{i}</text>'
    yield f'<text class="number" x="{(LEFT + frame.right) / 2:.0f}" y="{floor + 29:.1f}">stage</text>'


def _legend_entries(
    roles: set[Role], critical: frozenset[str], occupancy: Occupancy, across: float
) -> list[tuple[str, str, float, int]]:
    """The entries of the legend: (style, label, x, line)."""
    entries = [(f"b {role.value}", role.value) for role in Role if role in roles]
    entries += [("b critical", "critical")] if critical else []
    entries += [("shared", "shared while an input dies")] if occupancy.shared else []
    placed, x, line = [], LEFT, 0
    for style, label in entries:
        wide = 34 + len(label) * LETTER
        if x > LEFT and x + wide > across:
            x, line = LEFT, line + 1
        placed.append((style, label, x, line))
        x += wide
    return placed


def _legend(top: float, entries: Sequence[tuple[str, str, float, int]]) -> Iterator[str]:
    for style, label, x, line in entries:
        y = top + LINE * line
        swatch = "shared" if style == "shared" else "swatch"
        yield f'<g class="{style} legend"><rect class="{swatch}" x="{x:.0f}" y="{y:.0f}" width="12" height="12"/>'
        yield f'<text class="legend" x="{x + 17:.0f}" y="{y + 10:.0f}">{label}</text></g>'


def buffer_words(occupancy: Occupancy, buffer: Buffer) -> str:
    """The tooltip of a buffer, one fact per line."""
    plan = occupancy.plan
    order = plan.order or ("",)  # a plan with free layers only has no stage; its buffers live at stage 0
    role = occupancy.role(buffer.name).value
    lines = [buffer.name, f"{role}, {text.size(buffer.size)} at {text.count(buffer.offset)} in {buffer.memory}"]
    lines.append(f"stage {buffer.first} {order[buffer.first]}")
    if buffer.last > buffer.first:
        lines.append(f"to stage {buffer.last} {order[buffer.last]}")
    inside = occupancy.tensors[buffer.name]
    for name in inside[:6]:
        tensor = plan.network.tensors[name]
        lines.append(f"{tensor.dtype.value} {describe.shape(tensor.shape)} {name if len(inside) > 1 else ''}".rstrip())
    if len(inside) > 6:
        lines.append(f"and {len(inside) - 6} more")
    return "\n".join(text.printable(line) for line in lines)
