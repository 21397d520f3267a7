"""The C of a stage as atoms: words that must be equal for two stages to share code, and values that may differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ...kernels.printing.constants import Constants, c_type

_TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/)|(?P<float>\d+\.\d*(?:e[+-]?\d+)?f?|\d+e[+-]?\d+f?)|(?P<number>0x[0-9a-fA-F]+u?|\d+u?)\b"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign>->|\+\+|--|<<=?|>>=?|[-+*/%&|^!=<>]=|&&|\|\||.)",
    re.S,
)
_DEFINITION = re.compile(r"static const (\w+(?: \*const)?) (\w+)(\[\d+\])? = (.*);")
_OPENING = ("(", ",", "{", "[", "=", "?", ":", "return")
_OPERATORS = ("<", ">", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*")
_BEFORE_UNARY = frozenset((*_OPENING, *_OPERATORS))


ROWS_ON_DEMAND = "while ("  # in stages with many structures: all of them at once would take much of the stack
UNSIGNED, SIGNED = "unsigned number", "number"  # keys of numbers


class AtomKind(Enum):
    WORD = "word"  # the same in all stages of a pattern
    NUMBER = "number"
    SIZE = "size"  # of an array on the stack: the largest is taken
    CONSTANT = "constant"  # weights in flash
    FUNCTION = "function"  # of a kernel, in a structure
    TABLE = "table"  # a `static const` of the network's own file
    NUMBERS = "numbers"  # an array of integers


@dataclass(frozen=True, slots=True)
class Atom:
    """A token of C, and the space before it."""

    kind: AtomKind
    space: str
    text: str
    key: str  # equal in all stages of a pattern
    value: int | tuple[int, ...] | str = 0  # may differ

    @property
    def is_unsigned(self) -> bool:
        return self.key == UNSIGNED


@dataclass(frozen=True, slots=True)
class Definition:
    """A `static const` definition of a network's own file."""

    ctype: str
    size: str
    body: str

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The values of an array of integers."""
        if self.ctype != "int32_t" or not self.size:
            return None
        return tuple(int(word) for word in self.body.strip("{}").split(","))


def definitions(lines: Sequence[str]) -> Mapping[str, Definition]:
    """The definitions of a file, by name."""
    found = {}
    for line in lines:
        if match := _DEFINITION.fullmatch(line):
            found[match[2]] = Definition(match[1], match[3] or "", match[4])
    return found


@dataclass(frozen=True)
class StageReader:
    """Reads the C of stages of one network."""

    constants: Constants
    tables: Mapping[str, Definition]
    functions: Mapping[str, str]  # the type of kernels that are handed over as pointers, by name

    def atoms(self, text: str, has_own_tables: bool) -> tuple[Atom, ...]:
        """The stage; with `has_own_tables`, its structures are local variables of the shared code, set from values.

        They are set once, or where rows are computed on demand, in the blocks that use them.
        """
        body = list(_signed(self._atoms(_merged(_tokens(text)))))
        if not has_own_tables:
            return tuple(body)
        found: list[Atom] = []
        blocks, given = [0], [dict[str, str]()]  # where the open blocks begin, and names of structures in them
        is_by_rows = ROWS_ON_DEMAND in text
        inner = count = 0  # braces of initialisers that are open; structures
        for atom in (*_on_new_line(body[:1]), *body[1:]):
            name = str(atom.value).removeprefix("&")
            if atom.kind is AtomKind.TABLE and not self.tables[name].size:
                known = next((names[name] for names in given if name in names), None)
                if known is None:
                    known = given[-1][name] = f"table{count}"
                    declared = f"const {self.tables[name].ctype} {known} = {self.tables[name].body};"
                    atoms = self._atoms(_merged(_tokens(declared)))
                    found[blocks[-1] : blocks[-1]] = _on_new_line(_signed(atoms), 4 * len(blocks) - 4)
                    count += 1
                word = f"{'&' if str(atom.value).startswith('&') else ''}{known}"
                atom = Atom(AtomKind.WORD, atom.space, word, word)
            elif atom.text == "{" and (inner or (found and found[-1].text == "=")):
                inner += 1
            elif atom.text == "}" and inner:
                inner -= 1
            elif atom.text == "{" and is_by_rows:
                blocks.append(len(found) + 1)
                given.append({})
            elif atom.text == "}" and is_by_rows:
                blocks.pop()
                given.pop()
            found.append(atom)
        return tuple(found)

    def _atoms(self, tokens: Iterator[tuple[str, str, str]]) -> Iterator[Atom]:
        for kind, space, text in tokens:
            if kind == "number":
                key = UNSIGNED if text.endswith("u") else SIGNED
                yield Atom(AtomKind.NUMBER, space, text, key, int(text.removesuffix("u"), 0))
            elif kind == "word" and text.removeprefix("&") in self.tables:
                yield self._table(space, text)
            elif kind == "word" and text in self.constants.by_name:
                view = self.constants.views.get(text)
                name = view.whole if view else text
                ctype = c_type(self.constants.by_name[name].values)
                yield Atom(AtomKind.CONSTANT, space, name, ctype, name)
            elif kind == "word" and text.removesuffix("_pitch") in self.constants.by_name:
                pitch = self._pitch(text.removesuffix("_pitch"))
                yield Atom(AtomKind.NUMBER, space, str(pitch), SIGNED, pitch)
            elif text in self.functions:
                yield Atom(AtomKind.FUNCTION, space, text, self.functions[text], text)
            else:
                yield Atom(AtomKind.WORD, space, text, text)

    def _table(self, space: str, text: str) -> Atom:
        own = self.tables[text.removeprefix("&")]
        if own.numbers is not None:
            return Atom(AtomKind.NUMBERS, space, text, "numbers", own.numbers)
        return Atom(AtomKind.TABLE, space, text, f"{own.ctype}{'[]' if own.size else ''}", text)

    def _pitch(self, name: str) -> int:
        view, rows = self.constants.views.get(name), self.constants.by_name[name].rows
        pitch = view.pitch if view else rows.depth if rows else None
        assert pitch is not None
        return pitch


def _tokens(text: str) -> Iterator[tuple[str, str, str]]:
    """AtomKind, space before, text; without comments."""
    space = ""
    for match in _TOKEN.finditer(text):
        kind, found = str(match.lastgroup), match[0]
        if found.isspace():
            space += found
        elif kind != "comment":
            line = space.rfind("\n")
            yield kind, space[line:] if line >= 0 else space[:1], found
            space = ""


def _merged(tokens: Iterator[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    """Signs of numbers and addresses of words as one token with what follows them."""
    before, held = "(", None
    for kind, space, text in tokens:
        if held is not None:
            sign, gap = held
            held = None
            if (sign == "-" and kind == "number") or (sign == "&" and kind == "word"):
                yield kind, gap, sign + text
                before = text
                continue
            yield "sign", gap, sign
        if text in "-&" and before in _BEFORE_UNARY:
            held = text, space
            continue
        yield kind, space, text
        before = text


def _signed(atoms: Iterator[Atom]) -> Iterator[Atom]:
    """The atoms with numbers that must stay as they are made words, and with differences of a number made sums."""
    all_ = list(atoms)
    for at, atom in enumerate(all_):
        before = all_[at - 1].text if at else ""
        after = all_[at + 1].text if at + 1 < len(all_) else ""
        if atom.text.startswith("arena_") and after == ")" and before == "(":
            yield atom
            yield Atom(AtomKind.WORD, " ", "+", "+")
            yield Atom(AtomKind.NUMBER, " ", "0", SIGNED, 0)
            continue
        if atom.text == "-" and at + 2 < len(all_) and all_[at + 1].key == SIGNED and all_[at + 2].text in "),;]":
            yield Atom(AtomKind.WORD, atom.space, "+", "+")
            continue
        if atom.kind is AtomKind.NUMBER and before == "-" and after and after in "),;]" and atom.key == SIGNED:
            assert isinstance(atom.value, int)
            yield replace(atom, text=str(-atom.value), value=-atom.value)
            continue
        if atom.kind is AtomKind.NUMBER and (before in ("/", "%", "case") or _is_large(atom)):
            yield Atom(AtomKind.WORD, atom.space, atom.text, atom.text)
            continue
        is_size = before == "[" and at > 2 and all_[at - 2].kind is AtomKind.WORD and all_[at - 3].text.endswith("_t")
        if atom.kind is AtomKind.NUMBER and is_size:
            yield replace(atom, kind=AtomKind.SIZE, key="size")
            continue
        yield atom


def _is_large(atom: Atom) -> bool:
    """Whether the number is of no 32-bit type."""
    assert isinstance(atom.value, int)
    return not -(1 << 31) <= atom.value < (1 << 31)


def _on_new_line(atoms: Iterable[Atom], indent: int = 0) -> Iterator[Atom]:
    for at, atom in enumerate(atoms):
        yield replace(atom, space="\n" + " " * indent) if not at else atom
