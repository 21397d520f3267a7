"""Code that repeats itself, as loops: texts that differ only in numbers and in names of tables and constants."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..kernels.module import Module
from ..kernels.printing.constants import c_type
from .alike import Line, Slot, Template, between, joined, template
from .series import Series, Values, breaks, cost
from .static import INTEGERS, Static, define, statics
from .tokens import Kind, tokens

LOOP = 8  # bytes of code, about: a counter, a comparison and a jump
TOKEN = 2  # a word or a number of straight code, unless it is of a type
TYPES = re.compile(r"\w+_t|const|void|float|double|int|for|if")
MOST_CUTS = 16  # places where the beginning or the end of a run may be split off
BEFORE = {"(", "[", "{", ",", "=", "<", ">", "<=", ">="}  # between one of these
BEHIND = {")", "]", "}", ",", ";"}  # and one of these an expression needs no brackets, a product in sums neither


def roll(unit: Module, texts: Sequence[Sequence[str]], counter: str) -> list[str]:
    """The C of all texts one after the other, those that are alike as loops over `counter`."""
    lines: list[str] = []
    for run in _runs(unit, texts):
        for first, last in run.parts():
            if last - first == 1:
                lines += _braced("", run.texts[first])
            else:
                head = f"for (int32_t {counter} = 0; {counter} < {last - first}; {counter}++) "
                lines += _braced(head, _Body(unit, between(run.template, first, last), counter).lines())
    return lines


@dataclass(frozen=True)
class _Run:
    """Texts in a row that are alike."""

    texts: tuple[Sequence[str], ...]
    template: Template

    @cached_property
    def series(self) -> list[Values]:
        return [values for line in self.template for values in _series(line)]

    @cached_property
    def straight(self) -> int:
        """About how many bytes one text takes."""
        return TOKEN * sum(_is_code(slot) for line in self.template for slot in line)

    def parts(self) -> list[tuple[int, int]]:
        """Where to cut, so that loops and straight code together are smallest."""
        count = len(self.texts)
        cuts = sorted(set().union(*map(breaks, set(self.series))))
        ends = [0, *(cuts if len(cuts) <= MOST_CUTS else cuts[: MOST_CUTS // 2] + cuts[-MOST_CUTS // 2 :]), count]
        best: dict[int, tuple[int, list[tuple[int, int]]]] = {0: (0, [])}
        for at, last in enumerate(ends[1:], 1):
            ways = [(best[first][0] + self._cost(first, last), best[first][1], first) for first in ends[:at]]
            size, before, first = min(ways, key=lambda way: (way[0], way[2]))
            best[last] = size, [*before, (first, last)]
        return [part for first, last in best[count][1] for part in self._kept(first, last)]

    def _cost(self, first: int, last: int) -> int:
        return min(self._rolled(first, last), self.straight * (last - first))

    def _rolled(self, first: int, last: int) -> int:
        return self.straight + LOOP + cost(values[first:last] for values in self.series)

    def _kept(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The part as a loop, or text by text where that is smaller."""
        if self._rolled(first, last) <= self.straight * (last - first):
            yield first, last
        else:
            yield from ((at, at + 1) for at in range(first, last))


class _Names:
    """What the names in the texts stand for, so far as loops may choose between them."""

    def __init__(self, unit: Module) -> None:
        self.statics = statics(unit)
        self.constants = {name: c_type(values) for name, values in unit.constants.arrays.items()}

    def kin(self, name: str) -> Hashable | None:
        if name in self.statics:
            static = self.statics[name]
            return ("number" if static.ctype in INTEGERS else static.ctype), static.sizes
        return self.constants.get(name)


def _runs(unit: Module, texts: Sequence[Sequence[str]]) -> Iterator[_Run]:
    """The texts in runs as long as can be; those that say nothing end a run."""
    names = _Names(unit)
    rest: list[Sequence[str]] = []
    for text in [*texts, ()]:
        if any(line.strip() for line in text):
            rest.append(_unwrapped(text))
        else:
            yield from _found(names, tuple(rest))
            rest = []


def _found(names: _Names, texts: tuple[Sequence[str], ...]) -> Iterator[_Run]:
    first = 0
    found: Template | None = None
    for at, text in enumerate(texts):
        parts = [tokens(line) for line in text]
        more = joined(found, parts, names.kin) if found is not None else None
        if found is not None and more is None:
            yield _Run(texts[first:at], found)
            first = at
        found = more or template(parts)
    if found is not None:
        yield _Run(texts[first:], found)


class _Body:
    """What is repeated, with expressions over the counter for all that changes."""

    def __init__(self, unit: Module, text: Template, counter: str) -> None:
        self.unit, self.template, self.counter = unit, text, counter
        self.names = _Names(unit)
        self.series = Series(unit, counter, [values for line in text for values in _series(line)])

    def lines(self) -> list[str]:
        return ["".join(self._slots(line)) for line in self.template]

    def _slots(self, line: Line) -> Iterator[str]:
        for at, slot in enumerate(line):
            changes = slot.varies or (at > 0 and _turns(line[at - 1]))
            yield slot.space + (self._text(line, at) if changes else slot.values[0])

    def _text(self, line: Line, at: int) -> str:
        slot = line[at]
        match slot.kind:
            case Kind.NUMBER | Kind.BYTES:
                return self._number(line, at)
            case Kind.SIZE:
                return str(max(map(int, slot.values)))
            case Kind.WORD:
                return self._name(slot)
        return "+" if slot.kind is Kind.SIGN else slot.values[0]

    def _number(self, line: Line, at: int) -> str:
        text = self.series.expression(_numbers(line, at))
        if line[at].kind is Kind.BYTES:
            return f"(size_t)({text})"
        before = line[at - 1].values[0] if at else ""
        behind = line[at + 1].values[0] if at + 1 < len(line) else ""
        around = BEFORE if re.search(" [-+] ", text) else BEFORE | {"+", "-"}
        is_bare = re.fullmatch(r"\w+(\[\w+\])?", text) or (before in around and behind in BEHIND)
        return text if is_bare else f"({text})"

    def _name(self, slot: Slot) -> str:
        """An element of an array in which each of the names has a place."""
        distinct = list(dict.fromkeys(slot.values))
        array = self._array(distinct)
        return f"{array}[{self.series.expression(_indices(slot))}]"

    def _array(self, names: list[str]) -> str:
        if names[0] not in self.names.statics:
            ctype = f"{self.names.constants[names[0]]} *const"
            return define(self.unit, "p", ctype, (len(names),), f"{{{', '.join(names)}}}")
        made = [self.names.statics[name] for name in names]
        return define(self.unit, "t", _widest(made), (len(names), *made[0].sizes), _listed(made))


def _widest(made: Sequence[Static]) -> str:
    return max((static.ctype for static in made), key=lambda ctype: INTEGERS.get(ctype, 0))


def _listed(made: Sequence[Static]) -> str:
    return "".join(["{\n", *(f"    {static.body},\n" for static in made), "}"])


def _series(line: Line) -> Iterator[Values]:
    """All that the line needs to compute: numbers that change, and places of names in arrays."""
    for at, slot in enumerate(line):
        if slot.kind in (Kind.NUMBER, Kind.BYTES) and (slot.varies or (at and _turns(line[at - 1]))):
            yield _numbers(line, at)
        elif slot.kind is Kind.WORD and slot.varies:
            yield _indices(slot)


def _is_code(slot: Slot) -> bool:
    return slot.kind is Kind.NUMBER or (slot.kind is Kind.WORD and not TYPES.fullmatch(slot.values[0]))


def _turns(slot: Slot) -> bool:
    return slot.kind is Kind.SIGN and slot.varies


def _numbers(line: Line, at: int) -> Values:
    """The values, with the sign before them where it changes too."""
    values = tuple(map(int, line[at].values))
    if not at or not _turns(line[at - 1]):
        return values
    return tuple(v if sign == "+" else -v for v, sign in zip(values, line[at - 1].values, strict=True))


def _indices(slot: Slot) -> Values:
    places = {name: at for at, name in enumerate(dict.fromkeys(slot.values))}
    return tuple(places[name] for name in slot.values)


def _unwrapped(text: Sequence[str]) -> Sequence[str]:
    """Without braces around all of it: it gets its own."""
    while len(text) > 2 and text[0] == "{" and text[-1] == "}" and all(line[:4].isspace() for line in text[1:-1]):
        text = [line[4:] for line in text[1:-1]]
    return text


def _braced(head: str, lines: Sequence[str]) -> list[str]:
    return [f"{head}{{", *(f"    {line}" if line else "" for line in lines), "}"]
