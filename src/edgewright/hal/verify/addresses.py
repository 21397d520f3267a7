"""Names for addresses, which differ with the layout: groups in devices, and objects of a built driver."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import product

from ..analysis.spaces import Spaces
from ..language.description import Description
from ..layout.layout import Layout, offset_of, spelled
from .build import BUFFERS, DATA, Built

_TEXT = 64  # bytes of a constant without a name that are compared


class Addresses:
    """What a word points to, if it lies in the driver's code, constants or variables."""

    def __init__(self, built: Built) -> None:
        self._built = built

    def named(self, word: int) -> str | None:
        """A function, or a byte of a constant or variable, by its name; a constant without a name by its text.

        Nothing points into the middle of a function: there a word is a number.
        """
        base = self._built.base
        if not base <= word < base + BUFFERS:
            return None
        if word & ~1 in self._functions:
            return f"function {self._functions[word & ~1]}"
        if self._built.elf.function_at(word) is not None:
            return None
        at = bisect_right(self._objects, (word, 1 << 32, "")) - 1
        if at >= 0:
            start, size, name = self._objects[at]
            if word < start + size:
                return f"{name} + {word - start}"
        return f"constant {self._text(word).hex()}" if word < base + DATA else None

    @cached_property
    def _functions(self) -> dict[int, str]:
        return {start: _plain(name) for start, _, name in self._built.elf.functions}

    @cached_property
    def _objects(self) -> list[tuple[int, int, str]]:
        found = self._built.elf.symbols.items()
        return sorted(
            (start, size, _plain(name)) for name, (start, size) in found if size and start & ~1 not in self._functions
        )

    def _text(self, word: int) -> bytes:
        for segment in self._built.elf.segments:
            if segment.address <= word < segment.address + len(segment.data):
                return segment.data[word - segment.address :][:_TEXT].split(b"\0")[0]
        return b""


def _plain(name: str) -> str:
    """A name without the number by which compilers tell apart those of equal name in several functions."""
    return name.lstrip(".").split(".")[0]


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
