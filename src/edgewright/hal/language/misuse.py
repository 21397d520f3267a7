"""Uses of groups and fields that are refused, because they cannot be rewritten without changing their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from . import access_checks, pointer_checks
from .arguments import unused_arguments
from .cursors import KINDS, Cursor, is_device, is_function, is_group, place, span, top_level
from .description import Description, Refusal
from .nodes import Node, accesses, nodes
from .source import Source

Check = Callable[[Node, Description], Iterator[Refusal]]
_CHECKS: Mapping[object, tuple[Check, ...]] = {
    KINDS.MEMBER_REF_EXPR: (pointer_checks.member_base_misuses,),
    KINDS.ARRAY_SUBSCRIPT_EXPR: (access_checks.index_misuses, pointer_checks.subscript_misuses),
    KINDS.CSTYLE_CAST_EXPR: (pointer_checks.cast_misuses,),
    KINDS.UNEXPOSED_EXPR: (pointer_checks.conversion_misuses,),
    KINDS.CALL_EXPR: (pointer_checks.call_misuses,),
    KINDS.BINARY_OPERATOR: (pointer_checks.operator_misuses,),
    KINDS.COMPOUND_ASSIGNMENT_OPERATOR: (pointer_checks.operator_misuses,),
    KINDS.UNARY_OPERATOR: (pointer_checks.unary_misuses,),
    KINDS.CXX_UNARY_EXPR: (pointer_checks.measure_misuses,),
    KINDS.COMPOUND_LITERAL_EXPR: (pointer_checks.literal_misuses,),
    KINDS.VAR_DECL: (pointer_checks.variable_misuses,),
    KINDS.PARM_DECL: (pointer_checks.variable_misuses,),
    KINDS.FIELD_DECL: (pointer_checks.variable_misuses,),
    KINDS.FUNCTION_DECL: (pointer_checks.variable_misuses,),
}


def misuses(source: Source, description: Description) -> tuple[Refusal, ...]:
    """Every misuse in the driver's functions and initialisers, by place; none means that all can be rewritten."""
    found = {refusal for cursor in source.cursors for refusal in _of(cursor, source, description)}
    found |= {
        refusal
        for cursor in _functions_of_other_files(source)
        for refusal in access_checks.foreign_misuses(cursor, description)
    }
    return tuple(sorted(found | set(_repeated(source, description))))


def _of(cursor: Cursor, source: Source, description: Description) -> Iterator[Refusal]:
    if is_device(cursor) or is_group(cursor):
        return  # the casts of make_device are its own, and groups have been described
    if is_function(cursor):
        yield from unused_arguments(cursor, description, source)
    for node in nodes(cursor):
        yield from access_checks.member_misuses(node, description, source)
        for check in _CHECKS.get(node.cursor.kind, ()):
            yield from check(node, description)


def _repeated(source: Source, description: Description) -> Iterator[Refusal]:
    """Text that is compiled as several functions, as when its file is included twice: it is rewritten but once."""
    first: dict[tuple[str, int], str] = {}
    for cursor in source.cursors:
        if is_function(cursor) and accesses(cursor, description):
            here = place(cursor)
            known = first.setdefault((here.file, span(cursor)[0]), cursor.spelling)
            if known != cursor.spelling:
                what = f"'{known}' and '{cursor.spelling}' are made from the same text"
                yield Refusal(here, what, "write each function by itself, or one that takes the group's pointer")


def _functions_of_other_files(source: Source) -> Iterator[Cursor]:
    """Functions with a body that lie in none of the driver's files."""
    for unit in source.units:
        for cursor in top_level(unit):
            if is_function(cursor) and str(cursor.extent.start.file) not in source.files:
                yield cursor
