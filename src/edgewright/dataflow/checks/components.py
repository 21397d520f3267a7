"""The strongly connected components of a graph: actors that wait for each other again and again set its pace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from ..graph import Actor, Channel, Graph
from .demand import Supply, supplies


@dataclass(frozen=True)
class Component:
    """Actors that wait for each other, directly or through others, and what they wait for."""

    actors: Sequence[Actor]
    limits: Sequence[Supply]

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(supply.channel for supply in self.limits if not supply.is_room)


def components(graph: Graph, limits: Sequence[Supply]) -> Iterator[Component]:
    """The strongly connected components in which anything of `limits` is waited for."""
    waits = nx.DiGraph()
    waits.add_nodes_from(actor.name for actor in graph.actors)
    waits.add_edges_from((supply.taker, supply.filler) for supply in limits)
    number = {name: at for at, part in enumerate(nx.strongly_connected_components(waits)) for name in part}
    actors: dict[int, list[Actor]] = {}
    inside: dict[int, list[Supply]] = {}
    for actor in graph.actors:
        actors.setdefault(number[actor.name], []).append(actor)
    for supply in limits:
        if number[supply.taker] == number[supply.filler]:
            inside.setdefault(number[supply.taker], []).append(supply)
    for at, found in inside.items():
        yield Component(actors[at], found)


def pacing_components(graph: Graph, capacities: Mapping[str, int] | None) -> Iterator[Component]:
    """Those in which anything is waited for again and again, not by initial phases alone."""
    return components(graph, [supply for supply in supplies(graph, capacities) if supply.filled.total])


def is_serial(channel: Channel) -> bool:
    """Whether it is a self-loop of one token that each firing takes and leaves: firings do not overlap."""
    made, taken = channel.production, channel.consumption
    rates = {*made.initial, *made.cycle, *taken.initial, *taken.cycle}
    return channel.is_self_loop and channel.tokens == 1 and rates == {1}
