"""Random driver functions over given peripherals: every kind of statement, and all loops end."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.hal.random_cases import CASES
from tests.hal.random_groups import ChildDecl, FieldDecl, pick
from tests.hal.random_text import Line, Made, Nest, Scope, Statement
from tests.hal.random_values import ARM, Values, is_quiet_field, is_updatable, is_writable

STATEMENTS = {
    "assign": 10,
    "burst of writes": 20,
    "burst of reads": 18,
    "update": 7,
    "++": 4,
    "hand-made update": 4,
    "local": 6,
    "if": 6,
    "if without braces": 3,
    "else": 4,
    "else if": 3,
    "switch": 4,
    "for": 4,
    "while": 3,
    "do": 3,
    "polling": 3,
    "walk over an array": 5,
    "goto": 2,
    "early return": 2,
    "leave the loop": 4,
    "call": 5,
    "unknown call": 4,
    "function pointer": 2,
    "pointer": 6,
    "chained": 4,
    "comma": 2,
    "conditional access": 4,
    "assignment in a condition": 3,
    "same field twice": 4,
    "global": 2,
    "buffer": 2,
    "volatile": 1,
    "loop of goto": 3,
    "inner name": 2,
    "lines of #if": 2,
    "macro defined again": 2,
}
AGAIN = {"written again": 12}  # in all but the drivers that are the same as ever
WORDS = {"snapshot": 8, "snapshot of a loop": 6, "together": 12, "argument of a macro": 6}  # in some drivers
UPDATES = ("|=", "&=", "^=", "+=", "-=", "<<=", ">>=", "*=")
ADVERSE = ("tmp1", "tmp2", "grp", "p", "v0", "value", "r")  # names that generated code may want too
UNKNOWN = ("board_note", "board_wait")


@dataclass(slots=True)
class Coder(Values):
    """Writes one function after another; each may call those before it."""

    result: str = "void"
    buffer: bool = False
    has_words: bool = False
    has_cases: bool = False

    def function(self, name: str) -> Made:
        """The next function, kept for those that follow."""
        rng = self.rng
        self.result = rng.choice(("void", "uint32_t", "uint32_t", "uint8_t", "uint64_t", "int"))
        self.cost, self.serial, self.buffer = 0, 0, rng.random() < 0.15
        kinds = [rng.choice(("uint32_t", "uint32_t", "uint8_t", "uint16_t", "int")) for _ in range(rng.randint(0, 3))]
        numbers = [(kind, f"x{n}") for n, kind in enumerate(kinds)]
        groups = [rng.choice(self.world.reachable()) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        if len(groups) == 2 and rng.random() < 0.5:
            groups[1] = groups[0]  # two pointers that may be one
        pointers = [(f"g{n}", group, rng.random() < 0.1) for n, group in enumerate(groups)]
        plain = [name for kind, name in numbers if kind == "uint32_t"]
        scope = Scope(plain, [name for kind, name in numbers if kind != "uint32_t"], list(pointers))
        opening = self._locals(scope)
        body = [*opening, *self.block(scope, rng.randint(2, 5)), self.closing(scope)]
        made = Made(name, self.result, tuple(numbers), tuple(pointers), self.buffer, tuple(body), self.cost + 1)
        self.made.append(made)
        return made

    def _locals(self, scope: Scope) -> list[Statement]:
        names = ["a", self.rng.choice(("b", *ADVERSE))]
        scope.numbers += names
        return [Line(f"uint32_t {name} = {self.rng.randrange(9)}u;") for name in names]

    def closing(self, scope: Scope) -> Statement:
        total = " + ".join(scope.numbers)
        return Line(f"return ({self.result})({total});") if self.result != "void" else Line(f"total += {total};")

    def block(self, scope: Scope, length: int) -> list[Statement]:
        found: list[Statement] = []
        for _ in range(length):
            found += self.statement(scope)
        return found

    def nested(self, scope: Scope, times: int = 1, loops: int = 0) -> tuple[Statement, ...]:
        """The statements of an inner block; what they declare ends with it."""
        return tuple(self.block(scope.inner(times, loops), self.rng.choice((1, 1, 2, 3))))

    def statement(self, scope: Scope) -> list[Statement]:
        """One step of a function, mostly one statement."""
        more = {name: weight for name, (weight, _) in CASES.items()} | AGAIN if self.has_cases else {}
        kind = pick(self.rng, STATEMENTS | (WORDS | AGAIN if self.has_words else more))
        made = _MAKERS[kind](self, scope) if scope.depth < 3 or kind not in _DEEP else []
        if not made:
            kind, made = "assign", self.assign(scope)
        self.kinds[kind] += 1
        self.cost += scope.times * len(made)
        return made

    def assign(self, scope: Scope) -> list[Statement]:
        value = self.value(scope)
        quiet_index = self.with_reads if value.isalnum() else self.simple
        writes = re.search(r"[^=!<>]=[^=]|\+\+|--", value)  # the same field twice would have no order
        found = self.choose(scope, is_writable, True, quiet_index) if self.rng.random() < 0.7 and not writes else None
        return [Line(f"{found[0] if found else self.rng.choice(scope.numbers)} = {value};")]

    def writes(self, scope: Scope) -> list[Statement]:
        """Fields of one group set one after the other: what merging is for."""
        base, group, _ = self.rng.choice(self.bases(scope, True))
        fields = [m for m in self.world.group(group).members if isinstance(m, FieldDecl) and m.writable]
        chosen = self.rng.sample(fields, min(len(fields), self.rng.randint(2, 4)))
        places = [f"{base}->{m.name}{self.index(scope, m.count, self.simple)}" for m in chosen]
        return [Line(f"{place} = {self.rng.choice((self.atom, self.quiet))(scope)};") for place in places]

    def again(self, scope: Scope) -> list[Statement]:
        """Plain fields of one group set, something else done, and some of them set again: the others are known."""
        base, group, _ = self.rng.choice(self.bases(scope, True))
        members = [m for m in self.world.group(group).members if isinstance(m, FieldDecl)]
        fields = [m for m in members if m.writable and is_quiet_field(m)]
        chosen = self.rng.sample(fields, min(len(fields), self.rng.randint(2, 5)))
        places = [f"{base}->{m.name}{self.index(scope, m.count, self.simple)}" for m in chosen]
        if not places:
            return []
        values = (self.atom, self.quiet, lambda _: "total", lambda _: str(self.rng.randrange(4)))
        first = [Line(f"{place} = {self.rng.choice(values)(scope)};") for place in places]
        between = (self.polling, self.global_state, self.branch, self.update, self.reads, self.unknown, self.pointer)
        changed = [Line(f"{self.rng.choice(scope.numbers)} += 3u;")] if self.rng.random() < 0.5 else []
        middle = self.rng.choice(between)(scope) if scope.depth < 3 and self.rng.random() < 0.7 else []
        last = self.rng.sample(places, self.rng.randint(1, min(2, len(places))))
        return [*first, *changed, *middle, *(Line(f"{place} = {self.rng.choice(values)(scope)};") for place in last)]

    def reads(self, scope: Scope) -> list[Statement]:
        """Fields of one group read one after the other into locals."""
        base, group, _ = self.rng.choice(self.bases(scope, False))
        fields = [m for m in self.world.group(group).members if isinstance(m, FieldDecl) and m.readable]
        chosen = self.rng.sample(fields, min(len(fields), self.rng.randint(2, 4)))
        lines: list[Statement] = []
        for member in chosen:
            place = f"{base}->{member.name}{self.index(scope, member.count, self.simple)}"
            target = self.rng.choice(scope.numbers) if self.rng.random() < 0.5 else None
            name = target or self.fresh("t")
            lines.append(Line(f"{name} = {place};" if target else f"uint32_t {name} = {place};"))
            if not target:
                scope.numbers.append(name)
        if scope.depth or len(scope.numbers) > 6:
            lines.append(Line(f"total ^= {' + '.join(scope.numbers[-4:])};"))
        return lines

    def bases(self, scope: Scope, writes: bool) -> list[tuple[str, str, bool]]:
        usable = [(name, group, const) for name, group, const in scope.pointers if not (const and writes)]
        return [(device.name, device.group, False) for device in self.world.drawn] + usable * 3

    def update(self, scope: Scope) -> list[Statement]:
        path = self.paths(scope, is_updatable, True)
        if path is None:
            return []
        operator = self.rng.choice(UPDATES)
        if operator in ("<<=", ">>="):
            return [Line(f"{path} {operator} {self.rng.randrange(8)};")]
        if operator == "*=":
            return [Line(f"{path} *= 3u;")]
        return [Line(f"{path} {operator} {self.rng.choice((self.atom, self.quiet))(scope)};")]

    def step(self, scope: Scope) -> list[Statement]:
        path = self.paths(scope, is_updatable, True)
        return [Line(self.rng.choice((f"{path}++;", f"--{path};", f"++{path};", f"{path}--;")))] if path else []

    def by_hand(self, scope: Scope) -> list[Statement]:
        path = self.paths(scope, lambda f: is_quiet_field(f) and f.writable, True)
        name = self.fresh("v")
        change = f"{name} {self.rng.choice(('|=', '&=', '^=', '+='))} {self.atom(scope)};"
        lines = (f"uint32_t {name} = {path};", change, f"{path} = {name};")
        return [Nest("", tuple(map(Line, lines)))] if path else []

    def local(self, scope: Scope) -> list[Statement]:
        name = self.fresh("t")
        signed = self.rng.random() < 0.2
        value = self.value(scope)
        (scope.fixed if signed else scope.numbers).append(name)
        kind, value = ("int", f"(int)(({value}) & 0xffffu)") if signed else ("uint32_t", value)
        return [Line(f"{kind} {name} = {value};"), Line(f"total += (uint32_t){name};")]

    def branch(self, scope: Scope) -> list[Statement]:
        return [Nest(f"if ({self.condition(scope)})", self.nested(scope))]

    def bare_branch(self, scope: Scope) -> list[Statement]:
        first, second = self.assign(scope.inner()), self.assign(scope.inner())
        assert isinstance(first[0], Line) and isinstance(second[0], Line)
        rest = f" else {second[0].text}" if self.rng.random() < 0.4 else ""
        return [Line(f"if ({self.condition(scope)}) {first[0].text}{rest}")]

    def both(self, scope: Scope) -> list[Statement]:
        return [Nest(f"if ({self.condition(scope)})", self.nested(scope)), Nest("else", self.nested(scope))]

    def chain(self, scope: Scope) -> list[Statement]:
        middle = [Nest(f"else if ({self.condition(scope)})", self.nested(scope)) for _ in range(self.rng.randint(1, 2))]
        return [
            Nest(f"if ({self.condition(scope)})", self.nested(scope)),
            *middle,
            Nest("else", self.nested(scope)),
        ]

    def switch(self, scope: Scope) -> list[Statement]:
        """Cases that break, fall through or return."""
        body: list[Statement] = []
        inner = replace(scope.inner(), in_switch=True)
        for case in self.rng.sample(range(6), self.rng.randint(2, 4)):
            body.append(Line(f"case {case}u:"))
            body += [Nest("", tuple(self.block(inner.inner(), 1)))] if self.rng.random() < 0.5 else self.plain(inner)
            body += [Line("break;") if self.rng.random() < 0.65 else Line("/* fall through */")]
        if self.rng.random() < 0.6:
            body += [Line("default:"), *self.plain(inner)]
        return [Nest(f"switch (({self.rng.choice((self.quiet, self.noisy))(scope)}) & 7u)", (*body, Line("break;")))]

    def plain(self, scope: Scope) -> list[Statement]:
        """Assignments only: nothing that declares."""
        return [line for _ in range(self.rng.randint(1, 2)) for line in self.assign(scope)]

    def count_loop(self, scope: Scope) -> list[Statement]:
        name, times = self.fresh("i"), self.rng.randint(1, 4)
        if scope.times > 8:
            return []
        extra = f" && {self.condition(scope, 0)}" if self.rng.random() < 0.3 else ""
        step = self.rng.choice((f"{name}++", f"++{name}", f"{name} += 1u"))
        inner = scope.inner(times, 1)
        inner.fixed.append(name)
        body = tuple(self.block(inner, self.rng.randint(1, 3)))
        return [Nest(f"for (uint32_t {name} = 0u; {name} < {times}u{extra}; {step})", body)]

    def while_loop(self, scope: Scope) -> list[Statement]:
        name, times = self.fresh("n"), self.rng.randint(1, 4)
        if scope.times > 8:
            return []
        test = f"{self.condition(scope, 0)} && ({name}++ < {times}u)"
        if self.rng.random() < 0.5:
            test = f"({name}++ < {times}u) && {self.condition(scope, 0)}"
        return [Line(f"uint32_t {name} = 0u;"), Nest(f"while ({test})", self.nested(scope, times + 1, 1))]

    def do_loop(self, scope: Scope) -> list[Statement]:
        name, times = self.fresh("n"), self.rng.randint(1, 3)
        if scope.times > 8:
            return []
        tail = f"while ((++{name} < {times}u) && {self.condition(scope, 0)});"
        return [Line(f"uint32_t {name} = 0u;"), Nest("do", self.nested(scope, times, 1), tail)]

    def polling(self, scope: Scope) -> list[Statement]:
        path, name = self.paths(scope, lambda f: f.readable and not f.is_quiet, False), self.fresh("n")
        if path is None or scope.times > 8:
            return []
        test = f"while (!({path} & 1u) && {name} < 5u)"
        body = self.rng.choice((f"{test} {name}++;", f"{test} {{ ++{name}; }}"))
        return [Line(f"uint32_t {name} = 0u;"), Line(body), Line(f"total += {name};")]

    def walk(self, scope: Scope) -> list[Statement]:
        """A loop over the elements of an array member."""
        ways = [(b, m) for b, g, _ in self.bases(scope, True) for m in self.world.group(g).members if m.count]
        if not ways or scope.times > 8:
            return []
        base, member = self.rng.choice(ways)
        name = self.fresh("i")
        inner = scope.inner(member.count or 1, 1)
        inner.fixed.append(name)
        body = self.at_element(inner, f"{base}->{member.name}[{name}]", member)
        return [Nest(f"for (uint32_t {name} = 0u; {name} < {member.count}u; ++{name})", tuple(body))]

    def at_element(self, scope: Scope, place: str, member: FieldDecl | ChildDecl) -> list[Statement]:
        if isinstance(member, FieldDecl):
            writes = [Line(f"{place} = {self.atom(scope)};")] if member.writable else []
            reads = [Line(f"a += {place};")] if member.readable else []
            return [*(reads if self.rng.random() < 0.5 else []), *writes] or [*reads, *writes]
        pointer = self.fresh("e")
        scope.pointers.append((pointer, member.group, False))
        opening = Line(f"bfGroup {member.group} *{pointer} = &{place};")
        return [opening, Line(f"(void){pointer};"), *self.block(scope, self.rng.randint(1, 3))]

    def jump(self, scope: Scope) -> list[Statement]:
        label = self.fresh("out")
        body = (Line(f"if ({self.condition(scope)}) goto {label};"), *self.nested(scope))
        return [Nest("", body), Line(f"{label}: a ^= 1u;")]

    def leave(self, scope: Scope) -> list[Statement]:
        value = f" ({self.result})({self.value(scope)})" if self.result != "void" else ""
        return [Nest(f"if ({self.condition(scope)})", (*self.plain(scope.inner()), Line(f"return{value};")))]

    def out_of_loop(self, scope: Scope) -> list[Statement]:
        if not scope.loops:
            return []
        word = "continue" if scope.in_switch else self.rng.choice(("break", "continue"))
        return [Line(f"if ({self.condition(scope)}) {word};")]

    def call(self, scope: Scope) -> list[Statement]:
        called = self.callable(scope, lambda made: True)
        if called is None:
            return []
        text = self.call_text(scope, called)
        target = f"{self.rng.choice(scope.numbers)} = (uint32_t)" if called.result != "void" else ""
        return [Line(f"{target}{text};")]

    def unknown(self, scope: Scope) -> list[Statement]:
        name = self.rng.choice(UNKNOWN)
        return [Line(f"{self.rng.choice(scope.numbers)} = {name}({self.value(scope)});")]

    def function_pointer(self, scope: Scope) -> list[Statement]:
        plain = [m for m in self.made if [k for k, _ in m.numbers] == ["uint32_t"] and not (m.pointers or m.buffer)]
        ways = [m.name for m in plain if m.result == "uint32_t" and m.cost * scope.times < 250] + ["board_note"]
        first, second, name = self.rng.choice(ways), self.rng.choice(ways), self.fresh("f")
        self.cost += 250 if len(ways) > 1 else 1
        test = self.condition(scope, 0)
        declared = Line(f"uint32_t (*{name})(uint32_t) = {test} ? {first} : {second};")
        return [declared, Line(f"{self.rng.choice(scope.numbers)} += {name}({self.quiet(scope, 1)});")]

    def pointer(self, scope: Scope) -> list[Statement]:
        """A local that points to a group, or one that is pointed elsewhere."""
        if scope.own_pointers and self.rng.random() < 0.5:
            name, group = self.rng.choice(scope.own_pointers)
            return [Line(f"{name} = {self.pointer_to(scope, group)};")]
        group = self.rng.choice(self.world.reachable())
        ways = self.pointers_to(scope, group)
        name = self.fresh("q")
        value = self.rng.choice(ways)
        if self.rng.random() < 0.25:
            value = f"{self.condition(scope, 0)} ? {self.rng.choice(ways)} : {self.rng.choice(ways)}"
        scope.pointers.append((name, group, False))
        scope.own_pointers.append((name, group))
        return [Line(f"bfGroup {group} *{name} = {value};"), Line(f"(void){name};"), *self.statement(scope)]

    def chained(self, scope: Scope) -> list[Statement]:
        first, second = self.choose(scope, is_writable, True), self.choose(scope, is_writable, True)
        name = self.rng.choice(scope.numbers)
        value = self.rng.choice((self.atom, self.quiet))(scope)
        if first is None or second is None or first[1] is second[1]:
            return []
        return [Line(self.rng.choice((f"{first[0]} = {second[0]} = {value};", f"{name} = {first[0]} = {value};")))]

    def comma(self, scope: Scope) -> list[Statement]:
        left, right = self.rng.sample(scope.numbers, 2)
        first = self.rng.choice((self.quiet, self.noisy))(scope)
        return [Line(f"{left} = ({right} = {first}, {self.noisy(scope)});")]

    def under_condition(self, scope: Scope) -> list[Statement]:
        """Accesses that happen only now and then inside an expression."""
        name = self.rng.choice(scope.numbers)
        operator = self.rng.choice(("&&", "||"))
        both = f"{self.condition(scope, 0)} {operator} {self.condition(scope, 0)}"
        either = f"{self.condition(scope, 0)} ? {ARM}{self.noisy(scope)} : {ARM}{self.quiet(scope)}"
        return [Line(f"{name} = {self.rng.choice((both, either))};")]

    def in_condition(self, scope: Scope) -> list[Statement]:
        name = self.rng.choice(scope.numbers)
        path = self.paths(scope, lambda f: f.readable, False)
        if path is None:
            return []
        return [Nest(f"if (({name} = {path}) != {self.rng.randrange(3)}u)", self.nested(scope))]

    def twice(self, scope: Scope) -> list[Statement]:
        """Two accesses of one array at indices that may be the same, or of one field through two names."""
        found = self.choose(scope, lambda f: f.writable and f.readable, True)
        if found is None:
            return []
        again = [p for p in (self.paths(scope, lambda f: f is found[1], True) for _ in range(2)) if p]
        name = self.rng.choice(scope.numbers)
        lines = [f"{found[0]} = {self.atom(scope)};", *(f"{p} = {self.atom(scope)};" for p in again[:1])]
        lines += [f"{name} += {p};" for p in again[1:]] + [f"{name} ^= {found[0]};"]
        return [Line(text) for text in lines]

    def global_state(self, scope: Scope) -> list[Statement]:
        return [Line(self.rng.choice((f"total = {self.value(scope)};", f"{self.rng.choice(scope.numbers)} = total;")))]

    def to_buffer(self, scope: Scope) -> list[Statement]:
        place = f"{'buffer' if self.buffer else 'words'}[{self.rng.randrange(4)}]"
        name = self.rng.choice(scope.numbers)
        return [Line(self.rng.choice((f"{place} = {self.value(scope)};", f"{name} += {place};")))]

    def volatile(self, scope: Scope) -> list[Statement]:
        name = self.fresh("w")
        return [Line(f"volatile uint32_t {name} = {self.quiet(scope, 1)};"), Line(f"{name} = {name} + 1u;")]

    def goto_loop(self, scope: Scope) -> list[Statement]:
        name, label, times = self.fresh("n"), self.fresh("again"), self.rng.randint(1, 4)
        if scope.times > 8:
            return []
        body = (*self.nested(scope, times, 0), Line(f"if (++{name} < {times}u) goto {label};"))
        return [Line(f"uint32_t {name} = 0u;"), Line(f"{label}:;"), Nest("", body), *self.writes(scope)]

    def inner_name(self, scope: Scope) -> list[Statement]:
        """A variable of an inner block with the name of an outer one, around a burst of writes."""
        name = self.rng.choice(scope.numbers)
        inner = (
            Line(f"uint32_t {name} = {self.rng.randrange(4)}u;"),
            *self.writes(scope),
            Line(f"total += {name};"),
        )
        return [*self.writes(scope), Nest("", inner)]

    def left_out(self, scope: Scope) -> list[Statement]:
        lines = [Line("#ifdef NEVER_DEFINED"), Line("board_note(1u);"), Line("#endif")]
        return [*self.writes(scope), *lines, *self.writes(scope)]

    def macro_again(self, scope: Scope) -> list[Statement]:
        found: list[Statement] = []
        for value in self.rng.sample(range(16), 2):
            path = self.paths(scope, is_writable, True) or "total"
            found += [Line("#undef STEP"), Line(f"#define STEP {value}u"), Line(f"{path} = STEP;")]
        return found

    def flags(self, scope: Scope, most: int) -> list[str]:
        """Fields of one group that hardware changes."""
        base, group, _ = self.rng.choice(self.bases(scope, False))
        fields = [m for m in self.world.group(group).members if isinstance(m, FieldDecl) and m.is_flag]
        chosen = self.rng.sample(fields, min(len(fields), most))
        return [f"{base}->{m.name}{self.index(scope, m.count, self.simple)}" for m in chosen]

    def snapshot(self, scope: Scope) -> list[Statement]:
        """Questions to flags, each with something that is done about it."""
        body: list[Statement] = []
        for number, flag in enumerate(flags := self.flags(scope, 4)):
            name = self.rng.choice(scope.numbers)
            again = f" && !({self.rng.choice(flags)} & 1u)" if self.rng.random() < 0.3 else ""
            note = Line(f"{name} = board_note({number}u);")
            done = self.rng.choice(([note], self.writes(scope.inner()), [Line(f"{name} ^= {flag};")]))
            head = f"{'else ' if body and self.rng.random() < 0.4 else ''}if (({flag} & 1u){again})"
            body += [Nest(head, tuple(done))] if self.rng.random() < 0.8 or not body else [Line(f"a += {flag};")]
            if isinstance(body[-1], Line):
                body.append(Nest("if (a & 1u)", (Line("a += 2u;"),)))
        return [Nest("snapshot", tuple(body))] if body else []

    def snapshot_loop(self, scope: Scope) -> list[Statement]:
        flags, name = self.flags(scope, 3), self.fresh("n")
        if not flags or scope.times > 8:
            return []
        test = " && ".join([*(f"!({flag} & 1u)" for flag in flags), f"{name} < 4u"])
        inside = tuple(Line(f"a += {flag};") for flag in flags if self.rng.random() < 0.3)
        loop = Nest(f"snapshot while ({test})", (*inside, Line(f"{name}++;")))
        return [Line(f"uint32_t {name} = 0u;"), loop, Line(f"total += {name};")]

    def together(self, scope: Scope) -> list[Statement]:
        """Fields that are together, one after the other."""
        time = self.rng.sample(("hours", "minutes", "seconds"), 3)
        more = [Line(f"clk->running = {self.atom(scope)};")] if self.rng.random() < 0.4 else []
        name = self.rng.choice(scope.numbers)
        match self.rng.randrange(3):
            case 0:
                return [*(Line(f"clk->{one} = {self.atom(scope)};") for one in time), *more]
            case 1:
                return [*more, *(Line(f"{name} += clk->{one};") for one in time)]
        return [Line(f"{name} = (clk->high * 256u) + clk->low;"), *more]

    def argument(self, scope: Scope) -> list[Statement]:
        path = self.paths(scope, lambda f: f.readable, False)
        name = self.rng.choice(scope.numbers)
        ways = (Line(f"{name} += ONCE({path});"), Nest(f"if (ONCE({path}))", self.nested(scope)))
        return [self.rng.choice(ways)] if path else []


_MAKERS: dict[str, Callable[[Coder, Scope], list[Statement]]] = {
    "assign": Coder.assign,
    "burst of writes": Coder.writes,
    "burst of reads": Coder.reads,
    "written again": Coder.again,
    "update": Coder.update,
    "++": Coder.step,
    "hand-made update": Coder.by_hand,
    "local": Coder.local,
    "if": Coder.branch,
    "if without braces": Coder.bare_branch,
    "else": Coder.both,
    "else if": Coder.chain,
    "switch": Coder.switch,
    "for": Coder.count_loop,
    "while": Coder.while_loop,
    "do": Coder.do_loop,
    "polling": Coder.polling,
    "walk over an array": Coder.walk,
    "goto": Coder.jump,
    "early return": Coder.leave,
    "leave the loop": Coder.out_of_loop,
    "call": Coder.call,
    "unknown call": Coder.unknown,
    "function pointer": Coder.function_pointer,
    "pointer": Coder.pointer,
    "chained": Coder.chained,
    "comma": Coder.comma,
    "conditional access": Coder.under_condition,
    "assignment in a condition": Coder.in_condition,
    "same field twice": Coder.twice,
    "global": Coder.global_state,
    "buffer": Coder.to_buffer,
    "volatile": Coder.volatile,
    "loop of goto": Coder.goto_loop,
    "inner name": Coder.inner_name,
    "lines of #if": Coder.left_out,
    "macro defined again": Coder.macro_again,
    "snapshot": Coder.snapshot,
    "snapshot of a loop": Coder.snapshot_loop,
    "together": Coder.together,
    "argument of a macro": Coder.argument,
    **{name: maker for name, (_, maker) in CASES.items()},
}
_DEEP = {
    "if",
    "else",
    "else if",
    "switch",
    "for",
    "while",
    "do",
    "walk over an array",
    "goto",
    "loop of goto",
    "inner name",
    "argument of a macro",
}
