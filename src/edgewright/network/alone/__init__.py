"""Operators restricted to one region of their output. How such operators are wired into a network is left to
`parts`."""

from .answer import AloneOperator, Answer, JoinedRegions, WidenedRegion
from .table import ALONE, alone, computable

__all__ = ["ALONE", "AloneOperator", "Answer", "JoinedRegions", "WidenedRegion", "alone", "computable"]
