"""Cells: which slots share a register, before bits and addresses are chosen, and the cells that pins determine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..analysis.spaces import Slot, Space
from ..language.description import Bus, Description


@dataclass(frozen=True, slots=True)
class Cell:
    """Slots of equal counts that share a register. With lanes, a single slot with several elements side by side."""

    slots: tuple[str, ...]
    lanes: int = 1
    offset: int | None = None  # where a pin says so
    views: tuple[tuple[str, ...], ...] = ()  # slots that writes reach alone, at further addresses


Cells = Mapping[str, tuple[Cell, ...]]  # by space


def width_for(bits: int, bus: Bus) -> int:
    """The width of a register for so many bits: the bus's, or less where byte lanes are declared."""
    width = bus.narrowest
    while width < bits and width < bus.width:
        width *= 2
    return width


def most_lanes(slot: Slot, width: int) -> int:
    """How many elements of the slot's last dimension fit side by side: a power of two, 1 where it has none."""
    if not slot.counts or slot.field.bits * 2 > width:
        return 1
    lanes = 1 << ((width // slot.field.bits).bit_length() - 1)
    while lanes >= 2 * slot.counts[-1]:
        lanes //= 2
    return lanes


def pinned_cells(description: Description, space: Space) -> tuple[Cell, ...]:
    """Cells of the pinned slots: those whose registers would overlap share one; no other slot joins them."""
    bus = description.bus_of(space.name)
    found: list[tuple[int, int, tuple[str, ...]]] = []  # offset, end, slots
    for slot in space.slots:
        if slot.field.pinned is None:
            continue
        start, end = _span(slot, bus)
        touching = [span for span in found if span[0] < end and start < span[1]]
        found = [span for span in found if span not in touching]
        names = tuple(name for span in touching for name in span[2])
        start, end = min([start, *(s[0] for s in touching)]), max([end, *(s[1] for s in touching)])
        found.append((start, end, (*names, slot.name)))
    return tuple(Cell(names, offset=start) for start, _, names in sorted(found))


def _span(slot: Slot, bus: Bus) -> tuple[int, int]:
    """The first byte of the register that a pin asks for, and one past it."""
    assert slot.field.pinned is not None
    byte, bit = slot.field.pinned
    first = byte * 8 + bit
    width = width_for(slot.field.bits, bus)
    while width < bus.width and first // width != (first + slot.field.bits - 1) // width:
        width *= 2
    start = first // width * (width // 8)
    return start, start + width // 8 * -(-slot.field.bits // width)
