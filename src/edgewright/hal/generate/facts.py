"""Facts about indices and values that their text does not show: signedness, and what macros expand to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..analysis.accesses import Expression
from ..analysis.members import expression
from ..language.cursors import KINDS, bare, binary_operator, children, span, top_level, walk
from ..language.description import Description, Span
from ..language.source import Source

_UNSIGNED = ("UCHAR", "USHORT", "UINT", "BOOL")
_WORD = 4  # bytes of the index parameters

At = tuple[str, Span]  # file and bytes


@dataclass(frozen=True, slots=True)
class Facts:
    quiet: frozenset[At]  # indices that become uint32_t without a warning
    values: dict[At, Expression]  # right-hand sides of assignments


def facts_of(source: Source, description: Description) -> Facts:
    """The facts of all expressions in the driver's own files."""
    quiet: set[At] = set()
    values: dict[At, Expression] = {}
    for file, cursor in _inside(source):
        if cursor.kind is KINDS.ARRAY_SUBSCRIPT_EXPR:
            _, index = children(cursor)
            quiet |= {(file, span(index))} if _has_no_effect(index) else set()
        elif cursor.kind is KINDS.BINARY_OPERATOR and binary_operator(cursor) == "=":
            _, value = children(cursor)
            values[file, span(value)] = expression(value, source.files[file], description)
    return Facts(frozenset(quiet), values)


def _inside(source: Source) -> Iterator[tuple[str, Any]]:
    for unit in source.units:
        for top in top_level(unit):
            file = top.location.file.name if top.location.file else ""
            if file in source.files:
                yield from ((file, cursor) for cursor in walk(top))


def _has_no_effect(index: Any) -> bool:
    kind = bare(index).type.get_canonical()
    return kind.kind.name in _UNSIGNED or (kind.kind.name == "ULONG" and kind.get_size() <= _WORD)
