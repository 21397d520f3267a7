"""Finds what keeps a graph from a wanted period with given capacities."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from ..checks.consistency import cycles
from ..checks.liveness import blocked
from ..graph import Channel, Graph
from .circuit import Cycle, fresh
from .precedence import PrecedenceGraph
from .ratio import cycles_from, greatest_ratio

Levels = Mapping[str, int]  # by channel, steps of capacity beyond the initial tokens; missing: unlimited
Cut = Mapping[str, int]  # the highest levels at which these channels together are too small

_TEST = 5000  # minimum cost of one test, in table entries
_SMALL_PART = 4  # the part is this many times smaller than the whole graph


@dataclass(frozen=True)
class SizedChannel:
    """A channel to be sized. Capacities between two steps are equivalent to the lower one."""

    tokens: int
    step: int  # in tokens
    price: int  # of one token

    def capacity(self, level: int) -> int:
        return self.tokens + level * self.step

    def cost(self, level: int) -> int:
        return self.capacity(level) * self.price


@dataclass(frozen=True)
class UndersizedChannels:
    """Channels that are too small at their levels, for any levels of others, and the actors that prove it."""

    channels: frozenset[str]
    actors: frozenset[str]


class Storage:
    """The channels of a graph, and a test whether given levels suffice."""

    def __init__(self, graph: Graph, in_bytes: bool) -> None:
        self.graph = graph
        self.stores = {
            c.name: SizedChannel(c.tokens, _step(c), c.token_bytes if in_bytes else 1) for c in graph.channels
        }
        self.work = 0  # approximate number of table entries examined
        self._in_bytes = in_bytes
        self._cycles = cycles(graph)
        self._precedence = PrecedenceGraph(graph)
        self._parent = fresh(self._precedence.nodes)
        self._levels: Levels = {}
        self._begins = any(actor.initial_phases for actor in graph.actors)
        self._parts: dict[frozenset[str], tuple[Storage, int]] = {}

    def capacities(self, levels: Levels) -> dict[str, int]:
        return {name: self.stores[name].capacity(level) for name, level in levels.items()}

    def cost(self, levels: Levels) -> int:
        return sum(self.stores[name].cost(level) for name, level in levels.items())

    def period(self, levels: Levels) -> Fraction | None:
        """The period with these levels; None if the graph deadlocks."""
        self._set(levels)
        if self._begins and blocked(self.graph, self.capacities(levels)):
            return None
        return greatest_ratio(self._precedence, self._parent)

    def undersized(self, levels: Levels, period: Fraction | None) -> Sequence[UndersizedChannels]:
        """Disjoint sets of channels that are too small for a period below the given one; none if the period can be
        reached.

        Without a period: those that make the graph deadlock.
        """
        self.work += _TEST + self._precedence.source.size
        self._set(levels)
        cycles = cycles_from(self._precedence, period, self._parent)
        if cycles:
            return _disjoint([self._undersized_on(cycle) for cycle in cycles])
        if self._begins and blocked(self.graph, self.capacities(levels)):
            return [UndersizedChannels(frozenset(levels), frozenset(self.graph.by_name))]
        return []

    def cut(self, levels: Levels, undersized: UndersizedChannels, period: Fraction | None) -> Cut:
        """The highest levels, of as few of the undersized channels as possible, that are still too small.

        The actors on the cycle are usually enough to test, and the result holds for the whole graph. If they are most
        of the graph, the whole is tested, since similar consecutive tests speed each other up.
        """
        blamed = {name: levels[name] for name in sorted(undersized.channels)}
        part, share = self._part(undersized.actors)
        if part._precedence.nodes * _SMALL_PART > self._precedence.nodes:
            return self._raised(blamed, period)
        before = part.work
        cut = part._raised(blamed, None if period is None else period / share)
        self.work += part.work - before
        return cut

    def _raised(self, levels: Levels, period: Fraction | None) -> Cut:
        kept = dict(levels)
        for name, level in levels.items():
            if name not in kept:
                continue
            del kept[name]
            still = self.undersized(kept, period)
            if still:
                kept = {name: level for name, level in kept.items() if name in still[0].channels}
            else:
                kept[name] = self._highest(kept, name, level, period)
        return kept

    def _highest(self, levels: Levels, name: str, low: int, period: Fraction | None) -> int:
        """The highest level of a channel that is too low, given that `low` is and that some level is not."""

        def too_low(level: int) -> bool:
            return bool(self.undersized({**levels, name: level}, period))

        stride = 1
        while too_low(low + stride):
            low += stride
            stride *= 2
        return low + bisect_left(range(low + 1, low + stride), True, key=lambda level: not too_low(level))

    def _part(self, names: frozenset[str]) -> tuple[Storage, int]:
        """The storage of these actors only, and their iterations per iteration of the whole graph."""
        if names not in self._parts:
            actors = tuple(actor for actor in self.graph.actors if actor.name in names)
            channels = (c for c in self.graph.channels if {c.source, c.target} <= names)
            part = Storage(Graph(self.graph.name, actors, tuple(channels)), self._in_bytes)
            first = actors[0].name
            self._parts[names] = part, self._cycles[first] // part._cycles[first]
        return self._parts[names]

    def _undersized_on(self, cycle: Cycle) -> UndersizedChannels:
        precedence = self._precedence
        return UndersizedChannels(frozenset(precedence.waits_for_space(cycle)), frozenset(precedence.actors_of(cycle)))

    def _set(self, levels: Levels) -> None:
        for name in {*levels, *self._levels}:
            level = levels.get(name)
            if level != self._levels.get(name):
                self._precedence.limit(name, None if level is None else self.stores[name].capacity(level))
        self._levels = dict(levels)


def _disjoint(channels: Sequence[UndersizedChannels]) -> Sequence[UndersizedChannels]:
    """As many disjoint sets as possible, small sets first."""
    apart: list[UndersizedChannels] = []
    taken: set[str] = set()
    for undersized in sorted(channels, key=lambda undersized: (len(undersized.channels), sorted(undersized.channels))):
        if not apart or not undersized.channels & taken:
            apart.append(undersized)
            taken |= undersized.channels
    return apart


def _step(channel: Channel) -> int:
    """The granularity of capacities: the common divisor of all rates."""
    produced, consumed = channel.production, channel.consumption
    return gcd(*produced.initial, *produced.cycle, *consumed.initial, *consumed.cycle) or 1
