"""Bytes of code that accesses take on a target: what the layouts' estimates are made of.

The numbers in `costs/` are fitted by benchmarks/hal_costs.py, which compiles the same drivers with many layouts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

DEFAULT = "rv32imc"


@dataclass(frozen=True, slots=True)
class CodeBytes:
    access: int  # load or store, and its share of the address
    shift: int  # a field that does not begin at bit 0
    mask: int  # a field that is read, unless it is alone or ends at the top
    join: int  # or, for every field of a combined write after the first
    rewrite: int  # what read-modify-write adds to a store: load, and, or; some of it is shared
    far: int  # a mask that may not fit an instruction: of a rewritten field that does not begin at bit 0
    index: int  # shift and add
    lane_read: int  # shift by a variable
    lane_write: int
    lane_words: int  # which word, where the lanes need several
    critical: int  # interrupts off and on again


@cache
def code_bytes(target: str = DEFAULT) -> CodeBytes:
    """The bytes of a target; of one that nothing is known about, those of RV32IMC."""
    folder = resources.files(__package__) / "costs"
    file = folder / f"{target}.json"
    known = json.loads((file if file.is_file() else folder / f"{DEFAULT}.json").read_text())
    return CodeBytes(**{field.name: int(known[field.name]) for field in fields(CodeBytes)})
