"""Merges for a layout: each cluster falls into parts that share a register, and every part becomes one access."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from .analysis.accesses import Access, Kind
from .analysis.clusters import Uses, clustered, known_at, read_before, separate_pairs
from .analysis.conflicts import Conflicts, may_alias
from .analysis.functions import Conflict, Regions
from .analysis.paths import Paths
from .analysis.spaces import Spaces, Use
from .layout.layout import Layout
from .layout.rules import put_back, rewrites, written_registers


@dataclass(frozen=True, slots=True)
class Merge:
    """Accesses of one register made one, or a write that fills it: reads happen at the first, writes at the last."""

    kind: Kind
    uses: tuple[Use, ...]  # by access number; a slot that is read twice appears twice
    known: tuple[Use, ...] = ()  # earlier assignments: what they wrote is put back, so that nothing is read first

    @property
    def slots(self) -> tuple[str, ...]:
        """Each slot once, in the order of the first access to it."""
        return tuple(dict.fromkeys(use.slot for use in self.uses))

    @property
    def kept(self) -> tuple[str, ...]:
        """The slots that a write puts back because it knows what they hold."""
        return tuple(use.slot for use in self.known)

    @property
    def at(self) -> Use:
        return self.uses[0] if self.kind is Kind.READ else self.uses[-1]


@dataclass(frozen=True, slots=True)
class Merging:
    merges: tuple[Merge, ...]
    kept: tuple[Conflict, ...] = ()


def merged(
    judge: Conflicts, regions: Regions, clusters: list[list[Use]], uses: Uses, spaces: Spaces, layout: Layout
) -> Merging:
    """What becomes one in this function, and what does not though its region would allow it."""
    function, paths = judge.function, judge.paths
    found = [merge for cluster in clusters for merge in _merges(cluster, layout, judge)]
    reads = [merge for merge in found if merge.kind is Kind.READ]
    ahead = {merge.at.access.number: merge for merge in reads}
    writes = (_without_overtaken(merge, ahead, paths) for merge in found if merge.kind is Kind.WRITE)
    merges = _in_order((*reads, *filter(None, writes)), judge)
    own = [uses[function.name, access.number] for access in function.accesses]
    kept = separate_pairs(judge, regions, uses)
    return Merging(tuple(_filling(merges, own, judge, spaces, layout)), (*kept, *_spread(clusters, layout)))


def _merges(cluster: list[Use], layout: Layout, judge: Conflicts) -> Iterable[Merge]:
    """The parts of a cluster that lie in one register each, where there are two or more accesses."""
    parts: dict[int, list[Use]] = {}
    for use in cluster:
        holding = layout.spaces[use.space].holding(use.slot)
        if len(holding) == 1:
            parts.setdefault(holding[0].offset, []).append(use)
    for part in parts.values():
        for together in clustered(part, judge):
            if len(together) > 1:
                yield Merge(together[0].access.kind, tuple(together))


def _without_overtaken(merge: Merge, reads: dict[int, Merge], paths: Paths) -> Merge | None:
    """The merge of writes without those that a read, itself moved up, would now come before."""
    last = merge.at.access

    def is_overtaken(access: Access) -> bool:
        between = paths.between(access.number, last.number)
        ahead = [reads[event.number] for event in between if isinstance(event, Access) and event.number in reads]
        return any(may_alias(use.access, access) for read in ahead for use in read.uses)

    uses = tuple(use for use in merge.uses if use is merge.at or not is_overtaken(use.access))
    return Merge(merge.kind, uses) if len(uses) > 1 else None


def _in_order(merges: tuple[Merge, ...], judge: Conflicts) -> tuple[Merge, ...]:
    """The merges without accesses that would change places with one that is seen from outside as they are.

    Reads of what hardware changes keep their order among each other, and so do accesses that an interrupt routine sees.
    """
    at = {use.access.number: merge.at.access.number for merge in merges for use in merge.uses}
    kept = []
    for merge in merges:
        if not _passes_its_statement(merge.at.access, merge, at, judge):
            late = {use for use in merge.uses if use is not merge.at and _overtakes(use.access, merge, at, judge)}
            parts = [tuple(use for use in merge.uses if (use in late) == is_late) for is_late in (False, True)]
            kept += [replace(merge, uses=part) for part in parts if part in parts[:1] or merge.kind is Kind.WRITE]
    found = tuple(merge for merge in kept if len(merge.uses) > 1)
    return found if found == merges else _in_order(found, judge)


def _overtakes(access: Access, merge: Merge, at: Mapping[int, int], judge: Conflicts) -> bool:
    """Whether an access, moved to its merge, passes one whose order to it is seen; `at` is where each is now."""
    if access.snapshot is not None:  # it is as of the first read, whatever was read since
        return False
    if _passes_its_statement(access, merge, at, judge):
        return True
    here = merge.at.access.number
    is_read = access.kind is Kind.READ
    first, last = (here, access.number) if is_read else (access.number, here)
    for event in judge.paths.between(first, last):
        if isinstance(event, Access) and (judge.is_seen_with(event, access) or judge.may_go_along(event, access)):
            there = at.get(event.number, event.number)
            if there != here and (there > here) == is_read:
                return True
    return False


def _passes_its_statement(access: Access, merge: Merge, at: Mapping[int, int], judge: Conflicts) -> bool:
    """Whether a read, moved in front of its merge's statement, passes a read there whose order to it is seen."""
    if merge.kind is Kind.WRITE:
        return False
    staying = (event for event in read_before(merge.at.access, judge.paths) if event.number not in at)
    return any(judge.stops_read(event, access) or judge.is_seen_with(event, access) for event in staying)


def _filling(
    merges: Sequence[Merge], uses: Sequence[Use], judge: Conflicts, spaces: Spaces, layout: Layout
) -> Iterator[Merge]:
    """The merges, and writes by themselves that need not read their register: what they put back is known."""
    at = {use.access.number: merge.at.access.number for merge in merges for use in merge.uses}
    single = [Merge(use.access.kind, (use,)) for use in uses if use.access.number not in at]
    for merge in (*merges, *single):
        known = _put_back(merge, uses, at, judge, spaces, layout) if merge.kind is Kind.WRITE else ()
        filled = replace(merge, known=known)
        if known or (len(merge.uses) > 1 and not _lacks_view(filled, judge, spaces, layout)):
            yield filled


def _lacks_view(merge: Merge, judge: Conflicts, spaces: Spaces, layout: Layout) -> bool:
    """Whether a write would put back fields of a register that has views for this, but none for all of the write."""
    placed, space = layout.spaces[merge.at.space], spaces[merge.at.space]
    if merge.kind is Kind.READ or not placed.views:
        return False
    (register,) = written_registers(placed, merge.slots, merge.kept, space, judge.description)
    is_viewed = any(register.slots.intersection(view.slots) for view in placed.views)
    return is_viewed and rewrites(register, (*merge.slots, *merge.kept), space, judge.description)


def _put_back(
    merge: Merge, uses: Sequence[Use], at: Mapping[int, int], judge: Conflicts, spaces: Spaces, layout: Layout
) -> tuple[Use, ...]:
    """The assignments whose values fill the register of a write; none where one of them is missing."""
    last = merge.at
    registers = layout.spaces[last.space].holding(last.slot)
    wanted = put_back(registers[0], merge.slots, spaces[last.space], judge.description)
    if len(registers) > 1 or registers[0].lanes > 1 or not wanted or not last.access.spot.alone or last.is_bit:
        return ()
    known = known_at(last, uses, judge)
    here = last.access.number
    done = {
        slot: use
        for slot, use in known.items()
        if judge.paths.is_always_before(at.get(use.access.number, use.access.number), here)
    }
    return tuple(done[slot] for slot in sorted(wanted)) if wanted <= set(done) else ()


def _spread(clusters: list[list[Use]], layout: Layout) -> Iterable[Conflict]:
    """Neighbours of a cluster that the layout has in different registers."""
    for cluster in clusters:
        for first, second in pairwise(cluster):
            places = [layout.spaces[use.space].holding(use.slot) for use in (first, second)]
            if places[0] != places[1]:
                yield Conflict(first.access.number, second.access.number, "they lie in different registers")
