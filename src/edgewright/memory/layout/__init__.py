"""Addresses for buffers with lifetimes in the least memory, with proof; which buffers there are is decided elsewhere."""

from edgewright.memory.layout.bound import lower_bound
from edgewright.memory.layout.first_fit import place_first_fit, place_greedy_by_size
from edgewright.memory.layout.optimal import Effort, place_optimal
from edgewright.memory.layout.problem import Item, LayoutProblem, Placement, conflicts

__all__ = [
    "Effort",
    "Item",
    "LayoutProblem",
    "Placement",
    "conflicts",
    "lower_bound",
    "place_first_fit",
    "place_greedy_by_size",
    "place_optimal",
]
