"""Static functions whose bodies can go to their callers: compilers refuse some, whatever attributes ask for.

GCC says of them that they can never be inlined, and does not compile the file.
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
    """The functions that `static` can be marked of, without those that call themselves, be it through others."""
    calls = nx.DiGraph((function.usr, callee) for function in functions for callee in function.calls)
    return tuple(f for f in functions if f.static and not any(nx.has_path(calls, one, f.usr) for one in f.calls))


def marked_static(cursor: Cursor, text: bytes) -> Span | None:
    """Where the head of a function begins with `static`; None where its body has to stay in a function of its own.

    So it does where attributes say what is to become of it, for `...`, and where a call in it may return twice.
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
