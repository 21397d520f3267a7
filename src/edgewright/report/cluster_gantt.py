"""The Gantt chart of a frame on a cluster: when each device computes, sends and receives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from .. import text
from ..cluster.planning import ClusterPlan
from ..cluster.simulation import BusySpan, port_row
from .charts import LETTER, Axis, opening
from .cluster_map import busiest_devices

WIDTH, RIGHT, TOP, FOOT = 1160.0, 24.0, 10.0, 66.0  # px
COMPUTES, SENDS, GAP = 18.0, 7.0, 10.0  # px: heights of lanes, and between devices
MOST_DEVICES, SHADES = 24, 6
THINNEST = 0.8  # px, minimum width of a bar
UNITS = (
    (0.9, 1.0, "s"),
    (0.9e-3, 1e-3, "ms"),
    (0.0, 1e-6, "µs"),
)  # durations from this one on, in seconds; scale; unit


def cluster_gantt_svg(plan: ClusterPlan) -> str:
    """The chart as an SVG element: a simulated frame that has the cluster to itself."""
    return "".join(_FrameChart(plan).lines())


@dataclass(frozen=True, slots=True)
class _Lane:
    row: str  # as in the spans
    style: str
    top: float
    height: float
    name: str = ""


@dataclass(frozen=True)
class _FrameChart:
    plan: ClusterPlan

    @cached_property
    def spans(self) -> Sequence[BusySpan]:
        assert self.plan.frame is not None
        return self.plan.frame.spans

    @cached_property
    def lanes(self) -> list[_Lane]:
        """The lanes: for each device computing, sending and receiving; one for each bus and for cables between
        switches."""
        lanes: list[_Lane] = []
        cluster, top = self.plan.cluster, TOP
        devices = busiest_devices(self.plan, MOST_DEVICES)
        for device in devices:
            lanes.append(_Lane(device.name, "run", top, COMPUTES, device.name))
            top += COMPUTES
            for link in cluster.links:
                if device.name in link.ends and not link.is_shared:
                    other = next(end for end in link.ends if end != device.name)
                    for style, sender in (("sends", device.name), ("receives", other)):
                        lanes.append(_Lane(port_row(link.port(sender)), style, top, SENDS))
                        top += SENDS
            top += GAP
        drawn = {lane.row for lane in lanes}
        for link in cluster.links:
            is_near = not link.is_shared and any(end in cluster.device_named for end in link.ends)
            for port in () if is_near else dict.fromkeys(map(link.port, link.ends)):
                if port_row(port) not in drawn:
                    lanes.append(_Lane(port_row(port), "sends", top, COMPUTES / 2, port_row(port)))
                    top += COMPUTES / 2 + GAP
        return lanes

    def lines(self) -> Iterator[str]:
        lanes = self.lanes
        floor = lanes[-1].top + lanes[-1].height + GAP
        end = max((span.end_s for span in self.spans), default=1e-9)  # a frame shorter than a nanosecond has no spans
        per, unit = next((per, unit) for least, per, unit in UNITS if end >= least)
        longest = max(min(28, len(lane.name)) for lane in lanes)
        across = Axis(0.0, end / per, 20 + LETTER * longest, WIDTH - RIGHT)
        hidden = max(0, len(self.plan.cluster.devices) - MOST_DEVICES)
        yield from opening("frame", WIDTH, floor + FOOT, "a frame over time", False)
        for lane in lanes:
            yield f'<rect class="lane" x="{across.start:g}" y="{lane.top:g}" width="{across.end - across.start:g}" '
            yield f'height="{lane.height:g}"/>'
            if lane.name:
                name = escape(text.shortened(text.printable(lane.name), 28))
                middle = lane.top + lane.height / 2 + 4
                yield f'<text class="name end" x="{across.start - 8:g}" y="{middle:g}">{name}</text>'
        for value, label in across.ticks(10):
            x = across.at(value)
            yield f'<path class="grid" d="M{x:.1f} {TOP - 4:g}V{floor:g}"/>'
            yield f'<text class="middle" x="{x:.1f}" y="{floor + 15:g}">{label}</text>'
        yield f'<text class="middle" x="{(across.start + across.end) / 2:.0f}" y="{floor + 33:g}">time, {unit}</text>'
        by_row: dict[str, list[BusySpan]] = {}
        for span in self.spans:
            by_row.setdefault(span.row, []).append(span)
        for lane in lanes:
            for span in by_row.get(lane.row, ()):
                yield from self._bar(lane, span, across, per)
        yield from _legend(across.start, floor + FOOT - 8, hidden)
        yield "</svg>"

    def _bar(self, lane: _Lane, span: BusySpan, across: Axis, per: float) -> Iterator[str]:
        x = across.at(span.start_s / per)
        wide = max(THINNEST, across.at(span.end_s / per) - x)
        took = text.duration(span.end_s - span.start_s)
        if lane.style != "run":
            told, style, label = f"{lane.row}: {span.label}\n{took}", lane.style, ""
        else:
            number = self.plan.part_segments[span.label]
            segment = self.plan.division[number]
            told = f"{lane.row}, segment {number + 1}, {segment.split.words}\n{layer_range(self.plan, number)}\n{took}"
            style, label = f"run s{number % SHADES}", str(number + 1)
        yield f"<g><title>{escape(text.printable_lines(told))}</title>"
        yield f'<rect class="{style}" x="{x:.2f}" y="{lane.top:g}" width="{wide:.2f}" height="{lane.height:g}"/>'
        if label and wide > LETTER * len(label) + 4:
            yield f'<text class="in middle" x="{x + wide / 2:.1f}" y="{lane.top + 13:g}">{label}</text>'
        yield "</g>"


def layer_range(plan: ClusterPlan, number: int) -> str:
    """The layers of a segment, abbreviated."""
    layers = [text.printable(name) for name in plan.layers(plan.division[number])]
    return layers[0] if len(layers) == 1 else f"{layers[0]} to {layers[-1]} ({len(layers)})"


def _legend(x: float, y: float, hidden: int) -> Iterator[str]:
    for style, words in (
        ("run s0", "computes (number and colour: the segment)"),
        ("sends", "sends"),
        ("receives", "receives"),
    ):
        yield f'<rect class="{style}" x="{x:.1f}" y="{y - 10:g}" width="14" height="11"/>'
        yield f'<text x="{x + 20:.1f}" y="{y:g}">{words}</text>'
        x += 44 + LETTER * len(words)
    if hidden:
        yield f'<text x="{x:.1f}" y="{y:g}">{text.plural(hidden, "device")} that compute less are left out</text>'
