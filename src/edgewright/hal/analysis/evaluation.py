"""Expressions of driver code in the order of their evaluation: accesses, barriers and assignments as events."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..language.cursors import (
    KINDS,
    Cursor,
    bare,
    binary_operator,
    children,
    constant,
    converted,
    expressions,
    group_of,
    is_variable,
    is_volatile,
    place,
    span,
    unary_operator,
    variable,
    walk,
    written_span,
)
from ..language.description import Child, Description, Place, Refusal, Refused, Span
from ..language.macros import Macros
from ..language.nodes import accesses as has_access
from ..language.nodes import acts, discarded, jumps_out, operand
from ..language.status_words import word_of
from .accesses import Access, Form, Hop, Kind, Spot
from .flow_builder import FlowBuilder, Sources
from .functions import Assigned, Barrier
from .members import Member, device_of, expression, hop, is_known, member_of

NOTHING: Sources = frozenset()
_HINTS = ("__builtin_expect", "__builtin_expect_with_probability")  # give back their first argument
_UNEVALUATED = ("__builtin_constant_p", "__builtin_object_size", "__builtin_dynamic_object_size")
_UNARY = ("x++", "x--", "++x", "--x", "&", "*", "+", "-", "~", "!")
# Nodes that evaluate their parts once each, and do nothing else.
_PLAIN = (
    *(KINDS.INTEGER_LITERAL, KINDS.CHARACTER_LITERAL, KINDS.FLOATING_LITERAL, KINDS.STRING_LITERAL),
    *(KINDS.MEMBER_REF_EXPR, KINDS.ARRAY_SUBSCRIPT_EXPR, KINDS.CSTYLE_CAST_EXPR, KINDS.COMPOUND_LITERAL_EXPR),
    KINDS.ADDR_LABEL_EXPR,
)
_STEPS = {"x++": Form.POST, "x--": Form.POST, "++x": Form.PRE, "--x": Form.PRE}


@dataclass(frozen=True, slots=True)
class Frame:
    """The statement that is being evaluated, for the spots of its accesses."""

    statement: Span
    scope: Span
    in_block: bool
    labelled: bool
    alone: Cursor | None  # the assignment that is the whole statement
    block: int  # where it begins
    events: int  # in that block when it began
    condition: tuple[Span, int, int] | None = None  # of a loop: its text, its first block, events there when it began
    polled: frozenset[Span] = frozenset()  # of that condition: what is compared in it


@dataclass(slots=True)
class Evaluator:
    """Walks the expressions of one function; statements are left to `statements`."""

    description: Description
    build: FlowBuilder
    function: str
    file: str
    text: bytes
    macros: Macros
    transparent: dict[str, frozenset[str]]  # by USR, functions that touch no field, with the variables they change
    frame: Frame = field(default_factory=lambda: Frame((0, 0), (0, 0), False, False, None, 0, 0))
    snapshot: int | None = None  # the statement marked `snapshot` that is being evaluated
    accesses: list[Access] = field(default_factory=list)
    escaping: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)  # functions, by USR
    pointed: set[str] = field(default_factory=set)  # groups whose address is taken
    unused: list[Cursor] = field(default_factory=list)  # expressions of the statement whose values nobody uses
    idle: frozenset[str] = frozenset()  # variables of which nobody uses the value
    calls_pointer: bool = False  # it calls functions through pointers
    odd: list[Refusal] = field(default_factory=list)  # what a function with accesses may not have

    def value(self, cursor: Cursor) -> Sources:
        """What the expression's value depends on; its events are added as they happen."""
        member = member_of(cursor, self.description)
        if member is not None:
            return self._read(cursor, member)
        match cursor.kind:
            case KINDS.BINARY_OPERATOR:
                return self._binary(cursor)
            case KINDS.COMPOUND_ASSIGNMENT_OPERATOR:
                target, change = children(cursor)
                return self._update(cursor, target, change, Form.UPDATE)
            case KINDS.UNARY_OPERATOR if unary_operator(cursor) in _UNARY:
                return self._unary(cursor)
            case KINDS.CONDITIONAL_OPERATOR:
                return self._conditional(cursor)
            case KINDS.CALL_EXPR if cursor.spelling not in _UNEVALUATED:
                return self._call(cursor)
            case KINDS.DECL_REF_EXPR:
                return self._variable(cursor)
            case KINDS.INIT_LIST_EXPR:
                return NOTHING.union(*(self._element(one) for one in expressions(cursor)))
            case kind if kind in _PLAIN or converted(cursor) is not None:
                return self._inside(cursor)
            case KINDS.CXX_UNARY_EXPR if constant(cursor) is not None:  # it measures a type, and evaluates nothing
                return NOTHING
        return self.opaque(cursor, "an expression that is not standard C")

    def _inside(self, cursor: Cursor) -> Sources:
        """The parts of an expression without a rule of its own, one after the other."""
        found = NOTHING.union(*map(self.value, expressions(cursor)))
        if cursor.kind in (KINDS.MEMBER_REF_EXPR, KINDS.ARRAY_SUBSCRIPT_EXPR) and not has_access(
            cursor, self.description
        ):
            self._touch_volatile(cursor)
        return found

    def _element(self, cursor: Cursor) -> Sources:
        """An element of an initialiser, also with its designation: `.mode = 3`, `[2] = 5`."""
        is_designated = converted(cursor) is None and cursor.kind is KINDS.UNEXPOSED_EXPR
        parts = expressions(cursor) if is_designated and cursor.type.get_canonical().spelling == "void" else [cursor]
        return NOTHING.union(*map(self.value, parts))

    def opaque(self, cursor: Cursor, what: str) -> Sources:
        """Code that the analysis does not follow: nothing moves across it, and no field may be accessed in it."""
        if has_access(cursor, self.description):
            raise Refused((Refusal(place(cursor), f"an access in {what}", "put it in a statement of its own"),))
        inside = list(walk(cursor))
        self.odd += [Refusal(place(jump), f"a jump out of {what}", "use if") for jump in jumps_out(cursor)]
        if constant(cursor) is not None and not any(map(acts, inside)):
            return NOTHING
        self.build.add(Barrier(what, place(cursor)))
        named = [(one, variable(one.referenced)) for one in inside if is_variable(one)]
        found = frozenset(name for _, name in named)
        self.escaping |= {name for one, name in named if name == one.spelling}
        for one in inside:
            if one.kind is KINDS.UNARY_OPERATOR and unary_operator(one) == "&":
                self._take_address(one)
            elif one.kind is KINDS.CALL_EXPR and one.referenced is not None:
                self.calls.add(one.referenced.get_usr())
            elif acts(one) and one.kind is not KINDS.StmtExpr and is_variable(target := operand(one)):
                self.assign(variable(target.referenced), found)
        return found

    def _variable(self, cursor: Cursor) -> Sources:
        if not is_variable(cursor):
            return NOTHING
        named = cursor.referenced
        name = variable(named)
        if name == named.spelling:  # it is no local one
            self.escaping.add(name)
        self._touch_volatile(cursor)
        return frozenset({name})

    def _touch_volatile(self, cursor: Cursor) -> None:
        if is_volatile(cursor):
            self.build.add(Barrier("a volatile or atomic access", place(cursor)))

    def _binary(self, cursor: Cursor) -> Sources:
        left, right = children(cursor)
        match binary_operator(cursor):
            case "=":
                return self._assign(cursor, left, right)
            case "&&" | "||":
                return self._short_circuit(left, right)
            case ",":
                self.unused += discarded(left)
                self.value(left)
                return self.value(right)
        return self.value(left) | self.value(right)

    def _short_circuit(self, left: Cursor, right: Cursor) -> Sources:
        first = self.value(left)
        fork = self.build.decide(first)
        with self.build.guarded():
            self.build.start(fork)
            second = self.value(right)
            end = self.build.at
        self.build.start(fork, end)
        return first | second

    def _conditional(self, cursor: Cursor) -> Sources:
        condition, *arms = children(cursor)
        found = self.value(condition)
        fork = self.build.decide(found)
        ends = []
        for arm in arms:
            with self.build.guarded():
                self.build.start(fork)
                found |= self.value(arm)
                ends.append(self.build.at)
        self.build.start(*ends)
        return found

    def _assign(self, cursor: Cursor, left: Cursor, right: Cursor) -> Sources:
        member = member_of(bare(left), self.description)
        if member is None:
            if is_variable(bare(left)) and variable(bare(left).referenced) in self.idle:
                self.unused.append(bare(right))
            found = self.value(right)
            self._store(left, found)
            return found
        self._path(member)
        found = self.value(right)
        spot = self._spot(Form.ASSIGN, cursor, left, right, "=")
        self._access(Kind.WRITE, cursor, member, spot)
        return found

    def _update(self, cursor: Cursor, target: Cursor, change: Cursor | None, form: Form) -> Sources:
        member = member_of(bare(target), self.description)
        found = self.value(change) if change is not None else NOTHING
        if member is None:
            found |= self.value(target)
            self._store(target, found)
            return found
        self._path(member)
        operator = binary_operator(cursor) if change is not None else unary_operator(cursor).replace("x", "")
        spot = self._spot(form, cursor, target, change, operator)
        number = self._access(Kind.READ, target, member, spot)
        self._access(Kind.WRITE, target, member, spot)
        return found | {number}

    def _unary(self, cursor: Cursor) -> Sources:
        operator = unary_operator(cursor)
        inner = next(iter(children(cursor)))
        if operator in _STEPS:
            return self._update(cursor, inner, None, _STEPS[operator])
        if operator == "&":
            self._take_address(cursor)
        found = self.value(inner)
        if operator == "*":
            self._touch_volatile(cursor)
        return found

    def _take_address(self, cursor: Cursor) -> None:
        inner = operand(cursor)
        if is_variable(inner):
            self.escaping.add(variable(inner.referenced))
        group = group_of(cursor.type)
        if group in self.description.groups:
            self.pointed.add(str(group))

    def _store(self, target: Cursor, sources: Sources) -> None:
        """An assignment to something that is no field."""
        target = bare(target)
        if target.kind is KINDS.DECL_REF_EXPR:
            self._variable(target)
            self.assign(variable(target.referenced), sources)
            return
        self._inside(target)
        self.build.add(Assigned("*"))
        if target.kind is KINDS.UNARY_OPERATOR:
            self._touch_volatile(target)

    def assign(self, name: str, sources: Sources) -> None:
        self.build.values.setdefault(name, set()).update(sources)
        self.build.add(Assigned(name))

    def _call(self, cursor: Cursor) -> Sources:
        callee, *arguments = children(cursor)
        found = NOTHING.union(*map(self.value, arguments))
        named = bare(callee)
        known = named.kind is KINDS.DECL_REF_EXPR and named.referenced.kind is KINDS.FUNCTION_DECL
        changed = self.transparent.get(named.referenced.get_usr()) if known else None
        if known:
            self.calls.add(named.referenced.get_usr())
        if known and named.spelling in _HINTS:
            return found
        if changed is not None:
            self.escaping |= changed - {"*"}
            for name in sorted(changed):
                self.build.add(Assigned(name))
            return found
        if not known:
            self.value(callee)
            self.calls_pointer = True
        reason = f"a call of {named.spelling}()" if known else "a call through a function pointer"
        self.build.add(Barrier(reason, place(cursor)))
        return found

    def _read(self, cursor: Cursor, member: Member) -> Sources:
        self._path(member)
        if not self._is_unused(cursor):
            return frozenset({self._access(Kind.READ, cursor, member, self._spot(Form.READ, cursor, cursor, None, ""))})
        flush = Barrier("a read whose value is not used, and which lets writes arrive", place(cursor))
        self.build.add(flush)
        number = self._access(Kind.READ, cursor, member, self._spot(Form.READ, cursor, cursor, None, ""))
        self.build.add(flush)
        return frozenset({number})

    def _is_unused(self, cursor: Cursor) -> bool:
        return any(cursor == one for one in self.unused)

    def _path(self, member: Member) -> None:
        """What is evaluated on the way to a field."""
        self.value(member.base)
        for index in member.indices:
            self.value(index)

    def _access(self, kind: Kind, cursor: Cursor, member: Member, spot: Spot) -> int:
        base = expression(member.base, self.text, self.description, member.in_argument)
        device = device_of(bare(member.base), self.description)
        hops = tuple(hop(name, index, self.text, self.description, member.in_argument) for name, index in member.hops)
        owner = member.owner
        if self.description.field(owner, hops[-1].member).is_gathered:
            hops, owner = self._bit_of_word(member, hops, place(cursor))
        number = len(self.accesses)
        access = Access(
            number,
            self.function,
            kind,
            member.group,
            base,
            device,
            hops,
            owner,
            place(cursor),
            spot,
            self.build.depth,
            self.snapshot if kind is Kind.READ else None,
        )
        self.accesses.append(access)
        self.build.add(access)
        return number

    def _bit_of_word(self, member: Member, hops: tuple[Hop, ...], here: Place) -> tuple[tuple[Hop, ...], str]:
        """The way to the word that gathers an element's field, which bit of it, and the word's group."""
        through = 1 if hops[-1].index is not None else 2  # an array of fields, or of groups
        before, rest = hops[:-through], hops[-through:]
        if len(rest) < through:
            what = f"'{member.owner}::{rest[-1].member}' is a bit of a word, which '{member.owner} *' does not reach"
            raise Refused((Refusal(here, what, "name the element from the group that has the word"),))
        group = member.group
        for step in before:
            inner = self.description.groups[group].member(step.member)
            assert isinstance(inner, Child)
            group = inner.group
        word = word_of(self.description, group, tuple(step.member for step in rest))
        return (*before, Hop(word.name, rest[0].index)), group

    def _spot(self, form: Form, whole: Cursor, target: Cursor, change: Cursor | None, operator: str) -> Spot:
        frame = self.frame
        alone = frame.alone is not None and frame.alone == whole
        value = None if change is None else span(change)
        member = member_of(bare(target), self.description)
        in_argument = member is not None and member.in_argument
        own = written_span(whole, in_argument)
        is_inside = in_argument and self._is_made_by_macro(own)
        return Spot(
            self.file,
            form,
            own,
            value,
            operator,
            frame.statement,
            alone,
            frame.in_block,
            self._has_only_read(frame.block, frame.events) and not is_inside,
            frame.scope,
            frame.labelled,
            None if is_inside else self._condition(),
            form is Form.ASSIGN and change is not None and is_known(change),
            form is Form.READ and span(target) in frame.polled,
            self._is_unused(whole),
        )

    def _is_made_by_macro(self, own: Span) -> bool:
        """Whether an access is an argument of the macro that its whole statement comes from."""
        start = self.frame.statement[0]
        return any(
            own[1] <= last and own[0] > start for _, last, _ in self.macros.beginning(self.file, (start, start + 1))
        )

    def _condition(self) -> Span | None:
        """The condition of a loop that is being evaluated, if it has done nothing yet but read."""
        if self.frame.condition is None:
            return None
        where, block, events = self.frame.condition
        return where if self._has_only_read(block, events) else None

    def _has_only_read(self, block: int, events: int) -> bool:
        """Whether nothing but reads has happened since this block had so many events."""
        if self.build.at != block:
            return False
        before = self.build.blocks[self.build.at].events[events:]
        return all(isinstance(event, Access) and event.kind is Kind.READ for event in before)
