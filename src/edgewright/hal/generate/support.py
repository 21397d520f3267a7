"""Support structs: no fields, only where the groups inside a group lie (S 6.5).

With them `&gpio->pads[i]` keeps its meaning in code that is left as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd

from ..analysis.spaces import Area, Spaces
from ..language.description import Description
from ..layout.layout import Layout


def struct_sizes(spaces: Spaces, layout: Layout) -> Mapping[str, int]:
    """Bytes of each support struct: the stride where there are arrays of it, so that C finds their elements."""
    sizes = {name: layout.spaces[name].size for name in spaces}
    for name, space in spaces.items():
        for area in space.areas:
            sizes[area.space] = max(sizes[area.space], *layout.spaces[name].place_of(area.name).strides, 0)
    return sizes


def struct_alignments(
    description: Description, spaces: Spaces, layout: Layout, sizes: Mapping[str, int]
) -> Mapping[str, int]:
    """Bytes that each support struct is aligned to: a word of the bus, if its size and its places in others allow.

    Known alignment, not packing, is what lets compilers use whole words without a warning.
    """
    found = {name: gcd(sizes[name], description.bus_of(name).width // 8) for name in spaces}
    for name, space in spaces.items():
        for area in space.areas:
            found[area.space] = gcd(found[area.space], layout.spaces[name].place_of(area.name).offset)
    for name in reversed(list(spaces)):  # parents come last; what is aligned needs an aligned place
        for area in spaces[name].areas:
            found[area.space] = gcd(found[area.space], found[name])
    return found


def support_struct(spaces: Spaces, layout: Layout, name: str, sizes: Mapping[str, int], alignment: int) -> list[str]:
    """The lines of one support struct, with assertions that the compiler lays it out as we do."""
    offsets = {place.area: place.offset for place in layout.spaces[name].areas}
    areas = sorted(spaces[name].areas, key=lambda area: offsets[area.name])
    members = [f"    {line}" for line in _members(areas, offsets, sizes, sizes[name])]
    places = [
        _assertion(f"offsetof(struct {name}, {area.name}) == {offsets[area.name]}u", f"place of {name}::{area.name}")
        for area in areas
    ]
    size = _assertion(f"sizeof(struct {name}) == {sizes[name]}u", f"size of {name}")
    return [f"struct {name} {{", *members, f"}} __attribute__((aligned({alignment})));", size, *places]


def _members(areas: list[Area], offsets: Mapping[str, int], sizes: Mapping[str, int], size: int) -> Iterator[str]:
    """The groups inside with the padding between them."""
    at = 0
    for area in areas:
        if offsets[area.name] > at:
            yield f"uint8_t pad{at}[{offsets[area.name] - at}];"
        count = area.counts[0] if area.counts else 1
        length = f"[{count}]" if area.counts else ""
        yield f"struct {area.space} {area.name}{length}; /* 0x{offsets[area.name]:x} */"
        at = offsets[area.name] + count * sizes[area.space]
    if size > at:
        yield f"uint8_t pad{at}[{size - at}];"


def _assertion(condition: str, message: str) -> str:
    return f'HAL_STATIC_ASSERT({condition}, "{message}");'
