"""Fields in macro arguments: accepted where the macro evaluates its argument exactly once, refused elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from .cursors import KINDS, Cursor, group_of, is_in_argument, place, span, walk, written_at, written_span
from .description import Description, Place, Refusal
from .nodes import Node
from .source import Source

_READ = "read it into a variable first"
_ACCESS = re.compile(rb"\b([A-Za-z_]\w*)\s*(?:->|\.)\s*([A-Za-z_]\w*)")


def argument_misuses(node: Node, name: str, source: Source) -> Iterator[Refusal]:
    """Why a field may not be read in this macro argument: the macro evaluates it more than once, or uses its text."""
    cursor = node.cursor
    if not is_in_argument(cursor):
        return
    where = written_span(node.around.cursor if node.around and node.is_indexed else cursor, True)
    function = [node, *node.above][-1].cursor
    file = str(cursor.location.file)
    times = Counter(_written_in(function))[file, written_at(cursor.location)]
    if times > 1:
        yield Refusal(place(cursor), f"a macro evaluates {name}, its argument, {times} times", _READ)
    for first, last, macro in source.macros.uses.get(file, ()):
        is_around = first <= where[0] and where[1] <= last
        if where[0] <= first and last <= where[1] and last - first > len(macro):
            yield Refusal(place(cursor), f"macro '{macro}' stands in the path to {name}, itself an argument", _READ)
        if is_around and re.search(r"#", source.macros.bodies.get(macro, "").partition(")")[2]):
            yield Refusal(place(cursor), f"macro '{macro}' makes text of its argument {name}", _READ)


def _written_in(function: Cursor) -> Iterator[tuple[str, int]]:
    return ((str(c.location.file), written_at(c.location)) for c in walk(function) if c.kind is KINDS.MEMBER_REF_EXPR)


def unused_arguments(function: Cursor, description: Description, source: Source) -> Iterator[Refusal]:
    """Fields in arguments that a macro drops: they would not be rewritten, and name members that are gone."""
    file = str(function.location.file)
    first, last = span(function)
    uses = [use for use in source.macros.beginning(file, (first, last)) if use[1] <= last]
    text = source.files.get(file, b"")
    found = [(use, access) for use in uses for access in _ACCESS.finditer(text, use[0], use[1])]
    if not found:
        return
    seen = set(_written_in(function))
    groups = _pointers(function, description, source)
    for (start, _, macro), access in found:
        group = groups.get(access[1].decode())
        members = {member.name for member in description.groups[group].members} if group else set()
        if access[2].decode() in members and (file, access.start(2)) not in seen:
            what = f"macro '{macro}' leaves out its argument, which accesses '{group}::{access[2].decode()}'"
            line = text[:start].count(b"\n") + 1
            yield Refusal(Place(file, line), what, "let the macro evaluate it, or access the field outside")


def _pointers(function: Cursor, description: Description, source: Source) -> dict[str, str]:
    """The group that each name in a function points to."""
    declared = [cursor for cursor in source.cursors if cursor.kind is KINDS.VAR_DECL]
    declared += [cursor for cursor in walk(function) if cursor.kind in (KINDS.VAR_DECL, KINDS.PARM_DECL)]
    found = {str(cursor.spelling): group_of(cursor.type) for cursor in declared}
    return {name: group for name, group in found.items() if group is not None and group in description.groups}
