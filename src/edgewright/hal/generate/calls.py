"""Which HAL functions a driver needs, and what they are called (S 6.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..analysis.accesses import Form, Kind
from ..analysis.functions import Function
from ..analysis.spaces import Use
from ..design import Analysis, Design
from ..merge import Merge


@dataclass(frozen=True, slots=True)
class Call:
    """One HAL function: the slots of a space that it reads or writes at once."""

    kind: Kind
    space: str
    slots: tuple[str, ...]
    is_bit: bool = False  # one bit of each: of words that gather bits, by number
    is_polled: bool = False  # in the condition of a loop
    kept: tuple[str, ...] = ()  # slots that a write puts back: it is given what they hold
    mark: Mark | None = None  # only on the prototype, where functions of their own tell who calls

    @property
    def given(self) -> tuple[str, ...]:
        """The slots whose values a writing function is given, in this order."""
        return self.slots + self.kept


@dataclass(frozen=True, slots=True)
class Mark:
    """What the source promises about when an access happens: together with others, or as of an earlier read."""

    moment: str = ""  # accesses of fields that are together
    snapshot: str = ""  # reads that may all be served by the first of them
    opens: str = ""  # the slot of that first one, where it is read here
    is_flush: bool = False  # a read whose value is not used: it lets writes arrive, and keeps its place

    def __str__(self) -> str:
        parts = [self.moment and f"m{self.moment}", self.snapshot and f"s{self.snapshot}", self.opens and "first"]
        parts += ["flush"] if self.is_flush else []
        return "_".join(part for part in parts if part)


Marks = Mapping[tuple[str, int], Mark]  # by function and number of the access


def marks_of(analysis: Analysis) -> dict[tuple[str, int], Mark]:
    """The marks of all accesses that have one."""
    found: dict[tuple[str, int], Mark] = {}
    for number, moment in enumerate(analysis.moments):
        found |= {(use.access.function, use.access.number): Mark(moment=str(number)) for use in moment}
    opened: dict[tuple[str, int], int] = {}
    leaders = ((name, *pair) for name, judge in analysis.judges.items() for pair in judge.leaders.items())
    for function, number, first in leaders:
        mark = found.get((function, number), Mark())
        snapshot = str(opened.setdefault((function, first), len(opened)))
        opens = analysis.uses[function, number].slot if first == number else ""
        found[function, number] = replace(mark, snapshot=snapshot, opens=opens)
    for access in (access for function in analysis.functions for access in function.accesses):
        if access.spot.is_unused and access.spot.form is Form.READ:
            key = access.function, access.number
            found[key] = replace(found.get(key, Mark()), is_flush=True)
    return found


def call_for(use: Use, merge: Merge | None, marks: Marks) -> Call:
    """The function that an access calls, by itself or merged with others."""
    uses = merge.uses if merge else (use,)
    found = [mark for one in uses if (mark := marks.get((one.access.function, one.access.number)))]
    moment, snapshot, opens = (
        next((text for mark in found if (text := getattr(mark, name))), "") for name in ("moment", "snapshot", "opens")
    )
    mark = Mark(moment, snapshot, opens, any(mark.is_flush for mark in found)) if found else None
    if merge is not None:
        return Call(merge.kind, merge.at.space, merge.slots, merge.at.is_bit, kept=merge.kept, mark=mark)
    is_polled = use.access.spot.is_polled and not use.is_bit
    return Call(use.access.kind, use.space, (use.slot,), use.is_bit, is_polled, mark=mark)


def needed_calls(design: Design, marks: Marks | None = None) -> tuple[Call, ...]:
    """Each function once: by space, reads first, then as the driver first asks for them."""
    found = dict.fromkeys(
        call for function in design.analysis.functions for call in _calls(design, function, marks or {})
    )
    order = list(design.analysis.spaces)
    return tuple(sorted(found, key=lambda call: (order.index(call.space), call.kind is Kind.WRITE)))


def _calls(design: Design, function: Function, marks: Marks) -> Iterator[Call]:
    merge_of = merges_by_access(design, function)
    for access in function.accesses:
        use = design.analysis.uses[function.name, access.number]
        yield call_for(use, merge_of.get(access.number), marks)


def merges_by_access(design: Design, function: Function) -> dict[int, Merge]:
    return {use.access.number: merge for merge in design.merging[function.name].merges for use in merge.uses}


def names_of(calls: tuple[Call, ...]) -> Mapping[Call, str]:
    """HAL_READ_<space>_<slots>; where underscores make two functions look the same, the later gets a number."""
    names: dict[Call, str] = {}
    for call in calls:
        kinds = ("bit",) if call.is_bit else ("polled",) if call.is_polled else ()
        kept = ("keeping", *call.kept) if call.kept else ()
        endings = (*kept, *kinds, *((str(call.mark),) if call.mark else ()))
        plain = "_".join((f"HAL_{call.kind.name}", call.space, *call.slots, *endings))
        name, number = plain, 2
        while name in names.values():
            name, number = f"{plain}__{number}", number + 1
        names[call] = name
    return names
