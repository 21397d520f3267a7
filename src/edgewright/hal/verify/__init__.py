"""Verification: the driver on a virtual prototype, with one register for each field and with the layout (S 6.6)."""

from __future__ import annotations

from .checking import missing_tools, verify
from .measuring import Measured, code_sizes_of, measure
from .peripheral import Peripheral, load_model
from .verification import Checked, Counts, Difference, Verification

__all__ = [
    "Checked", "Counts", "Difference", "Measured", "Peripheral", "Verification", "code_sizes_of", "load_model",
    "measure", "missing_tools", "verify",
]  # fmt: skip
