"""Function bodies read into accesses and control flow: statement by statement, as C executes them (S 6.4.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..language.cursors import KINDS, Cursor, bare, group_of, place, span
from ..language.description import Description, Span
from ..language.source import Source
from .accesses import Access
from .building import Builder
from .evaluation import NOTHING, Evaluator, Frame
from .functions import Barrier, Function, Parameter

_END = re.compile(rb"(?:\s|/\*.*?\*/|//[^\n]*\n)*;", re.DOTALL)
_SKIPPED = re.compile(rb'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', re.DOTALL)


def read_functions(source: Source, description: Description) -> tuple[Function, ...]:
    """Every function that the driver's own files define, in the order of the source."""
    found = []
    transparent: dict[str, frozenset[str]] = {}
    for cursor in source.cursors:
        if cursor.kind is KINDS.FUNCTION_DECL and cursor.is_definition():
            function = _function(cursor, source.files, description, transparent)
            summary = _summary(function)
            if summary is not None:
                transparent[cursor.get_usr()] = summary
            found.append(function)
    return tuple(_with_own_names(found))


def _with_own_names(functions: Iterable[Function]) -> Iterator[Function]:
    """Static functions of several files may share a name; the later ones get their file's name too."""
    seen: set[str] = set()
    for function in functions:
        name = function.name if function.name not in seen else f"{function.name} ({function.file})"
        seen.add(name)
        accesses = tuple(replace(access, function=name) for access in function.accesses)
        yield function if name == function.name else replace(function, name=name, accesses=accesses)


def _summary(function: Function) -> frozenset[str] | None:
    """The variables that a call may change, if it touches no field and calls nothing unknown."""
    changed: set[str] = set()
    for block in function.flow.blocks:
        for event in block.events:
            if isinstance(event, Access | Barrier):
                return None
            changed.add(event.name)
    return frozenset(changed & {*function.escaping, "*"})


def _function(
    cursor: Cursor, files: Mapping[str, bytes], description: Description, transparent: dict[str, frozenset[str]]
) -> Function:
    file = cursor.location.file.name
    build = Builder()
    evaluator = Evaluator(description, build, cursor.spelling, file, files[file], transparent)
    body = next(child for child in cursor.get_children() if child.kind is KINDS.COMPOUND_STMT)
    _Statements(evaluator, build).compound(body)
    return Function(
        cursor.spelling,
        file,
        place(cursor),
        span(body),
        cursor.result_type.spelling,
        tuple(_parameter(p, description) for p in cursor.get_arguments()),
        tuple(evaluator.accesses),
        build.flow(),
        frozenset(re.findall(r"[A-Za-z_]\w*", files[file][span(cursor)[0] : span(cursor)[1]].decode("latin-1"))),
        frozenset(evaluator.escaping),
    )


def _parameter(cursor: Cursor, description: Description) -> Parameter:
    group = group_of(cursor.type)
    return Parameter(cursor.spelling, cursor.type.spelling, group if group in description.groups else None)


@dataclass(slots=True)
class _Statements:
    """Walks the statements of one body."""

    evaluate: Evaluator
    build: Builder
    cases: list[tuple[int, list[bool]]] = field(default_factory=list)  # the decisions of the switches around

    def compound(self, cursor: Cursor) -> None:
        for statement in cursor.get_children():
            self.statement(statement, span(cursor))

    def statement(self, cursor: Cursor, scope: Span | None, labelled: bool = False) -> None:
        """One statement; `scope` is the block it stands in, None for the body of an if or a loop."""
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
            case KINDS.GOTO_STMT:
                label = next(iter(cursor.get_children())).spelling
                self.build.gotos.append((self.build.at, label))
                self.build.leave()
            case _:
                self._simple(cursor, scope, labelled)

    def _open(self, cursor: Cursor, scope: Span | None, labelled: bool, again: bool = False) -> None:
        """From here on, accesses stand in this statement; `again`: in a part of a loop that runs many times."""
        first, last = span(cursor)
        end = _END.match(self.evaluate.text, last)
        is_declared = cursor.kind is KINDS.DECL_STMT
        if end is not None and not is_declared and cursor.kind not in _COMPLETE:
            last = end.end()
        whole = bare(cursor) if cursor.kind.is_expression() else None
        events = len(self.build.blocks[self.build.at].events)
        where = (first, last) if scope is None else (first, scope[1])
        block = _NEVER if again else self.build.at
        self.evaluate.frame = Frame((first, last), where, scope is not None, labelled, whole, block, events)

    def _simple(self, cursor: Cursor, scope: Span | None, labelled: bool) -> None:
        """A declaration, an expression, a return: no control inside but that of expressions."""
        self._open(cursor, scope, labelled)
        if cursor.kind in (KINDS.ASM_STMT, KINDS.MS_ASM_STMT):
            self.build.add(Barrier("inline assembly", place(cursor)))
        elif cursor.kind is KINDS.DECL_STMT:
            self._declaration(cursor)
        elif cursor.kind.is_expression():
            self.evaluate.value(cursor)
        else:
            for child in cursor.get_children():
                if child.kind.is_expression():
                    self.evaluate.value(child)

    def _declaration(self, cursor: Cursor) -> None:
        for variable in cursor.get_children():
            if variable.kind is not KINDS.VAR_DECL:
                continue
            for child in variable.get_children():
                if child.kind.is_expression():
                    self.evaluate.assign(variable.spelling, self.evaluate.value(child))
            if variable.storage_class.name == "STATIC":
                self.evaluate.escaping.add(variable.spelling)

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
                self._condition(cursor, condition, entry) if cursor.kind is not KINDS.DO_STMT else (-1, entry)
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
                _, fork = self._condition(cursor, condition, self.build.at)
                self.build.jump(begin)
            else:
                self.build.jump(head)
        leaves = [] if condition is None else [fork]
        self.build.start(*leaves, *self.build.breaks.pop())

    def _condition(self, cursor: Cursor, condition: Cursor | None, before: int) -> tuple[int, int]:
        """The condition's first block and the one that decides."""
        with self.build.guarded():
            head = self.build.start(before)
            self._open(cursor, None, False, again=True)
            found = NOTHING if condition is None else self.evaluate.value(condition)
            return head, self.build.decide(found)


_NEVER = -1  # no block: nothing in such a part can move in front of its statement
_COMPLETE = (KINDS.IF_STMT, KINDS.WHILE_STMT, KINDS.FOR_STMT, KINDS.SWITCH_STMT)
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
    clean = _SKIPPED.sub(lambda found: b" " * len(found.group()), text[first:last])
    depth = 0
    found = []
    for at, byte in enumerate(clean):
        depth += (byte in b"({[") - (byte in b")}]")
        if byte == ord(";") and depth == 1:
            found.append(first + at)
    return found[0], found[1]
