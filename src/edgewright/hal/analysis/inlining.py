"""Static functions that compilers can inline.

GCC can never inline some functions. Where an attribute asks for it all the same, it does not compile the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import networkx as nx

from ..language.cursors import KINDS, Cursor, children, span, walk
from ..language.description import Span
from .functions import Function

_STATIC = re.compile(rb"static\b")
_OWN_TARGET = re.compile(rb"\bGCC\s+target\b")  # in a pragma: callers may be for another one
_TWICE = ("setjmp", "sigsetjmp", "vfork", "getcontext", "savectx")  # GCC's list, after underscores


def inlinable(functions: Sequence[Function]) -> tuple[Function, ...]:
    """The static functions that can be marked for inlining: none calls itself, directly or through others."""
    calls = nx.DiGraph((function.usr, callee) for function in functions for callee in function.calls)
    in_cycles = {usr for cycle in nx.strongly_connected_components(calls) if len(cycle) > 1 for usr in cycle}
    return tuple(f for f in functions if f.static and f.usr not in in_cycles and f.usr not in f.calls)


def marked_static(cursor: Cursor, text: bytes) -> Span | None:
    """The word `static` at the start of a function; None where compilers may be unable to inline the function.

    They may be where it has attributes, takes `...`, or calls a function that returns twice.
    """
    start, end = span(cursor)
    body = next((span(child)[0] for child in children(cursor) if child.kind is KINDS.COMPOUND_STMT), end)
    has_attributes = any(child.kind.is_attribute() for child in children(cursor)) or b"__attribute" in text[start:body]
    found = _STATIC.match(text, start)
    if not found or has_attributes or cursor.type.is_function_variadic() or _OWN_TARGET.search(text):
        return None
    return None if any(map(_returns_twice, _called(cursor))) else found.span()


def _called(cursor: Cursor) -> Iterator[Cursor]:
    """The functions that are called by name."""
    for inner in walk(cursor):
        if inner.kind is KINDS.CALL_EXPR and inner.referenced is not None:
            yield inner.referenced


def _returns_twice(function: Cursor) -> bool:
    marks = [token.spelling for one in children(function) if one.kind.is_attribute() for token in one.get_tokens()]
    return str(function.spelling).lstrip("_") in _TWICE or "returns_twice" in marks
