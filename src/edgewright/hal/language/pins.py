"""Fields pinned to a place in their group: a place that a register can have, and each its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from .description import Bus, Description, Field, Group
from .refusal import Refusal

_FARTHEST = 1 << 20  # bytes: no group reaches so far


def pin_faults(description: Description) -> Iterator[Refusal]:
    """Pins that no layout can keep."""
    for group in description.groups.values():
        bus = description.bus_of(group.name)
        pinned = [field for field in group.fields if field.pinned]
        for field in pinned:
            if fault := _fault(field, bus):
                yield Refusal(field.place, f"'{group.name}::{field.name}' {fault[0]}", fault[1])
        yield from _overlaps(group, pinned)


def _fault(field: Field, bus: Bus) -> tuple[str, str] | None:
    assert field.pinned is not None
    byte, bit = field.pinned
    if field.count is not None:
        return "is an array, and arrays cannot be pinned", "pin single fields"
    if not 0 <= byte < _FARTHEST or not 0 <= bit < bus.width:
        hint = f"pin(byte, bit) counts bytes from the start of its group, and bits from 0 to {bus.width - 1}"
        return f"is pinned to byte {byte}, bit {bit}", hint
    if byte % (bus.narrowest // 8):
        return f"is pinned to byte {byte}, where no register begins", f"take a multiple of {bus.narrowest // 8}"
    room = min(bus.width, 8 * (byte & -byte)) if byte else bus.width  # the widest access that is aligned there
    if (field.bits <= bus.width and bit + field.bits > room) or (field.bits > bus.width and (bit or room < bus.width)):
        return f"has {field.bits} bits, and from byte {byte}, bit {bit} it does not fit", "pin it lower"
    return None


def _overlaps(group: Group, pinned: list[Field]) -> Iterator[Refusal]:
    for one, other in combinations(pinned, 2):
        (first, end), (start, last) = _bits(one), _bits(other)
        if first < last and start < end:
            what = f"'{group.name}::{one.name}' and '{group.name}::{other.name}' are pinned to the same bits"
            yield Refusal(other.place, what, "pin one of them elsewhere")


def _bits(field: Field) -> tuple[int, int]:
    """The bits from the start of the group that a pinned field takes."""
    assert field.pinned is not None
    first = 8 * field.pinned[0] + field.pinned[1]
    return first, first + field.bits
