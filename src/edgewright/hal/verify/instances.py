"""Where groups lie: every instance of every space in the devices, by address."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..analysis.spaces import Spaces
from ..language.description import Description
from ..layout.layout import Layout, spelled

Instances = dict[str, dict[int, str]]  # by space: address to name, "gpio" or "gpio.pads[3]"


def instances_of(description: Description, spaces: Spaces, layout: Layout) -> Instances:
    found: Instances = {name: {} for name in spaces}
    for device in description.devices:
        for space, address, name in _inside(spaces, layout, device.group, device.address, device.name):
            found[space][address] = name
    return found


def _inside(spaces: Spaces, layout: Layout, space: str, address: int, name: str) -> Iterator[tuple[str, int, str]]:
    yield space, address, name
    places = {place.area: place for place in layout.spaces[space].areas}
    for area in spaces[space].areas:
        place = places[area.name]
        for element in product(*map(range, area.counts)):
            at = address + place.offset + sum(i * stride for i, stride in zip(element, place.strides, strict=True))
            yield from _inside(spaces, layout, area.space, at, f"{name}.{spelled(area.steps, element)}")
