"""Names for the addresses of groups in devices, which differ with the layout: "gpio", "gpio.pads[3]"."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..analysis.spaces import Spaces
from ..language.description import Description
from ..layout.layout import Layout, offset_of, spelled

Instances = dict[str, dict[int, str]]  # by space: address to name, "gpio" or "gpio.pads[3]"


def instances_of(description: Description, spaces: Spaces, layout: Layout) -> Instances:
    found: Instances = {name: {} for name in spaces}
    for device in description.devices:
        for space, address, name in _inside(spaces, layout, device.group, device.address, device.name):
            found[space][address] = name
    return found


def _inside(spaces: Spaces, layout: Layout, space: str, address: int, name: str) -> Iterator[tuple[str, int, str]]:
    yield space, address, name
    for area in spaces[space].areas:
        place = layout.spaces[space].place_of(area.name)
        for element in product(*map(range, area.counts)):
            at = address + place.offset + offset_of(element, place.strides)
            yield from _inside(spaces, layout, area.space, at, f"{name}.{spelled(area.steps, element)}")
