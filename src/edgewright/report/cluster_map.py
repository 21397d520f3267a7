"""The map of a cluster: devices with memory and computing time, links with their traffic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape

from .. import text
from ..cluster.devices import ClusterDevice, ClusterLink, Port
from ..cluster.planning import ClusterPlan
from .charts import LETTER, escaped, opening

WIDTH, RIGHT, TOP = 1160.0, 20.0, 14.0  # px
RAIL, DROP, BOX, GAP = 26.0, 50.0, 92.0, 34.0  # px: heights of a switch, a cable, a device, and between rows
BOX_WIDTH, STEP = 148.0, 164.0
PER_ROW, MOST_DEVICES, MOST_LABELS = 6, 18, 3
THINNEST, THICKEST = 1.2, 9.0  # px, of an idle link and of a fully used one


def busiest_devices(plan: ClusterPlan, most: int) -> tuple[ClusterDevice, ...]:
    """The devices in order; of many, the gateway and those that compute the most."""
    busy = plan.cost.busy
    ranked = sorted(
        plan.cluster.devices, key=lambda each: (each.name != plan.cluster.gateway, -busy.get(each.name, 0.0))
    )
    kept = set(ranked[:most])
    return tuple(device for device in plan.cluster.devices if device in kept)


def sent_size(size: int) -> str:
    """A size in decimal units, as used for links: 1.18 MB."""
    return f"{text.rounded_count(size)}B" if size >= 1000 else text.size(size)


def cluster_map_svg(plan: ClusterPlan) -> str:
    """The map as an SVG element: a rail for each switch and bus, with its devices below."""
    return "".join(_ClusterMap(plan).lines())


@dataclass(frozen=True, slots=True)
class _RailRow:
    """A switch or bus ("" for none) and up to PER_ROW devices connected to it."""

    rail: str
    devices: tuple[ClusterDevice, ...]
    top: float


class _ClusterMap:
    def __init__(self, plan: ClusterPlan) -> None:
        self.plan, self.cluster = plan, plan.cluster
        self.devices = busiest_devices(plan, MOST_DEVICES)
        self.home = {device.name: self._home(device.name) for device in self.cluster.devices}
        drawn = {device.name for device in self.devices}
        self.cables = [
            (link, ends)
            for link in self.cluster.links
            for ends in self._others(link)
            if all(end in drawn or end not in self.cluster.device_named for end in ends)
        ]
        self.left = 40.0 + (130.0 if self.cables else 0.0)
        self.step = min(STEP, (WIDTH - RIGHT - self.left) / PER_ROW)
        self.wide = self.step - (STEP - BOX_WIDTH)  # width of a box
        self.rows = list(self._rows())

    def lines(self) -> Iterator[str]:
        hidden = len(self.cluster.devices) - len(self.devices)
        floor = self.rows[-1].top + RAIL + DROP + BOX + (40.0 if hidden else 16.0)
        yield from opening("cluster", WIDTH, floor, "devices and links with their loads", False)
        for number, (link, ends) in enumerate(self.cables):
            yield from self._cable(number, link, ends)
        for row in self.rows:
            yield from self._rail(row)
            for x, device in zip(self._places(row), row.devices, strict=True):
                yield from self._drop(row, x, device)
                yield from self._box(x, row.top + RAIL + DROP, device)
        if hidden:
            said = f"{text.plural(hidden, 'device')} that compute less are left out"
            yield f'<text x="{self.left:g}" y="{floor - 12:g}">{said}</text>'
        yield "</svg>"

    def _home(self, device: str) -> tuple[str, ClusterLink | None]:
        """The rail of a device, and its link to it."""
        for link in self.cluster.links:
            if device in link.ends:
                if len(link.ends) > 2:
                    return link.name, link
                other = next(end for end in link.ends if end != device)
                if other not in self.cluster.device_named:
                    return other, link
        return "", None

    def _others(self, link: ClusterLink) -> Iterator[tuple[str, str]]:
        """The links drawn as separate lines: pairs of ends."""
        away = [end for end in link.ends if self.home.get(end, ("", None))[1] is not link]
        if len(link.ends) > 2:
            yield from ((link.name, end) for end in away)
        elif len(away) == 2:
            yield away[0], away[1]

    def _rows(self) -> Iterator[_RailRow]:
        buses = [link.name for link in self.cluster.links if len(link.ends) > 2]
        switches = [end for link in self.cluster.links for end in link.ends if end not in self.cluster.device_named]
        top = TOP
        for rail in dict.fromkeys([*switches, *buses, ""]):
            mine = [device for device in self.devices if self.home[device.name][0] == rail]
            for start in range(0, max(len(mine), 1 if rail else 0), PER_ROW):
                row = _RailRow(rail, tuple(mine[start : start + PER_ROW]), top)
                yield row
                top += RAIL + GAP + (DROP + BOX if row.devices else 0.0)

    def _places(self, row: _RailRow) -> Iterator[float]:
        free = WIDTH - RIGHT - self.left - self.step * len(row.devices)
        return (self.left + free / 2 + self.step * number for number in range(len(row.devices)))

    def _rail(self, row: _RailRow) -> Iterator[str]:
        if not row.rail:
            return
        link = self.cluster.link_named.get(row.rail)
        is_bus = link is not None and len(link.ends) > 2
        said = f"{row.rail}, {self._load(link.port(link.ends[0]))}" if link and is_bus else row.rail
        wide = WIDTH - RIGHT - self.left
        above = [each.top for each in self.rows if each.rail == row.rail and each.top < row.top]
        if above:
            yield f'<path class="joint" d="M{WIDTH - RIGHT - 4:g} {max(above) + RAIL:g}V{row.top:g}"/>'
        yield f'<rect class="rail" x="{self.left:g}" y="{row.top:g}" width="{wide:g}" height="{RAIL:g}" rx="4"/>'
        middle = self.left + wide / 2
        yield f'<text class="name middle" x="{middle:g}" y="{row.top + 17:g}">{escaped(said)}</text>'

    def _drop(self, row: _RailRow, x: float, device: ClusterDevice) -> Iterator[str]:
        """The cable from a device up to its rail, with the traffic in each direction."""
        link = self.home[device.name][1]
        if link is None:
            return
        middle, top, floor = x + self.wide / 2, row.top + RAIL, row.top + RAIL + DROP
        if len(link.ends) > 2:
            yield f'<path class="cable" d="M{middle:.1f} {top:g}V{floor:g}"/>'
            return
        other = next(end for end in link.ends if end != device.name)
        ways = {link.port(device.name): "↑", link.port(other): "↓"}
        if len(ways) == 1:
            ways = {link.port(""): "↕"}
        for port, (sign, at) in zip(ways, _sides(list(ways.values())), strict=True):
            place = middle + at
            yield f"<g><title>{escaped(link.name)}: {escape(self._load(port))}</title>"
            yield f'<path class="{self._style(port)}" style="stroke-width:{self._thick(port):.1f}px" '
            yield f'd="M{place:.1f} {top:g}V{floor:g}"/>'
            label = f"{sign} {sent_size(self._bytes(port))}"
            side, where = ("end", place - 8) if at < 0 else ("", place + 8)
            yield f'<text class="{side}" x="{where:.1f}" y="{(top + floor) / 2 + 4:g}">{label}</text></g>'

    def _cable(self, number: int, link: ClusterLink, ends: tuple[str, str]) -> Iterator[str]:
        """A line between two rails or devices that runs around the left side."""
        x = self.left - 14 - 12 * (number % 9)
        ports = tuple(dict.fromkeys(link.port(end) for end in link.ends))
        busiest = max(ports, key=self._bytes)
        said = f"{link.name}: " + ", ".join(
            f"{self._load(port)} from {port[1]}" if port[1] else self._load(port) for port in ports
        )
        (start, y), (end, stop) = self._anchor(ends[0]), self._anchor(ends[1])
        yield f"<g><title>{escaped(said)}</title>"
        yield f'<path class="{self._style(busiest)}" style="stroke-width:{self._thick(busiest):.1f}px" '
        yield f'd="{start}H{x:g}V{stop:g}{end}H{x:g}"/>'
        if len(self.cables) <= MOST_LABELS and len(link.ends) == 2:
            label = [link.name, *(f"{sent_size(self._bytes(port))} from {port[1] or 'both'}" for port in ports)]
            for line, part in enumerate(label):
                at = (y + stop) / 2 + 13 * (line - 1)
                yield f'<text class="end" x="{x - 8:g}" y="{at:.1f}">'
                yield f"{escaped(text.shortened(part, int((x - 10) / LETTER)))}</text>"
        yield "</g>"

    def _anchor(self, end: str) -> tuple[str, float]:
        """The start of a line to a rail or a device, as a path, and its height."""
        for row in self.rows:
            if row.rail == end:
                return f"M{self.left:g} {row.top + RAIL / 2:g}", row.top + RAIL / 2
            for x, device in zip(self._places(row), row.devices, strict=True):
                if device.name == end:
                    floor = row.top + RAIL + DROP + BOX
                    return f"M{x + self.wide / 2:.1f} {floor:g}v{GAP / 3:.1f}", floor + GAP / 3
        raise AssertionError(f"'{end}' is drawn nowhere")

    def _box(self, x: float, y: float, device: ClusterDevice) -> Iterator[str]:
        plan, name = self.plan, device.name
        wide = self.wide
        used, busy = plan.memory[name], plan.cost.busy.get(name, 0.0) / plan.period
        is_gateway = name == self.cluster.gateway
        of = f" of {text.rounded_size(device.ram_bytes)}" if device.ram_bytes else ""
        told = f"{name}\n{device.board or 'no board'}\nmemory {text.size(used)}{of}\ncomputes {busy:.0%} of the time"
        yield f"<g><title>{escape(text.printable_lines(told))}</title>"
        style = "device gateway" if is_gateway else "device"
        yield f'<rect class="{style}" x="{x:.1f}" y="{y:g}" width="{wide:.1f}" height="{BOX:g}" rx="5"/>'
        shown = text.shortened(text.printable(name), int((wide - 20) / LETTER) - (10 if is_gateway else 0))
        yield f'<text class="name" x="{x + 9:.1f}" y="{y + 18:g}">{escape(shown)}</text>'
        if is_gateway:
            yield f'<text class="end" x="{x + wide - 9:.1f}" y="{y + 18:g}">gateway</text>'
        for level, kind, share, said in (
            (28.0, "memory", used / plan.fullest, text.rounded_size(used)),
            (60.0, "busy", busy, f"computes {busy:.0%}"),
        ):
            place, full = f'x="{x + 9:.1f}" y="{y + level + 15:g}" height="7" rx="3"', (wide - 18) * min(1.0, share)
            yield f'<text x="{x + 9:.1f}" y="{y + level + 10:g}">{said}</text>'
            yield f'<rect class="track" {place} width="{wide - 18:.1f}"/>'
            yield f'<rect class="{kind}" {place} width="{full:.1f}"/>'
        yield "</g>"

    def _bytes(self, port: Port) -> int:
        return self.plan.cost.port_bytes.get(port, 0)

    def _share(self, port: Port) -> float:
        return self.plan.sending_s(port) / self.plan.period

    def _load(self, port: Port) -> str:
        return f"{sent_size(self._bytes(port))} a frame, busy {self._share(port):.0%}"

    def _thick(self, port: Port) -> float:
        return THINNEST + (THICKEST - THINNEST) * min(1.0, self._share(port))

    @cached_property
    def _busiest(self) -> Port | None:
        return self.plan.busiest_port

    def _style(self, port: Port) -> str:
        return "cable busiest" if port == self._busiest else "cable"


def _sides(signs: Sequence[str]) -> list[tuple[str, float]]:
    """The directions of a cable, each with its offset from the middle."""
    return [(sign, 0.0 if len(signs) == 1 else 5.0 * (2 * number - 1)) for number, sign in enumerate(signs)]
