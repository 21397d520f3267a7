"""The operators in numpy, over regions: the interpreter that every plan is judged against."""

from .compute import checked_input, compute, execute, run_layer
from .operand import Operand
from .shares import add_share, can_share, finish_shares

__all__ = [
    "Operand", "add_share", "can_share", "checked_input", "compute", "execute", "finish_shares", "run_layer",
]  # fmt: skip
