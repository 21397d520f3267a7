"""Which HAL functions a driver needs, and what they are called (S 6.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..analysis.accesses import Kind
from ..analysis.functions import Function
from ..design import Design
from ..merging import Merge


@dataclass(frozen=True, slots=True)
class Call:
    """One HAL function: the slots of a space that it reads or writes at once."""

    kind: Kind
    space: str
    slots: tuple[str, ...]


def call_of(merge: Merge) -> Call:
    return Call(merge.kind, merge.at.space, merge.slots)


def needed_calls(design: Design) -> tuple[Call, ...]:
    """Each function once: by space, reads first, then as the driver first asks for them."""
    found = dict.fromkeys(call for function in design.analysis.functions for call in _calls(design, function))
    order = list(design.analysis.spaces)
    return tuple(sorted(found, key=lambda call: (order.index(call.space), call.kind is Kind.WRITE)))


def _calls(design: Design, function: Function) -> Iterator[Call]:
    merge_of = merges_by_access(design, function)
    for access in function.accesses:
        use = design.analysis.uses[function.name, access.number]
        merge = merge_of.get(access.number)
        yield call_of(merge) if merge else Call(access.kind, use.space, (use.slot,))


def merges_by_access(design: Design, function: Function) -> dict[int, Merge]:
    merging = design.merging.get(function.name)
    return {use.access.number: merge for merge in (merging.merges if merging else ()) for use in merge.uses}


def names_of(calls: tuple[Call, ...]) -> Mapping[Call, str]:
    """HAL_READ_<space>_<slots>; where underscores make two functions look the same, the later gets a number."""
    names: dict[Call, str] = {}
    for call in calls:
        plain = "_".join((f"HAL_{call.kind.name}", call.space, *call.slots))
        name, number = plain, 2
        while name in names.values():
            name, number = f"{plain}__{number}", number + 1
        names[call] = name
    return names
