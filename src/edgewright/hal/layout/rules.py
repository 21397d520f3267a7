"""Which slots may share a register: the rules of side effects, and of read-modify-write as the code needs it."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..analysis.moments import bonds_of
from ..analysis.spaces import Joint, Legs, Slot, Space, parted
from ..language.description import Bus, Description
from ..language.semantics import Nature
from .cells import Cell, most_lanes
from .layout import Register, SpaceLayout


@dataclass(frozen=True)
class Rules:
    """The rules for one space, given all joints of its code."""

    bus: Bus
    slots: dict[str, Slot]
    natures: dict[str, Nature]
    writes: tuple[tuple[Legs, frozenset[str]], ...]  # what places write at once, and what they know beside it
    bonds: tuple[frozenset[str], ...] = ()  # slots that share a register because their fields are together
    views: bool = False  # whether a write that would have to put something back may have an address of its own
    _known: dict[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, description: Description, space: Space, joints: Iterable[Joint], views: bool = False) -> Rules:
        here = [joint for joint in joints if joint.writes and joint.space == space.name]
        writes = dict.fromkeys((joint.legs, frozenset(joint.known)) for joint in here)
        return cls(
            description.bus_of(space.name),
            {slot.name: slot for slot in space.slots},
            {slot.name: description.nature(slot.group, slot.field.name) for slot in space.slots},
            tuple(writes),
            bonds_of(space),
            views and description.may_have_views(space.name),
        )

    def bond(self, name: str) -> frozenset[str]:
        """The slots that must lie in the register of a slot, itself included."""
        return next((bond for bond in self.bonds if name in bond), frozenset({name}))

    def is_whole(self, names: Iterable[str]) -> bool:
        """Whether a register with these slots tears no bond."""
        here = frozenset(names)
        return all(bond <= here or bond.isdisjoint(here) for bond in self.bonds)

    def kept(self, name: str) -> bool:
        """Whether a write to its register that does not write it must put it back."""
        return self.natures[name].kept

    def frail(self, name: str) -> bool:
        """Whether no register with it may be written by read-modify-write."""
        nature = self.natures[name]
        return nature.by_hardware or nature.unguarded or nature.acts or not nature.readable

    def pair(self, first: str, second: str) -> bool:
        """Whether two slots may share a register, as far as the two of them decide it."""
        a, b = self.natures[first], self.natures[second]
        one, other = self.slots[first], self.slots[second]
        if one.counts != other.counts or one.room + other.room > self.bus.width:
            return False
        if one.field.protection is not other.field.protection:
            return False
        if (one.field.pinned is not None or other.field.pinned is not None) and second not in self.bond(first):
            return False
        if (a.reading_acts and b.readable) or (b.reading_acts and a.readable):
            return False
        if a.writable and b.writable and (_touchy(a) or _touchy(b)):
            return False
        if self.views or not (self.frail(first) or self.frail(second)):
            return True
        kept = {name for name in (first, second) if self.kept(name)}
        return not any(kept - known.union(*legs) for legs, known in self._writes_to((first, second)))

    def splits(self, names: Sequence[str]) -> bool:
        """Whether some write of the code would have to read and put back what else is in the register."""
        here = frozenset(names)
        kept = {name for name in here if self.kept(name)}
        return any(kept - known - run for legs, known in self._writes_to(here) for run in parted(legs, here))

    def _writes_to(self, names: Iterable[str]) -> Iterator[tuple[Legs, frozenset[str]]]:
        """The places that write some of these slots."""
        places = {number for name in names for number in self._writes_of.get(name, ())}
        return (self.writes[number] for number in sorted(places))

    @cached_property
    def _writes_of(self) -> dict[str, list[int]]:
        """By slot, the places that write it."""
        found: dict[str, list[int]] = {}
        for number, (legs, _) in enumerate(self.writes):
            for name in frozenset[str]().union(*legs):
                found.setdefault(name, []).append(number)
        return found

    def together(self, names: Sequence[str]) -> bool:
        """Whether all these slots may share one register."""
        if sum(self.slots[name].room for name in names) > self.bus.width and len(names) > 1:
            return False
        here = frozenset(names)
        is_allowed = all(here <= self._friends(name) for name in names)
        is_free = self.views or len(names) == 1
        return is_allowed and (is_free or not (any(map(self.frail, names)) and self.splits(names)))

    def partial(self, names: Collection[str]) -> tuple[tuple[str, ...], ...]:
        """What writes of the code reach of a register with these slots where they would have to put back the rest."""
        here = frozenset(names)
        kept = frozenset(name for name in here if self.kept(name))
        places = self._writes_to(here)
        found = [run for legs, known in places for run in parted(legs, here) if kept - known - run]
        return tuple(dict.fromkeys(tuple(name for name in self.slots if name in hit) for hit in found))

    def _friends(self, name: str) -> frozenset[str]:
        """The slots that may share a register with a slot, as far as two decide it, and itself."""
        known = self._known.get(name)
        if known is None:
            known = frozenset(other for other in self.slots if other == name or self.pair(name, other))
            self._known[name] = known
        return known

    def lanes(self, name: str) -> int:
        """How many elements may lie abreast; writing one is then a read-modify-write."""
        nature, slot = self.natures[name], self.slots[name]
        if (
            slot.field.pinned is not None
            or slot.field.together
            or nature.acts
            or (name in self._writes_of and (nature.unguarded or not nature.restorable))
        ):
            return 1
        return most_lanes(slot, self.bus.width)


def _touchy(nature: Nature) -> bool:
    """Whether only the source's own writes to it may write its register."""
    return nature.writing_acts or not nature.readable


def put_back(register: Register, slots: Container[str], space: Space, description: Description) -> frozenset[str]:
    """The slots that a write of these has to leave as they are: others of its register, or in other lanes the same."""
    beside = [space.slot(p.slot) for p in register.pieces if p.slot not in slots or p.lanes > 1]
    return frozenset(slot.name for slot in beside if description.nature(slot.group, slot.field.name).kept)


def rewrites(register: Register, slots: Container[str], space: Space, description: Description) -> bool:
    """Whether a write of the slots has to read the register first; slots whose values are known are among them."""
    return bool(put_back(register, slots, space, description))


def written_registers(
    placed: SpaceLayout, slots: Sequence[str], known: Sequence[str], space: Space, description: Description
) -> Iterator[Register]:
    """Where a write of the slots goes: to their registers, or to a view of one whose other fields it does not know."""
    for register in dict.fromkeys(register for slot in slots for register in placed.holding(slot)):
        is_partial = rewrites(register, (*slots, *known), space, description)
        yield (placed.view_of(register, slots) if is_partial else None) or register


def packed(rules: Rules, names: Sequence[str]) -> tuple[Cell, ...]:
    """Cells for these slots, as few as first fit by size finds."""
    open_cells: list[list[str]] = []
    cells: list[Cell] = []
    bonds = dict.fromkeys(bond for name in names if len(bond := rules.bond(name)) > 1)
    cells += [Cell(tuple(name for name in rules.slots if name in bond)) for bond in bonds]
    single = [name for name in names if len(rules.bond(name)) == 1]
    for name in sorted(single, key=lambda name: -rules.slots[name].room):
        lanes = rules.lanes(name)
        if lanes > 1:
            cells.append(Cell((name,), lanes))
            continue
        home = next((cell for cell in open_cells if rules.together([*cell, name])), None)
        if home is None:
            open_cells.append([name])
        else:
            home.append(name)
    return (*cells, *(Cell(tuple(cell)) for cell in open_cells))
