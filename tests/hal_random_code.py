"""Random driver functions over given peripherals: no undefined behaviour, no order left to the compiler, all loops end.

One full expression has either reads of fields that just hold values, in any number, or one access or call with an effect
beside locals and constants; &&, ||, ?: and the comma begin anew.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from hal_random_groups import ChildDecl, FieldDecl, World, pick

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
}
VALUES = {"quiet": 10, "noisy": 6, "?:": 3, "&&": 2, "constant": 3}
OPERATORS = ("+", "-", "&", "|", "^")
UPDATES = ("|=", "&=", "^=", "+=", "-=", "<<=", ">>=", "*=")
ADVERSE = ("tmp1", "tmp2", "grp", "p", "v0", "value", "r")  # names that generated code may want too
ARM = "/*+*/"  # before an operand of ?:, for a reader in whose language the operands would else need one type
UNKNOWN = ("board_note", "board_wait")


@dataclass(frozen=True, slots=True)
class Line:
    text: str


@dataclass(frozen=True, slots=True)
class Nest:
    head: str
    body: tuple[Line | Nest, ...]
    tail: str = ""


Statement = Line | Nest


@dataclass(frozen=True, slots=True)
class Made:
    """A function; `cost` bounds the statements a call runs."""

    name: str
    result: str
    numbers: tuple[tuple[str, str], ...]  # type and name
    pointers: tuple[tuple[str, str, bool], ...]  # name, group, const
    buffer: bool
    body: tuple[Statement, ...]
    cost: int
    static: bool = False

    def __str__(self) -> str:
        words = [f"{'const ' if const else ''}bfGroup {group} *{name}" for name, group, const in self.pointers]
        words += [f"{kind} {name}" for kind, name in self.numbers]
        words += ["uint32_t *buffer"] * self.buffer
        head = f"{'static ' if self.static else ''}{self.result} {self.name}({', '.join(words) or 'void'})"
        return "\n".join((head, "{", *rendered(self.body, 1), "}", ""))


def rendered(body: tuple[Statement, ...], depth: int) -> Iterator[str]:
    pad = "    " * depth
    for statement in body:
        match statement:
            case Line(text):
                yield pad + text
            case Nest(head, inside, tail):
                yield f"{pad}{head} {{".replace("  {", " {")
                yield from rendered(inside, depth + 1)
                yield f"{pad}}} {tail}".rstrip()


@dataclass(slots=True)
class Scope:
    """What can be named at a place in a function."""

    numbers: list[str]  # locals that may be assigned
    fixed: list[str]  # locals that may only be read
    pointers: list[tuple[str, str, bool]]
    own_pointers: list[tuple[str, str]] = field(default_factory=list)  # those that may be pointed elsewhere
    depth: int = 0
    times: int = 1  # how often it runs in one call, at most
    loops: int = 0
    in_switch: bool = False

    def inner(self, times: int = 1, loops: int = 0) -> Scope:
        return replace(
            self,
            numbers=list(self.numbers),
            fixed=list(self.fixed),
            pointers=list(self.pointers),
            own_pointers=list(self.own_pointers),
            depth=self.depth + 1,
            times=self.times * times,
            loops=self.loops + loops,
            in_switch=self.in_switch and not loops,
        )


@dataclass(slots=True)
class Coder:
    """Writes one function after another; each may call those before it."""

    rng: Random
    world: World
    made: list[Made] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    cost: int = 0
    serial: int = 0
    result: str = "void"
    buffer: bool = False

    # Functions.

    def function(self, name: str) -> Made:
        """The next function, kept for those that follow."""
        rng = self.rng
        self.result = rng.choice(("void", "uint32_t", "uint32_t", "uint8_t", "uint64_t", "int"))
        self.cost, self.serial, self.buffer = 0, 0, rng.random() < 0.15
        kinds = [
            rng.choice(("uint32_t", "uint32_t", "uint8_t", "uint16_t", "int")) for _ in range(rng.randint(0, 3))
        ]
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
        kind = pick(self.rng, STATEMENTS)
        made = _MAKERS[kind](self, scope) if scope.depth < 3 or kind not in _DEEP else []
        if not made:
            kind, made = "assign", self.assign(scope)
        self.kinds[kind] += 1
        self.cost += scope.times * len(made)
        return made

    # Places of fields.

    def paths(self, scope: Scope, fits: Callable[[FieldDecl], bool], writes: bool) -> str | None:
        """Some field that fits, by way of a device or a pointer."""
        found = self.choose(scope, fits, writes)
        return found and found[0]

    def choose(
        self,
        scope: Scope,
        fits: Callable[[FieldDecl], bool],
        writes: bool,
        index: Callable[[Scope], str] | None = None,
    ) -> tuple[str, FieldDecl] | None:
        bases = [(f"{device.name}->", device.group) for device in self.world.devices]
        bases += [(f"{name}->", group) for name, group, const in scope.pointers if not (const and writes)] * 2
        self.rng.shuffle(bases)
        for text, group in bases:
            if found := self.descend(scope, text, group, fits, index or self.simple):
                return found
        return None

    def descend(
        self, scope: Scope, text: str, group: str, fits: Callable[[FieldDecl], bool], index: Callable[[Scope], str]
    ) -> tuple[str, FieldDecl] | None:
        members = list(self.world.group(group).members)
        self.rng.shuffle(members)
        for member in members:
            place = text + member.name + self.index(scope, member.count, index)
            match member:
                case FieldDecl() if fits(member):
                    return place, member
                case ChildDecl(group=inner):
                    if found := self.descend(scope, f"{place}.", inner, fits, index):
                        return found
        return None

    def index(self, scope: Scope, count: int | None, value: Callable[[Scope], str]) -> str:
        """An index that stays in range."""
        if count is None:
            return ""
        if self.rng.random() < 0.45:
            return f"[{self.rng.randrange(count)}]"
        self.kinds["dynamic index"] += 1
        text = value(scope)
        return f"[({text}) & {count - 1}u]" if count & (count - 1) == 0 else f"[(uint32_t)({text}) % {count}u]"

    def simple(self, scope: Scope) -> str:
        """A local, or an easy expression of one."""
        name = self.rng.choice(scope.numbers + scope.fixed)
        return self.rng.choice((name, name, f"{name} + {self.rng.randint(1, 3)}u", f"{name} ^ 1u"))

    def with_reads(self, scope: Scope) -> str:
        """An index that may read a field."""
        if self.rng.random() < 0.3 and (path := self.paths(scope, _quiet, False)):
            self.kinds["access in an index"] += 1
            return path
        return self.simple(scope)

    # Values.

    def constant(self) -> str:
        bits = self.rng.choice((1, 2, 3, 5, 8, 12, 16, 31, 32))
        return self.rng.choice((f"{self.rng.getrandbits(bits)}u", f"{self.rng.randrange(4)}u", "LIMIT"))

    def atom(self, scope: Scope) -> str:
        return self.rng.choice((self.constant(), self.rng.choice(scope.numbers + scope.fixed)))

    def quiet(self, scope: Scope, depth: int = 2) -> str:
        """Any number of reads of fields that just hold values."""
        if depth == 0 or self.rng.random() < 0.3:
            found = self.choose(scope, _quiet, False, self.with_reads) if self.rng.random() < 0.75 else None
            return found[0] if found else self.atom(scope)
        return self.combined(self.quiet(scope, depth - 1), self.quiet(scope, depth - 1))

    def combined(self, left: str, right: str) -> str:
        """Two values made one; shifts and products are unsigned, so that nothing overflows."""
        shape = self.rng.randrange(12)
        if shape == 0:
            return f"((uint32_t)({left}) << {self.rng.randrange(32)})"
        if shape == 1:
            return f"((uint32_t)({left}) >> {self.rng.randrange(32)})"
        if shape == 2:
            return f"(~({left}))"
        if shape == 3:
            return f"({left} {self.rng.choice(('==', '!='))} {right})"
        if shape == 4:
            return f"(3u * ({left}))"
        return f"({left} {self.rng.choice(OPERATORS)} {right})"

    def noisy(self, scope: Scope) -> str:
        """One access or call with an effect, beside locals and constants."""
        ways = (self.acting_read, self.acting_read, self.inner_write, self.inner_step, self.call_value)
        text = self.rng.choice(ways)(scope)
        if text is None:
            return self.quiet(scope)
        return self.rng.choice((text, text, self.combined(text, self.constant())))

    def acting_read(self, scope: Scope) -> str | None:
        path = self.paths(scope, lambda f: f.readable and not f.is_quiet, False)
        self.kinds["read that acts or changes"] += path is not None
        return path

    def inner_write(self, scope: Scope) -> str | None:
        found = self.choose(scope, _writable, True)
        self.kinds["assignment as a value"] += 1
        return found and f"({found[0]} = {self.atom(scope)})"

    def inner_step(self, scope: Scope) -> str | None:
        path = self.paths(scope, _updatable, True)
        self.kinds["++ as a value"] += 1
        return path and self.rng.choice((f"({path}++)", f"(++{path})", f"({path}--)", f"(--{path})"))

    def call_value(self, scope: Scope) -> str | None:
        called = self.callable(scope, lambda made: made.result != "void")
        return called and self.call_text(scope, called)

    def value(self, scope: Scope) -> str:
        """A value with at most one effect between two sequence points."""
        kind = pick(self.rng, VALUES)
        if kind == "noisy":
            return self.noisy(scope)
        if kind == "?:":
            self.kinds["?:"] += 1
            return f"({self.condition(scope, 0)} ? {ARM}{self.noisy(scope)} : {ARM}{self.noisy(scope)})"
        if kind == "&&":
            return f"({self.condition(scope, 1)})"
        return self.constant() if kind == "constant" else self.quiet(scope)

    def condition(self, scope: Scope, depth: int = 1) -> str:
        """What a branch may depend on; && and || nest."""
        if depth and self.rng.random() < 0.4:
            self.kinds["short circuit"] += 1
            operator = self.rng.choice(("&&", "||"))
            return f"({self.condition(scope, depth - 1)} {operator} {self.condition(scope, depth - 1)})"
        part = self.rng.choice((self.quiet, self.noisy))(scope)
        ways = (
            f"({part})",
            f"!({part})",
            f"(({part}) & {self.rng.randint(1, 7)}u)",
            f"(({part}) < {self.constant()})",
        )
        return self.rng.choice(ways) if self.rng.random() < 0.6 else f"(({part}) != {self.rng.randrange(3)}u)"

    # Calls.

    def callable(self, scope: Scope, fits: Callable[[Made], bool]) -> Made | None:
        ways = [m for m in self.made if fits(m) and m.cost * scope.times < 250 and self.cost + m.cost < 1500]
        ways = [made for made in ways if all(self.pointers_to(scope, g, c) for _, g, c in made.pointers)]
        return self.rng.choice(ways) if ways else None

    def call_text(self, scope: Scope, made: Made) -> str:
        self.cost += made.cost * scope.times
        words = [self.pointer_to(scope, group, const) for _, group, const in made.pointers]
        values = [self.quiet(scope, 1) for _ in made.numbers]
        words += [f"({kind})({text})" for (kind, _), text in zip(made.numbers, values, strict=True)]
        words += ["words"] * made.buffer
        return f"{made.name}({', '.join(words)})"

    def pointers_to(self, scope: Scope, group: str, const: bool = False) -> list[str]:
        """Expressions that point to such a group."""
        found = [name for name, own, only in scope.pointers if own == group and (const or not only)] * 2
        for device in self.world.devices:
            if device.group == group:
                found.append(device.name)
            found += [f"&{device.name}->{path}" for path in self.children(scope, device.group, group)]
        for name, own, only in scope.pointers:
            if const or not only:
                found += [f"&{name}->{path}" for path in self.children(scope, own, group)]
        return found

    def pointer_to(self, scope: Scope, group: str, const: bool = False) -> str:
        return self.rng.choice(self.pointers_to(scope, group, const))

    def children(self, scope: Scope, group: str, wanted: str) -> Iterator[str]:
        for member in self.world.group(group).members:
            if isinstance(member, ChildDecl):
                place = member.name + self.index(scope, member.count, self.simple)
                if member.group == wanted:
                    yield place
                yield from (f"{place}.{rest}" for rest in self.children(scope, member.group, wanted))

    def fresh(self, stem: str) -> str:
        self.serial += 1
        return f"{stem}{self.serial}"

    # Statements.

    def assign(self, scope: Scope) -> list[Statement]:
        value = self.value(scope)
        quiet_index = self.with_reads if value.isalnum() else self.simple
        writes = re.search(r"[^=!<>]=[^=]|\+\+|--", value)  # the same field twice would have no order
        found = (
            self.choose(scope, _writable, True, quiet_index) if self.rng.random() < 0.7 and not writes else None
        )
        return [Line(f"{found[0] if found else self.rng.choice(scope.numbers)} = {value};")]

    def writes(self, scope: Scope) -> list[Statement]:
        """Fields of one group set one after the other: what merging is for."""
        base, group, _ = self.rng.choice(self.bases(scope, True))
        fields = [m for m in self.world.group(group).members if isinstance(m, FieldDecl) and m.writable]
        chosen = self.rng.sample(fields, min(len(fields), self.rng.randint(2, 4)))
        places = [f"{base}->{m.name}{self.index(scope, m.count, self.simple)}" for m in chosen]
        return [Line(f"{place} = {self.rng.choice((self.atom, self.quiet))(scope)};") for place in places]

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
        return [(device.name, device.group, False) for device in self.world.devices] + usable * 3

    def update(self, scope: Scope) -> list[Statement]:
        path = self.paths(scope, _updatable, True)
        if path is None:
            return []
        operator = self.rng.choice(UPDATES)
        if operator in ("<<=", ">>="):
            return [Line(f"{path} {operator} {self.rng.randrange(8)};")]
        if operator == "*=":
            return [Line(f"{path} *= 3u;")]
        return [Line(f"{path} {operator} {self.rng.choice((self.atom, self.quiet))(scope)};")]

    def step(self, scope: Scope) -> list[Statement]:
        path = self.paths(scope, _updatable, True)
        return [Line(self.rng.choice((f"{path}++;", f"--{path};", f"++{path};", f"{path}--;")))] if path else []

    def by_hand(self, scope: Scope) -> list[Statement]:
        path = self.paths(scope, lambda f: _quiet(f) and f.writable, True)
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
        middle = [
            Nest(f"else if ({self.condition(scope)})", self.nested(scope)) for _ in range(self.rng.randint(1, 2))
        ]
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
            body += (
                [Nest("", tuple(self.block(inner.inner(), 1)))] if self.rng.random() < 0.5 else self.plain(inner)
            )
            body += [Line("break;") if self.rng.random() < 0.65 else Line("/* fall through */")]
        if self.rng.random() < 0.6:
            body += [Line("default:"), *self.plain(inner)]
        return [
            Nest(f"switch (({self.rng.choice((self.quiet, self.noisy))(scope)}) & 7u)", (*body, Line("break;")))
        ]

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
        plain = [
            m for m in self.made if [k for k, _ in m.numbers] == ["uint32_t"] and not (m.pointers or m.buffer)
        ]
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
        first, second = self.choose(scope, _writable, True), self.choose(scope, _writable, True)
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
        return [
            Line(self.rng.choice((f"total = {self.value(scope)};", f"{self.rng.choice(scope.numbers)} = total;")))
        ]

    def to_buffer(self, scope: Scope) -> list[Statement]:
        place = f"{'buffer' if self.buffer else 'words'}[{self.rng.randrange(4)}]"
        name = self.rng.choice(scope.numbers)
        return [Line(self.rng.choice((f"{place} = {self.value(scope)};", f"{name} += {place};")))]

    def volatile(self, scope: Scope) -> list[Statement]:
        name = self.fresh("w")
        return [Line(f"volatile uint32_t {name} = {self.quiet(scope, 1)};"), Line(f"{name} = {name} + 1u;")]


def _quiet(decl: FieldDecl) -> bool:
    return decl.is_quiet


def _writable(decl: FieldDecl) -> bool:
    return decl.writable


def _updatable(decl: FieldDecl) -> bool:
    return decl.is_updatable


_MAKERS: dict[str, Callable[[Coder, Scope], list[Statement]]] = {
    "assign": Coder.assign,
    "burst of writes": Coder.writes,
    "burst of reads": Coder.reads,
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
}
_DEEP = {"if", "else", "else if", "switch", "for", "while", "do", "walk over an array", "goto"}
