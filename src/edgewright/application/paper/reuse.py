"""Buffers that edges share (M 6.5.1, Algorithm 8), and the least memory for the same edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from ...memory.layout import ConflictGraph, Placement, place_graph
from .edges import PaperEdge

Meet = Callable[[PaperEdge, PaperEdge], bool]


@dataclass(frozen=True)
class SharedBuffer:
    """A buffer as large as its largest edge, for edges that are never in use together."""

    size: int
    edges: tuple[PaperEdge, ...]


def reuse(edges: Sequence[PaperEdge], meet: Meet) -> tuple[SharedBuffer, ...]:
    """Algorithm 8: each edge in turn goes to the compatible buffer that must grow least, or to a new one."""
    buffers: list[SharedBuffer] = []
    for edge in edges:
        suiting = [n for n, buffer in enumerate(buffers) if not any(meet(edge, other) for other in buffer.edges)]
        if not suiting:
            buffers.append(SharedBuffer(edge.size, (edge,)))
            continue
        best = min(suiting, key=lambda n: max(edge.size - buffers[n].size, 0))  # the first of equals
        buffers[best] = SharedBuffer(max(buffers[best].size, edge.size), (*buffers[best].edges, edge))
    return tuple(buffers)


def total(buffers: Sequence[SharedBuffer]) -> int:
    return sum(buffer.size for buffer in buffers)


def naive(edges: Sequence[PaperEdge]) -> int:
    """Bytes if every edge has a separate buffer."""
    return sum(edge.size for edge in edges)


def exact(edges: Sequence[PaperEdge], meet: Meet) -> Placement:
    """The least memory for the same edges with arbitrary addresses rather than shared whole buffers."""
    conflicting = frozenset((x.name, y.name) for x, y in combinations(edges, 2) if meet(x, y))
    return place_graph(ConflictGraph({edge.name: edge.size for edge in edges}, conflicting))
