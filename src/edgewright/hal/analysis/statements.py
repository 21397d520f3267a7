"""Statements read one by one into accesses and control flow, as C executes them (S 6.4.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ..language.cursors import (
    KINDS,
    Cursor,
    attributes,
    bare,
    children,
    expressions,
    is_volatile,
    place,
    span,
    variable,
    walk,
)
from ..language.description import Refusal, Refused, Span
from ..language.lexical import blanked, past_semicolon
from ..language.macros import Macros
from ..language.nodes import acts, discarded
from .evaluation import NOTHING, Evaluator, Frame
from .flow_builder import FlowBuilder
from .functions import Barrier
from .members import compared


@dataclass(slots=True)
class Statements:
    """Walks the statements of one body."""

    evaluate: Evaluator
    build: FlowBuilder
    macros: Macros
    cases: list[tuple[int, list[bool]]] = field(default_factory=list)  # the decisions of the switches around
    fixed: Cursor | None = None  # a statement that has to stay directly behind its pragma or attribute
    cleanups: list[Cursor] = field(default_factory=list)  # variables at the end of whose block a function is called
    snapshots: dict[int, int] = field(default_factory=dict)  # where the word stands: where its statement begins

    def compound(self, cursor: Cursor) -> None:
        at, last = span(cursor)
        for statement in children(cursor):
            start, end = span(statement)
            is_odd = self._is_odd(statement, (at, start), (at, end))
            is_behind_pragma = self.macros.pragmas_in(self.evaluate.file, (at, start))
            self.fixed = statement if is_behind_pragma else self.fixed
            self.statement(statement, None if is_behind_pragma else span(cursor))
            if is_odd:
                self.build.add(Barrier("text that may mean something else", place(statement), True))
            at = end
        self._is_odd(cursor, (at, last), (at, last))

    def _is_odd(self, statement: Cursor, before: Span, whole: Span) -> bool:
        """Adds a barrier where text may mean something else: a macro that is redefined, or lines under #if."""
        file = self.evaluate.file
        if self.macros.choices_in(file, before):
            self.build.add(Barrier("a line of #if", place(statement), True))
        if self.macros.pragmas_in(file, before):
            self.build.add(Barrier("a pragma", place(statement), True))
        if self.macros.is_unsteady(file, whole):
            self.build.add(Barrier("text that may mean something else", place(statement), True))
            return True
        return False

    def statement(self, cursor: Cursor, scope: Span | None, labelled: bool = False) -> None:
        """One statement; `scope` is the block it stands in, None for the body of an if or a loop."""
        mark = self.macros.before(self.evaluate.file, self.evaluate.text, span(cursor)[0], SNAPSHOT)
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
                self.statement(children(cursor)[-1], scope, labelled=True)
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
                label = next(iter(children(cursor))).spelling
                self.build.gotos.append((self.build.at, label))
                self.build.leave()
            case KINDS.UNEXPOSED_STMT if len(inside := _statements(cursor)) == 1:  # with attributes, or behind a pragma
                self.fixed = inside[0]
                self.statement(inside[0], None, labelled)
            case kind if kind in _SIMPLE or kind.is_expression():
                self._simple(cursor, scope, labelled)
            case _:
                self.evaluate.opaque(cursor, "a statement that is not standard C")

    def _open(self, cursor: Cursor, scope: Span | None, labelled: bool, again: bool = False) -> None:
        """From here on, accesses stand in this statement; `again`: in a part of a loop that runs many times."""
        first, last = span(cursor)
        if cursor.kind not in _COMPLETE:
            last = past_semicolon(self.evaluate.text, last)
        whole = bare(cursor) if cursor.kind.is_expression() else None
        events = len(self.build.blocks[self.build.at].events)
        where = (first, last) if scope is None else (first, scope[1])
        block = _NEVER if again or self._is_fixed(cursor) else self.build.at
        self.evaluate.unused.clear()
        self.evaluate.frame = Frame((first, last), where, scope is not None, labelled, whole, block, events)

    def _is_fixed(self, cursor: Cursor) -> bool:
        """Whether nothing may be put in front of the statement."""
        return self.fixed is not None and self.fixed == cursor

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
            self._unused(cursor)
        else:
            for child in expressions(cursor):
                self.evaluate.value(child)

    def _unused(self, cursor: Cursor) -> None:
        """An expression whose value is not used."""
        self.evaluate.unused += discarded(cursor)
        self.evaluate.value(cursor)

    def _declaration(self, cursor: Cursor) -> None:
        for declared in children(cursor):
            if declared.kind is not KINDS.VAR_DECL:
                if any(map(acts, walk(declared))):  # the size of an array in a type
                    self.evaluate.opaque(declared, "a declaration with an effect")
                continue
            for child in expressions(declared):
                if variable(declared) in self.evaluate.idle:
                    self.evaluate.unused.append(bare(child))
                self.evaluate.assign(variable(declared), self.evaluate.value(child))
            if is_volatile(declared):
                self.build.add(Barrier("a volatile or atomic access", place(declared)))
            if declared.storage_class.name == "STATIC":
                self.evaluate.escaping.add(variable(declared))
            if any(self.macros.mentions(text, "cleanup") for text in attributes(declared, self.evaluate.text)):
                self.build.add(Barrier("a function that runs at the end of a block", place(declared)))
                self.cleanups.append(declared)

    def _if(self, cursor: Cursor, scope: Span | None, labelled: bool) -> None:
        condition, *arms = children(cursor)
        self._open(cursor, scope, labelled)
        fork = self.build.decide(self.evaluate.value(condition))
        ends = []
        for arm in arms:
            self.build.start(fork)
            self.statement(arm, None)
            ends.append(self.build.at)
        self.build.start(*ends, *([fork] if len(arms) == 1 else []))

    def _switch(self, cursor: Cursor, scope: Span | None, labelled: bool) -> None:
        condition, body = children(cursor)
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
        *_, inner = children(cursor)
        self.statement(inner, scope, labelled=True)

    def _loop(self, cursor: Cursor, scope: Span | None, labelled: bool) -> None:
        """Any loop: start, condition, body, step, each a region of its own."""
        self._open(cursor, scope, labelled)
        parts = _loop_parts(cursor, self.evaluate.text)
        if parts is None:
            self.evaluate.opaque(cursor, "a `for` that a macro makes without one of its parts")
            return
        first, condition, step, body = parts
        if first is not None:
            self._declaration(first) if first.kind is KINDS.DECL_STMT else self._unused(first)
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
                    self._unused(step)
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
                here = None if self._is_fixed(cursor) else (span(condition), head, 0)
                polled = frozenset(map(span, compared(condition)))
                self.evaluate.frame = replace(self.evaluate.frame, condition=here, polled=polled)
            found = NOTHING if condition is None else self.evaluate.value(condition)
            return head, self.build.decide(found)


SNAPSHOT = frozenset({"snapshot", "hal_snapshot"})
_NEVER = -1  # no block: nothing in such a part can move in front of its statement
_COMPLETE = (KINDS.DECL_STMT, KINDS.IF_STMT, KINDS.WHILE_STMT, KINDS.FOR_STMT, KINDS.SWITCH_STMT)
_SIMPLE = (KINDS.DECL_STMT, KINDS.NULL_STMT, KINDS.ASM_STMT, KINDS.MS_ASM_STMT)
_Parts = tuple[Cursor | None, Cursor | None, Cursor | None, Cursor]


def _statements(cursor: Cursor) -> list[Cursor]:
    """The statements and expressions directly below, without attributes."""
    below: list[Cursor] = children(cursor)
    return [child for child in below if child.kind.is_statement() or child.kind.is_expression()]


def _loop_parts(cursor: Cursor, text: bytes) -> _Parts | None:
    """Start, condition, step and body of a loop; None where a macro hides which parts a `for` has.

    libclang leaves out those that are not there.
    """
    parts = children(cursor)
    if cursor.kind is KINDS.WHILE_STMT:
        return None, parts[0], None, parts[-1]
    if cursor.kind is KINDS.DO_STMT:
        return None, parts[-1], None, parts[0]
    *heads, body = parts
    if len(heads) in (0, 3):
        start, condition, step = heads or (None, None, None)
        return start, condition, step, body
    semicolons = _semicolons(text, *span(cursor))
    if semicolons is None:
        return None
    first, second = semicolons
    start = next((part for part in heads if span(part)[0] < first), None)
    condition = next((part for part in heads if first <= span(part)[0] < second), None)
    step = next((part for part in heads if second <= span(part)[0]), None)
    return start, condition, step, body


def _semicolons(text: bytes, first: int, last: int) -> tuple[int, int] | None:
    """Where the two semicolons of a `for` stand, if they are written there."""
    code = blanked(text[first:last])
    head = re.match(rb"for\s*\(", code)
    if head is None:
        return None
    depth = 0
    found = []
    for at in range(head.end() - 1, len(code)):
        depth += (code[at] in b"({[") - (code[at] in b")}]")
        if depth == 0:
            break
        if code[at] == ord(";") and depth == 1:
            found.append(first + at)
    return (found[0], found[1]) if len(found) == 2 else None
