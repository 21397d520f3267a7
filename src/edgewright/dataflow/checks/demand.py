"""Execution on demand, without time: an actor fires only when another needs its output.

A demand that returns to an actor which is itself waiting is a deadlock, and yields its cycle. Actors that wait for each
other repeatedly (strongly connected components) determine the throughput of a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import networkx as nx

from ...errors import InputError, Unsupported
from ..graph import Actor, Channel, Graph, Rates, quoted

MOST_FIRINGS = 10_000_000


@dataclass(frozen=True)
class Supply:
    """What a firing may have to wait for: the tokens of a channel, or the space left in it."""

    channel: Channel
    is_room: bool
    first: int  # tokens, or space, before the first firing

    @property
    def consumer(self) -> str:
        return self.channel.source if self.is_room else self.channel.target

    @property
    def producer(self) -> str:
        return self.channel.target if self.is_room else self.channel.source

    @property
    def consumed(self) -> Rates:
        return self.channel.production if self.is_room else self.channel.consumption

    @property
    def produced(self) -> Rates:
        return self.channel.consumption if self.is_room else self.channel.production


def supplies(graph: Graph, capacities: Mapping[str, int] | None) -> Sequence[Supply]:
    """Tokens of every channel, and space in those with a capacity; initial tokens occupy space."""
    capacities = capacities or {}
    unknown = [name for name in capacities if name not in graph.channel]
    if unknown:
        raise InputError(f"graph {quoted(graph.name)} has no channel {quoted(unknown[0])} to give a capacity to")
    for channel in graph.channels:
        if capacities.get(channel.name, channel.tokens) < channel.tokens:
            raise InputError(
                f"channel {quoted(channel.name)} holds {channel.tokens:,} tokens at first, more than its capacity "
                f"{capacities[channel.name]:,}"
            )
    rooms = [Supply(c, True, capacities[c.name] - c.tokens) for c in graph.channels if c.name in capacities]
    return [*(Supply(c, False, c.tokens) for c in graph.channels), *rooms]


@dataclass
class _State:
    """A running actor: its position in its phases, and the supplies that each phase takes from and fills."""

    initial: int
    phases: int  # initial ones included
    takes: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    fills: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    phase: int = 0


class Demand:
    """Some running actors of a graph. Only the given supplies limit anything; they lie between these actors."""

    def __init__(
        self, graph: Graph, actors: Sequence[str], limiting: Sequence[Supply], order: list[str] | None = None
    ) -> None:
        """Actors are appended to `order`, if given, as they fire."""
        self._order = order
        self.supplies = limiting
        self.stock = [supply.first for supply in limiting]
        self.fired = dict.fromkeys(actors, 0)
        self.stuck: dict[str, int] = {}  # actors that will never fire again, with the supply that they wait for
        self.cycle: Sequence[str] = ()  # the first actors found that wait for each other
        self._left = MOST_FIRINGS
        self._name = graph.name
        known = [graph.by_name[name] for name in actors]
        self._states = {x.name: _State(x.initial_phases, x.initial_phases + x.phases) for x in known}
        for number, supply in enumerate(limiting):
            self._states[supply.consumer].takes.append((number, (*supply.consumed.initial, *supply.consumed.cycle)))
            self._states[supply.producer].fills.append((number, (*supply.produced.initial, *supply.produced.cycle)))

    def reach(self, goals: Mapping[str, int]) -> bool:
        """Whether each actor could be made to fire that often in total; continues past those that cannot."""
        for name, goal in goals.items():
            while self.fired[name] < goal and self._pull(name):
                pass
        return not self.stuck

    def lacks(self, name: str) -> int | None:
        """A supply that lacks what the actor's next firing takes; None if it may fire."""
        state = self._states[name]
        for number, rates in state.takes:
            if self.stock[number] < rates[state.phase]:
                return number
        return None

    def needs(self, name: str) -> int:
        """What the next firing of a stuck actor takes from the supply it waits for."""
        state = self._states[name]
        return dict(state.takes)[self.stuck[name]][state.phase]

    def _pull(self, name: str) -> bool:
        """Fires an actor once, after those it waits for; False if it can never fire again."""
        waiting = {name: -1}  # in order of demand, each with the supply it waits for
        here = name
        while here not in self.stuck:
            supply = self.lacks(here)
            if supply is None:
                self._fire(here)
                del waiting[here]
                if not waiting:
                    return True
                here = next(reversed(waiting))
                continue
            waiting[here] = supply
            asked = self.supplies[supply].producer
            if asked in waiting:
                self.cycle = self.cycle or tuple(waiting)[list(waiting).index(asked) :]
                break
            here = asked
            waiting[here] = -1
        self.stuck.update((actor, supply) for actor, supply in waiting.items() if supply >= 0)
        return False

    def _fire(self, name: str) -> None:
        state = self._states[name]
        phase = state.phase
        for number, rates in state.takes:
            self.stock[number] -= rates[phase]
        for number, rates in state.fills:
            self.stock[number] += rates[phase]
        state.phase = phase + 1 if phase + 1 < state.phases else state.initial
        self.fired[name] += 1
        if self._order is not None:
            self._order.append(name)
        self._left -= 1
        if self._left < 0:
            raise Unsupported(
                f"graph {quoted(self._name)}: whether it is live shows only after more than {MOST_FIRINGS:,} firings, "
                "which is where we stop. Use larger tokens, so that actors fire less often"
            )


@dataclass(frozen=True)
class Component:
    """Actors that wait for each other, directly or through others, and the supplies between them."""

    actors: Sequence[Actor]
    limits: Sequence[Supply]

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(supply.channel for supply in self.limits if not supply.is_room)


def components(graph: Graph, limits: Sequence[Supply]) -> Iterator[Component]:
    """The strongly connected components in which some of `limits` is waited for."""
    waits = nx.DiGraph()
    waits.add_nodes_from(actor.name for actor in graph.actors)
    waits.add_edges_from((supply.consumer, supply.producer) for supply in limits)
    number = {name: at for at, part in enumerate(nx.strongly_connected_components(waits)) for name in part}
    actors: dict[int, list[Actor]] = {}
    inside: dict[int, list[Supply]] = {}
    for actor in graph.actors:
        actors.setdefault(number[actor.name], []).append(actor)
    for supply in limits:
        if number[supply.consumer] == number[supply.producer]:
            inside.setdefault(number[supply.consumer], []).append(supply)
    for at, members in inside.items():
        yield Component(actors[at], members)


def pacing_components(graph: Graph, capacities: Mapping[str, int] | None) -> Iterator[Component]:
    """Components with waits that recur, not only in initial phases."""
    return components(graph, [supply for supply in supplies(graph, capacities) if supply.produced.total])
