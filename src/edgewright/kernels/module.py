"""The C module under construction: what all its calls add to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..platform.target import Target
from .options import Options
from .printing.constants import Constants
from .printing.source import Expr, braced


@dataclass
class Module:
    prefix: str  # of every identifier
    target: Target
    options: Options
    constants: Constants
    kernels: set[str] = field(default_factory=set)  # names of kernel files, without suffix
    tables: list[str] = field(default_factory=list)  # `static const` definitions of the schedule's source

    def table(self, ctype: str, fields: Sequence[Expr]) -> str:
        """The name of a `static const` struct with these fields, in the order of its declaration; equal ones once."""
        body = braced(fields)
        for text in self.tables:
            if text.startswith(f"static const {ctype} ") and text.endswith(f" = {body};"):
                return text.split(" = ")[0].split()[-1]
        name = f"{self.prefix}_t{len(self.tables)}"
        self.tables.append(f"static const {ctype} {name} = {body};")
        return name
