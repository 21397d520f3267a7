"""Groups as the layout sees them: spaces of slots, once all that no pointer or index needs is flattened (S 6.4.3).

A space is a group that keeps a layout of its own, because code reaches it through a pointer; its slots are the fields
to place. How a description becomes spaces is left to `flattening`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..language.description import Field
from .accesses import Access, Expression

Steps = tuple[
    tuple[str, int | None], ...
]  # members on the way: no array (None), element i of one that was expanded, -1: indexed


@dataclass(frozen=True, slots=True)
class Slot:
    """A field to place, with the dimensions that code indexes at run time.

    pads[32].dir is one slot `pads_dir` with counts (32,) when indexed, or 32 slots `pads_0_dir` … when not.
    """

    name: str  # "dir", "pads_0_dir"; unique in its space
    steps: Steps  # from the space down to the field
    group: str  # that declares the field
    field: Field
    counts: tuple[int, ...] = ()
    spare: int = 0  # bits above it that hold nothing: a value that is too large does no harm there

    @property
    def room(self) -> int:
        """Bits that it takes beside others."""
        return self.field.bits + self.spare


@dataclass(frozen=True, slots=True)
class Area:
    """A group inside a space that is a space itself."""

    name: str  # "pads", "inner_1"
    steps: Steps
    space: str
    counts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Space:
    name: str  # of its group
    slots: tuple[Slot, ...]
    areas: tuple[Area, ...] = ()

    def slot(self, name: str) -> Slot:
        return self._by_name[name]

    @cached_property
    def by_steps(self) -> Mapping[Steps, Slot]:
        return {slot.steps: slot for slot in self.slots}

    @cached_property
    def _by_name(self) -> Mapping[str, Slot]:
        return {slot.name: slot for slot in self.slots}


@dataclass(frozen=True, slots=True)
class Use:
    """An access in terms of spaces: which slot, where the space begins, which elements."""

    access: Access
    space: str
    base: str  # C: a pointer to the space
    slot: str
    indices: tuple[Expression, ...]  # one for each of the slot's counts
    names: frozenset[str]  # variables that base and indices read
    pure: bool  # base and indices have no effect and no access inside
    is_bit: bool = False  # of a word that gathers bits: the last index says which

    @property
    def key(self) -> tuple[str, str, tuple[str, ...], frozenset[str]]:
        """Same key, same registers (as long as no variable of `names` changes)."""
        return self.space, self.base, tuple(index.text for index in self.indices), self.names


@dataclass(frozen=True, slots=True)
class Joint:
    """Slots that some place in the code could access at once: what the layout is made for.

    All are read, or all are written, through one pointer and with the same indices.
    """

    space: str
    slots: tuple[str, ...]
    writes: bool
    function: str
    depth: int = 0  # loops around it
    dynamic: bool = False  # an index is not a constant
    known: tuple[str, ...] = ()  # slots beside a write whose values the function knows: they need not be read
    gates: tuple[str, ...] = ()  # of the slots, in their order, those that no other write may pass

    @property
    def legs(self) -> Legs:
        """The slots between its gates, and the gates: they part what is before them from what is after them."""
        found = [set[str]()]
        for slot in self.slots:
            if slot in self.gates:
                found += [{slot}, set()]
            else:
                found[-1].add(slot)
        return tuple(map(frozenset, found))


Legs = tuple[frozenset[str], ...]  # every second one is a gate


def parted(legs: Legs, names: frozenset[str]) -> Iterator[frozenset[str]]:
    """What one place really accesses at once of a register with these slots.

    No write passes a gate: what comes before and after one is one access only with the gate between them, in the same
    register. Whether it is depends on that register alone, so that layouts and their costs are judged by what will be.
    """
    run = frozenset[str]()
    for number, leg in enumerate(legs):
        here = leg & names
        if number % 2 and not here and run:
            yield run
            run = here
        run |= here
    if run:
        yield run


Spaces = Mapping[str, Space]  # children before parents
