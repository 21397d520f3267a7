"""Operators restricted to one region of their output. How such operators are wired into a network is left to
`parts`."""

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
