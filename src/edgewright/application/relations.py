"""Which networks may be in memory together: the relations of an application, for every pair of its members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from ..errors import InputError
from ..program.deployment import RelationKind
from .description import PreemptionPoints, RelationEntry
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
    def frames(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Inputs that share one buffer: (network, input) in the order in which they are read."""
        return tuple(
            tuple((name, self._end(name, "inputs", relation.input)) for name in relation.networks)
            for relation in self.of(RelationKind.SAME_INPUT)
        )

    @cached_property
    def handed_over(self) -> tuple[tuple[str, str], ...]:
        """The inputs that another network makes or brings, as (network, input)."""
        shared = (end for frame in self.frames for end in frame[1:])
        return tuple(dict.fromkeys((*(after for _, after in self.cascades), *shared)))

    @cached_property
    def cascades(self) -> tuple[tuple[tuple[str, str], tuple[str, str]], ...]:
        """((network, output), (network, input)) where the second network reads the output of the first."""
        found = []
        for relation in self.of(RelationKind.AFTER):
            first, second = relation.networks
            output = self._end(first, "outputs", relation.output)
            found.append(((first, output), (second, self._end(second, "inputs", relation.input))))
        return tuple(found)

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
                found.add((name, self._end(name, "ends", end)))
        return frozenset(found)

    def _end(self, name: str, way: str, wanted: str | None) -> str:
        """The input or output that is meant: the one named, or the only one."""
        network = self.application.networks[name]
        known = {
            "inputs": network.inputs,
            "outputs": network.outputs,
            "ends": (*network.inputs, *network.outputs),
        }[way]
        if wanted is None and len(known) == 1:
            return known[0]
        if wanted in known:
            return str(wanted)
        said = f"has no end '{wanted}'" if wanted is not None else f"has {len(known)} {way}, and none is named"
        raise InputError(f"network '{name}' {said}; expected one of {', '.join(known)}")
