"""Operators restricted to one region of their output. `parts` wires them into a network."""

from .answer import Answer, JoinedRegions, RestrictedOperator, WidenedRegion
from .table import RESTRICTIONS, restrict, restrictable_hull

__all__ = [
    "RESTRICTIONS",
    "Answer",
    "JoinedRegions",
    "RestrictedOperator",
    "WidenedRegion",
    "restrict",
    "restrictable_hull",
]
