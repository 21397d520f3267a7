"""Variables for merged accesses: where the values of reads are kept, and those of writes until the last of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from ..analysis.accesses import Access, Expression, Kind
from ..analysis.functions import Assigned, Barrier, Event, Function
from ..merging import Merge


@dataclass(frozen=True, slots=True)
class Temporaries:
    names: dict[int, str]  # by number of the access
    dropped: frozenset[int]  # assignments whose value is just as good at the merged write
    early: tuple[Access, ...]  # assignments whose temporary is declared at the top of the function

    def stored(self, access: Access, kind: str, value: str) -> str:
        """C: an earlier assignment of a merged write, now to its temporary."""
        name = self.names[access.number]
        return f"{name} = {value}" if access in self.early else f"{kind} {name} = {value}"


def temporaries_of(
    function: Function, merges: tuple[Merge, ...], can_wait: Callable[[Merge, Access], bool]
) -> Temporaries:
    """Names for all that needs one, in the order of the source, different from every name in the function."""
    fresh = (f"tmp{n}" for n in count(1) if f"tmp{n}" not in function.names)
    names: dict[int, str] = {}
    dropped: set[int] = set()
    early: list[Access] = []
    for merge in sorted(merges, key=lambda merge: merge.uses[0].access.number):
        if merge.kind is Kind.READ:
            names |= _read_names(merge, fresh)
            continue
        for use in merge.uses[:-1]:
            if can_wait(merge, use.access):
                dropped.add(use.access.number)
                continue
            names[use.access.number] = next(fresh)
            if not _is_known_at(use.access, merge.at.access):
                early.append(use.access)
    return Temporaries(names, frozenset(dropped), tuple(early))


def _read_names(merge: Merge, fresh: Iterator[str]) -> dict[int, str]:
    """One name for each slot: a slot that is read twice has one value."""
    by_slot = {slot: next(fresh) for slot in merge.slots}
    return {use.access.number: by_slot[use.slot] for use in merge.uses}


def _is_known_at(access: Access, last: Access) -> bool:
    """Whether a variable declared in place of the access is in scope at the last one."""
    first, end = access.spot.scope
    inside = first <= last.spot.whole[0] < end
    return inside and access.spot.in_block and not access.spot.labelled


def can_wait(value: Expression, between: list[Event]) -> bool:
    """Whether an expression has the same value after the events as before, and does nothing itself."""
    if not value.pure or "*" in value.names:
        return False
    changed = {event.name for event in between if isinstance(event, Assigned)}
    stays = not (changed & value.names) and "*" not in changed
    return not value.names or (stays and not any(isinstance(event, Barrier) for event in between))
