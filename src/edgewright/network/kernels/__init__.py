"""The operators in numpy, over regions: the interpreter that every plan is judged against."""

from .compute import checked_input, compute, execute
from .operand import Operand

__all__ = ["Operand", "checked_input", "compute", "execute"]
