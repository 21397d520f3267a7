"""Text whose meaning depends on its position: macros that are defined more than once, and lines under #if."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .cursors import KINDS, top_level
from .description import Span
from .lexical import blanked

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\.|\\\r?\n)*)", re.MULTILINE)
_UNDEF = re.compile(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", re.MULTILINE)
_CHOICE = re.compile(rb"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else|endif)\b", re.MULTILINE)
_PRAGMA = re.compile(rb"^[ \t]*#[ \t]*pragma\b|\b_Pragma\b", re.MULTILINE)
LINE = "__LINE__"
# Each use, or each place, has a value of its own.
_OWN = frozenset((LINE, "__COUNTER__", "__INCLUDE_LEVEL__", "__TIMESTAMP__", "__FILE__", "__BASE_FILE__"))


@dataclass(frozen=True, slots=True)
class Macros:
    """The macro uses in a driver's files, and the macros that do not mean the same everywhere."""

    unsteady: frozenset[str]
    bodies: Mapping[str, str]  # all that a macro is defined as, put together
    uses: Mapping[str, list[tuple[int, int, str]]]  # by file: first byte, one past the last, name
    choices: Mapping[str, list[int]]  # by file: where a line of #if, #else or #endif begins
    pragmas: Mapping[str, list[int]] = field(default_factory=dict)  # by file: where they begin, also those of macros

    def beginning(self, file: str, where: Span) -> list[tuple[int, int, str]]:
        """The uses that begin in a piece of text."""
        uses = self.uses.get(file, [])
        first, last = (bisect_left(uses, (at, 0, "")) for at in where)
        return uses[first:last]

    def before(self, file: str, text: bytes, at: int, names: frozenset[str]) -> int | None:
        """Where the use of one of these macros begins that stands directly before a place."""
        uses = self.uses.get(file, [])
        for number in range(bisect_left(uses, (at, 0, "")) - 1, -1, -1):
            first, last, name = uses[number]
            if last > at:
                continue
            is_before = name in names and not blanked(text[last:at], literals=False).strip()
            return first if is_before else None
        return None

    def is_unsteady(self, file: str, where: Span) -> bool:
        """Whether the text could mean something else at another position, or with other macro definitions."""
        return any(name in self.unsteady for _, _, name in self.beginning(file, where))

    def choices_in(self, file: str, where: Span) -> list[int]:
        """The lines in the span that decide what is compiled (#if and the like)."""
        lines = self.choices.get(file, [])
        return lines[bisect_left(lines, where[0]) : bisect_left(lines, where[1])]

    def pragmas_in(self, file: str, where: Span) -> bool:
        """Whether a pragma stands in the span; what it does to code moved across it is known to the compiler alone."""
        places = self.pragmas.get(file, [])
        return bisect_left(places, where[0]) < bisect_left(places, where[1])

    def mentions(self, text: str, word: str, depth: int = 8) -> bool:
        """Whether a word stands in a text or in a macro that it uses."""
        names = set(re.findall(r"\w+", text))
        if word in names:
            return True
        return depth > 0 and any(self.mentions(self.bodies[n], word, depth - 1) for n in names if n in self.bodies)


def macros_of(units: Iterable[Any], files: Mapping[str, bytes]) -> Macros:
    """The macros of a driver; definitions in lines that are left out count as well."""
    bodies: dict[str, str] = {}
    unsteady = set(_OWN)
    for content in files.values():
        text = blanked(content, literals=False).decode(errors="replace")
        unsteady.update(_UNDEF.findall(text))
        for name, body in _DEFINE.findall(text):
            if name in bodies and bodies[name].strip() != body.strip():
                unsteady.add(name)
            bodies[name] = f"{bodies.get(name, '')} {body}"
    _spread(unsteady, bodies)
    choices = {file: [found.start() for found in _CHOICE.finditer(blanked(content))] for file, content in files.items()}
    uses = _uses(units, files)
    hiding = {"_Pragma"}
    _spread(hiding, bodies)
    pragmas = {
        file: sorted(
            {found.start() for found in _PRAGMA.finditer(blanked(content))}
            | {first for first, _, name in uses.get(file, ()) if name in hiding}
        )
        for file, content in files.items()
    }
    return Macros(frozenset(unsteady), bodies, uses, choices, pragmas)


def _spread(unsteady: set[str], bodies: Mapping[str, str]) -> None:
    """Adds the macros that expand to unsteady ones, transitively."""
    words = {name: set(re.findall(r"\w+", body)) for name, body in bodies.items()}
    more = True
    while more:
        found = {name for name, used in words.items() if name not in unsteady and used & unsteady}
        unsteady |= found
        more = bool(found)


def _uses(units: Iterable[Any], files: Mapping[str, bytes]) -> dict[str, list[tuple[int, int, str]]]:
    found: dict[str, set[tuple[int, int, str]]] = {}
    for unit in units:
        for cursor in top_level(unit):
            if cursor.kind is KINDS.MACRO_INSTANTIATION and (file := str(cursor.extent.start.file)) in files:
                use = int(cursor.extent.start.offset), int(cursor.extent.end.offset), str(cursor.spelling)
                found.setdefault(file, set()).add(use)
    return {file: sorted(uses) for file, uses in found.items()}
