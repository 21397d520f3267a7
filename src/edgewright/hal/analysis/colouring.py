"""Access regions as a colouring of the conflict graph gives them, without that graph: in time that grows with the code.

Between two accesses anything may lie that forbids making them one; which events forbid it depends on few things: the
field, its element, the variables of the pointer. They are put into an index by these, once for a function. Sets of
blocks are bits of integers, as in `paths`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ..language.meaning import Natures
from .accesses import Access, Kind
from .conflicts import Conflicts, Signature, may_alias, signature
from .functions import Assigned, Barrier, Event, Function
from .paths import Blocks, Paths, bits
from .regions import LISTED, Regions

Guard = tuple[int, ...]


def regions_of(function: Function, natures: Natures, paths: Paths) -> Regions:
    """Conflicts with their reasons, unless there are too many, and regions: accesses of one kind, no two in conflict.

    Each access is in the first region of its kind in which it conflicts with none, as a greedy colouring has it.
    """
    judge = Conflicts(function, natures, paths)
    conflicts = tuple(judge.all()) if len(function.accesses) <= LISTED else None
    return Regions(conflicts, _Colouring(judge).regions())


@dataclass
class _Events:
    """Some events of a function: positions by block, in order."""

    positions: dict[int, list[int]] = field(default_factory=dict)
    blocks: Blocks = 0

    def add(self, block: int, position: int) -> None:
        self.positions.setdefault(block, []).append(position)
        self.blocks |= 1 << block

    def last_before(self, block: int, position: int) -> int:
        """The last of them before a position of a block; -1 for none."""
        here = self.positions.get(block, ())
        at = bisect_left(here, position)
        return here[at - 1] if at else -1

    def is_any(self, block: int, start: int, end: int) -> bool:
        here = self.positions.get(block, ())
        at = bisect_left(here, start)
        return at < len(here) and here[at] < end


@dataclass
class _Region:
    """Accesses that may become one, with what must be known of them to let another in."""

    number: int
    members: list[Access]
    # Reads: the first member in each block, and the blocks. Writes: members by field, and the variables of pointers.
    earliest: dict[int, int] = field(default_factory=dict)
    blocks: Blocks = 0
    fields: dict[tuple[str, str], dict[Signature, Access]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def join(self, access: Access, block: int, position: int) -> None:
        self.members.append(access)
        self.earliest.setdefault(block, position)
        self.blocks |= 1 << block
        self.fields.setdefault((access.owner, access.field), {}).setdefault(signature(access), access)
        self.names |= names_of(access)

    def has_alias(self, access: Access) -> bool:
        return any(may_alias(one, access) for one in self.fields.get((access.owner, access.field), {}).values())


@dataclass
class _Bucket:
    """Regions of reads that stand under the same guard, by the block of their first access."""

    by_block: dict[int, list[_Region]] = field(default_factory=dict)
    starts: dict[int, list[int]] = field(default_factory=dict)  # where each of them begins
    blocks: Blocks = 0

    def add(self, region: _Region, block: int, position: int) -> None:
        self.by_block.setdefault(block, []).append(region)
        self.starts.setdefault(block, []).append(position)
        self.blocks |= 1 << block

    def begun(self, block: int, since: int) -> list[_Region]:
        """The regions that begin in a block at a position or behind."""
        return self.by_block[block][bisect_left(self.starts[block], since) :]


def names_of(access: Access) -> frozenset[str]:
    """The variables that the access's pointer and indices are made of."""
    return access.base.names.union(*(hop.index.names for hop in access.hops if hop.index))


@dataclass(frozen=True)
class _Colouring:
    judge: Conflicts

    @property
    def function(self) -> Function:
        return self.judge.function

    @property
    def paths(self) -> Paths:
        return self.judge.paths

    def regions(self) -> tuple[tuple[int, ...], ...]:
        found: list[_Region] = []
        open_writes: dict[tuple[Guard, int], _Region] = {}
        reads: dict[Guard, _Bucket] = {}
        for access in self.function.accesses:
            block, position = self.paths.where[access.number]
            guard = self.paths.guard(access.number)
            region = None
            bucket, chain = reads.setdefault(guard, _Bucket()), (guard, self.paths.chain(block))
            acts = self.judge.acts(access)  # then it is never one with another
            if not acts and access.kind is Kind.READ:
                region = self._region_of_read(access, bucket)
            elif not acts and chain in open_writes and self._may_follow(open_writes[chain], access):
                region = open_writes[chain]
            if region is None:
                region = _Region(len(found), [])
                found.append(region)
                if not acts and access.kind is Kind.READ:
                    bucket.add(region, block, position)
                elif not acts:
                    open_writes[chain] = region
            region.join(access, block, position)
        return tuple(tuple(access.number for access in region.members) for region in found)

    # Writes. Those that can become one happen together or not at all. Once something lies between a region and a write
    # that one of the region cannot pass, it lies between the region and all later writes too, so that one region is
    # open at a time; and all that lies between two of its members lies before or behind those in between.

    def _may_follow(self, region: _Region, access: Access) -> bool:
        """Whether a write can become one with all of an open region."""
        last = region.members[-1]
        if region.has_alias(access) or (len(region.members) > 1 and self.judge.nature(last).changes):
            return False  # those before the last cannot pass it
        between = self.paths.between(last.number, access.number)
        return not any(self._closes(region, event) for event in between)

    def _closes(self, region: _Region, event: Event) -> bool:
        """Whether some write of the region cannot move down across the event."""
        if isinstance(event, Barrier):
            return True
        if isinstance(event, Assigned):
            reach = self.function.escaping | {"*"} if event.name == "*" else {event.name}
            return not region.names.isdisjoint(reach)
        return self.judge.acts(event) or self.judge.nature(event).changes or region.has_alias(event)

    # Reads. A read moves up to the first of its region; the last event in its own block that it cannot pass shuts it
    # off from all regions that begin before, and so does such an event in a block on the way from them.

    def _region_of_read(self, access: Access, bucket: _Bucket) -> _Region | None:
        block, position = self.paths.where[access.number]
        walls = self._walls(access)
        blocked = self._blocked(block, walls)
        if self._last_stop(walls, block, position) >= 0:
            homes: Blocks = bucket.blocks & 1 << block
        else:
            homes = bucket.blocks & ~blocked
        candidates: list[_Region] = []
        for home in bits(homes):
            stop = -1
            if home == block or not self.paths.in_loops >> home & 1:
                stop = self._last_stop(walls, home, position if home == block else self._length(home))
            candidates += bucket.begun(home, stop)
        candidates.sort(key=lambda region: region.number)
        return next((region for region in candidates if self._may_join(region, access, walls, blocked)), None)

    @staticmethod
    def _last_stop(walls: list[_Events], block: int, position: int) -> int:
        """The last event before a position of a block that the walls are made of; -1 for none."""
        return max((wall.last_before(block, position) for wall in walls), default=-1)

    def _may_join(self, region: _Region, access: Access, walls: list[_Events], blocked: Blocks) -> bool:
        if self.judge.nature(access).changes and region.has_alias(access):
            return False
        block, position = self.paths.where[access.number]
        own = region.earliest.get(block)
        if own is not None and any(wall.is_any(block, own + 1, position) for wall in walls):
            return False
        others = region.blocks & ~(1 << block)
        if not others:
            return True
        if others & blocked:
            return False
        if self._last_stop(walls, block, position) >= 0:
            return False
        stopping = self._union(walls)
        in_loops = self.paths.in_loops
        if in_loops >> block & 1:
            doubtful = others
        else:
            doubtful = others & in_loops
            for home in bits(others & ~in_loops & stopping):
                if any(wall.is_any(home, region.earliest[home] + 1, self._length(home)) for wall in walls):
                    return False
        return not any(self._lies_between(walls, home, region, access) for home in bits(doubtful))

    def _lies_between(self, walls: list[_Events], home: int, region: _Region, access: Access) -> bool:
        """Whether an event lies between the region's first access in a block and the access, by any way."""
        first = self._at[home, region.earliest[home]]
        stretches = self.paths.stretches(first, access.number)
        return any(wall.is_any(*stretch) for stretch in stretches for wall in walls)

    def _blocked(self, block: int, walls: list[_Events]) -> Blocks:
        """Blocks in no loop from which each way to this one that matters passes something that stops the read."""
        if self.paths.in_loops >> block & 1:
            return 0
        found, rest = 0, self._union(walls) & self.paths.reached_from(block) & ~(1 << block)
        while rest:
            last = rest.bit_length() - 1
            found |= self.paths.reached_from(last)
            rest &= ~(found | 1 << last)
        return found & ~self.paths.in_loops & ~(1 << block)

    @staticmethod
    def _union(walls: Iterable[_Events]) -> Blocks:
        found = 0
        for wall in walls:
            found |= wall.blocks
        return found

    def _length(self, block: int) -> int:
        return len(self.function.flow.blocks[block].events)

    @cached_property
    def _at(self) -> dict[tuple[int, int], int]:
        """The access at each place that has one."""
        return {where: number for number, where in self.paths.where.items()}

    # What stops reads, by what makes it stop them.

    @cached_property
    def _index(self) -> _Index:
        index = _Index()
        for block, position, event in self._events():
            if isinstance(event, Barrier):
                index.barriers.add(block, position)
            elif isinstance(event, Assigned):
                index.assigned.setdefault(event.name, _Events()).add(block, position)
            else:
                index.add(event, block, position)
                if self.judge.acts(event):
                    key = event.kind, event.owner, event.field
                    index.acting.setdefault(key, (event, _Events()))[1].add(block, position)
        return index

    def _events(self) -> Iterator[tuple[int, int, Event]]:
        for at, block in enumerate(self.function.flow.blocks):
            for position, event in enumerate(block.events):
                yield at, position, event

    def _walls(self, access: Access) -> list[_Events]:
        """The events that the read cannot move up across."""
        key = signature(access)
        known = self._known_walls.get(key)
        if known is None:
            known = self._known_walls[key] = list(self._found_walls(access))
        return known

    @cached_property
    def _known_walls(self) -> dict[Signature, list[_Events]]:
        return {}

    def _found_walls(self, access: Access) -> Iterator[_Events]:
        index, names = self._index, names_of(access)
        if index.barriers.blocks:
            yield index.barriers
        for name in names:
            if name in index.assigned:
                yield index.assigned[name]
        if "*" in index.assigned and "*" not in names and names & self.function.escaping:
            yield index.assigned["*"]
        for kind, one, events in index.of(access.owner, access.field):
            if (kind is Kind.WRITE or self.judge.nature(access).changes) and may_alias(one, access):
                yield events
        for one, events in index.acting.values():
            if self.judge.touches(one, access):
                yield events


@dataclass
class _Index:
    barriers: _Events = field(default_factory=_Events)
    assigned: dict[str, _Events] = field(default_factory=dict)
    fields: dict[tuple[str, str], dict[Signature, tuple[Access, _Events]]] = field(default_factory=dict)
    acting: dict[tuple[Kind, str, str], tuple[Access, _Events]] = field(default_factory=dict)

    def add(self, access: Access, block: int, position: int) -> None:
        alike = self.fields.setdefault((access.owner, access.field), {})
        alike.setdefault(signature(access), (access, _Events()))[1].add(block, position)

    def of(self, owner: str, name: str) -> Iterator[tuple[Kind, Access, _Events]]:
        for one, events in self.fields.get((owner, name), {}).values():
            yield one.kind, one, events
