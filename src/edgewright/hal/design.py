"""A driver's design as data: source, analysis, spaces, layout, merges, and the resulting bus accesses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count, takewhile

from .analysis.accesses import Kind
from .analysis.conflicts import Conflicts
from .analysis.functions import Function, Regions
from .analysis.spaces import Joint, Spaces, Use
from .language.description import Description
from .language.source import Source
from .layout.layout import Layout
from .layout.rules import rewrites, written_registers
from .merge import Merge, Merging


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that is known of a driver before there is a layout."""

    source: Source
    description: Description
    functions: tuple[Function, ...]
    regions: Mapping[str, Regions]  # by function
    spaces: Spaces
    uses: Mapping[tuple[str, int], Use]  # by function and number of the access
    joints: tuple[Joint, ...]
    interrupts: frozenset[str] = frozenset()  # functions that run in interrupts
    moments: tuple[tuple[Use, ...], ...] = ()  # accesses of fields that are together: each is one access
    judges: Mapping[str, Conflicts] = field(default_factory=dict)  # by function
    clusters: Mapping[str, list[list[Use]]] = field(default_factory=dict)  # by function
    questions: tuple[str, ...] = ()  # what the tool had to assume, and how to say otherwise


@dataclass(frozen=True, slots=True)
class Design:
    analysis: Analysis
    layout: Layout
    merging: Mapping[str, Merging]  # by function
    inlined: frozenset[str] = frozenset()  # static functions whose code is put where they are called


@dataclass(frozen=True, slots=True)
class Act:
    """One call of a HAL function: the accesses of the source that it stands for, and those on the bus."""

    kind: Kind
    space: str
    slots: tuple[str, ...]
    numbers: tuple[int, ...]  # of the source's accesses
    reads: int
    writes: int

    @property
    def total(self) -> int:
        return self.reads + self.writes

    @property
    def is_update(self) -> bool:
        """Whether it has to read what it does not write."""
        return self.kind is Kind.WRITE and self.reads > 0


def acts(design: Design, function: str) -> tuple[Act, ...]:
    """What a function of the driver does on the bus, in the order of the source."""
    merges = design.merging[function].merges
    done = {use.access.number for merge in merges for use in merge.uses}
    uses = design.analysis.uses
    numbers = takewhile(lambda number: (function, number) in uses, count())  # accesses are numbered from 0
    own = (uses[function, number] for number in numbers if number not in done)
    single = (Merge(use.access.kind, (use,)) for use in own)
    return tuple(sorted((_act(design, merge) for merge in (*merges, *single)), key=lambda act: act.numbers))


def _act(design: Design, merge: Merge) -> Act:
    numbers = tuple(use.access.number for use in merge.uses)
    name, slots = merge.at.space, merge.slots
    placed, space, description = design.layout.spaces[name], design.analysis.spaces[name], design.analysis.description
    if merge.kind is Kind.READ:
        registers = {register for slot in slots for register in placed.holding(slot)}
        return Act(merge.kind, name, slots, numbers, len(registers), 0)
    written = list(written_registers(placed, slots, merge.kept, space, description))
    reads = sum(rewrites(register, (*slots, *merge.kept), space, description) for register in written)
    return Act(merge.kind, name, slots, numbers, reads, len(written))


def total(found: tuple[Act, ...]) -> int:
    return sum(act.total for act in found)


def totals(design: Design) -> Mapping[str, int]:
    """Accesses in the code of each function."""
    return {function.name: total(acts(design, function.name)) for function in design.analysis.functions}
