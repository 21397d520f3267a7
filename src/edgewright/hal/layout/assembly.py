"""A layout assembled from cells: the bits in each register, then the addresses of registers and areas in each space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import prod

from ..analysis.spaces import Area, Slot, Space, Spaces
from ..language.description import Bus, Description
from .cells import Cell, Cells, width_for
from .layout import AreaPlace, Layout, Piece, Register, SpaceLayout, WriteView

Arrange = Callable[[Space, tuple[Slot, ...], int], Mapping[str, int]]  # space, slots, width -> first bit of each


def in_order(_space: Space, slots: tuple[Slot, ...], _width: int) -> dict[str, int]:
    """The first bit of each slot when they follow each other from bit 0."""
    starts = accumulate((slot.room for slot in slots), initial=0)
    return {slot.name: bit for slot, bit in zip(slots, starts, strict=False)}


@dataclass(frozen=True, slots=True)
class Assembly:
    """The options of assembling registers, beyond what the cells themselves say."""

    made_by: str
    arrange: Arrange = in_order
    registers_first: frozenset[str] = frozenset()  # spaces whose areas come after their registers
    power_of_two: bool = False
    narrow: bool = True  # registers below the bus width where byte lanes are declared


def assemble(description: Description, spaces: Spaces, cells: Cells, how: Assembly) -> Layout:
    """The layout that cells describe; spaces come children first, so that their sizes are known to parents."""
    placed: dict[str, SpaceLayout] = {}
    indexed = {area.space for space in spaces.values() for area in space.areas if area.counts}
    for name, space in spaces.items():
        bus = description.bus_of(name)
        padded = how.power_of_two and name in indexed and not is_spaced(description, space)
        found = _place(space, cells[name], bus, how, placed, padded)
        placed[name] = replace(found, size=max(found.size, description.stride_of(name) or 0))
    return Layout(placed, how.made_by)


def is_spaced(description: Description, space: Space) -> bool:
    """Whether hardware says how far apart the elements of a space lie: by their stride, or by pins of its fields."""
    return description.stride_of(space.name) is not None or any(slot.field.pinned for slot in space.slots)


@dataclass(slots=True)
class _OccupiedBytes:
    """The bytes of a space that are taken."""

    taken: list[tuple[int, int]] = field(default_factory=list)

    def find(self, size: int, alignment: int) -> int:
        """Reserves `size` bytes at the first free aligned offset, and returns it."""
        start = 0
        for first, end in sorted(self.taken):
            if start + size <= first:
                break
            start = max(start, -(-end // alignment) * alignment)
        self.taken.append((start, start + size))
        return start

    @property
    def end(self) -> int:
        return max((end for _, end in self.taken), default=0)


def _place(
    space: Space, cells: tuple[Cell, ...], bus: Bus, how: Assembly, placed: Mapping[str, SpaceLayout], padded: bool
) -> SpaceLayout:
    registers = [register for cell in cells for register in registers_of(space, cell, bus, how)]
    room = _OccupiedBytes([(offset, offset + register.end) for register, offset in registers if offset is not None])
    areas: list[AreaPlace] = []
    areas_first = space.name not in how.registers_first
    if areas_first:
        areas = [_area(area, placed, room) for area in space.areas]
    done = []
    for register, offset in sorted(registers, key=lambda pair: -pair[0].width):  # wide ones first: no gaps
        at = room.find(register.end, register.width // 8) if offset is None else offset
        done.append(replace(register, offset=at))
    views = [
        WriteView(room.find(register.end, register.width // 8), slots)
        for cell in cells
        for slots in cell.views
        for register, _ in registers_of(space, cell, bus, how)
    ]
    if not areas_first:
        areas = [_area(area, placed, room) for area in space.areas]
    done.sort(key=lambda register: register.offset)
    return SpaceLayout(space.name, tuple(done), tuple(areas), space_size(room.end, bus, padded), tuple(views))


def space_size(end: int, bus: Bus, padded: bool) -> int:
    """Bytes of a space whose last register or area ends there: whole bus words, at least one."""
    word = bus.width // 8
    size = max(word, -(-end // word) * word)
    return 1 << (size - 1).bit_length() if padded else size


def _area(area: Area, placed: Mapping[str, SpaceLayout], room: _OccupiedBytes) -> AreaPlace:
    inner = placed[area.space]
    widest = max((register.width // 8 for register in inner.registers), default=4)
    offset = room.find(inner.size * prod(area.counts), max(widest, 4))
    return AreaPlace(area.name, offset, tuple(inner.size for _ in area.counts))


def registers_of(space: Space, cell: Cell, bus: Bus, how: Assembly) -> list[tuple[Register, int | None]]:
    """The registers of a cell, all at 0, with the offset that a pin gives: several for a field wider than the bus."""
    slots = tuple(space.slot(name) for name in cell.slots)
    if cell.offset is not None:
        return _pinned(slots, cell.offset, bus, how)
    if slots[0].field.bits > bus.width:
        return [(register, None) for register in _parts(slots[0], bus, how)]
    bits = cell.lanes * sum(slot.field.bits for slot in slots)
    width = width_for(bits, bus) if how.narrow else bus.width
    first = how.arrange(space, slots, width)
    pieces = (Piece(slot.name, first[slot.name], slot.field.bits, 0, cell.lanes) for slot in slots)
    placed = tuple(sorted(pieces, key=lambda piece: piece.bit))
    return [(shaped(placed, width, slots[0].counts, how.power_of_two), None)]


def _pinned(slots: tuple[Slot, ...], offset: int, bus: Bus, how: Assembly) -> list[tuple[Register, int | None]]:
    if slots[0].field.bits > bus.width:
        size = prod(slots[0].counts) * bus.width // 8
        return [(part, offset + n * size) for n, part in enumerate(_parts(slots[0], bus, how))]
    pieces = []
    for slot in slots:
        assert slot.field.pinned is not None
        byte, bit = slot.field.pinned
        pieces.append(Piece(slot.name, (byte - offset) * 8 + bit, slot.field.bits))
    width = width_for(max(piece.bit + piece.size for piece in pieces), bus)
    return [(shaped(tuple(pieces), width, slots[0].counts, how.power_of_two), offset)]


def _parts(slot: Slot, bus: Bus, how: Assembly) -> list[Register]:
    """Registers for a field wider than the bus, low bits first."""
    lows = range(0, slot.field.bits, bus.width)
    pieces = (Piece(slot.name, 0, min(bus.width, slot.field.bits - low), low) for low in lows)
    return [shaped((piece,), bus.width, slot.counts, how.power_of_two) for piece in pieces]


def shaped(pieces: tuple[Piece, ...], width: int, counts: tuple[int, ...], power_of_two: bool) -> Register:
    """A register at 0 with one element for each of its slots' elements (fewer with lanes)."""
    lanes = pieces[0].lanes
    if counts and lanes > 1:
        counts = (*counts[:-1], -(-counts[-1] // lanes))
    strides: list[int] = []
    step = width // 8
    for count in reversed(counts):
        strides.insert(0, step)
        step *= count
        step = 1 << (step - 1).bit_length() if power_of_two else step
    return Register(0, width, pieces, counts, tuple(strides))


def lay_out_naive(description: Description, spaces: Spaces) -> Layout:
    """One register of the bus width for each slot (several for fields wider than the bus), in their order.

    Pins do not count: a field that shares a register would be read and put back, which the source does not say.
    """
    cells = {name: tuple(Cell((slot.name,)) for slot in space.slots) for name, space in spaces.items()}
    return assemble(description, spaces, cells, Assembly("naive", narrow=False))
