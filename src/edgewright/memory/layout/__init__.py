"""Addresses for buffers with lifetimes in the least memory, with proof."""

from .bound import critical, lower_bound
from .csv import read_csv, write_csv
from .first_fit import place_greedy_by_size
from .graph import ConflictGraph, place_graph
from .memories import MemoryPlacement, place_graph_in_memories, place_in_memories
from .optimal import LayoutEffort, place_optimal
from .problem import Item, LayoutProblem, NotFound, Placement, conflicts

__all__ = [
    "ConflictGraph", "Item", "LayoutEffort", "LayoutProblem", "MemoryPlacement", "NotFound", "Placement",
    "conflicts", "critical", "lower_bound", "place_graph", "place_graph_in_memories",
    "place_greedy_by_size", "place_in_memories", "place_optimal", "read_csv", "write_csv",
]  # fmt: skip
