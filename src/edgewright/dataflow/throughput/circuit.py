"""Finds cycles of positive gain exactly, in a graph given by tables.

Longest paths are improved step by step as in Bellman-Ford. Between steps each node takes the full height of the path
that its parents form, as in Howard's policy iteration, so that few steps are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Gains = NDArray[Any]  # integers: of 64 bits if sufficient, else Python's
Edge = tuple[int, int]  # slot, and the node at which it ends
Cycle = list[Edge]
Layers = Sequence[Ints]  # all nodes, each once

_PATIENCE = 4  # steps
_MANY = 10_000  # nodes; with fewer a step is cheaper than finding layers

ROOT = -1


def fresh(nodes: int) -> Ints:
    """Parents before any search. They are updated by a search and speed up the next one on a similar graph."""
    return np.full(nodes, ROOT, np.int64)


def positive_cycles(source: Ints, gain: Gains, parent: Ints, layers: Callable[[], Layers]) -> list[Cycle]:
    """Some cycles with positive total gain; none if there are none.

    `source[slot, node]` is the origin of an edge; `parent[node]` the slot of an initial edge, or ROOT. All nodes are
    improved at once. If that takes long, because heights travel far, nodes are improved layer by layer, so that most of
    this happens in one pass.
    """
    height = np.zeros(parent.size, gain.dtype)
    steps, patience = 0, _PATIENCE if parent.size > _MANY else inf
    while True:
        cycles = _climb(source, gain, parent, height)
        if cycles:
            return cycles
        steps += 1
        improved = [
            _improve(source[:, layer], gain[:, layer], parent, height, layer)
            for layer in (layers() if steps > patience else [np.arange(parent.size)])
        ]
        if not any(improved):
            return []


def _improve(source: Ints, gain: Gains, parent: Ints, height: Gains, nodes: Ints) -> bool:
    """Raises nodes that can be higher; returns whether there were any."""
    reach = height[source] + gain
    best = reach.argmax(axis=0)
    top = reach[best, np.arange(nodes.size)]
    better = top > height[nodes]
    if not better.any():
        return False
    parent[nodes[better]] = best[better]
    height[nodes[better]] = top[better]
    return True


def _climb(source: Ints, gain: Gains, parent: Ints, height: Gains) -> list[Cycle]:
    """Gives each node the height of the path from its root; or returns the positive cycles that its parents form.

    Parents from an earlier search may form cycles that are no longer positive: these are cut open.
    """
    while True:
        root, path = _roots(source, gain, parent)
        on_cycle = np.unique(root[parent[root] != ROOT])
        if not on_cycle.size:
            height[:] = height[root] + path
            return []
        cycles = list(_walk(source, parent, on_cycle.tolist()))
        positive = [cycle for cycle in cycles if sum(int(gain[edge]) for edge in cycle) > 0]
        if positive:
            return positive
        for cycle in cycles:
            parent[cycle[0][1]] = ROOT


def _roots(source: Ints, gain: Gains, parent: Ints) -> tuple[Ints, Gains]:
    """For each node the end of its chain of parents, or a node of a cycle, and the gain on the way."""
    nodes = np.arange(parent.size)
    is_root = parent == ROOT
    above = np.where(is_root, nodes, source[parent, nodes])
    path = np.where(is_root, 0, gain[parent, nodes])
    for _ in range(parent.size.bit_length()):
        further = above[above]
        if np.array_equal(further, above):
            break
        path = path + path[above]
        above = further
    return above, path


def _walk(source: Ints, parent: Ints, starts: list[int]) -> Iterator[Cycle]:
    """The cycles of the given nodes, without duplicates."""
    seen: set[int] = set()
    for node in starts:
        cycle = []
        while node not in seen:
            seen.add(node)
            slot = int(parent[node])
            cycle.append((slot, node))
            node = int(source[slot, node])
        if cycle:
            yield cycle


def wide_enough(*factors: tuple[NDArray[np.int64], int], nodes: int) -> Any:
    """The integer type in which a sum of `nodes` gains cannot overflow."""
    largest = sum(int(np.abs(table).max(initial=0)) * abs(factor) for table, factor in factors)
    return np.int64 if largest * 2 * (nodes + 2) < 2**63 else object
