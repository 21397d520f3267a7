"""Variables for merged accesses: where the values of reads are kept, and those of writes until they are needed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from ..analysis.accesses import Access, Expression, Kind
from ..analysis.functions import Assigned, Barrier, Event
from ..merge import Merge


@dataclass(frozen=True, slots=True)
class Temporaries:
    names: dict[int, str]  # by number of the access
    dropped: frozenset[int]  # assignments whose value is just as good at the merged write
    early: tuple[Access, ...]  # assignments whose temporary is declared at the top of the function

    def stored(self, access: Access, kind: str, value: str) -> str:
        """C: an assignment whose value is needed later, now to its temporary."""
        name = self.names[access.number]
        return f"{name} = {value}" if access in self.early else f"{kind} {name} = {value}"


def temporaries_of(
    merges: Iterable[Merge], taken: Container[str], can_wait: Callable[[Access, Access], bool]
) -> Temporaries:
    """Names for all that needs one, in the order of the source, different from those that are taken.

    `can_wait` tells whether the value of an assignment is the same at a later access.
    """
    fresh = (f"tmp{n}" for n in count(1) if f"tmp{n}" not in taken)
    names: dict[int, str] = {}
    dropped: set[int] = set()
    early: list[Access] = []
    reads = {merge.at.access.number: merge for merge in merges if merge.kind is Kind.READ}
    needed = _needed(merges)
    moved = {use.access.number for merge in merges if merge.kind is Kind.WRITE for use in merge.uses[:-1]}
    for number in sorted((*reads, *needed)):
        if number in reads:
            names |= _read_names(reads[number], fresh)
            continue
        access, places = needed[number]
        if all(can_wait(access, place) for place in places):
            dropped |= {number} & moved
            continue
        names[number] = next(fresh)
        if not all(_is_known_at(access, place) for place in places):
            early.append(access)
    return Temporaries(names, frozenset(dropped), tuple(early))


def _needed(merges: Iterable[Merge]) -> dict[int, tuple[Access, list[Access]]]:
    """The assignments whose values are needed later, with all places of that: merged writes, and put back by others."""
    found: dict[int, tuple[Access, list[Access]]] = {}
    for merge in merges:
        uses = (*merge.uses[:-1], *merge.known) if merge.kind is Kind.WRITE else ()
        for use in uses:
            found.setdefault(use.access.number, (use.access, []))[1].append(merge.at.access)
    return found


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
    """Whether an expression has the same value after the events as before them, and no effect of its own."""
    if not value.pure or "*" in value.names:
        return False
    changed = {event.name for event in between if isinstance(event, Assigned)}
    stays = not (changed & value.names) and "*" not in changed
    return not value.names or (stays and not any(isinstance(event, Barrier) for event in between))
