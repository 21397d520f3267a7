"""The C module under construction: the constants, tables and kernel files that its calls refer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..platform.target import Target
from ..program.options import Options
from .printing.constants import Constants
from .printing.source import Expr, Fields, braced, designated


@dataclass
class Module:
    prefix: str  # of every identifier
    target: Target
    options: Options
    constants: Constants
    kernels: set[str] = field(default_factory=set)  # names of kernel files, without suffix
    tables: list[str] = field(default_factory=list)  # `static const` definitions of the schedule's source
    known: dict[tuple[str, str, str], str] = field(default_factory=dict)  # their names
    arena: str = ""  # C of it where stages may share code with others: their C then differs in numbers alone if it can

    def table(self, ctype: str, fields: Fields) -> str:
        """The name of a `static const` struct with these fields; equal ones once."""
        return self._defined(ctype, "t", "", designated(fields))

    def one_table(self, ctype: str, rows: Sequence[Fields], which: Expr) -> str:
        """C of a struct with the fields of row number `which`, a C expression where rows differ."""
        return self._one_of(ctype, "t", list(map(designated, rows)), which)

    def one_pointer(self, names: Sequence[str], which: Expr) -> str:
        """C of one of these constants: its name, or where they differ, a table of names."""
        if len(set(names)) == 1:
            return names[0]
        return self._one_of("void *const", "p", names, which)

    def one_number(self, values: Sequence[int], which: Expr) -> Expr:
        """C of one of these numbers."""
        if len(set(values)) == 1:
            return values[0]
        return self._one_of("int32_t", "n", [str(value) for value in values], which)

    def _one_of(self, ctype: str, letter: str, bodies: Sequence[str], which: Expr) -> str:
        if len(set(bodies)) == 1:
            return self._defined(ctype, letter, "", bodies[0])
        if isinstance(which, int):
            return self._defined(ctype, letter, "", bodies[which])
        return f"{self._defined(ctype, letter, f'[{len(bodies)}]', braced(bodies))}[{which}]"

    def _defined(self, ctype: str, letter: str, size: str, body: str) -> str:
        """The name of a `static const` with this initialiser; equal ones are one."""
        key = (ctype, size, body)
        if key not in self.known:
            name = f"{self.prefix}_{letter}{len(self.tables)}"
            self.known[key] = name
            self.tables.append(f"static const {ctype} {name}{size} = {body};")
        return self.known[key]
