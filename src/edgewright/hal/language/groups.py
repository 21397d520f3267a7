"""Groups and devices as a driver's source declares them (S 6.3.1); attributes are left to `attributes`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from .attributes import attributed, contradictions, stated_stride, with_targets
from .cursors import KINDS, Cursor, children, cindex, is_group, notes, place, remark, span, walk
from .description import Bus, Child, Description, Field, Group, Refusal, Refused
from .devices import devices_of
from .nodes import ARRAYS
from .placement_rules import bond_faults, pin_faults, stride_faults, with_bonds
from .source import Source
from .status_words import with_words

_FIELD = re.compile(r"(?:hal_)?(?:(bit)|uint([1-9]\d?))")
_MOST = 1 << 16  # fields of a group, all elements of arrays counted: every one is written out in the register map


def describe(source: Source, bus: Bus | None = None) -> Description:
    """All groups and devices of a driver, or Refused with every rule that they break.

    `bus` is that of devices which declare none.
    """
    refusals: list[Refusal] = []
    groups = _groups(source, refusals)
    if refusals:
        raise Refused(refusals)  # what follows needs members that mean something
    groups = with_bonds(with_words(with_targets(groups, refusals), refusals), refusals)
    description = Description(groups, devices_of(source, groups, bus or Bus(), refusals))
    refusals += [*_torn(description), *_too_wide(description), *pin_faults(description), *bond_faults(description)]
    refusals += stride_faults(description)
    if refusals:
        raise Refused(refusals)
    return description


def _groups(source: Source, refusals: list[Refusal]) -> dict[str, Group]:
    """The groups by name, children before parents; the targets of side effects are not looked up yet."""
    found: dict[str, Group] = {}
    for cursor in _definitions(source, refusals):
        group = _group(cursor, found, refusals)
        known = found.setdefault(group.name, group)
        if known != group:
            refusals.append(Refusal(group.place, f"another group '{group.name}' is defined at {known.place}"))
    return found


def _definitions(source: Source, refusals: list[Refusal]) -> Iterator[Cursor]:
    """The definitions of groups, inner before outer."""
    for cursor in source.cursors:
        inside = sorted((inner for inner in walk(cursor) if is_group(inner)), key=lambda inner: span(inner)[1])
        yield from inside
        if inside and cursor.kind is not KINDS.STRUCT_DECL:
            what = "a group is defined within another declaration"
            hint = "define it by itself, bfGroup Name { … };, and use that name"
            refusals.append(Refusal(place(inside[0]), what, hint))


def _group(cursor: Cursor, known: Mapping[str, Group], refusals: list[Refusal]) -> Group:
    name = "" if cursor.is_anonymous() else str(cursor.spelling)
    if not re.fullmatch(r"\w+", name):
        refusals.append(Refusal(place(cursor), "a group without a name", "write bfGroup Name { … };"))
    if any(note != "group" for note, _ in notes(cursor)):  # clang takes what follows the brace for the group's
        refusals.append(Refusal(place(cursor), f"group '{name}' has attributes", "give them to its fields"))
    members: list[Field | Child] = []
    for child in children(cursor):
        if child.kind is KINDS.UNION_DECL or (child.kind is KINDS.STRUCT_DECL and not _is_named(child)):
            refusals.append(Refusal(place(child), f"'{name}' has a member that is no field and no group", _ONLY))
        elif child.kind is KINDS.FIELD_DECL:
            member = _member(child, name, known, refusals)
            members += [member] if member else []
    group = Group(name, tuple(members), place(cursor), remark(cursor))
    refusals += [] if members or refusals else [Refusal(group.place, f"group '{name}' is empty", _ONLY)]
    return _limited(group, known, refusals)


_ONLY = "a group has fields (bit, uint1 … uint64), groups and one-dimensional arrays of these"


def _is_named(cursor: Cursor) -> bool:
    return not cursor.is_anonymous() and (is_group(cursor) or not cursor.is_definition())


def _member(cursor: Cursor, group: str, known: Mapping[str, Group], refusals: list[Refusal]) -> Field | Child | None:
    """A field or a child; None once the refusal says why it is neither."""
    here, name = place(cursor), str(cursor.spelling)
    kind, count = _element(cursor.type)
    if (fault := _fault(cursor, kind, count)) is not None:
        refusals.append(Refusal(here, f"'{group}::{name}' {fault[0]}", fault[1]))
    elif bits := _bits(kind):
        field = attributed(Field(name, bits, here, count, about=remark(cursor)), notes(cursor))
        faults = contradictions(field, notes(cursor))
        refusals += [Refusal(here, f"'{group}::{name}' {what}", hint) for what, hint in faults]
        return field
    elif (inner := kind.get_canonical().get_declaration().spelling) in known:
        child = Child(name, str(inner), here, count)
        stride, trouble = stated_stride(child, notes(cursor))
        refusals += [Refusal(here, f"'{group}::{name}' {what}", hint) for what, hint in trouble]
        return replace(child, stride=stride)
    else:
        refusals.append(Refusal(here, f"'{group}::{name}' is '{kind.spelling}', no field and no group", _ONLY))
    return None


def _element(kind: cindex.Type) -> tuple[cindex.Type, int | None]:
    """A member's type without its array, and the elements of that (-1: not known)."""
    whole = kind.get_canonical()
    if whole.kind not in ARRAYS:
        return kind, None
    while kind.kind not in ARRAYS:  # a typedef of an array
        kind = kind.get_declaration().underlying_typedef_type
    return kind.element_type, kind.element_count if kind.kind is cindex.TypeKind.CONSTANTARRAY else -1


def _fault(cursor: Cursor, kind: cindex.Type, count: int | None) -> tuple[str, str] | None:
    if cursor.is_bitfield():
        return "is a C bit-field", f"write uint{cursor.get_bitfield_width()} instead"
    if kind.get_canonical().kind in ARRAYS:
        return "is an array of arrays", "put a group with an array into an array"
    if count is not None and count < 1:
        return "is an array without elements", "give the number of elements"
    if kind.is_volatile_qualified() or kind.is_const_qualified():
        return "is const or volatile", "leave it out: ro and hw say what is meant"
    return None


def _bits(kind: cindex.Type) -> int | None:
    """The size of a field by the name of its type, also where that has another name by typedef."""
    while kind.kind in (cindex.TypeKind.TYPEDEF, cindex.TypeKind.ELABORATED):
        declaration = kind.get_declaration()
        if (match := _FIELD.fullmatch(declaration.spelling)) and (match[1] or int(match[2]) <= 64):
            return 1 if match[1] else int(match[2])
        if declaration.kind is not KINDS.TYPEDEF_DECL:
            return None
        kind = declaration.underlying_typedef_type
    return None


def _limited(group: Group, known: Mapping[str, Group], refusals: list[Refusal]) -> Group:
    """The group; one with too many elements is refused, and continues without any."""

    def elements(group: Group) -> int:
        inner = sum((child.count or 1) * elements(known[child.group]) for child in group.children)
        return inner + sum(field.count or 1 for field in group.fields)

    if elements(group) <= _MOST:
        return group
    refusals.append(Refusal(group.place, f"'{group.name}' has more than {_MOST} fields", "make its arrays smaller"))
    return replace(group, members=())


def _torn(description: Description) -> Iterator[Refusal]:
    """Groups whose devices lie on buses that have no width of an access in common: no register would suit both."""
    for name, group in description.groups.items():
        bus = description.bus_of(name)
        if bus.width < bus.narrowest:
            what = f"group '{name}' is on a bus of {bus.width} bits, and on one that accesses {bus.narrowest} at least"
            yield Refusal(group.place, what, "declare the same accesses with bus, or a group for each")


def _too_wide(description: Description) -> Iterator[Refusal]:
    """Fields wider than the bus that do not declare whether they may be accessed in parts."""
    for group in description.groups.values():
        width = description.bus_of(group.name).width
        for field in group.fields:
            what = f"'{group.name}::{field.name}' has {field.bits} bits, the bus {width}"
            acts = field.fifo or field.clear_on_read or field.rse or field.wse
            if field.bits > width and not field.split:
                yield Refusal(field.place, what, "declare it split if it may be accessed in parts")
            elif field.bits > width and acts:
                yield Refusal(field.place, f"{what}, and accessing it acts", "in parts it would act more than once")
