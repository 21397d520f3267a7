"""Cuts a graph where buffers of its parts do not depend on each other: at self-loops, and at articulation actors.

Why parts may be sized apart. A firing waits for firings that bring its tokens, its space, or that come before it at the
same actor; a graph is live when no firing waits, directly or not, for itself. Take a shortest circle of such waits. If
it left a block and came back to it, it would do so through one actor, which joins the two sides: some firing k of that
actor waits, by the other side alone, for its firing k'. Either k' >= k, then the other side alone is dead already; or
k' < k, and the order of the actor's own firings is the shorter way. So a circle stays within one block, and capacities
are live exactly when each block is. The order of an actor's firings belongs to every block, hence to none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

import networkx as nx

from ..graph import Channel, Graph


def blocks(graph: Graph) -> list[Graph]:
    """Each self-loop alone, and each biconnected component with all channels between its actors."""
    between: dict[frozenset[str], list[Channel]] = {}
    for channel in graph.channels:
        between.setdefault(frozenset((channel.source, channel.target)), []).append(channel)
    links = nx.Graph(tuple(pair) for pair in between if len(pair) == 2)
    parts = [[frozenset(edge) for edge in edges] for edges in nx.biconnected_component_edges(links)]
    order = {actor.name: at for at, actor in enumerate(graph.actors)}
    loops = [
        _part(graph, order, [loop]) for pair, channels in between.items() if len(pair) == 1 for loop in channels
    ]
    return loops + [_part(graph, order, [one for pair in part for one in between[pair]]) for part in parts]


def firings_within(part: Graph, firings: Mapping[str, int]) -> Mapping[str, int]:
    """Firings of one iteration of the part alone, from those of a graph it is part of."""
    whole = gcd(*(firings[actor.name] // actor.phases for actor in part.actors))
    return {actor.name: firings[actor.name] // whole for actor in part.actors}


def _part(graph: Graph, order: Mapping[str, int], channels: Sequence[Channel]) -> Graph:
    names = {name for channel in channels for name in (channel.source, channel.target)}
    actors = tuple(graph.by_name[name] for name in sorted(names, key=order.__getitem__))
    return Graph(
        graph.name, actors, tuple(sorted(channels, key=lambda one: (order[one.source], order[one.target])))
    )
