"""One region of an operator's output, computed by an operator of its own. How such operators are wired: `parts`."""

from .answer import AloneOperator, Answer, JoinedRegions, WidenedRegion
from .table import ALONE, alone, computable

__all__ = ["ALONE", "AloneOperator", "Answer", "JoinedRegions", "WidenedRegion", "alone", "computable"]
