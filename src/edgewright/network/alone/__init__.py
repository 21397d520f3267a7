"""One region of an operator's output, computed by an operator of its own. How such operators are wired: `parts`."""

from .answer import Alone, Answer, Joined, Wider
from .table import ALONE, alone, computable

__all__ = ["ALONE", "Alone", "Answer", "Joined", "Wider", "alone", "computable"]
