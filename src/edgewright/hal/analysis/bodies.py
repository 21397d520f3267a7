"""Function bodies read into accesses and control flow: statement by statement, as C executes them (S 6.4.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..language.cursors import (
    KINDS,
    Cursor,
    attributes,
    bare,
    cindex,
    expressions,
    group_of,
    is_function,
    place,
    span,
    variable,
    walk,
)
from ..language.description import Description, Place, Refusal, Refused, Span
from ..language.lexical import blanked, past_semicolon
from ..language.macros import LINE, Macros
from ..language.source import Source
from .accesses import Access
from .evaluation import NOTHING, Evaluator, Frame
from .flow_builder import FlowBuilder
from .functions import Barrier, Function, Parameter
from .members import compared
from .paths import Paths


def read_functions(source: Source, description: Description) -> tuple[Function, ...]:
    """Every function that the driver's own files define, in the order of the source."""
    found = []
    transparent: dict[str, frozenset[str]] = {}
    for cursor in source.cursors:
        if is_function(cursor):
            function = _function(cursor, source, description, transparent)
            summary = _summary(function)
            if summary is not None and not _is_replaced(cursor, source):
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


def _is_replaced(cursor: Cursor, source: Source) -> bool:
    """Whether the linker may replace this function by one of another file: it is weak, or may be declared so."""
    if cursor.linkage is cindex.LinkageKind.INTERNAL:
        return False
    text = source.files[cursor.location.file.name]
    is_marked = bool(attributes(cursor, text))
    return is_marked or any(
        re.search(rb"\bweak\s+%s\b" % re.escape(cursor.spelling.encode()), one) for one in source.files.values()
    )


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
    body = next(child for child in cursor.get_children() if child.kind is KINDS.COMPOUND_STMT)
    statements = _Statements(evaluator, build, source.macros)
    statements.compound(body)
    if evaluator.accesses:
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
        _static(cursor, source.files[file]),
    )


def _static(cursor: Cursor, text: bytes) -> Span | None:
    """Where the head of a function begins with `static`; None also where attributes say what is to become of it."""
    has_attributes = any(child.kind.is_attribute() for child in cursor.get_children())
    found = re.compile(rb"static\b").match(text, span(cursor)[0])
    return found.span() if found and not has_attributes else None


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
    for first, last, name in source.macros.uses.get(file, ()):
        if span(body)[0] <= first and last <= span(body)[1] and name != LINE and source.macros.mentions(name, LINE):
            what = f"macro '{name}' has the number of its line, which generated code changes"
            found.append(Refusal(place(body), what, f"write {LINE} where it is used"))
    if found:
        raise Refused(found)


def _check_snapshots(body: Cursor, file: str, source: Source, found: Mapping[int, int]) -> None:
    """Raises where the word `snapshot` stands before something that is no statement."""
    first, last = span(body)
    lost = [at for at, _, name in source.macros.uses.get(file, ()) if first < at < last and name in _SNAPSHOT]
    lines = sorted({source.files[file][:at].count(b"\n") + 1 for at in lost if at not in found})
    if lines:
        what = "'snapshot' stands before something that is no statement"
        raise Refused([Refusal(Place(file, line), what, "write it before a block, an if or a loop") for line in lines])


_WHOLE = "choose between whole statements"


def _cut(block: Cursor, file: str, source: Source) -> Iterator[Cursor]:
    """Statements with a line of #if in them, except between the statements of an inner block."""
    for statement in block.get_children():
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


@dataclass(slots=True)
class _Statements:
    """Walks the statements of one body."""

    evaluate: Evaluator
    build: FlowBuilder
    macros: Macros
    cases: list[tuple[int, list[bool]]] = field(default_factory=list)  # the decisions of the switches around
    cleanups: list[Cursor] = field(default_factory=list)  # variables at the end of whose block a function is called
    snapshots: dict[int, int] = field(default_factory=dict)  # where the word stands: where its statement begins

    def compound(self, cursor: Cursor) -> None:
        at, last = span(cursor)
        for statement in cursor.get_children():
            start, end = span(statement)
            is_odd = self._is_odd(statement, (at, start), (at, end))
            self.statement(statement, span(cursor))
            if is_odd:
                self.build.add(Barrier("text that may mean something else", place(statement), True))
            at = end
        self._is_odd(cursor, (at, last), (at, last))

    def _is_odd(self, statement: Cursor, before: Span, whole: Span) -> bool:
        """Adds a barrier where text may mean something else: a macro that is redefined, or lines under #if."""
        file = self.evaluate.file
        if self.macros.choices_in(file, before):
            self.build.add(Barrier("a line of #if", place(statement), True))
        if self.macros.is_unsteady(file, whole):
            self.build.add(Barrier("text that may mean something else", place(statement), True))
            return True
        return False

    def statement(self, cursor: Cursor, scope: Span | None, labelled: bool = False) -> None:
        """One statement; `scope` is the block it stands in, None for the body of an if or a loop."""
        mark = self.macros.before(self.evaluate.file, self.evaluate.text, span(cursor)[0], _SNAPSHOT)
        if mark is None or mark in self.snapshots:
            self._statement(cursor, scope, labelled)
            return
        before, self.evaluate.snapshot = self.evaluate.snapshot, len(self.snapshots)
        self.snapshots[mark] = span(cursor)[0]
        self._statement(cursor, scope, labelled)
        self.evaluate.snapshot = before

    def _statement(self, cursor: Cursor, scope: Span | None, labelled: bool) -> None:
        match cursor.kind:
            case KINDS.COMPOUND_STMT:
                self.compound(cursor)
            case KINDS.IF_STMT:
                self._if(cursor, scope, labelled)
            case KINDS.WHILE_STMT | KINDS.DO_STMT | KINDS.FOR_STMT:
                self._loop(cursor, scope, labelled)
            case KINDS.SWITCH_STMT:
                self._switch(cursor, scope, labelled)
            case KINDS.CASE_STMT | KINDS.DEFAULT_STMT:
                self._case(cursor, scope)
            case KINDS.LABEL_STMT:
                self.build.labels[cursor.spelling] = self.build.start(self.build.at)
                self.statement(next(iter(cursor.get_children())), scope, labelled=True)
            case KINDS.RETURN_STMT:
                self._simple(cursor, scope, labelled)
                self.build.returns.append(self.build.at)
                self.build.leave()
            case KINDS.BREAK_STMT:
                self.build.breaks[-1].append(self.build.at)
                self.build.leave()
            case KINDS.CONTINUE_STMT:
                self.build.continues[-1].append(self.build.at)
                self.build.leave()
            case KINDS.INDIRECT_GOTO_STMT:
                where = Refusal(place(cursor), "a jump to a label whose address is computed", "use switch")
                raise Refused((where,))
            case KINDS.GOTO_STMT:
                label = next(iter(cursor.get_children())).spelling
                self.build.gotos.append((self.build.at, label))
                self.build.leave()
            case _:
                self._simple(cursor, scope, labelled)

    def _open(self, cursor: Cursor, scope: Span | None, labelled: bool, again: bool = False) -> None:
        """From here on, accesses stand in this statement; `again`: in a part of a loop that runs many times."""
        first, last = span(cursor)
        if cursor.kind not in _COMPLETE:
            last = past_semicolon(self.evaluate.text, last)
        whole = bare(cursor) if cursor.kind.is_expression() else None
        events = len(self.build.blocks[self.build.at].events)
        where = (first, last) if scope is None else (first, scope[1])
        block = _NEVER if again else self.build.at
        self.evaluate.frame = Frame((first, last), where, scope is not None, labelled, whole, block, events)

    def _simple(self, cursor: Cursor, scope: Span | None, labelled: bool) -> None:
        """A declaration, an expression, a return: no control inside but that of expressions."""
        self._open(cursor, scope, labelled)
        if cursor.kind in (KINDS.ASM_STMT, KINDS.MS_ASM_STMT):
            if re.search(rb"\bgoto\b", self.evaluate.text[slice(*span(cursor))].split(b"(")[0]):
                raise Refused((Refusal(place(cursor), "inline assembly that jumps", "use if and goto"),))
            self.build.add(Barrier("inline assembly", place(cursor)))
        elif cursor.kind is KINDS.DECL_STMT:
            self._declaration(cursor)
        elif cursor.kind.is_expression():
            self.evaluate.value(cursor)
        else:
            for child in expressions(cursor):
                self.evaluate.value(child)

    def _declaration(self, cursor: Cursor) -> None:
        for declared in cursor.get_children():
            if declared.kind is not KINDS.VAR_DECL:
                continue
            for child in expressions(declared):
                self.evaluate.assign(variable(declared), self.evaluate.value(child))
            if declared.storage_class.name == "STATIC":
                self.evaluate.escaping.add(variable(declared))
            if any(self.macros.mentions(text, "cleanup") for text in attributes(declared, self.evaluate.text)):
                self.build.add(Barrier("a function that runs at the end of a block", place(declared)))
                self.cleanups.append(declared)

    def _if(self, cursor: Cursor, scope: Span | None, labelled: bool) -> None:
        condition, *arms = cursor.get_children()
        self._open(cursor, scope, labelled)
        fork = self.build.decide(self.evaluate.value(condition))
        ends = []
        for arm in arms:
            self.build.start(fork)
            self.statement(arm, None)
            ends.append(self.build.at)
        self.build.start(*ends, *([fork] if len(arms) == 1 else []))

    def _switch(self, cursor: Cursor, scope: Span | None, labelled: bool) -> None:
        condition, body = cursor.get_children()
        self._open(cursor, scope, labelled)
        fork = self.build.decide(self.evaluate.value(condition))
        self.build.breaks.append([])
        self.cases.append((fork, []))
        self.build.leave()
        self.statement(body, None)
        end = self.build.at
        has_default = any(self.cases.pop()[1])
        self.build.start(end, *self.build.breaks.pop(), *([] if has_default else [fork]))

    def _case(self, cursor: Cursor, scope: Span | None) -> None:
        fork, kinds = self.cases[-1]
        kinds.append(cursor.kind is KINDS.DEFAULT_STMT)
        self.build.start(self.build.at, fork)
        *_, inner = cursor.get_children()
        self.statement(inner, scope, labelled=True)

    def _loop(self, cursor: Cursor, scope: Span | None, labelled: bool) -> None:
        """Any loop: start, condition, body, step, each a region of its own."""
        self._open(cursor, scope, labelled)
        first, condition, step, body = _loop_parts(cursor, self.evaluate.text)
        if first is not None:
            self._declaration(first) if first.kind is KINDS.DECL_STMT else self.evaluate.value(first)
        self.build.breaks.append([])
        self.build.continues.append([])
        entry = self.build.at
        with self.build.loop():
            head, fork = (
                self._condition(cursor, condition, entry, scope, labelled)
                if cursor.kind is not KINDS.DO_STMT
                else (-1, entry)
            )
            with self.build.guarded():
                begin = self.build.start(fork)
                self.statement(body, None)
                end = self.build.at
            with self.build.guarded():
                self.build.start(end, *self.build.continues.pop())
                self._open(cursor, None, False, again=True)
                if step is not None:
                    self.evaluate.value(step)
            if cursor.kind is KINDS.DO_STMT:
                _, fork = self._condition(cursor, condition, self.build.at, scope, labelled)
                self.build.jump(begin)
            else:
                self.build.jump(head)
        leaves = [] if condition is None else [fork]
        self.build.start(*leaves, *self.build.breaks.pop())

    def _condition(
        self, cursor: Cursor, condition: Cursor | None, before: int, scope: Span | None, labelled: bool
    ) -> tuple[int, int]:
        """The condition's first block and the one that decides."""
        with self.build.guarded():
            head = self.build.start(before)
            self._open(cursor, scope, labelled, again=True)
            if condition is not None:
                here, polled = (span(condition), head, 0), frozenset(map(span, compared(condition)))
                self.evaluate.frame = replace(self.evaluate.frame, condition=here, polled=polled)
            found = NOTHING if condition is None else self.evaluate.value(condition)
            return head, self.build.decide(found)


_SNAPSHOT = frozenset({"snapshot", "hal_snapshot"})
_NEVER = -1  # no block: nothing in such a part can move in front of its statement
_COMPLETE = (KINDS.DECL_STMT, KINDS.IF_STMT, KINDS.WHILE_STMT, KINDS.FOR_STMT, KINDS.SWITCH_STMT)
_Parts = tuple[Cursor | None, Cursor | None, Cursor | None, Cursor]


def _loop_parts(cursor: Cursor, text: bytes) -> _Parts:
    """Start, condition, step and body of a loop; libclang leaves out those of a `for` that are not there."""
    parts = list(cursor.get_children())
    if cursor.kind is KINDS.WHILE_STMT:
        return None, parts[0], None, parts[-1]
    if cursor.kind is KINDS.DO_STMT:
        return None, parts[-1], None, parts[0]
    first, second = _semicolons(text, *span(cursor))
    *heads, body = parts
    start = next((part for part in heads if span(part)[0] < first), None)
    condition = next((part for part in heads if first <= span(part)[0] < second), None)
    step = next((part for part in heads if second <= span(part)[0]), None)
    return start, condition, step, body


def _semicolons(text: bytes, first: int, last: int) -> tuple[int, int]:
    """Where the two semicolons of a `for` stand: those outside of inner parentheses and braces."""
    depth = 0
    found = []
    for at, byte in enumerate(blanked(text[first:last])):
        depth += (byte in b"({[") - (byte in b")}]")
        if byte == ord(";") and depth == 1:
            found.append(first + at)
    return found[0], found[1]
