"""The operators in numpy, over regions: the reference that every plan is judged against."""

from .compute import checked_input, compute, compute_whole, execute, run_layer
from .operand import Operand
from .partial_sums import add_partial_sum, can_sum_partially, finish_partial_sums

__all__ = [
    "Operand", "add_partial_sum", "can_sum_partially", "checked_input", "compute", "compute_whole", "execute",
    "finish_partial_sums", "run_layer",
]  # fmt: skip
