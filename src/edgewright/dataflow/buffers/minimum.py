"""The smallest buffers with which a graph runs forever, and a schedule within them.

A channel's capacity covers the initial tokens, tokens that a firing will produce (from its start) and tokens that a
firing consumes (until its end). A self-loop is an ordinary channel: one token in and out needs two places. Blocks of
the graph are sized separately (`blocks`), each exactly (`sizing`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

import networkx as nx

from ..graph import Channel, Graph
from .bounds import loop_capacity
from .schedule import Sized, Weight, lazy_schedule, live_firings, price
from .sizing import Sizes, size
from .untimed import untimed


@dataclass(frozen=True)
class Buffers(Sized):
    """The sum of the capacities of all channels, and a schedule that respects them."""

    capacities: Mapping[str, int]  # in tokens


def minimum_buffers(graph: Graph, weight: Weight = "tokens") -> Buffers:
    """Capacities of all channels, including self-loops, with the least sum under which the graph is live."""
    firings = live_firings(graph)
    capacities: dict[str, int] = {}
    bound = 0
    solved: dict[Hashable, Sizes] = {}
    for part in blocks(graph):
        within = firings_within(part, firings)
        kind = _kind(part, within, weight)
        if kind not in solved:
            solved[kind] = _size(part, within, weight)
        bound += solved[kind].bound
        capacities.update(zip((one.name for one in part.channels), solved[kind].capacities, strict=True))
    ordered = {channel.name: capacities[channel.name] for channel in graph.channels}
    return Buffers(
        sum(ordered.values()),
        sum(ordered[channel.name] * channel.token_bytes for channel in graph.channels),
        weight,
        bound,
        lazy_schedule(graph, ordered),
        ordered,
    )


def _size(part: Graph, firings: Mapping[str, int], weight: Weight) -> Sizes:
    prices = [price(channel, weight) for channel in part.channels]
    if len(part.actors) > 1:
        return size(untimed(part, firings), prices)
    (actor,), (loop,) = part.actors, part.channels
    capacity = loop_capacity(loop, actor.initial_phases + firings[actor.name])
    return Sizes([capacity], capacity * prices[0], capacity * prices[0])


def _kind(part: Graph, firings: Mapping[str, int], weight: Weight) -> Hashable:
    """The properties that determine the sizes, as a cache key: networks repeat blocks."""
    place = {actor.name: at for at, actor in enumerate(part.actors)}
    return (
        tuple(firings.values()),
        tuple(
            (place[one.source], place[one.target], one.production, one.consumption, one.tokens, price(one, weight))
            for one in part.channels
        ),
    )


def blocks(graph: Graph) -> list[Graph]:
    """Each self-loop, and each biconnected component with all channels between its actors."""
    between: dict[frozenset[str], list[Channel]] = {}
    for channel in graph.channels:
        between.setdefault(frozenset((channel.source, channel.target)), []).append(channel)
    links = nx.Graph(tuple(pair) for pair in between if len(pair) == 2)
    parts = [[frozenset(edge) for edge in edges] for edges in nx.biconnected_component_edges(links)]
    order = {actor.name: at for at, actor in enumerate(graph.actors)}
    loops = [_part(graph, order, [loop]) for pair, channels in between.items() if len(pair) == 1 for loop in channels]
    return loops + [_part(graph, order, [one for pair in part for one in between[pair]]) for part in parts]


def firings_within(part: Graph, firings: Mapping[str, int]) -> Mapping[str, int]:
    """Firings of one iteration of the part, from those of the whole graph."""
    whole = gcd(*(firings[actor.name] // actor.phases for actor in part.actors))
    return {actor.name: firings[actor.name] // whole for actor in part.actors}


def _part(graph: Graph, order: Mapping[str, int], channels: Sequence[Channel]) -> Graph:
    names = {name for channel in channels for name in (channel.source, channel.target)}
    actors = tuple(graph.by_name[name] for name in sorted(names, key=order.__getitem__))
    return Graph(graph.name, actors, tuple(sorted(channels, key=lambda one: (order[one.source], order[one.target]))))
