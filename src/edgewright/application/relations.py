"""Which networks may be in memory together: the relations of an application, for every pair of its members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from ..program.deployment import Fifo, RelationKind
from .description import PreemptionPoints, RelationEntry
from .handover import End, cascade_ends, named_end, read_before
from .members import Application


@dataclass(frozen=True, slots=True)
class Preemption:
    """A network that another may interrupt, and where."""

    high: str
    low: str
    points: PreemptionPoints
    wait: float | None = None  # seconds that the first may have to wait at most


@dataclass(frozen=True)
class Relations:
    """The relations of pairs of members; pairs without one are exclusive."""

    application: Application

    @cached_property
    def _parallel(self) -> frozenset[frozenset[str]]:
        said = {frozenset(pair) for one in self.of(RelationKind.PARALLEL) for pair in combinations(one.networks, 2)}
        return frozenset(
            frozenset((x.name, y.name))
            for x, y in combinations(self.application.members, 2)
            if x.owner == y.owner or frozenset((x.owner, y.owner)) in said  # partitions of a pipeline, or a relation
        )

    @cached_property
    def preemptions(self) -> Mapping[tuple[str, str], Preemption]:
        """By (high, low), members both."""
        found = {}
        for relation in self.of(RelationKind.PREEMPTS):
            high, low = relation.networks
            for x in self.application.members_of(high):
                for y in self.application.members_of(low):
                    found[x.name, y.name] = Preemption(x.name, y.name, relation.points, relation.wait)
        return found

    def of(self, kind: RelationKind) -> tuple[RelationEntry, ...]:
        return tuple(relation for relation in self.application.file.relations if relation.kind is kind)

    def are_parallel(self, a: str, b: str) -> bool:
        return frozenset((a, b)) in self._parallel

    def may_be_interrupted(self, member: str) -> bool:
        """Whether another member may start while this one runs."""
        return any(member in pair for pair in self._parallel) or any(low == member for _, low in self.preemptions)

    def interrupted_at(self, member: str) -> set[PreemptionPoints]:
        """The kinds of points at which others may interrupt the member."""
        return {one.points for one in self.preemptions.values() if one.low == member}

    @cached_property
    def cascades(self) -> tuple[tuple[End, End], ...]:
        """((network, output), (network, input)) where the second network reads the output of the first."""
        return tuple(cascade_ends(one, self.application.networks) for one in self.of(RelationKind.AFTER))

    def may_run_together(self, a: str, b: str) -> bool:
        """Whether one of two members may run while the other is in progress."""
        return self.are_parallel(a, b) or (a, b) in self.preemptions or (b, a) in self.preemptions

    def before(self, fifo: Fifo, reader: str) -> frozenset[str]:
        """The readers of a FIFO that must have begun to read a frame before this one may."""
        return read_before(self.application.file, reader) & set(fifo.reading)

    def holds(self, fifo: Fifo, reader: str) -> bool:
        """Whether others may read a frame after this reader, or while it runs: it must leave the frame as it is."""
        others = set(fifo.reading) - {reader}
        return others != self.before(fifo, reader) or any(self.may_run_together(reader, x) for x in others)

    @cached_property
    def kept(self) -> frozenset[tuple[str, str]]:
        """(network, tensor) of the ends that nothing may overlay."""
        found = set()
        for text in self.application.file.keep:
            name, _, end = text.partition(".")
            network = self.application.networks[name]
            groups = {"input": network.inputs, "output": network.outputs}
            groups |= {"inputs": network.inputs, "outputs": network.outputs}
            if end in groups:
                found |= {(name, tensor) for tensor in groups[end]}
            else:
                found.add((name, named_end(name, network, "ends", end)))
        return frozenset(found)
