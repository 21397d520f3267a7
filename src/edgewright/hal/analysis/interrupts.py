"""Interrupt routines of a driver, and the fields that they use.

A routine is known by its attribute, by its place in a vector table, by a name of CMSIS, because it is given to a
function that registers such (by the name of that), or because the user names it. A function that nobody calls and that
is named like one is taken for one, and asked about.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import networkx as nx

from ..language.cursors import KINDS, Cursor, attributes, cindex, is_function, walk
from ..language.description import Description, Field, Refusal, Refused
from ..language.source import Source
from .accesses import Access, Form, Kind
from .conflicts import may_alias
from .functions import Function

_ATTRIBUTES = ("interrupt", "isr", "signal", "interrupt_handler", "IRQ")
_TABLE = re.compile(r"vector|isr|irq|interrupt", re.IGNORECASE)
_LIKELY = re.compile(r"\w*_(isr|irq|handler)", re.IGNORECASE)
_CMSIS = re.compile(r"\w+_IRQHandler|(SysTick|PendSV|SVC|NMI|HardFault|MemManage|BusFault|UsageFault)_Handler")


@dataclass(frozen=True, slots=True)
class Interrupts:
    """The functions that run in interrupts, by USR."""

    routines: frozenset[str]
    reached: frozenset[str]  # the routines, and all that they call
    only: frozenset[str]  # of these, what nothing else calls
    likely: tuple[str, ...]  # names of routines that only their name shows


def interrupts_of(
    source: Source, functions: Sequence[Function], named: Iterable[str] = (), denied: Iterable[str] = ()
) -> Interrupts:
    """The interrupt routines, those in `named` included, and of the likely ones all but those in `denied`."""
    _check_names(functions, (*named, *denied))
    known = frozenset(_routines(source, frozenset(named)))
    calls = _calls(source, functions)
    likely = tuple(
        function
        for function in functions
        if _LIKELY.fullmatch(function.name)
        and not (function.usr in known or function.name in denied)
        and not any(function.usr in other.calls for other in functions)
        and _has_accesses(_reached({function.usr}, calls), functions)
    )
    routines = known | {function.usr for function in likely}
    reached = _reached(routines, calls)
    outside = [f for f in functions if f.usr not in reached or (f.usr not in routines and not f.is_static)]
    only = reached - _reached({f.usr for f in outside}, calls)
    return Interrupts(routines, reached, only, tuple(function.name for function in likely))


def _has_accesses(reached: Collection[str], functions: Sequence[Function]) -> bool:
    return any(function.accesses for function in functions if function.usr in reached)


def shared_fields(description: Description, functions: Sequence[Function], interrupts: Interrupts) -> Description:
    """The description with every field that an interrupt routine uses marked shared_with_isr.

    Those that it writes without being marked in the source get no critical sections, which nobody has asked for: no
    layout lets a write of their neighbours put them back.
    """
    inside = [a for function in functions if function.usr in interrupts.reached for a in function.accesses]
    writes = [access for access in inside if access.kind is Kind.WRITE]
    used, written = ({(access.owner, access.field) for access in some} for some in (inside, writes))
    refusals = [
        Refusal(
            access.place,
            f"{access.name} is updated, and an interrupt routine writes it: what it stores in between is lost",
            "keep interrupts out, read it, and write it with =",
        )
        for access in _updates(functions, interrupts)
        if any(may_alias(access, write) for write in writes)
    ]
    if refusals:
        raise Refused(refusals)

    def marked(group: str, field: Field) -> Field:
        if field.shared_with_isr or (group, field.name) not in used:
            return field
        return replace(field, shared_with_isr=True, unguarded=(group, field.name) in written)

    groups = {name: group.with_fields(partial(marked, name)) for name, group in description.groups.items()}
    return replace(description, groups=groups)


def _updates(functions: Sequence[Function], interrupts: Interrupts) -> Iterator[Access]:
    """Reads and writes at once that an interrupt may come into."""
    for function in functions:
        if function.usr not in interrupts.only:
            yield from (a for a in function.accesses if a.spot.form not in (Form.READ, Form.ASSIGN))


def guarded(description: Description) -> Description:
    """The description as if the source marked every field that an interrupt routine writes."""
    groups = description.groups.items()
    unmarked = {name: group.with_fields(lambda field: replace(field, unguarded=False)) for name, group in groups}
    return replace(description, groups=unmarked)


def _check_names(functions: Sequence[Function], names: Collection[str]) -> None:
    known = {function.name for function in functions}
    if missing := sorted(set(names) - known):
        raise Refused(
            [Refusal(functions[0].place, f"no function '{name}', named as an interrupt routine") for name in missing]
        )


def _routines(source: Source, named: frozenset[str]) -> Iterator[str]:
    for cursor in source.cursors:
        if cursor.kind is KINDS.FUNCTION_DECL:
            name = str(cursor.spelling)
            if name in named or _CMSIS.fullmatch(name) or _is_marked(cursor, source):
                yield cursor.get_usr()
        elif cursor.kind is KINDS.VAR_DECL and _is_table(cursor, source):
            yield from _named_functions(cursor)
        for inner in walk(cursor) if is_function(cursor) else ():
            if inner.kind is KINDS.CALL_EXPR and _TABLE.search(str(inner.spelling)):
                for argument in inner.get_arguments():  # of a call that registers interrupt routines
                    yield from _named_functions(argument)


def _named_functions(cursor: Cursor) -> Iterator[str]:
    """The functions, by USR, that are named in a declaration or an expression."""
    for inner in walk(cursor):
        if inner.kind is KINDS.DECL_REF_EXPR and inner.referenced.kind is KINDS.FUNCTION_DECL:
            yield inner.referenced.get_usr()


def _is_marked(cursor: Cursor, source: Source) -> bool:
    found = attributes(cursor, source.files[str(cursor.extent.start.file)])
    return any(source.macros.mentions(text, word) for text in found for word in _ATTRIBUTES)


def _is_table(cursor: Cursor, source: Source) -> bool:
    """A table of functions that hardware looks at: by its name, or because it has a place of its own."""
    kind = cursor.type.get_canonical()
    if kind.kind not in (cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.INCOMPLETEARRAY, cindex.TypeKind.RECORD):
        return False
    text = source.files[str(cursor.extent.start.file)]
    places = [one for one in attributes(cursor, text) if source.macros.mentions(one, "section")]
    return bool(places or _TABLE.search(str(cursor.spelling)))


def _calls(source: Source, functions: Sequence[Function]) -> nx.DiGraph:
    """Which functions call which: through a pointer, any whose address is taken."""
    calls = nx.DiGraph((function.usr, callee) for function in functions for callee in function.calls)
    taken = address_taken(source) & {function.usr for function in functions}
    calls.add_edges_from((function.usr, one) for function in functions if function.calls_pointer for one in taken)
    return calls


def address_taken(source: Source) -> frozenset[str]:
    """The functions, by USR, that are named elsewhere than in front of a call."""
    named = Counter[str]()
    for top in source.cursors:
        named.update(_named_functions(top))
        calls = (inner for inner in walk(top) if inner.kind is KINDS.CALL_EXPR and inner.referenced is not None)
        named.subtract(call.referenced.get_usr() for call in calls)
    return frozenset(name for name, times in named.items() if times > 0)


def _reached(starts: Collection[str], calls: nx.DiGraph) -> frozenset[str]:
    """The functions, and all that they call."""
    return frozenset(starts).union(*(nx.descendants(calls, one) for one in starts if one in calls))
