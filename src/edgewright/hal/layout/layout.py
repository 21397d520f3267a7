"""Layouts: which bits of which registers hold each slot, and what that comes to for each device."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from ..analysis.spaces import Space, Spaces
from ..language.description import Description, Field


@dataclass(frozen=True, slots=True)
class Piece:
    """Bits of a register that hold a slot, part of it or, in lanes, several elements of its last dimension."""

    slot: str
    bit: int
    size: int
    low: int = 0  # first bit of the field that is held here: fields wider than the bus have several pieces
    lanes: int = 1  # a power of two; lane k lies at bit + k * size


@dataclass(frozen=True)
class Register:
    """A register, or an array of them: one for each element of its slots, which all have the same counts."""

    offset: int  # bytes from the start of the space
    width: int  # bits of an access
    pieces: tuple[Piece, ...]
    counts: tuple[int, ...] = ()  # with lanes, the last counts registers
    strides: tuple[int, ...] = ()  # bytes

    @property
    def lanes(self) -> int:
        return self.pieces[0].lanes

    @cached_property
    def slots(self) -> frozenset[str]:
        return frozenset(piece.slot for piece in self.pieces)

    @property
    def end(self) -> int:
        """One past its last byte, all elements included."""
        return self.offset + offset_of([count - 1 for count in self.counts], self.strides) + self.width // 8


@dataclass(frozen=True, slots=True)
class WriteView:
    """A second address of a register at which a write affects only some of its fields, so that nothing has to be read
    and written back.

    The fields have the same bits at both addresses, and elements of arrays lie as far apart.
    """

    offset: int  # bytes from the start of the space
    slots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AreaPlace:
    area: str
    offset: int
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class SpaceLayout:
    space: str
    registers: tuple[Register, ...]
    areas: tuple[AreaPlace, ...]
    size: int  # bytes, a multiple of the bus width
    views: tuple[WriteView, ...] = ()

    def holding(self, slot: str) -> tuple[Register, ...]:
        """The registers of a slot: one, or several for a field wider than the bus."""
        return self._homes.get(slot, ())

    def holding_any(self, slots: Iterable[str]) -> Iterable[Register]:
        """The registers with some of these slots, each once."""
        return {register.offset: register for slot in slots for register in self.holding(slot)}.values()

    @cached_property
    def _homes(self) -> Mapping[str, tuple[Register, ...]]:
        found: dict[str, tuple[Register, ...]] = {}
        for register in self.registers:
            found |= {slot: (*found.get(slot, ()), register) for slot in register.slots}
        return found

    def place_of(self, area: str) -> AreaPlace:
        return next(place for place in self.areas if place.area == area)

    def seen(self, view: WriteView) -> Register:
        """What a view shows of its register, at the address of the view."""
        (register,) = self.holding(view.slots[0])
        pieces = tuple(piece for piece in register.pieces if piece.slot in view.slots)
        return replace(register, offset=view.offset, pieces=pieces)

    def view_of(self, register: Register, slots: Container[str]) -> Register | None:
        """The view for a write of those fields of a register that are among the slots, where there is one."""
        if not self.views:
            return None
        return self._views.get(frozenset(piece.slot for piece in register.pieces if piece.slot in slots))

    @cached_property
    def _views(self) -> Mapping[frozenset[str], Register]:
        """What views show, by the slots that they show."""
        return {frozenset(view.slots): self.seen(view) for view in reversed(self.views)}


@dataclass(frozen=True, slots=True)
class Layout:
    spaces: Mapping[str, SpaceLayout]
    made_by: str  # "naive", "paper", "optimal", "lock"
    optimal: bool = False  # proven least cost
    cost: float | None = None
    bound: float | None = None  # no layout costs less
    is_fixed: bool = False  # the map of hardware that exists: judged by what the code does with it

    def map_bytes(self, description: Description) -> int:
        return sum(self.spaces[device.group].size for device in description.devices)


@dataclass(frozen=True, slots=True)
class FieldAt:
    """A field, or part of it, in a register of a device."""

    name: str  # "pads[3].dir"
    group: str
    field: Field
    bit: int
    size: int
    low: int = 0


@dataclass(frozen=True, slots=True)
class RegisterAt:
    device: str
    offset: int  # bytes from the device's address
    width: int
    fields: tuple[FieldAt, ...]
    is_view: bool = False  # of fields that lie in another register: only writes go here


def elaborate(description: Description, spaces: Spaces, layout: Layout) -> tuple[RegisterAt, ...]:
    """Every register of every device with the fields in it: arrays written out, by address."""
    found: list[RegisterAt] = []
    for device in description.devices:
        registers = _registers(spaces, layout, device.group, device.name, 0, "")
        found += sorted(registers, key=lambda register: register.offset)
    return tuple(found)


def _registers(spaces: Spaces, layout: Layout, name: str, device: str, start: int, prefix: str) -> Iterator[RegisterAt]:
    space, placed = spaces[name], layout.spaces[name]
    views = tuple(map(placed.seen, placed.views))
    for register in (*placed.registers, *views):
        for element in product(*map(range, register.counts)):
            offset = start + register.offset + offset_of(element, register.strides)
            fields = tuple(f for p in register.pieces for f in _fields(space, p, element, prefix))
            if fields:
                yield RegisterAt(device, offset, register.width, fields, register in views)
    for area in space.areas:
        place = placed.place_of(area.name)
        for element in product(*map(range, area.counts)):
            offset = start + place.offset + offset_of(element, place.strides)
            inner = f"{prefix}{spelled(area.steps, element)}."
            yield from _registers(spaces, layout, area.space, device, offset, inner)


def _fields(space: Space, piece: Piece, element: tuple[int, ...], prefix: str) -> Iterator[FieldAt]:
    slot = space.slot(piece.slot)
    for lane in range(piece.lanes):
        index = element if piece.lanes == 1 else (*element[:-1], element[-1] * piece.lanes + lane)
        if all(i < count for i, count in zip(index, slot.counts, strict=True)):
            name = prefix + spelled(slot.steps, index)
            yield FieldAt(name, slot.group, slot.field, piece.bit + lane * piece.size, piece.size, piece.low)


def offset_of(index: Sequence[int], strides: Sequence[int]) -> int:
    """Bytes from the first element of an array to that with this index in each dimension."""
    return sum(number * stride for number, stride in zip(index, strides, strict=True))


def spelled(steps: tuple[tuple[str, int | None], ...], element: tuple[int, ...]) -> str:
    """A path with its indices: a step of -1 takes the next of `element`."""
    rest = iter(element)
    words = []
    for member, index in steps:
        number = next(rest) if index == -1 else index
        words.append(member if number is None else f"{member}[{number}]")
    return ".".join(words)
