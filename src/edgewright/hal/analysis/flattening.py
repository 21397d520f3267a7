"""From groups to spaces: groups that no pointer reaches and arrays that no index needs are dissolved (S 6.4.3).

A group keeps a space of its own where code holds a pointer to it, where a device is made of it, where a field of it is
pinned, where its stride is stated, and where it holds such a group: then C's own rules for structs find every area,
whatever the expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...errors import InputError
from ..language.description import Child, Description, Field
from .accesses import Access, Expression
from .functions import Function
from .spaces import Area, Slot, Space, Spaces, Steps, Use

_POSTFIX = re.compile(r"[A-Za-z_]\w*((->|\.)\w+|\[\w+\])*")  # an expression that -> can follow as it is


def flatten(
    description: Description, functions: Sequence[Function]
) -> tuple[dict[str, Space], dict[tuple[str, int], Use]]:
    """The spaces of a description, children before parents, and every access in terms of them."""
    accesses = [access for function in functions for access in function.accesses]
    flat = _Flat(description, _own_spaces(description, functions), _indexed(description, accesses))
    spaces = {name: flat.space(name) for name in description.groups if name in flat.kept}
    uses = {(access.function, access.number): _use(flat, spaces, access) for access in accesses}
    return spaces, uses


@dataclass(frozen=True, slots=True)
class _Flat:
    """Which groups stay, and which arrays (group, member) stay arrays."""

    description: Description
    kept: frozenset[str]
    indexed: frozenset[tuple[str, str]]

    def space(self, name: str) -> Space:
        areas = tuple(
            Area(child.name, ((child.name, None),), child.group)
            if child.count is None
            else Area(child.name, ((child.name, -1),), child.group, (child.count,))
            for child in self.description.groups[name].children
            if child.group in self.kept
        )
        taken = {area.name for area in areas}
        slots: list[Slot] = []
        for steps, group, field, counts in self._fields(name, (), ()):
            slots.append(Slot(_unique_name(steps, taken), steps, group, field, counts))
            taken.add(slots[-1].name)
        return Space(name, tuple(slots), areas)

    def _fields(
        self, group: str, steps: Steps, counts: tuple[int, ...]
    ) -> Iterator[tuple[Steps, str, Field, tuple[int, ...]]]:
        for member in self.description.groups[group].members:
            is_elsewhere = member.group in self.kept if isinstance(member, Child) else member.is_gathered
            if is_elsewhere:
                continue
            for step, count in self._elements(group, member):
                path, all_counts = (*steps, step), (*counts, *count)
                if isinstance(member, Field):
                    yield path, group, member, all_counts
                else:
                    yield from self._fields(member.group, path, all_counts)

    def _elements(self, group: str, member: Field | Child) -> Iterable[tuple[tuple[str, int | None], tuple[int, ...]]]:
        if member.count is None:
            return [((member.name, None), ())]
        if (group, member.name) in self.indexed:
            return [((member.name, -1), (member.count,))]
        return [((member.name, element), ()) for element in range(member.count)]


def _own_spaces(description: Description, functions: Sequence[Function]) -> frozenset[str]:
    """The groups that keep a layout of their own."""
    kept = {device.group for device in description.devices}
    for function in functions:
        kept |= {parameter.group for parameter in function.parameters if parameter.group is not None}
        kept |= function.pointed | {access.group for access in function.accesses if access.device is None}
    kept |= {group.name for group in description.groups.values() if any(field.pinned for field in group.fields)}
    kept |= {name for name in description.groups if description.stride_of(name) is not None}
    for name, group in description.groups.items():  # children come first, so one sweep reaches all that hold them
        if any(child.group in kept for child in group.children):
            kept.add(name)
    return frozenset(kept)


def _indexed(description: Description, accesses: Iterable[Access]) -> frozenset[tuple[str, str]]:
    """The arrays that some access indexes at run time; pinned ones too, for their elements stay in a row."""
    found = {
        (group.name, field.name) for group in description.groups.values() for field in group.fields if field.pinned
    }
    steps = ((group, hop) for access in accesses for group, hop, _ in access.members(description))
    return frozenset(found | {(group, hop.member) for group, hop in steps if hop.index and hop.index.value is None})


def _use(flat: _Flat, spaces: Spaces, access: Access) -> Use:
    """Walks from the base to the field: through areas to the last space, then to the slot in it."""
    space, area_path = access.group, ""
    steps: list[tuple[str, int | None]] = []
    indices: list[Expression] = []
    outer: list[Expression] = [access.base]
    is_bit = False
    for group, hop, member in access.members(flat.description):
        if isinstance(member, Child) and member.group in flat.kept:
            area_path += f".{hop.member}" + (f"[{hop.index.text}]" if hop.index else "")
            outer += [hop.index] if hop.index else []
            space = member.group
        elif hop.index is None or member.count is None:  # a field, a word, or a bit of that
            steps.append((hop.member, None))
            indices += [hop.index] if hop.index else []
            is_bit = hop.index is not None
        elif (group, hop.member) in flat.indexed:
            steps.append((hop.member, -1))
            indices.append(hop.index)
        else:
            steps.append((hop.member, hop.index.value))
    needed = [*outer, *indices]
    return Use(
        access,
        space,
        _base(access.base.text, area_path),
        _slot_at(spaces[space], tuple(steps), access),
        tuple(indices),
        frozenset[str]().union(*(expression.names for expression in needed)),
        all(expression.pure for expression in needed),
        is_bit,
    )


def _slot_at(space: Space, steps: Steps, access: Access) -> str:
    if steps in space.by_steps:
        return space.by_steps[steps].name
    raise InputError(
        f"{access.place}: {access.name} is outside its array. "
        f"Use an index below the number of elements that the group declares."
    )


def _base(text: str, area_path: str) -> str:
    """A pointer to the space: the access's own, or the address of the area it goes through."""
    if not area_path:
        return text
    pointer = text if _POSTFIX.fullmatch(text) else f"({text})"
    return f"&{pointer}->{area_path[1:]}"


def _unique_name(steps: Steps, taken: set[str]) -> str:
    name = "_".join(member if index is None or index < 0 else f"{member}_{index}" for member, index in steps)
    while name in taken:
        name += "_"
    return name
