"""The attributes of a field (S 6.3.2): what each sets, which contradict each other, and the targets of rse and wse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from .cursors import Cursor, constant
from .description import Child, EffectTarget, Field, Group, Mode, Protection, Refusal

Notes = Sequence[tuple[str, list[Cursor]]]
_FLAGS: dict[str, dict[str, Any]] = {
    "ro": {"mode": Mode.RO},
    "wo": {"mode": Mode.WO},
    "w1c": {"w1c": True},
    "w1s": {"w1s": True},
    "clear_on_read": {"clear_on_read": True},
    "fifo": {"fifo": True},
    "hw": {"by_hardware": True},
    "shared_with_isr": {"shared_with_isr": True},
    "split": {"split": True},
}
_PROTECTIONS = tuple(one.value for one in Protection)
_TARGETED = ("rse", "wse", "while_zero")
# Two attributes that one field cannot have, and why.
_APART = {
    ("ro", "wo"): "it could not be accessed at all",
    ("ro", "w1c"): "it is never written",
    ("ro", "w1s"): "it is never written",
    ("ro", "wse"): "it is never written",
    ("ro", "while_zero"): "it is never written",
    ("wo", "rse"): "it is never read",
    ("wo", "clear_on_read"): "it is never read",
    ("w1c", "w1s"): "writing 1 cannot do both",
    ("fifo", "w1c"): "writing a fifo appends",
    ("fifo", "w1s"): "writing a fifo appends",
    ("fifo", "clear_on_read"): "reading a fifo takes the next value",
    ("fifo", "reset_value"): "a fifo is empty after reset",
    ("fifo", "split"): "each part would take or append a value",
    ("split", "together"): "it could be accessed in parts",
}


def attributed(field: Field, notes: Notes) -> Field:
    """The field with its attributes; targets of side effects still belong to no group: (name) or (group, name)."""
    for name, arguments in notes:
        kind, _, text = name.partition(":")
        names = tuple(text.replace(" ", "").split(","))
        values = [constant(argument) or 0 for argument in arguments]
        if kind in _FLAGS:
            field = replace(field, **_FLAGS[kind])
        elif kind in (*_TARGETED, "together", "gathers"):
            more = _targets(names) if kind in _TARGETED else names
            field = replace(field, **{kind: getattr(field, kind) + more})
        elif kind == "reset_value":
            field = replace(field, reset=values[0])
        elif kind == "protection" and text in _PROTECTIONS:
            field = replace(field, protection=Protection(text))
        elif kind == "pin" and len(values) == 2:
            field = replace(field, pinned=(values[0], values[1]))
    return field


def _targets(names: Sequence[str]) -> tuple[EffectTarget, ...]:
    """The targets as written. `EffectTarget(name)` may mean a member or a group; `with_targets` looks it up."""
    pairs = [name.partition("::") for name in names]
    return tuple(EffectTarget(group, member if colons else None) for group, colons, member in pairs)


def contradictions(field: Field, notes: Notes) -> Iterator[tuple[str, str]]:
    """Attributes that exclude each other, each with what to try instead."""
    kinds = [name.partition(":")[0] for name, _ in notes]
    for (one, other), why in _APART.items():
        if one in kinds and other in kinds:
            yield f"is {one} and {other}: {why}", "take one of the two"
    for name, arguments in notes:
        if any(constant(argument) is None for argument in arguments):
            yield f"has a {name} that is no constant", "write a number, or a macro or enumerator for one"
        if name.startswith("protection:") and name.partition(":")[2] not in _PROTECTIONS:
            yield f"has protection({name.partition(':')[2]})", f"known are {', '.join(_PROTECTIONS)}"
    if "stride" in kinds:
        yield "has a stride and is a field", "give stride to an array of groups"
    for kind in ("reset_value", "pin", "protection"):
        if kinds.count(kind) > 1:
            yield f"has {kind} twice", "take one of the two"
    if not 0 <= field.reset < 1 << field.bits:
        yield f"has {field.bits} bits, and its reset value {field.reset} does not fit", "take a smaller one"


def stated_stride(child: Child, notes: Notes) -> tuple[int | None, list[tuple[str, str]]]:
    """The stride that an array of groups states, and what is wrong with its attributes."""
    strides = [constant(argument) for name, arguments in notes if name == "stride" for argument in arguments]
    faults = []
    if any(name != "stride" for name, _ in notes):
        faults.append(("is a group and has attributes", "give them to its fields"))
    if len(strides) > 1:
        faults.append(("has stride twice", "take one of the two"))
    if strides and child.count is None:
        faults.append(("has a stride and is no array", "leave it out: a single group has no next element"))
    if strides and strides[0] is None:
        faults.append(("has a stride that is no constant", "write a number, or a macro or enumerator for one"))
    return (strides[0] if strides else None), faults


def with_targets(groups: Mapping[str, Group], refusals: list[Refusal]) -> dict[str, Group]:
    """The groups, with the targets of all side effects resolved to fields."""

    def found(field: Field, group: Group, targets: Iterable[EffectTarget]) -> tuple[EffectTarget, ...]:
        looked_up = [_look_up(target, group, groups) for target in targets]
        refusals.extend(Refusal(field.place, *answer) for answer in looked_up if isinstance(answer, tuple))
        return tuple(dict.fromkeys(answer for answer in looked_up if isinstance(answer, EffectTarget)))

    def resolved(group: Group, field: Field) -> Field:
        rse, wse, locks = (found(field, group, targets) for targets in (field.rse, field.wse, field.while_zero))
        return replace(field, rse=rse, wse=wse, while_zero=locks)

    return with_locks({name: group.with_fields(partial(resolved, group)) for name, group in groups.items()}, refusals)


def with_locks(groups: Mapping[str, Group], refusals: list[Refusal]) -> dict[str, Group]:
    """The groups, where writing a field that locks others touches them (wse): so it keeps its order to their writes."""
    locked: dict[EffectTarget, list[EffectTarget]] = {}
    for group in groups.values():
        for field in group.fields:
            own = EffectTarget(group.name, field.name)
            for lock in field.while_zero:
                if lock.member is None or lock == own:
                    what = f"'{own}' may change while '{lock}' is 0, which is {'itself' if lock == own else 'a group'}"
                    refusals.append(Refusal(field.place, what, "name the field that enables the peripheral"))
                locked.setdefault(lock, []).append(own)

    def locking(group: Group, field: Field) -> Field:
        touched = () if field.mode is Mode.RO else tuple(locked.get(EffectTarget(group.name, field.name), ()))
        return replace(field, wse=tuple(dict.fromkeys((*field.wse, *touched))))

    return {name: group.with_fields(partial(locking, group)) for name, group in groups.items()}


def _look_up(written: EffectTarget, group: Group, groups: Mapping[str, Group]) -> EffectTarget | tuple[str, str]:
    """What a target's name refers to, or the reason why it refers to nothing with the nearest names."""
    if written.member is not None:
        if written.group not in groups:
            return f"no group '{written.group}'", _near(written.group, groups)
        return _of_group(groups[written.group], written.member)
    if any(member.name == written.group for member in group.members) or written.group not in groups:
        return _of_group(group, written.group, groups)
    return EffectTarget(written.group)


def _of_group(group: Group, name: str, also: Iterable[str] = ()) -> EffectTarget | tuple[str, str]:
    names = [member.name for member in group.members]
    if name not in names:
        what = f"an attribute names '{name}', which is no member of '{group.name}'" + (" and no group" if also else "")
        return (what if name else "an attribute names nothing"), _near(name, [*names, *also])
    member = group.member(name)
    return EffectTarget(member.group) if isinstance(member, Child) else EffectTarget(group.name, name)


def _near(name: str, names: Iterable[str]) -> str:
    known = list(names)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}"
