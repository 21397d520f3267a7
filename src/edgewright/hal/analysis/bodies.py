"""Functions of a driver read into accesses and control flow (S 6.4.1), and what cannot be followed refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ..language.cursors import (
    KINDS,
    Cursor,
    attributes,
    binary_operator,
    children,
    cindex,
    group_of,
    is_function,
    is_variable,
    place,
    span,
    variable,
    walk,
)
from ..language.description import Description, Place, Refusal, Refused
from ..language.macros import LINE
from ..language.nodes import discarded, operand
from ..language.source import Source
from .accesses import Access
from .evaluation import Evaluator
from .flow_builder import FlowBuilder
from .functions import Barrier, Function, Parameter
from .inlining import marked_static
from .paths import Paths
from .statements import SNAPSHOT, Statements


def read_functions(source: Source, description: Description) -> tuple[Function, ...]:
    """Every function that the driver's own files define, in the order of the source."""
    found = []
    transparent: dict[str, frozenset[str]] = {}
    weak = frozenset(name.decode() for text in source.files.values() for name in _WEAK.findall(text))
    for cursor in source.cursors:
        if is_function(cursor):
            function = _function(cursor, source, description, transparent)
            summary = _summary(function)
            if summary is not None and not _is_replaced(cursor, source, weak):
                transparent[cursor.get_usr()] = summary
            found.append(function)
    _check_again(found, source, description, transparent)
    return tuple(_with_own_names(found))


def _check_again(
    found: Iterable[Function], source: Source, description: Description, transparent: dict[str, frozenset[str]]
) -> None:
    """Raises where a function of a header means something else in another file that includes it."""
    known = {(function.file, function.body): function for function in found}
    for cursor in source.again:
        function = _function(cursor, source, description, transparent)
        first = known[function.file, function.body]
        if (function.accesses or first.accesses) and function.flow != first.flow:
            what = f"'{function.name}' does not do the same in every file that includes it"
            raise Refused((Refusal(function.place, what, "let its macros and declarations mean the same everywhere"),))


_WEAK = re.compile(rb"\bweak\s+(\w+)")


def _is_replaced(cursor: Cursor, source: Source, weak: frozenset[str]) -> bool:
    """Whether the linker may replace this function by one of another file: it is weak, or may be declared so."""
    if cursor.linkage is cindex.LinkageKind.INTERNAL:
        return False
    text = source.files[cursor.location.file.name]
    return bool(attributes(cursor, text)) or cursor.spelling in weak


def _with_own_names(functions: Iterable[Function]) -> Iterator[Function]:
    """Static functions of several files may share a name; the later ones get their file's name too."""
    seen: set[str] = set()
    for function in functions:
        name = function.name if function.name not in seen else f"{function.name} ({function.file})"
        seen.add(name)
        accesses = tuple(replace(access, function=name) for access in function.accesses)
        yield function if name == function.name else replace(function, name=name, accesses=accesses)


def _summary(function: Function) -> frozenset[str] | None:
    """The variables that a call may change; None for a function with accesses, barriers or loops."""
    if Paths(function.flow).has_loop:
        return None
    changed: set[str] = set()
    for block in function.flow.blocks:
        for event in block.events:
            if isinstance(event, Access | Barrier):
                return None
            changed.add(event.name)
    return frozenset(changed & {*function.escaping, "*"})


def _function(
    cursor: Cursor, source: Source, description: Description, transparent: dict[str, frozenset[str]]
) -> Function:
    file, files = cursor.location.file.name, source.files
    build = FlowBuilder()
    evaluator = Evaluator(description, build, cursor.spelling, file, files[file], source.macros, transparent)
    body = next(child for child in children(cursor) if child.kind is KINDS.COMPOUND_STMT)
    evaluator.idle = _idle(body)
    statements = Statements(evaluator, build, source.macros)
    statements.compound(body)
    if evaluator.accesses:
        if evaluator.odd:
            raise Refused(evaluator.odd)
        _check_text(body, file, source, statements.cleanups)
        _check_snapshots(body, file, source, statements.snapshots)
    return Function(
        cursor.spelling,
        file,
        place(cursor),
        span(body),
        tuple(_parameter(p, description) for p in cursor.get_arguments()),
        tuple(evaluator.accesses),
        build.flow(),
        frozenset(evaluator.escaping),
        _ambiguous(cursor),
        cursor.get_usr(),
        frozenset(evaluator.calls),
        cursor.linkage is cindex.LinkageKind.INTERNAL,
        frozenset(evaluator.pointed),
        tuple(statements.snapshots.items()),
        marked_static(cursor, source.files[file]),
        evaluator.calls_pointer,
    )


def _idle(body: Cursor) -> frozenset[str]:
    """The variables of a function whose values nobody uses, as of one that is only there to read a register."""
    declared, used = set(), Counter[str]()
    for cursor in walk(body):
        if cursor.kind is KINDS.VAR_DECL and cursor.linkage is cindex.LinkageKind.NO_LINKAGE:
            declared.add(variable(cursor))
        elif is_variable(cursor):
            used[variable(cursor.referenced)] += 1
        elif cursor.kind is KINDS.CSTYLE_CAST_EXPR and cursor.type.get_canonical().spelling == "void":
            used.subtract(variable(one.referenced) for one in discarded(cursor) if is_variable(one))
        elif cursor.kind is KINDS.BINARY_OPERATOR and binary_operator(cursor) == "=" and is_variable(operand(cursor)):
            used[variable(operand(cursor).referenced)] -= 1
    return frozenset(name for name in declared if used[name] <= 0)


def _check_text(body: Cursor, file: str, source: Source, cleanups: Iterable[Cursor]) -> None:
    """Raises where the text of a function with accesses cannot be followed."""
    found = [
        Refusal(place(declared), f"a function is called at the end of the block of '{declared.spelling}'", "call it")
        for declared in cleanups
    ]
    if source.macros.choices_in(file, span(body)):
        found += [
            Refusal(place(inner), "a line of #if stands in a statement", _WHOLE) for inner in _cut(body, file, source)
        ]
    for _, last, name in source.macros.beginning(file, span(body)):
        if last <= span(body)[1] and name != LINE and source.macros.mentions(name, LINE):
            what = f"macro '{name}' has the number of its line, which generated code changes"
            found.append(Refusal(place(body), what, f"write {LINE} where it is used"))
    if found:
        raise Refused(found)


def _check_snapshots(body: Cursor, file: str, source: Source, found: Mapping[int, int]) -> None:
    """Raises where the word `snapshot` stands before something that is no statement."""
    first, last = span(body)
    lost = [at for at, _, name in source.macros.beginning(file, (first, last)) if name in SNAPSHOT]
    lines = sorted({source.files[file][:at].count(b"\n") + 1 for at in lost if at not in found})
    if lines:
        what = "'snapshot' stands before something that is no statement"
        raise Refused([Refusal(Place(file, line), what, "write it before a block, an if or a loop") for line in lines])


_WHOLE = "choose between whole statements"


def _cut(block: Cursor, file: str, source: Source) -> Iterator[Cursor]:
    """Statements with a line of #if in them, except between the statements of an inner block."""
    for statement in children(block):
        inner = [cursor for cursor in walk(statement) if cursor.kind is KINDS.COMPOUND_STMT]
        whole = source.macros.choices_in(file, span(statement))
        inside = {line for cursor in inner for line in source.macros.choices_in(file, span(cursor))}
        if any(line not in inside for line in whole):
            yield statement
        outermost = [one for one in inner if not any(_holds(other, one) for other in inner)]
        for cursor in outermost:
            yield from _cut(cursor, file, source)


def _holds(outer: Cursor, inner: Cursor) -> bool:
    (first, last), (start, end) = span(outer), span(inner)
    return outer != inner and first <= start and end <= last


def _ambiguous(cursor: Cursor) -> frozenset[str]:
    """Names that refer to several variables in a function, because an inner block declares one again."""
    meanings: dict[str, set[str]] = {}
    for inner in walk(cursor):
        declared = inner.referenced if inner.kind is KINDS.DECL_REF_EXPR else inner
        if declared is not None and declared.kind.is_declaration() and declared.spelling and declared != cursor:
            key = variable(declared) if declared.kind in _VARIABLES else f"{declared.kind} {declared.location.offset}"
            meanings.setdefault(str(declared.spelling), set()).add(key)
    return frozenset(name for name, found in meanings.items() if len(found) > 1)


_VARIABLES = (KINDS.VAR_DECL, KINDS.PARM_DECL)


def _parameter(cursor: Cursor, description: Description) -> Parameter:
    group = group_of(cursor.type)
    return Parameter(cursor.spelling, group if group in description.groups else None)
