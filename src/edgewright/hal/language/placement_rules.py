"""Constraints on where fields lie: together(a, b) puts fields into one register, pin(byte, bit) fixes their bits, and
stride(bytes) the distance between the elements of an array of groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from .description import Bus, Child, Description, Field, Group, Refusal

_FARTHEST = 1 << 20  # bytes: no group reaches so far


def with_bonds(groups: Mapping[str, Group], refusals: list[Refusal]) -> dict[str, Group]:
    """The groups, with `together` of each field completed to its whole set, in the order of the group."""
    return {name: _bonded(group, refusals) for name, group in groups.items()}


def _bonded(group: Group, refusals: list[Refusal]) -> Group:
    fields = {field.name: field for field in group.fields}
    home = {name: {name} for name in fields}
    for field in fields.values():
        for other in field.together:
            if fault := _fault(field, other, fields, group):
                refusals.append(Refusal(field.place, f"'{group.name}::{field.name}' {fault[0]}", fault[1]))
                continue
            joined = home[field.name] | home[other]
            home |= dict.fromkeys(joined, joined)
    sets = {name: tuple(one for one in fields if one in found) for name, found in home.items() if len(found) > 1}
    return group.with_fields(lambda field: replace(field, together=sets.get(field.name, ())))


def _fault(field: Field, other: str, fields: Mapping[str, Field], group: Group) -> tuple[str, str] | None:
    what = f"is together with '{other}'"
    if other not in fields:
        return f"{what}, which is no field of '{group.name}'", f"known are {', '.join(fields)}"
    if other == field.name:
        return f"{what}, itself", "name the fields beside it"
    for one in (field, fields[other]):
        if one.count is not None:
            return f"{what}, and '{one.name}' is an array", "put the array around a group that has both"
    return None


def bond_faults(description: Description) -> Iterator[Refusal]:
    """Sets of fields declared together that fit no register."""
    for group in description.groups.values():
        for names in dict.fromkeys(field.together for field in group.fields if field.together):
            fields = [description.field(group.name, name) for name in names]
            for what, hint in _set_faults(fields, description.bus_of(group.name).width):
                yield Refusal(fields[0].place, f"'{group.name}': {_listed(names)} are together, {what}", hint)
            for field in fields:
                nature = description.nature(group.name, field.name)
                acts = "reading" if nature.reading_acts else "writing" if nature.writing_acts else None
                if acts or not nature.readable:
                    why = f"{acts} '{field.name}' acts" if acts else f"'{field.name}' is wo"
                    what = f"'{group.name}': {_listed(names)} are together, and {why}: it is accessed alone"
                    yield Refusal(field.place, what, "leave it out of together")


def _set_faults(fields: list[Field], width: int) -> Iterator[tuple[str, str]]:
    bits = sum(field.bits for field in fields)
    if bits > width:
        hint = "let reading one latch the others (rse), or read the upper part again and compare"
        yield f"and their {bits} bits do not fit into one access of {width}", hint
    if len({field.protection for field in fields}) > 1:
        yield "and differ in protection", "a register has one: give all of them the same"
    if len({field.pinned is None for field in fields}) > 1:
        yield "and only some of them are pinned", "pin all of them or none"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def pin_faults(description: Description) -> Iterator[Refusal]:
    """Pins that no layout can keep."""
    for group in description.groups.values():
        bus = description.bus_of(group.name)
        pinned = [field for field in group.fields if field.pinned]
        for field in pinned:
            if fault := _pin_fault(field, bus):
                yield Refusal(field.place, f"'{group.name}::{field.name}' {fault[0]}", fault[1])
        yield from _overlaps(group, pinned)


def _pin_fault(field: Field, bus: Bus) -> tuple[str, str] | None:
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
        (first, end), (start, last) = _pinned_bits(one), _pinned_bits(other)
        if first < last and start < end:
            what = f"'{group.name}::{one.name}' and '{group.name}::{other.name}' are pinned to the same bits"
            yield Refusal(other.place, what, "pin one of them elsewhere")


def _pinned_bits(field: Field) -> tuple[int, int]:
    """The bits from the start of the group that a pinned field takes."""
    assert field.pinned is not None
    first = 8 * field.pinned[0] + field.pinned[1]
    return first, first + field.bits


def stride_faults(description: Description) -> Iterator[Refusal]:
    """Strides that no layout can keep."""
    for home in description.groups.values():
        for child in home.children:
            if child.stride is not None and (fault := _stride_fault(child, description)):
                what = f"'{home.name}::{child.name}' has a stride of {child.stride} bytes, and {fault[0]}"
                yield Refusal(child.place, what, fault[1])


def _stride_fault(child: Child, description: Description) -> tuple[str, str] | None:
    assert child.stride is not None
    group, word = description.groups[child.group], description.bus_of(child.group).width // 8
    if not 0 < child.stride < _FARTHEST or child.stride % word:
        hint = f"take a multiple of {word}, or declare a narrower bus"
        return f"the elements of an array begin at whole words of {8 * word} bits", hint
    if (other := description.stride_of(child.group)) != child.stride:
        return f"another array of '{child.group}' has one of {other}", "define a group for each"
    ends = ((_pinned_bits(field)[1], field.name) for field in group.fields if field.pinned)
    last, name = max(ends, default=(0, ""))
    if last > 8 * child.stride:
        return f"'{child.group}::{name}' ends at byte {-(-last // 8)}", "pin it lower, or take a larger stride"
    return None
