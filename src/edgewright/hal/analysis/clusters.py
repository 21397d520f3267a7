"""Clusters: sets of accesses that become one access if the layout puts their fields into one register."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise

from .accesses import Access, Form, Kind
from .conflicts import REACH, Conflicts
from .functions import Conflict, Event, Regions
from .paths import Paths
from .spaces import Joint, Use

Uses = Mapping[tuple[str, int], Use]


def hindrance(first: Use, second: Use, judge: Conflicts) -> str | None:
    """Why two accesses of one region cannot be merged; `first` comes first."""
    one, other = first.access, second.access
    if first.key != second.key:
        return "they go through different pointers or indices"
    if not (first.pure and second.pure):
        return "the pointer or index does something itself"
    for access in (one, other):
        if access.spot.form not in (Form.READ, Form.ASSIGN):
            return f"{access.name} is read and written at once"
    begin, end = one.spot.scope
    if one.spot.file != other.spot.file or not begin <= other.spot.whole[0] < end:
        return "the value would be out of scope"
    if one.kind is Kind.WRITE:
        return None if one.spot.alone and other.spot.alone else "the assignment is part of a larger expression"
    return _reading_hindrance(one, other, judge)


def _reading_hindrance(one: Access, other: Access, judge: Conflicts) -> str | None:
    leads = one.spot.first or one.spot.condition is not None
    if not leads or any(judge.nature(access).reading_acts for access in read_before(one, judge.paths)):
        return f"{one.name} is not the first thing its statement does"
    if not judge.paths.is_always_before(one.number, other.number):
        return f"{one.name} is not always read before {other.name}"
    speculative = not judge.paths.is_always_after(one.number, other.number)
    if speculative and one.snapshot is None and judge.changes(other):
        return f"{other.field} may change, and would be read though nobody asks"
    return None


def read_before(access: Access, paths: Paths) -> Iterable[Access]:
    """What the access's statement reads before it: a merge there happens in front of all of it."""
    block, position = paths.where[access.number]
    for event in reversed(paths.flow.blocks[block].events[max(0, position - REACH) : position]):
        if isinstance(event, Access):
            if event.spot.statement != access.spot.statement:
                return
            yield event


def clusters_of(judge: Conflicts, regions: Regions, uses: Uses) -> list[list[Use]]:
    """The accesses of a function in sets that can be merged: reads at the first of a set, writes at the last."""
    name = judge.function.name
    regional = ([uses[name, number] for number in region] for region in regions.regions)
    return [cluster for region in regional for cluster in clustered(region, judge)]


def clustered(uses: list[Use], judge: Conflicts) -> list[list[Use]]:
    """The uses in clusters: each joins the first cluster that allows it. Writes are taken from the last one upwards."""
    is_read = uses[0].access.kind is Kind.READ
    by_key: dict[object, list[list[Use]]] = {}
    found = []
    for use in uses if is_read else reversed(uses):
        clusters = by_key.setdefault(use.key, [])
        clusters[:] = [one for one in clusters if abs(use.access.number - one[0].access.number) <= REACH]
        home = next((one for one in clusters if _may_join(one[0], use, judge)), None)
        if home is None:
            home = []
            clusters.append(home)
            found.append(home)
        home.append(use)
    return found if is_read else [part for cluster in found for part in _parts(cluster[::-1], judge)]


def _parts(cluster: list[Use], judge: Conflicts) -> list[list[Use]]:
    """A cluster of writes, parted where one that is not in it keeps its place between two of them."""
    inside = {use.access.number for use in cluster}
    parts = [cluster[:1]]
    for first, second in pairwise(cluster):
        between = judge.paths.between(first.access.number, second.access.number)
        others = (event for event in between if isinstance(event, Access) and event.number not in inside)
        if any(judge.is_gate_for(event, first.access) for event in others):
            parts.append([])
        parts[-1].append(second)
    return parts


def _may_join(lead: Use, use: Use, judge: Conflicts) -> bool:
    first, second = (lead, use) if use.access.kind is Kind.READ else (use, lead)
    return hindrance(first, second, judge) is None


def separate_pairs(judge: Conflicts, regions: Regions, uses: Uses) -> Iterator[Conflict]:
    """Pairs of accesses of one region that no layout can merge, with reasons."""
    name = judge.function.name
    for first, second in (pair for region in regions.regions for pair in pairwise(region)):
        if reason := hindrance(uses[name, first], uses[name, second], judge):
            yield Conflict(first, second, reason)


def joints_of(clusters: Iterable[list[Use]]) -> list[Joint]:
    """What the layout should bring together, one joint for each cluster."""
    return [_joint(cluster) for cluster in clusters]


def _joint(cluster: list[Use]) -> Joint:
    use = cluster[0]
    access = use.access
    order = tuple(dict.fromkeys(use.slot for use in cluster))
    is_dynamic = any(index.value is None for index in use.indices)
    return Joint(use.space, order, access.kind is Kind.WRITE, access.function, access.depth, is_dynamic)


def known_at(last: Use, uses: Sequence[Use], judge: Conflicts) -> dict[str, Use]:
    """The assignments, by slot, whose values fields still hold when a write happens; `uses` are those of the function.

    The nearest through the same pointer and indices counts, where control always comes from it and nothing on the way
    can have changed the field: no other write of it, no unknown call, no interrupt routine, no hardware.
    """
    found: dict[str, Use | None] = {last.slot: None}
    passed: list[Event] = []
    for event, is_always in islice(judge.paths.backwards(last.access.number), REACH):
        if isinstance(event, Access) and event.kind is Kind.WRITE and is_always:
            use = uses[event.number]
            if use.key == last.key and use.slot not in found:
                found[use.slot] = use if _is_held(use, last, passed, judge) else None
        if event is not None:
            passed.append(event)
    return {slot: use for slot, use in found.items() if use is not None}


def _is_held(use: Use, last: Use, passed: Sequence[Event], judge: Conflicts) -> bool:
    """Whether an assignment's value is at hand, and the field holds it after all that has passed since."""
    spot, nature = use.access.spot, judge.nature(use.access)
    is_plain = nature.restorable and not (nature.is_shared or nature.unguarded or use.is_bit)
    is_stored = spot.form is Form.ASSIGN and spot.alone and use.pure and spot.file == last.access.spot.file
    return is_plain and is_stored and not any(judge.alters(event, use.access) for event in passed)


def with_known_values(
    joint: Joint, cluster: Sequence[Use], uses: Sequence[Use], judge: Conflicts, ends: Mapping[int, int]
) -> Joint:
    """The joint of a cluster with its gates, and with what is known wherever the layout puts its write; `ends` is the
    last of each cluster.

    Assignments move down to the last of their cluster at most: what is known has been written by then.
    """
    first = cluster[0].access.number
    known = known_at(cluster[-1], uses, judge) if joint.writes else {}
    slots = [slot for slot, use in known.items() if slot not in joint.slots and ends[use.access.number] < first]
    gates = [use.slot for use in cluster[1:-1] if joint.writes and judge.is_gate(use.access)]
    return replace(joint, known=tuple(sorted(slots)), gates=tuple(gates))
