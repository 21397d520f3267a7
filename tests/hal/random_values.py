"""Random values over given peripherals: no undefined behaviour, no order of effects left to the compiler.

One full expression has either reads of fields that just hold values, in any number, or one access or call with an
effect beside locals and constants; &&, ||, ?: and the comma begin again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from tests.hal.random_groups import ChildDecl, FieldDecl, World, pick
from tests.hal.random_text import Made, Scope

VALUES = {"quiet": 10, "noisy": 6, "?:": 3, "&&": 2, "constant": 3}
OPERATORS = ("+", "-", "&", "|", "^")
ARM = "/*+*/"  # before an operand of ?:, for a reader in whose language the operands would else need one type


@dataclass(slots=True)
class Values:
    """Draws places of fields, values and calls; the functions made so far can be called."""

    rng: Random
    world: World
    made: list[Made] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    cost: int = 0
    serial: int = 0

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
        bases = [(f"{device.name}->", device.group) for device in self.world.drawn]
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
        if self.rng.random() < 0.3 and (path := self.paths(scope, is_quiet_field, False)):
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
            found = self.choose(scope, is_quiet_field, False, self.with_reads) if self.rng.random() < 0.75 else None
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
        found = self.choose(scope, is_writable, True)
        self.kinds["assignment as a value"] += 1
        return found and f"({found[0]} = {self.atom(scope)})"

    def inner_step(self, scope: Scope) -> str | None:
        path = self.paths(scope, is_updatable, True)
        self.kinds["++ as a value"] += 1
        return path and self.rng.choice((f"({path}++)", f"(++{path})", f"({path}--)", f"(--{path})"))

    def call_value(self, scope: Scope) -> str | None:
        called = self.callable(scope, lambda made: made.result != "void")
        return self.call_text(scope, called) if called else None

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
        for device in self.world.drawn:
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


def is_quiet_field(decl: FieldDecl) -> bool:
    return decl.is_quiet


def is_writable(decl: FieldDecl) -> bool:
    return decl.writable


def is_updatable(decl: FieldDecl) -> bool:
    return decl.is_updatable
