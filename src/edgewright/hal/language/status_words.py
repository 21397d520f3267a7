"""Status words: `gathers(channels, done)` makes a field of one bit of every element of an array.

Bit n of the word is `channels[n].done`, and nothing else is: the elements' field has no place of its own, and code that
names an element accesses a bit of the word. Writing 0 to such bits does nothing, so that no write puts others back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from .description import Child, Description, EffectTarget, Field, Group, Mode, Refusal

_OWN = "it has the attributes of its bits: give them to these"


def with_words(groups: Mapping[str, Group], refusals: list[Refusal]) -> dict[str, Group]:
    """The groups with their status words: a word is like its bits, and what touches a bit touches the word."""
    bits: dict[tuple[str, str], list[EffectTarget]] = {}  # field of the elements to the words that gather it
    words: dict[tuple[str, str], Field] = {}
    for group in groups.values():
        for word in (field for field in group.fields if field.gathers):
            if fault := _fault(word, group, groups):
                refusals.append(Refusal(word.place, f"'{group.name}::{word.name}' {fault[0]}", fault[1]))
                continue
            owner, bit = _bit(word, group, groups)
            bits.setdefault((owner, bit.name), []).append(EffectTarget(group.name, word.name))
            words[group.name, word.name] = _like(word, bit)
    for (owner, name), gathering in bits.items():
        refusals += _loose(owner, name, gathering, groups)
    if not words:
        return dict(groups)

    description = Description(groups, ())

    def touching(targets: tuple[EffectTarget, ...]) -> tuple[EffectTarget, ...]:
        also = [word for bit, gathering in bits.items() if description.touched(targets, *bit) for word in gathering]
        return tuple(dict.fromkeys((*targets, *also)))

    def changed(group: str, field: Field) -> Field:
        field = words.get((group, field.name), field)
        is_gathered = (group, field.name) in bits
        return replace(field, rse=touching(field.rse), wse=touching(field.wse), is_gathered=is_gathered)

    return {name: group.with_fields(partial(changed, name)) for name, group in groups.items()}


def _bit(word: Field, group: Group, groups: Mapping[str, Group]) -> tuple[str, Field]:
    """The field that a word gathers, and the group that declares it."""
    member = group.member(word.gathers[0])
    if isinstance(member, Field):
        return group.name, member
    found = groups[member.group].member(word.gathers[1])
    assert isinstance(found, Field)
    return member.group, found


def _like(word: Field, bit: Field) -> Field:
    """The word with the attributes of its bits."""
    return replace(
        word,
        mode=bit.mode,
        w1c=bit.w1c,
        w1s=bit.w1s,
        by_hardware=bit.by_hardware,
        protection=bit.protection,
        shared_with_isr=word.shared_with_isr or bit.shared_with_isr,
        reset=(1 << word.bits) - 1 if bit.reset else 0,
    )


def _fault(word: Field, group: Group, groups: Mapping[str, Group]) -> tuple[str, str] | None:
    """Why a status word is not possible, and what to write instead."""
    what = f"gathers {', '.join(word.gathers)}"
    array = next((member for member in group.members if member.name == word.gathers[0]), None)
    if array is None or array.count is None:
        return f"{what}, and '{word.gathers[0]}' is no array of '{group.name}'", "name an array beside it"
    names = word.gathers[1:]
    inside = {field.name for field in groups[array.group].fields} if isinstance(array, Child) else set()
    if isinstance(array, Child) and (len(names) != 1 or names[0] not in inside):
        return f"{what}, which is no field of '{array.group}'", f"known are {', '.join(sorted(inside))}"
    if isinstance(array, Field) and names:
        return f"{what}, and '{array.name}' is an array of fields", f"write gathers({array.name})"
    _, bit = _bit(word, group, groups)
    if bit.bits != 1 or (isinstance(array, Child) and bit.count is not None):
        return f"{what}, which is no single bit", "gather fields of one bit"
    if not (bit.mode is Mode.RO or bit.w1c or bit.w1s):
        return (
            f"{what}, and writing one bit would have to put back the others",
            "gather fields that are ro, w1c or w1s",
        )
    if bit.rse or bit.wse or bit.clear_on_read or bit.pinned or bit.gathers:
        return (f"{what}, and accessing that acts or its place is fixed", "pin the word, name the word in rse and wse")
    if word.bits != array.count or word.count is not None:
        return f"{what} and has not one bit for each element", f"write uint{array.count}"
    plain = Field(word.name, word.bits, word.place, gathers=word.gathers, shared_with_isr=word.shared_with_isr)
    if replace(word, pinned=None, together=()) != plain:
        return f"{what} and is more than that", _OWN
    return None


def _loose(owner: str, name: str, gathering: list[EffectTarget], groups: Mapping[str, Group]) -> Iterator[Refusal]:
    """Elements whose bit is in no status word, or in two."""
    homes = [(group.name, child) for group in groups.values() for child in group.children if child.group == owner]
    gathered = [(target.group, _word(groups, target).gathers[0]) for target in gathering]
    hint = "let exactly one word gather it wherever its group is"
    for home, child in homes:
        if (home, child.name) not in gathered:
            yield Refusal(child.place, f"no word gathers '{name}' of '{home}::{child.name}', as others do", hint)
    for target in gathering:
        if gathered.count((target.group, _word(groups, target).gathers[0])) > 1:
            yield Refusal(_word(groups, target).place, f"'{owner}::{name}' is gathered twice", hint)


def _word(groups: Mapping[str, Group], target: EffectTarget) -> Field:
    return next(field for field in groups[target.group].fields if field.name == target.member)


def word_of(description: Description, group: str, gathers: tuple[str, ...]) -> Field:
    """The word of a group that gathers an array, or a field of its elements."""
    return next(field for field in description.groups[group].fields if field.gathers == gathers)
