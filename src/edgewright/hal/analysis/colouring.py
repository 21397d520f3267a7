"""Access regions by greedy colouring of the conflict graph, in time that is linear in the code.

From each access the code is walked backwards only as far as an access could be merged with it: to the first event that
nothing may cross, and at most `REACH` events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from .accesses import Access, Kind
from .conflicts import REACH, Conflicts, may_alias, names_of
from .functions import LISTED, Assigned, Barrier, Event, Regions


def regions_of(judge: Conflicts) -> Regions:
    """Conflicts with their reasons, unless there are too many, and regions: accesses of one kind, no two in conflict.

    Each access is in the first region of its kind in which it conflicts with none, as a greedy colouring has it.
    """
    conflicts = tuple(judge.all()) if len(judge.function.accesses) <= LISTED else None
    return Regions(conflicts, _coloured(judge))


def _coloured(judge: Conflicts) -> tuple[tuple[int, ...], ...]:
    found: list[list[Access]] = []
    open_regions: dict[object, list[list[Access]]] = {}  # by what all accesses of a region have in common
    for access in judge.function.accesses:
        if judge.is_never_merged(access):  # then it is never one with another
            found.append([access])
            continue
        leader = judge.leader(access)
        place = judge.paths.guard(access.number) if leader is None else leader
        devices = judge.devices_of(access) if judge.has_unordered else None
        kind = access.kind, judge.is_flag(access), leader is None
        key = kind, place, judge.paths.loop(access.number), devices, judge.bond(access)
        near = [region for region in open_regions.get(key, ()) if access.number - region[0].number <= REACH]
        free = set(_free(judge, access)) if near else set()
        region = next((one for one in near if _may_join(judge, one, access, free)), None)
        if region is None:
            region = []
            found.append(region)
            near.append(region)
        region.append(access)
        open_regions[key] = near
    return tuple(tuple(access.number for access in region) for region in found)


def _may_join(judge: Conflicts, region: list[Access], access: Access, free: set[int]) -> bool:
    """Whether an access conflicts with none of a region."""
    for member in region:
        if may_alias(member, access) and judge.same_field(member):
            return False
        is_before = access.kind is Kind.WRITE or judge.paths.is_always_before(member.number, access.number)
        if is_before and member.number not in free:
            return False
    return True


def _free(judge: Conflicts, access: Access) -> Iterator[int]:
    """The accesses of the same kind that always come before, with no event in between that forbids merging them."""
    passed = _Passed(judge, judge.is_flag(access))
    for event, is_before in islice(judge.paths.backwards(access.number), REACH + 1):
        if event is None:
            continue
        if access.kind is Kind.READ:
            if is_before and isinstance(event, Access) and event.kind is Kind.READ:
                yield event.number
            if judge.stops_read(event, access) is not None:
                return
        else:
            if is_before and isinstance(event, Access) and event.kind is Kind.WRITE and passed.by(event, access):
                yield event.number
            passed.add(event)
            if passed.is_closed:
                return


@dataclass
class _Passed:
    """The events that a write would have to move across, summarised by what they forbid."""

    judge: Conflicts
    by_flags: bool  # those that would move are writes of which only ones act
    is_closed: bool = False  # something that no write passes
    names: set[str] = field(default_factory=set)  # variables that changed
    fields: dict[tuple[str, str], list[Access]] = field(default_factory=dict)
    stopping: dict[object, Access] = field(default_factory=dict)  # only writes of other devices may pass them
    others: dict[object, Access] = field(default_factory=dict)  # one for each device, pointer and sharing

    def add(self, event: Event) -> None:
        if isinstance(event, Assigned):
            self.names |= self.judge.assigned(event)
        elif isinstance(event, Barrier):
            self.is_closed = True
        elif not self.judge.is_flag(event) if self.by_flags else self.judge.stops_writes(event):
            self.is_closed = not (self.judge.has_unordered if self.by_flags else self.judge.has_exceptions)
            self.stopping.setdefault((event.device, event.group, event.base.text, event.owner, event.field), event)
        else:
            self.fields.setdefault((event.owner, event.field), []).append(event)
            kind = event.device, event.group, event.base.text, self.judge.is_shared(event)
            self.others.setdefault(kind, event)

    def by(self, access: Access, last: Access) -> bool:
        """Whether a write can move down across all of them to the last, and always gets there."""
        beside = self.fields.get((access.owner, access.field), ())
        return (
            self.judge.is_flag(access) == self.by_flags
            and not any(may_alias(event, access) for event in beside)
            and self.names.isdisjoint(names_of(access))
            and all(self.judge.stops_write(event, access) is None for event in self.stopping.values())
            and all(self.judge.ordered(event, access) is None for event in self.others.values())
            and not (self.judge.nature(access).by_hardware and self._stops_at_settings(access))
            and self.judge.paths.is_always_after(access.number, last.number)
        )

    def _stops_at_settings(self, access: Access) -> bool:
        """Whether a write of what hardware changes too would pass one that it must not."""
        return any(self.judge.stops_write(event, access) for events in self.fields.values() for event in events)
