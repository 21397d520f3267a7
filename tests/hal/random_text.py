"""Functions of random drivers as trees of statements, which can be printed and taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace


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
