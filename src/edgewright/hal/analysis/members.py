"""Member expressions of C as paths into groups: gpio->pads[i].dir is a base, its hops and the field at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..language.cursors import (
    KINDS,
    Cursor,
    bare,
    binary_operator,
    children,
    cindex,
    constant,
    converted,
    group_of,
    is_in_argument,
    is_volatile,
    unary_operator,
    variable,
    walk,
    written_span,
)
from ..language.description import Description
from ..language.nodes import acts, field, operand
from .accesses import Expression, Hop

_PLAIN = (
    *(KINDS.DECL_REF_EXPR, KINDS.MEMBER_REF_EXPR, KINDS.MEMBER_REF),
    *(KINDS.ARRAY_SUBSCRIPT_EXPR, KINDS.INTEGER_LITERAL, KINDS.CHARACTER_LITERAL, KINDS.CSTYLE_CAST_EXPR),
    *(KINDS.BINARY_OPERATOR, KINDS.UNARY_OPERATOR, KINDS.TYPE_REF),
)


@dataclass(frozen=True, slots=True)
class Member:
    """A path to a field: the cursor of its base, and the hops with the cursors of their indices."""

    base: Cursor
    group: str  # that the base points to
    hops: tuple[tuple[str, Cursor | None], ...]
    owner: str  # group that declares the field
    in_argument: bool = False  # of a macro

    @property
    def indices(self) -> tuple[Cursor, ...]:
        return tuple(index for _, index in self.hops if index is not None)


def member_of(cursor: Cursor, description: Description) -> Member | None:
    """The path if the expression is a field of a group (an element of it, for an array of fields)."""
    index = None
    if cursor.kind is KINDS.ARRAY_SUBSCRIPT_EXPR:
        array, index = children(cursor)
        cursor = bare(array)
    named = field(cursor, description)
    if cursor.kind is not KINDS.MEMBER_REF_EXPR or named is None or (index is None) != (named.count is None):
        return None
    owner = cursor.referenced.semantic_parent.spelling
    base, group, hops = _path(cursor, description)
    return Member(base, group, (*hops, (cursor.spelling, index)), owner, is_in_argument(cursor))


def _path(cursor: Cursor, description: Description) -> tuple[Cursor, str, tuple[tuple[str, Cursor | None], ...]]:
    """From a member expression upwards: the pointer at its beginning and the members before the last."""
    before = operand(cursor)
    is_pointed = before.type.get_canonical().kind is not cindex.TypeKind.POINTER  # (*p).x, which (*p)->x is not
    if before.kind is KINDS.UNARY_OPERATOR and unary_operator(before) in ("*",) * is_pointed + ("&",):
        inner = bare(next(iter(children(before))))
        if unary_operator(before) == "*" or inner.kind not in (KINDS.MEMBER_REF_EXPR, KINDS.ARRAY_SUBSCRIPT_EXPR):
            return inner, _group(inner), ()
        before = inner
    index = None
    child = before
    if child.kind is KINDS.ARRAY_SUBSCRIPT_EXPR:
        array, index = children(child)
        child = bare(array)
    if child.kind is KINDS.MEMBER_REF_EXPR and child.referenced is not None:
        owner = description.groups.get(child.referenced.semantic_parent.spelling)
        inside = owner is not None and any(member.name == child.spelling for member in owner.children)
        if inside:
            base, group, hops = _path(child, description)
            return base, group, (*hops, (child.spelling, index))
    return before, _group(before), ()


def _group(cursor: Cursor) -> str:
    name = group_of(cursor.type)
    assert name is not None
    return name


def expression(cursor: Cursor, text: bytes, description: Description, in_argument: bool = False) -> Expression:
    """The piece of C with what it reads, for whoever wants to evaluate it elsewhere."""
    first, last = written_span(cursor, in_argument)
    names: set[str] = set()
    pure = True
    for inner in walk(cursor):
        pure = pure and _is_pure(inner, description)
        names |= _read(inner, description)
    return Expression(
        (first, last), text[first:last].decode(errors="replace"), frozenset(names), constant(cursor), pure
    )


def is_known(cursor: Cursor) -> bool:
    """Whether an expression is a constant, or 0 or 1 by its form."""
    inner = bare(cursor)
    if constant(cursor) is not None or inner.type.get_canonical().kind is cindex.TypeKind.BOOL:
        return True
    if inner.kind is KINDS.UNARY_OPERATOR:
        return unary_operator(inner) == "!"
    return inner.kind is KINDS.BINARY_OPERATOR and binary_operator(inner) in _TRUTHS


def compared(cursor: Cursor) -> Iterator[Cursor]:
    """What a condition compares, with 0 if nothing else: the operands below all that gives a truth value."""
    inner = bare(cursor)
    is_not = inner.kind is KINDS.UNARY_OPERATOR and unary_operator(inner) == "!"
    if is_not or (inner.kind is KINDS.BINARY_OPERATOR and binary_operator(inner) in _TRUTHS):
        for child in children(inner):
            yield from compared(child)
    else:
        yield inner


_TRUTHS = ("==", "!=", "<", ">", "<=", ">=", "&&", "||")


def _is_pure(cursor: Cursor, description: Description) -> bool:
    is_plain = (cursor.kind in _PLAIN or converted(cursor) is not None) and not is_volatile(cursor)
    return is_plain and not acts(cursor) and field(cursor, description) is None


def _read(cursor: Cursor, description: Description) -> set[str]:
    """The variables an expression's node reads: "*" stands for what only a pointer reaches."""
    if cursor.kind is KINDS.DECL_REF_EXPR:
        named = cursor.referenced
        is_variable = named is not None and named.kind in (KINDS.VAR_DECL, KINDS.PARM_DECL)
        return {variable(named)} if is_variable and device_of(cursor, description) is None else set()
    if cursor.kind is KINDS.MEMBER_REF_EXPR:
        owner = cursor.referenced.semantic_parent.spelling if cursor.referenced else ""
        return set() if owner in description.groups else {"*"}
    if cursor.kind is KINDS.ARRAY_SUBSCRIPT_EXPR:
        array = bare(next(iter(children(cursor))))
        inside = array.kind is KINDS.MEMBER_REF_EXPR and array.referenced is not None
        return set() if inside and array.referenced.semantic_parent.spelling in description.groups else {"*"}
    if cursor.kind is KINDS.UNARY_OPERATOR and unary_operator(cursor) == "*":
        return {"*"} if group_of(cursor.type) is None else set()
    return set()


def device_of(cursor: Cursor, description: Description) -> str | None:
    """The device that an expression names; a parameter or local of the same name is none."""
    named = cursor.referenced if cursor.kind is KINDS.DECL_REF_EXPR else None
    if named is None or named.kind is not KINDS.VAR_DECL or named.semantic_parent.kind is not KINDS.TRANSLATION_UNIT:
        return None
    return next((device.name for device in description.devices if device.name == cursor.spelling), None)


def hop(name: str, index: Cursor | None, text: bytes, description: Description, in_argument: bool) -> Hop:
    return Hop(name, None if index is None else expression(index, text, description, in_argument))
