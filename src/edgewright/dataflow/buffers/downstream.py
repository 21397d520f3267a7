"""An order of firings that empties channels before it fills them: who is furthest downstream fires first."""

from __future__ import annotations

import networkx as nx

from .load import Load
from .untimed import Untimed


def downstream_first(graph: Untimed, load: Load) -> list[int]:
    """The actors of one iteration, firing after firing; for a graph without initial phases.

    A firing that leaves no more than it found, within the peak so far, goes before all others (see `least_peak`).
    """
    depth = _depths(graph)
    place = graph.start()
    able = {actor for actor in range(len(graph.actors)) if graph.has_tokens(actor, place)}
    held = peak = load.base
    order: list[int] = []
    while able:
        actor = _next(graph, load, place, depth, able, peak - held)
        name = graph.actors[actor]
        order.append(actor)
        peak = max(peak, held + load.rises[name][place[actor]])
        held += load.rises[name][place[actor]] - load.falls[name][place[actor]]
        place[actor] += 1
        for other in {actor, *(graph.lines[at].target for at in graph.outputs[actor])}:
            (able.add if graph.has_tokens(other, place) else able.discard)(other)
    return order


def _next(graph: Untimed, load: Load, place: list[int], depth: list[int], able: set[int], room: int) -> int:
    """Of the actors that can fire one that costs nothing, else the one furthest downstream."""
    ranked = sorted(able, key=lambda actor: (-depth[actor], actor))
    for actor in ranked:
        rise, fall = load.rises[graph.actors[actor]][place[actor]], load.falls[graph.actors[actor]][place[actor]]
        if rise <= fall and rise <= room:
            return actor
    return ranked[0]


def _depths(graph: Untimed) -> list[int]:
    """How many steps each actor is from where tokens come from; those of a cycle are equally far."""
    links = nx.DiGraph((line.source, line.target) for line in graph.lines)
    links.add_nodes_from(range(len(graph.actors)))
    cycles = nx.condensation(links)
    depths: dict[int, int] = {}
    for cycle in nx.topological_sort(cycles):
        depths[cycle] = 1 + max((depths[before] for before in cycles.predecessors(cycle)), default=0)
    return [depths[cycles.graph["mapping"][actor]] for actor in range(len(graph.actors))]
