"""Strongly connected components of a directed graph given by its edges."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import networkx as nx

Node = TypeVar("Node", bound=Hashable)


def strong_components(nodes: Iterable[Node], edges: Iterable[tuple[Node, Node]]) -> Mapping[Node, int]:
    """The number of the component that each node is in."""
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return {node: number for number, part in enumerate(nx.strongly_connected_components(graph)) for node in part}
