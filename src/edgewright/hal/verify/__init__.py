"""Verification: the driver on a virtual prototype, with one register for each field and with the layout (S 6.6)."""

from __future__ import annotations

from .measurement import Measured, code_sizes_of, measure
from .peripheral import Peripheral, load_model
from .twin import TwinComparison, compare_with_twin
from .verification import Counts, Difference, FunctionCheck, Verification
from .verifier import missing_tools, verify

__all__ = [
    "Counts", "Difference", "FunctionCheck", "Measured", "Peripheral", "TwinComparison", "Verification",
    "code_sizes_of", "compare_with_twin", "load_model", "measure", "missing_tools", "verify",
]  # fmt: skip
