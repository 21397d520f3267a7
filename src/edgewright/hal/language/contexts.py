"""Contexts: a group pointer that a callback or interrupt routine receives as `void *` and converts back at once."""

from __future__ import annotations

from typing import Any

from .cursors import KINDS, TRANSPARENT, Cursor, bare, expressions, walk
from .description import Description
from .nodes import POINTER, Node, operand, pointee


def is_context(node: Node, description: Description) -> bool:
    """Whether a cast or conversion initialises a local group pointer from a parameter of type `void *`."""
    group = pointee(node.cursor.type, description)
    above = node.parent
    while above is not None and above.cursor.kind in (*TRANSPARENT, KINDS.CSTYLE_CAST_EXPR):
        above = above.parent
    if group is None or above is None or above.cursor.kind is not KINDS.VAR_DECL:
        return False
    return pointee(above.cursor.type, description) == group and _parameter(node.cursor) is not None


def contexts_of(function: Cursor, description: Description) -> dict[str, str]:
    """The group behind each parameter of a function that is a context."""
    found: dict[str, set[str]] = {}
    for cursor in walk(function):
        value = expressions(cursor)
        group = pointee(cursor.type, description) if cursor.kind is KINDS.VAR_DECL else None
        name = _parameter(value[0]) if value and group is not None else None
        if name is not None and group is not None:
            found.setdefault(name, set()).add(group)
    return {name: min(groups) for name, groups in found.items() if len(groups) == 1}


def is_registration(call: Cursor) -> bool:
    """Whether a call is given a function that takes a `void *`: what it passes beside is for that function."""
    named = [bare(argument) for argument in call.get_arguments()]
    named = [operand(one) if one.kind is KINDS.UNARY_OPERATOR else one for one in named]
    functions = [one.referenced for one in named if one.kind is KINDS.DECL_REF_EXPR and one.referenced is not None]
    taken = [f.get_arguments() for f in functions if f.kind is KINDS.FUNCTION_DECL]
    return any(_is_open(parameter.type) for parameters in taken for parameter in parameters)


def _parameter(cursor: Cursor) -> str | None:
    """The parameter `void *` that an expression is, whatever it is cast to."""
    inner = bare(cursor)
    if inner.kind is KINDS.CSTYLE_CAST_EXPR:
        inner = operand(inner)
    named = inner.referenced if inner.kind is KINDS.DECL_REF_EXPR else None
    is_parameter = named is not None and named.kind is KINDS.PARM_DECL and _is_open(named.type)
    return str(inner.spelling) if is_parameter else None


def _is_open(kind: Any) -> bool:
    """Whether a type is a pointer to void."""
    kind = kind.get_canonical()
    return kind.kind is POINTER and kind.get_pointee().get_canonical().spelling in ("void", "const void")
