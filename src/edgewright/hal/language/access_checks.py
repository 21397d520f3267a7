"""Accesses to fields that are refused: forbidden by the field's attributes, or not to be rewritten safely."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .arguments import argument_misuses
from .cursors import (
    KINDS,
    Cursor,
    bare,
    binary_operator,
    children,
    constant,
    expressions,
    is_in_argument,
    is_volatile,
    place,
    span,
    unary_operator,
    walk,
    written_at,
    written_span,
)
from .description import Description, Field, Mode, Refusal
from .nodes import ARRAYS, STEPS, Node, accesses, acts, field, owner
from .source import Source

_NAME = "name the field in the function: gpio->dir = 1"
_READ = "read it into a variable first"
# Constructs in which an access cannot be rewritten, and what to write instead.
_CLOSED = {
    KINDS.StmtExpr: ("is accessed in a statement expression", "write a function instead"),
    KINDS.ASM_STMT: ("is an operand of inline assembly", _READ),
    KINDS.GENERIC_SELECTION_EXPR: ("is accessed in _Generic", _READ),
    KINDS.CXX_UNARY_EXPR: ("is measured with sizeof or _Alignof", "the size of a field in memory is not fixed"),
    KINDS.STATIC_ASSERT: ("stands in a static assertion", "a field has no constant value"),
    KINDS.TYPEDEF_DECL: ("stands in typeof", "write the type"),
}


def member_misuses(node: Node, description: Description, source: Source) -> Iterator[Refusal]:
    """What is wrong with a member expression, if it is one of a group."""
    cursor = node.cursor
    if (group := owner(cursor, description)) is None:
        return
    here = place(cursor)
    if cursor.kind is KINDS.MEMBER_REF:
        yield Refusal(
            here, f"'{group}::{cursor.spelling}' stands in offsetof or an initialiser", "where it lies is not fixed"
        )
    elif _is_hidden(cursor, source):
        yield Refusal(here, f"a macro hides an access to '{group}::{cursor.spelling}'", _NAME)
    elif (where := _closed(node)) is not None:
        yield Refusal(here, f"'{group}::{cursor.spelling}' {where[0]}", where[1])
    elif (found := field(cursor, description)) is None:
        if cursor.type.get_canonical().kind in ARRAYS and not node.is_indexed:
            what = f"'{group}::{cursor.spelling}', an array of groups, is used without an index"
            yield Refusal(here, what, "write &gpio->pads[0]")
    else:
        name = f"'{group}::{cursor.spelling}'"
        yield from argument_misuses(node, name, source)
        yield from _field_misuses(node, found, name, description)


def _is_hidden(cursor: Cursor, source: Source) -> bool:
    """Whether the member's name, or the arrow before it, comes from a macro and so is not written at the access."""
    at = written_at(cursor.location)
    text = source.files.get(str(cursor.location.file), b"")
    name = str(cursor.spelling).encode()
    if not re.match(rb"%s\b" % re.escape(name), text[at : at + len(name) + 1]):
        return True
    base = expressions(cursor)
    between = text[written_span(base[0], is_in_argument(cursor))[1] : at] if base else b""
    return re.sub(rb"/\*.*?\*/|//[^\n]*|\\\r?\n|\s", b"", between, flags=re.DOTALL) not in (b"->", b".")


def _closed(node: Node) -> tuple[str, str] | None:
    """The construct around an access in which it cannot be rewritten, or nothing."""
    for above in node.above:
        kind = above.cursor.kind
        if where := _closed_by_variable(above.cursor) if kind is KINDS.VAR_DECL else _CLOSED.get(kind):
            return where
    return None


def _closed_by_variable(variable: Cursor) -> tuple[str, str] | None:
    if variable.semantic_parent.kind is KINDS.TRANSLATION_UNIT or str(variable.storage_class).endswith("STATIC"):
        return "stands in the initialiser of a static variable", "set the variable in a function"
    if "typeof" in variable.type.spelling:
        return "stands in typeof", "write the type"
    if variable.type.get_canonical().kind is ARRAYS[2]:
        return "is the size of an array", _READ
    return None


def _field_misuses(node: Node, found: Field, name: str, description: Description) -> Iterator[Refusal]:
    here, around, in_argument = place(node.cursor), node.around, is_in_argument(node.cursor)
    if found.count is not None:
        if not node.is_indexed:
            yield Refusal(here, f"{name} is an array and used without an index: the address of a field", _NAME)
            return
        assert around is not None
        node, around = around, around.around
    use = _use(node, around)
    if use == "&":
        yield Refusal(
            here, f"the address of {name}", "fields have none; pass the group's pointer, and name the field there"
        )
    if use in ("=", "op=") and in_argument:
        yield Refusal(here, f"a macro writes {name}, its argument", "write it where the macro is used")
    if use in ("=", "op=") and found.mode is Mode.RO:
        yield Refusal(here, f"{name} is ro and written")
    if use in ("read", "op=") and found.mode is Mode.WO:
        yield Refusal(here, f"{name} is wo and read", "write it with =" if use == "op=" else "")
    if use == "op=":
        yield from _update_misuses(node.cursor, here, found, name, description)


def _use(node: Node, around: Node | None) -> str:
    """How an expression is used: "read", "=", "op=" or "&"."""
    if around is None:
        return "read"
    kind = around.cursor.kind
    if kind is KINDS.UNARY_OPERATOR:
        operator = unary_operator(around.cursor)
        return "op=" if operator in STEPS else "&" if operator == "&" else "read"
    if kind is KINDS.COMPOUND_ASSIGNMENT_OPERATOR and node.is_first_of(around):
        return "op="
    if kind is KINDS.BINARY_OPERATOR and binary_operator(around.cursor) == "=" and node.is_first_of(around):
        return "="
    return "read"


def _update_misuses(cursor: Cursor, here: Any, found: Field, name: str, description: Description) -> Iterator[Refusal]:
    if found.w1c:
        yield Refusal(
            here, f"{name} is w1c and updated: writing back what was read clears it all", "write the bits with ="
        )
    if found.shared_with_isr:
        yield Refusal(
            here,
            f"{name} is shared_with_isr and updated: what an interrupt stores between its read and its write is lost",
            "keep interrupts out, read it, and write it with =",
        )
    if found.fifo or found.clear_on_read:
        what = "a fifo" if found.fifo else "cleared by reading"
        yield Refusal(here, f"{name} is {what}, and an update reads it", "read and write it in two statements")
    inside = list(walk(cursor))
    reads = {span(part) for part in inside if part.kind is KINDS.MEMBER_REF_EXPR and field(part, description)}
    # The updated field is one of them.
    effects = (part for part in inside if acts(part) or is_volatile(part))
    if len(reads) > 1 or any(not accesses(part, description) for part in effects):
        what = f"{name} is updated through an index or pointer with an effect, which would be evaluated twice"
        yield Refusal(here, what, "put the index or pointer into a variable first")


def index_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    """A constant index that lies beyond the end of the array."""
    parts = children(node.cursor)
    array = bare(parts[0])
    group = owner(array, description)
    if len(parts) != 2 or group is None:
        return
    count = description.groups[group].member(array.spelling).count
    index = constant(parts[1])
    if count is not None and index is not None and not 0 <= index < count:
        what = f"index {index} of '{group}::{array.spelling}', which has {count} elements"
        yield Refusal(place(node.cursor), what, f"take 0 to {count - 1}")


def foreign_misuses(cursor: Cursor, description: Description) -> Iterator[Refusal]:
    """Accesses in a function of a header that is not the driver's."""
    if accesses(cursor, description):
        what = f"'{cursor.spelling}' accesses fields in a header that is marked as the system's"
        yield Refusal(place(cursor), what, "make it a header of the driver")
