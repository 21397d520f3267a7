"""What rse(...) and wse(...) name: a field, a member that is a group, a group, or group::field (S 6.3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from .description import Child, EffectTarget, Field, Group
from .refusal import Refusal


def with_targets(groups: Mapping[str, Group], refusals: list[Refusal]) -> dict[str, Group]:
    """The groups, their fields' side effects naming what they touch."""

    def found(field: Field, group: Group, targets: Iterable[EffectTarget]) -> tuple[EffectTarget, ...]:
        looked_up = [_look_up(target, group, groups) for target in targets]
        refusals.extend(Refusal(field.place, *answer) for answer in looked_up if isinstance(answer, tuple))
        return tuple(dict.fromkeys(answer for answer in looked_up if isinstance(answer, EffectTarget)))

    def resolved(member: Field | Child, group: Group) -> Field | Child:
        if isinstance(member, Child):
            return member
        return replace(member, rse=found(member, group, member.rse), wse=found(member, group, member.wse))

    return {
        name: replace(group, members=tuple(resolved(member, group) for member in group.members))
        for name, group in groups.items()
    }


def _look_up(written: EffectTarget, group: Group, groups: Mapping[str, Group]) -> EffectTarget | tuple[str, str]:
    """What a name stands for, or why it stands for nothing and what may have been meant."""
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
        what = f"a side effect names '{name}', which is no member of '{group.name}'" + (" and no group" if also else "")
        return (what if name else "a side effect names nothing"), _near(name, [*names, *also])
    member = group.member(name)
    return EffectTarget(member.group) if isinstance(member, Child) else EffectTarget(group.name, name)


def _near(name: str, names: Iterable[str]) -> str:
    known = list(names)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}"
