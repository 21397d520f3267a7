"""Advice for drivers: reads that one access could serve if the source declared them to be of one moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .analysis.accesses import Access, Kind
from .analysis.clusters import clusters_of
from .analysis.colouring import regions_of
from .analysis.conflicts import Conflicts
from .analysis.functions import LISTED, Function
from .analysis.spaces import Use
from .design import Design, acts
from .language.description import Place


@dataclass(frozen=True, slots=True)
class Advice:
    """Reads of a function that would be one access inside a `snapshot`."""

    function: str
    place: Place  # of the first of them
    last_line: int
    fields: tuple[str, ...]
    saved: int  # accesses in the code

    def __str__(self) -> str:
        names = f"{', '.join(self.fields[:-1])} and {self.fields[-1]}"
        until = f" (to line {self.last_line})" if self.last_line > self.place.line else ""
        reads = "a read" if self.saved == 1 else f"{self.saved} reads"
        return f"{self.place}{until}: {names} may be of one moment? Then 'snapshot' before the statement saves {reads}"


def advice_for(design: Design) -> tuple[Advice, ...]:
    """Where `snapshot` would save accesses, function by function; whether it may stand there the driver's author knows.

    Fields that are read more than once are left alone: such code waits for a change.
    """
    return tuple(found for function in design.analysis.functions for found in _advice(design, function))


def _advice(design: Design, function: Function) -> Iterator[Advice]:
    if len(function.accesses) > LISTED or all(access.snapshot is not None for access in function.accesses):
        return
    analysis = design.analysis
    marked = {a.number: replace(a, snapshot=0) if a.kind is Kind.READ else a for a in function.accesses}
    blocks = tuple(
        replace(block, events=tuple(marked[e.number] if isinstance(e, Access) else e for e in block.events))
        for block in function.flow.blocks
    )
    other = replace(function, accesses=tuple(marked.values()), flow=replace(function.flow, blocks=blocks))
    uses = {(function.name, n): replace(analysis.uses[function.name, n], access=a) for n, a in marked.items()}
    judge = Conflicts(other, analysis.description)
    home = {number: act for act in acts(design, function.name) for number in act.numbers}
    for cluster in clusters_of(judge, regions_of(judge), uses):
        saved = len({home[use.access.number] for use in cluster}) - 1
        if saved > 0 and cluster[0].access.kind is Kind.READ and _could_share(design, cluster):
            place, last = cluster[0].access.place, cluster[-1].access.place
            fields = tuple(use.access.field for use in cluster)
            yield Advice(function.name, place, last.line if last.file == place.file else 0, fields, saved)


def _could_share(design: Design, cluster: list[Use]) -> bool:
    """Whether different fields are read that fit one register, or have one where the map is fixed."""
    first, slots = cluster[0], {use.slot for use in cluster}
    placed, space = design.layout.spaces[first.space], design.analysis.spaces[first.space]
    bits = sum(space.slot(slot).field.bits for slot in slots)
    is_beside = not design.layout.is_fixed or len({placed.holding(slot) for slot in slots}) == 1
    return len(slots) == len(cluster) and bits <= design.analysis.description.bus_of(first.space).width and is_beside
