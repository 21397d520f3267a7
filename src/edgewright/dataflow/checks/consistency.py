"""The repetition vector: how often each actor runs in one iteration, so that every channel returns to its state.

If rates do not match around an undirected cycle of channels, it reports the cycle and rates that would match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice
from math import lcm, prod

from ...errors import ModelError
from ...text import plural, shortened
from ..graph import ROOM, Channel, Graph, Rates, labelled, listed, quoted
from .relative_rates import MOST_BITS, ChannelTraversal, RelativeRates, relative_rates, too_large, tying

MOST_STEPS = 8  # of a cycle in a message
MOST_FIXES = 3  # listed in a message
_TRIED_FIXES = 30


@dataclass(frozen=True)
class RateFix:
    """The rate with which a channel would be consistent, as tokens per cycle."""

    channel: Channel
    produced: int
    consumed: int

    def __str__(self) -> str:
        now = self.channel.production.total, self.channel.consumption.total
        produced, consumed = (plural(count, "token") for count in (self.produced, self.consumed))
        source, target = quoted(self.channel.source), quoted(self.channel.target)
        if self.produced == now[0]:
            change = f"{target} consumed {consumed} per cycle instead of {now[1]:,}"
        elif self.consumed == now[1]:
            change = f"{source} produced {produced} per cycle instead of {now[0]:,}"
        else:
            change = f"{source} produced {produced} per cycle and {target} consumed {self.consumed:,}"
        return f"channel {quoted(self.channel.name)} would fit if {change}"

    def applied(self, graph: Graph) -> Graph:
        """The graph with these totals; their distribution over phases does not matter for consistency."""
        production = _with_total(self.channel.production, self.produced)
        consumption = _with_total(self.channel.consumption, self.consumed)
        fixed = replace(self.channel, production=production, consumption=consumption)
        return replace(graph, channels=tuple(fixed if c is self.channel else c for c in graph.channels))


@dataclass(frozen=True)
class Mismatch:
    """A closed walk with inconsistent rates; its first step goes forwards."""

    graph: Graph
    steps: tuple[ChannelTraversal, ...]

    @cached_property
    def product(self) -> Fraction:
        """The product of the gains; 1 if rates are consistent."""
        return prod((step.gain for step in self.steps), start=Fraction(1))

    @cached_property
    def fixes(self) -> Sequence[RateFix]:
        """Changes that make this cycle consistent; if possible only those that make all others consistent too."""
        single = list(islice(chain.from_iterable(map(self._single_rates, self.steps)), _TRIED_FIXES))
        fixes = single or [self._both_rates(self.steps[0])]
        whole = islice((fix for fix in fixes if _is_consistent(fix.applied(self.graph))), MOST_FIXES)
        return list(whole) or fixes[:MOST_FIXES]

    def __str__(self) -> str:
        fixes = "; or ".join(map(str, self.fixes))
        what = self._self_loop() if self.steps[0].channel.is_self_loop else self._cycle()
        return f"graph {quoted(self.graph.name)} is inconsistent: {what}. {fixes[0].upper()}{fixes[1:]}."

    def _self_loop(self) -> str:
        loop = self.steps[0].channel
        return (
            f"{labelled(self.graph.by_name[loop.source])} puts {plural(loop.production.total, 'token')} into its "
            f"self-loop {quoted(loop.name)} in each cycle and takes {loop.consumption.total:,}"
        )

    def _cycle(self) -> str:
        return (
            f"around the channels {listed([_written(step) for step in self.steps], MOST_STEPS)} "
            f"the rates multiply to {shortened(str(self.product), ROOM)} instead of 1, "
            "so that tokens pile up or run out whatever the order"
        )

    def _single_rates(self, step: ChannelTraversal) -> Iterator[RateFix]:
        """Fixes that change the consumed or the produced tokens, if that gives integers."""
        produced, consumed = step.channel.production.total, step.channel.consumption.total
        excess = self.product if step.forwards else 1 / self.product  # of the produced tokens
        if (consumed * excess).denominator == 1:
            yield RateFix(step.channel, produced, int(consumed * excess))
        if (produced / excess).denominator == 1:
            yield RateFix(step.channel, int(produced / excess), consumed)

    def _both_rates(self, step: ChannelTraversal) -> RateFix:
        wanted = step.gain / self.product
        return RateFix(step.channel, wanted.numerator, wanted.denominator)


def mismatch_of(graph: Graph, channel: Channel, reached_by: Mapping[str, ChannelTraversal | None]) -> Mismatch:
    """The cycle formed by a channel and paths of a spanning tree."""
    down, up = _path(channel.source, reached_by), _path(channel.target, reached_by)
    shared = 0
    while shared < min(len(down), len(up)) and down[shared] is up[shared]:
        shared += 1
    back = tuple(ChannelTraversal(step.channel, not step.forwards) for step in reversed(up[shared:]))
    return Mismatch(graph, (ChannelTraversal(channel, forwards=True), *back, *down[shared:]))


def _path(actor: str, reached_by: Mapping[str, ChannelTraversal | None]) -> list[ChannelTraversal]:
    """The steps from the root of its component to an actor."""
    path = []
    while (step := reached_by[actor]) is not None:
        path.append(step)
        actor = step.start
    return path[::-1]


def _is_consistent(graph: Graph) -> bool:
    rates = relative_rates(graph)
    return all(map(rates.fits, graph.channels))


def _with_total(rates: Rates, total: int) -> Rates:
    return replace(rates, cycle=(total, *(0 for _ in rates.cycle[1:])))


def _written(step: ChannelTraversal) -> str:
    channel = step.channel
    arrow = f"{quoted(step.start)} {'→' if step.forwards else '←'} {quoted(step.end)}"
    return f"{quoted(channel.name)} ({arrow}, {channel.production.total:,} made : {channel.consumption.total:,} taken)"


_LOOKED_AT = 50  # inconsistent channels examined; the shortest cycle is reported


def repetitions(graph: Graph) -> Mapping[str, int]:
    """Firings of each actor in one iteration: the smallest that return every channel to its state (M 2.5).

    Initial phases run before the first iteration and are not counted.
    """
    whole = cycles(graph)
    return {actor.name: whole[actor.name] * actor.phases for actor in graph.actors}


def cycles(graph: Graph) -> Mapping[str, int]:
    """Complete cycles through its phases that each actor makes in one iteration; smallest within each component."""
    rates = relative_rates(graph)
    wrong = _mismatch(graph, rates)
    if wrong is not None:
        raise ModelError(str(wrong))
    return _smallest(graph, rates)


def mismatch(graph: Graph) -> Mismatch | None:
    """The undirected cycle of channels with inconsistent rates, or None if the graph is consistent."""
    return _mismatch(graph, relative_rates(graph))


def _mismatch(graph: Graph, rates: RelativeRates) -> Mismatch | None:
    """The shortest of the first inconsistent cycles, which is the easiest to understand."""
    wrong = islice((channel for channel in tying(graph) if not rates.fits(channel)), _LOOKED_AT)
    told = [mismatch_of(graph, channel, rates.reached_by) for channel in wrong]
    return min(told, key=lambda one: len(one.steps), default=None)


def _smallest(graph: Graph, rates: RelativeRates) -> Mapping[str, int]:
    """The speeds scaled to integers, component by component; one of them is 1, so they are the smallest."""
    scale: dict[int, int] = {}
    for name, speed in rates.speed.items():
        part = rates.component[name]
        scale[part] = lcm(scale.get(part, 1), speed.denominator)
        if scale[part].bit_length() > MOST_BITS:
            raise too_large(graph)
    return {a.name: int(rates.speed[a.name] * scale[rates.component[a.name]]) for a in graph.actors}
