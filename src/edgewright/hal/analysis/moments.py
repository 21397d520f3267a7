"""Moments: accesses to fields declared `together`, which must happen in one access or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..language.description import Description, Refusal
from .accesses import Kind
from .clusters import hindrance
from .conflicts import Conflicts
from .spaces import Space, Spaces, Use

Bonds = Mapping[tuple[str, str], frozenset[str]]


def bonds_of(space: Space) -> tuple[frozenset[str], ...]:
    """The slots of a space that lie in one register because their fields are together."""
    found: dict[object, set[str]] = {}
    for slot in space.slots:
        if slot.field.together:
            found.setdefault((slot.steps[:-1], slot.group, slot.field.together), set()).add(slot.name)
    return tuple(frozenset(names) for names in found.values())


def bonded(spaces: Spaces) -> Bonds:
    """The set of every slot that is together with others, by space and slot."""
    return {(name, slot): bond for name, space in spaces.items() for bond in bonds_of(space) for slot in bond}


def moments_of(clusters: Iterable[Sequence[Use]], bonds: Bonds) -> tuple[tuple[Use, ...], ...]:
    """The accesses of clusters that must become one: of several fields that are together."""
    found = []
    for cluster in clusters:
        parts: dict[frozenset[str], list[Use]] = {}
        for use in cluster:
            if bond := bonds.get((use.space, use.slot)):
                parts.setdefault(bond, []).append(use)
        found += [tuple(part) for part in parts.values()]
    return tuple(found)


def split_moments(moments: Sequence[tuple[Use, ...]], judge: Conflicts, bonds: Bonds) -> Iterator[Refusal]:
    """Accesses of one function to fields declared together that are not merged, and why.

    Two moments are split where each has a field that the other lacks: what is read then belongs to two times.
    """
    for number, second in enumerate(moments):
        for first in moments[:number]:
            one, other = sorted((first[0], second[0]), key=lambda use: use.access.number)
            is_alike = one.key == other.key and one.access.kind is other.access.kind
            if not is_alike or other.slot not in bonds[one.space, one.slot]:
                continue
            mine, theirs = {use.slot for use in first}, {use.slot for use in second}
            is_later = judge.paths.is_on_the_way(one.access.number, other.access.number)
            if mine <= theirs or theirs <= mine or not is_later:
                continue
            reason = judge.reason(one.access, other.access) or hindrance(one, other, judge)
            verb = "read" if one.access.kind is Kind.READ else "written"
            what = f"'{one.access.field}' and '{other.access.field}' are together, and are {verb} by two accesses"
            why = f": {reason}" if reason else ""
            yield Refusal(other.access.place, what + why, f"let one follow the other (line {one.access.place.line})")


def partial_writes(
    moments: Sequence[tuple[Use, ...]], description: Description, spaces: Spaces, bonds: Bonds
) -> Iterator[Refusal]:
    """Writes of some of the fields that are together, where the others could not be put back."""
    for moment in moments:
        if moment[0].access.kind is not Kind.WRITE:
            continue
        space = spaces[moment[0].space]
        slots = [space.slot(name) for name in bonds[space.name, moment[0].slot]]
        found = {slot.field.name: description.nature(slot.group, slot.field.name) for slot in slots}
        written = {use.access.field for use in moment}
        left = sorted(name for name, nature in found.items() if nature.kept and name not in written)
        changing = sorted(name for name, nature in found.items() if nature.by_hardware)
        if left and changing:
            access = moment[-1].access
            what = f"'{access.field}' is written without '{left[0]}', and the two are together"
            why = f": '{changing[0]}', which hardware changes, could not be put back"
            yield Refusal(access.place, what + why, "write all of them, one after the other")
