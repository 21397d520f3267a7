"""The memory of the devices: weights, arenas, slots and frames for replay, compared with one device and with limits."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .. import text
from ..cluster.devices import ClusterDevice
from ..cluster.planning import ClusterPlan
from .charts import LETTER, Axis, opening
from .cluster_map import busiest_devices

WIDTH, RIGHT, TOP, FOOT = 1160.0, 220.0, 24.0, 66.0  # px
BAR, GAP = 16.0, 7.0
MOST_DEVICES = 24
KINDS = (("weights", "weights"), ("working", "arenas and slots"), ("replay", "frames kept for replay"))


def cluster_memory_svg(plan: ClusterPlan) -> str:
    """The chart as an SVG element: a bar for each device, and one for a single device that runs the whole network."""
    return "".join(_lines(plan, busiest_devices(plan, MOST_DEVICES)))


def fill(plan: ClusterPlan, device: ClusterDevice) -> tuple[str, int | None]:
    """A device's memory in words, with its limits; and the limit, if a single figure has to stay below it."""
    parts = plan.memory_parts[device.name]
    ram = min((each for each in (device.ram_bytes, plan.goal.max_memory) if each is not None), default=None)
    of = f" of {text.rounded_size(ram)}" if ram is not None else ""
    if device.flash_bytes is None:
        return text.rounded_size(parts.total) + of, ram
    flash = f"{text.rounded_size(parts.weights)} of {text.rounded_size(device.flash_bytes)} flash"
    return f"{text.rounded_size(parts.total - parts.weights)}{of} RAM, {flash}", None


def _lines(plan: ClusterPlan, devices: tuple[ClusterDevice, ...]) -> Iterator[str]:
    single = "one device, whole layers"
    left = 20 + LETTER * max(len(single), *(min(28, len(device.name)) for device in devices))
    most = max(plan.fullest, plan.single_bytes)
    across = Axis(0.0, float(most), left, WIDTH - RIGHT)
    floor = TOP + (len(devices) + 1) * (BAR + GAP)
    yield from opening("memories", WIDTH, floor + FOOT, "memory of each device", False)
    for value, label in across.ticks(8):
        x = across.at(value)
        yield f'<path class="grid" d="M{x:.1f} {TOP - 4:g}V{floor:g}"/>'
        yield f'<text class="middle" x="{x:.1f}" y="{floor + 15:g}">{label}</text>'
    yield f'<text x="{across.end + 8:g}" y="{floor + 15:g}">bytes</text>'
    yield f'<text class="name end" x="{left - 8:g}" y="{TOP + 12:g}">{single}</text>'
    yield f'<rect class="single" x="{left:g}" y="{TOP:g}" width="{across.at(plan.single_bytes) - left:.1f}" '
    yield f'height="{BAR:g}"/><text class="name" x="{across.at(plan.single_bytes) + 8:.1f}" y="{TOP + 12:g}">'
    yield f"{text.rounded_size(plan.single_bytes)}</text>"
    for number, device in enumerate(devices, 1):
        yield from _bar(plan, device, across, TOP + number * (BAR + GAP))
    share = plan.single_bytes / len(plan.cluster.devices)
    x = across.at(share)
    yield f'<path class="share" d="M{x:.1f} {TOP + BAR + 2:g}V{floor:g}"/>'
    yield f'<text class="share middle" x="{x:.1f}" y="{floor + 31:g}">one device / {len(plan.cluster.devices)}</text>'
    for style, words in KINDS:
        yield f'<rect class="{style}" x="{left:.1f}" y="{floor + FOOT - 18:g}" width="14" height="11"/>'
        yield f'<text x="{left + 20:.1f}" y="{floor + FOOT - 8:g}">{words}</text>'
        left += 44 + LETTER * len(words)
    if hidden := len(plan.cluster.devices) - len(devices):
        yield f'<text x="{left:.1f}" y="{floor + FOOT - 8:g}">{text.plural(hidden, "device")} are left out</text>'
    yield "</svg>"


def _bar(plan: ClusterPlan, device: ClusterDevice, across: Axis, top: float) -> Iterator[str]:
    parts, (said, limit) = plan.memory_parts[device.name], fill(plan, device)
    name = escape(text.shortened(text.printable(device.name), 28))
    yield f'<text class="name end" x="{across.start - 8:g}" y="{top + 12:g}">{name}</text>'
    done = 0
    for (style, words), size in zip(KINDS, (parts.weights, parts.working, parts.replay), strict=True):
        x, end = across.at(done), across.at(done + size)
        yield f"<g><title>{name}, {words}: {text.size(size)}</title>"
        yield f'<rect class="{style}" x="{x:.1f}" y="{top:g}" width="{end - x:.1f}" height="{BAR:g}"/></g>'
        done += size
    end = across.at(done)
    if limit is not None and limit <= across.high:
        x = across.at(limit)
        yield f'<path class="limit" d="M{x:.1f} {top - 3:g}V{top + BAR + 3:g}"/>'
        end = max(end, x)
    yield f'<text class="name" x="{end + 8:.1f}" y="{top + 12:g}">{said}</text>'
