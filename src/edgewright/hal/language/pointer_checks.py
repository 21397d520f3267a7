"""Uses of pointers to groups, and of groups as values, that are refused because they would need a layout in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .contexts import is_context, is_registration
from .cursors import KINDS, Cursor, bare, binary_operator, children, constant, expressions, place, unary_operator
from .description import Description, Refusal
from .nodes import ARRAYS, POINTER, STEPS, Node, operand, owner, pointee, record, value

_STEP = "index the array in its group, &gpio->pads[i]"
_COPY = "copy the fields one by one"


def cast_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    """An explicit cast to or from a pointer to a group, unless it only drops the value."""
    cursor = node.cursor
    inner = expressions(cursor)
    target = _named(cursor.type, description)
    origin = _named(inner[0].type, description) if inner else None
    is_dropped = cursor.type.get_canonical().spelling == "void"
    if (target or origin) and not is_dropped and not is_context(node, description):
        what = f"a cast {'to' if target else 'from'} a pointer to group '{target or origin}'"
        yield Refusal(place(cursor), what, _KEEP)


_KEEP = "declare the pointer as bfGroup Name * wherever it is kept; a parameter void * is taken over once, by a local"


def _named(kind: Any, description: Description) -> str | None:
    """The group at the end of however many pointers, at least one."""
    kind = kind.get_canonical()
    if kind.kind is not POINTER:
        return None
    while kind.kind is POINTER or kind.kind in ARRAYS:
        kind = (kind.get_pointee() if kind.kind is POINTER else kind.element_type).get_canonical()
    return record(kind, description)


def conversion_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    """A pointer to a group that becomes another pointer by itself, or the other way round."""
    cursor = node.cursor
    inside = expressions(cursor)
    if len(inside) != 1 or cursor.type.get_canonical().kind is not POINTER:
        return
    before, after = _named(inside[0].type, description), _named(cursor.type, description)
    is_pointer = inside[0].type.get_canonical().kind is POINTER
    if before == after or not is_pointer or _is_null(inside[0]) or is_context(node, description):
        return
    around = node.around
    if before and around is not None and around.cursor.kind is KINDS.CALL_EXPR:
        if not is_registration(around.cursor):
            called = around.cursor.spelling or "a function"
            what = f"a pointer to group '{before}' is passed to '{called}' as '{cursor.type.spelling}'"
            yield Refusal(place(cursor), what, _COPY)
    else:
        what = f"'{inside[0].type.spelling}' becomes '{cursor.type.spelling}'"
        yield Refusal(place(cursor), f"{what}: a cast of a pointer to group '{before or after}'", _KEEP)


def _is_null(cursor: Cursor) -> bool:
    cursor = bare(cursor)
    if cursor.kind is KINDS.CSTYLE_CAST_EXPR:
        cursor = operand(cursor)
    return constant(cursor) == 0


def call_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    """A pointer to a group among arguments that no parameter describes."""
    arguments = list(node.cursor.get_arguments())
    function = node.cursor.referenced
    if function is None or function.kind is not KINDS.FUNCTION_DECL:
        return
    known = len(list(function.get_arguments()))
    for argument in arguments[known:]:
        if group := _named(argument.type, description):
            what = f"a pointer to group '{group}' is passed to '{node.cursor.spelling}' as one of '...'"
            yield Refusal(place(argument), what, "declare the parameter as bfGroup Name *")


def operator_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    """Arithmetic on pointers to groups, and assignments of whole groups."""
    operator = binary_operator(node.cursor)
    pointed = next((found for one in expressions(node.cursor) if (found := _element(one.type, description))), None)
    if pointed and operator in ("+", "-", "+=", "-="):
        yield Refusal(place(node.cursor), f"arithmetic on a pointer to group '{pointed}'", _STEP)
    if operator == "=" and (group := record(node.cursor.type, description)):
        yield Refusal(place(node.cursor), f"group '{group}' is copied", _COPY)


def _element(kind: Any, description: Description) -> str | None:
    """The group that stepping a pointer would step over."""
    kind = kind.get_canonical()
    if kind.kind is POINTER:
        return value(kind.get_pointee(), description)
    return value(kind.element_type, description) if kind.kind in ARRAYS else None


def unary_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    operator, inner = unary_operator(node.cursor), operand(node.cursor)
    here = place(node.cursor)
    if operator in STEPS and (group := _element(inner.type, description)):
        yield Refusal(here, f"arithmetic on a pointer to group '{group}'", _STEP)
    if operator == "&" and inner.type.get_canonical().kind in ARRAYS and (group := value(inner.type, description)):
        yield Refusal(here, f"the address of an array of groups '{group}'", _STEP)
    if operator == "&" and (group := _named(inner.type, description)):
        what = f"the address of a pointer to group '{group}', which could change unseen"
        yield Refusal(here, what, "return the pointer from a function instead")
    if operator == "*" and (group := record(node.cursor.type, description)):
        yield from _copied(node, group)


def _copied(node: Node, group: str) -> Iterator[Refusal]:
    """A group as a whole, unless a member of it or its address is taken at once."""
    around = node.around
    kind = around.cursor.kind if around is not None else None
    is_address = around is not None and kind is KINDS.UNARY_OPERATOR and unary_operator(around.cursor) == "&"
    is_assigned = around is not None and kind is KINDS.BINARY_OPERATOR and binary_operator(around.cursor) == "="
    if kind is not KINDS.MEMBER_REF_EXPR and not is_address and not is_assigned:
        yield Refusal(place(node.cursor), f"group '{group}' is used as a whole", _COPY)


def subscript_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    """A pointer to a group that is indexed, as if other groups followed."""
    parts = [bare(child) for child in children(node.cursor)]
    if owner(parts[0], description) is not None:
        return
    if owner(parts[-1], description) is not None and parts[-1].type.get_canonical().kind in ARRAYS:
        yield Refusal(place(node.cursor), "an index that stands before its array", "write array[index]")
    elif group := next((found for part in parts if (found := _element(part.type, description))), None):
        yield Refusal(place(node.cursor), f"arithmetic on a pointer to group '{group}': it is indexed", _STEP)


def member_base_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    """A field of a group that is no part of a device: of a value that a function returned or ?: chose."""
    if owner(node.cursor, description) is None:
        return
    before = expressions(node.cursor)
    if not before or (group := record(before[0].type, description)) is None:
        return
    inner = bare(before[0])
    is_place = inner.kind in (KINDS.MEMBER_REF_EXPR, KINDS.ARRAY_SUBSCRIPT_EXPR, KINDS.DECL_REF_EXPR)
    if not is_place and not (inner.kind is KINDS.UNARY_OPERATOR and unary_operator(inner) == "*"):
        yield Refusal(place(node.cursor), f"a field of a copy of group '{group}'", "go through a pointer to the group")


def measure_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    """sizeof and _Alignof of a group."""
    is_pointer = any(token.spelling == "*" for token in node.cursor.get_tokens())
    for child in children(node.cursor):
        is_type = child.kind is KINDS.TYPE_REF and not is_pointer
        measured = child if is_type else bare(child) if child.kind.is_expression() else None
        if measured is not None and (group := value(measured.type, description)):
            yield Refusal(place(node.cursor), f"the size of group '{group}', which is not fixed")


def variable_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    """A variable, parameter, result or member of a struct that is a group and no pointer to one."""
    cursor = node.cursor
    is_function = cursor.kind is KINDS.FUNCTION_DECL
    kind = cursor.result_type if is_function else cursor.type
    name = f"'{cursor.spelling}'"
    if group := value(kind, description):
        what = f"{name} returns group '{group}'" if is_function else f"{name} is a group '{group}' outside a device"
        yield Refusal(place(cursor), what, _ELSEWHERE)
    if cursor.kind is KINDS.FIELD_DECL and cursor.semantic_parent.kind is KINDS.UNION_DECL:
        yield from _overlaid(cursor, name, description)
    kind = kind.get_canonical()
    if kind.kind is POINTER and pointee(kind, description) and kind.get_pointee().is_volatile_qualified():
        yield Refusal(
            place(cursor), f"{name} points to a volatile group", "leave volatile out; the generated code has it"
        )


def _overlaid(member: Cursor, name: str, description: Description) -> Iterator[Refusal]:
    """A pointer to a group in a union whose other members may give it another value."""
    group, others = _named(member.type, description), member.semantic_parent.type.get_fields()
    if group and any(_named(other.type, description) != group for other in others):
        what = f"{name}, a pointer to group '{group}', shares a union with others"
        yield Refusal(place(member), what, "use a struct")


_ELSEWHERE = (
    "use a pointer, bfGroup Name *; descriptors in memory are a device too: "
    "make_device(Ring, ring, 0x20001000), with pin where hardware fixes their fields"
)


def literal_misuses(node: Node, description: Description) -> Iterator[Refusal]:
    if group := value(node.cursor.type, description):
        yield Refusal(place(node.cursor), f"a literal of group '{group}', which would be copied", _COPY)
