"""Expressions with what stands around them, and what they have to do with bit field groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .cursors import (
    KINDS,
    TRANSPARENT,
    Cursor,
    bare,
    binary_operator,
    children,
    cindex,
    expressions,
    unary_operator,
    walk,
)
from .description import Description, Field

POINTER, RECORD = cindex.TypeKind.POINTER, cindex.TypeKind.RECORD
ARRAYS = (cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.INCOMPLETEARRAY, cindex.TypeKind.VARIABLEARRAY)
STEPS = ("x++", "x--", "++x", "--x")


@dataclass(frozen=True, slots=True)
class Node:
    """A cursor together with its parent node, so that checks can look at the enclosing expression."""

    cursor: Cursor
    parent: Node | None = None

    @property
    def around(self) -> Node | None:
        """The nearest enclosing node other than parentheses and implicit conversions."""
        above = self.parent
        while above is not None and above.cursor.kind in TRANSPARENT:
            above = above.parent
        return above

    @property
    def above(self) -> Iterator[Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def is_indexed(self) -> bool:
        """Whether this is the array of an index expression."""
        around = self.around
        return around is not None and around.cursor.kind is KINDS.ARRAY_SUBSCRIPT_EXPR and self.is_first_of(around)

    def is_first_of(self, node: Node) -> bool:
        """Whether this is (in) the first operand of a node."""
        first = next(iter(children(node.cursor)), None)
        below = self
        while below.parent is not None and below.parent is not node:
            below = below.parent
        return first is not None and below.cursor == first


def nodes(cursor: Cursor) -> Iterator[Node]:
    """The cursor and all below it as nodes that know their parents."""
    waiting = [Node(cursor)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(Node(child, node) for child in reversed(children(node.cursor)))


def record(kind: Any, description: Description) -> str | None:
    """The group that a type is, itself and no pointer to it."""
    kind = kind.get_canonical()
    name = str(kind.get_declaration().spelling) if kind.kind is RECORD else ""
    return name if name in description.groups else None


def pointee(kind: Any, description: Description) -> str | None:
    """The group that a type points to."""
    kind = kind.get_canonical()
    return record(kind.get_pointee(), description) if kind.kind is POINTER else None


def value(kind: Any, description: Description) -> str | None:
    """The group that a type holds, by itself or in an array."""
    kind = kind.get_canonical()
    while kind.kind in ARRAYS:
        kind = kind.element_type.get_canonical()
    return record(kind, description)


def owner(cursor: Cursor, description: Description) -> str | None:
    """The group that a member expression's member belongs to."""
    declared = cursor.referenced if cursor.kind in (KINDS.MEMBER_REF_EXPR, KINDS.MEMBER_REF) else None
    if declared is None or declared.kind is not KINDS.FIELD_DECL:
        return None
    name = str(declared.semantic_parent.spelling)
    return name if name in description.groups else None


def field(cursor: Cursor, description: Description) -> Field | None:
    """The field that a member expression names."""
    group = owner(cursor, description)
    member = description.groups[group].member(cursor.spelling) if group else None
    return member if isinstance(member, Field) else None


def accesses(cursor: Cursor, description: Description) -> bool:
    """Whether a field is named somewhere in it."""
    return any(field(inner, description) for inner in walk(cursor))


def acts(cursor: Cursor) -> bool:
    """Whether an expression itself, apart from its operands, is a call or an assignment."""
    if cursor.kind is KINDS.BINARY_OPERATOR:
        return binary_operator(cursor) == "="
    if cursor.kind is KINDS.UNARY_OPERATOR:
        return unary_operator(cursor) in STEPS
    return cursor.kind in (KINDS.CALL_EXPR, KINDS.COMPOUND_ASSIGNMENT_OPERATOR, KINDS.StmtExpr)


def discarded(cursor: Cursor) -> Iterator[Cursor]:
    """The expressions whose values nobody uses where nobody uses the value of this one."""
    inner = bare(cursor)
    parts = children(inner)
    operator = binary_operator(inner) if inner.kind is KINDS.BINARY_OPERATOR else ""
    if inner.kind is KINDS.CSTYLE_CAST_EXPR and inner.type.get_canonical().spelling == "void":
        parts = parts[-1:]
    elif inner.kind is KINDS.CONDITIONAL_OPERATOR or operator in ("&&", "||"):
        parts = parts[1:]
    elif operator != ",":
        yield inner
        return
    for part in parts:
        yield from discarded(part)


_LOOPS = (KINDS.WHILE_STMT, KINDS.DO_STMT, KINDS.FOR_STMT)
_JUMPS = (KINDS.GOTO_STMT, KINDS.INDIRECT_GOTO_STMT, KINDS.LABEL_STMT)


def jumps_out(cursor: Cursor) -> Iterator[Cursor]:
    """Statements in a piece of code by which control may get into it or out of it, but for return."""
    waiting = [(cursor, False, False)]
    while waiting:
        here, in_loop, in_switch = waiting.pop()
        is_loose_break = here.kind is KINDS.BREAK_STMT and not (in_loop or in_switch)
        is_loose_continue = here.kind is KINDS.CONTINUE_STMT and not in_loop
        is_loose_case = here.kind in (KINDS.CASE_STMT, KINDS.DEFAULT_STMT) and not in_switch
        if here.kind in _JUMPS or is_loose_break or is_loose_continue or is_loose_case:
            yield here
        in_loop |= here.kind in _LOOPS
        in_switch |= here.kind is KINDS.SWITCH_STMT
        waiting += [(child, in_loop, in_switch) for child in children(here)]


def operand(cursor: Cursor) -> Cursor:
    """The first expression below, without what is transparent around it."""
    return bare(expressions(cursor)[0])
