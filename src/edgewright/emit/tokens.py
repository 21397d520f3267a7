"""A line of C as tokens, with what may become of each number: an expression, the size of an array, or nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

MARKS = r"->|\+\+|--|<<=|>>=|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||."
TOKEN = re.compile(
    r"(?P<space>\s*)(?:"
    r"(?P<note>/\*.*?\*/|//.*)|(?P<word>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)"
    rf"|(?P<text>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')|(?P<mark>{MARKS}))"
)
CLOSING = {")": "(", "]": "[", "}": "{"}
STATEMENTS = {"return", "case", "else", "sizeof", "goto"}  # words that are neither a value nor a type
TYPE = re.compile(r"\w+_t|float|double|int|char|void|unsigned|long|short|const|ew_\w+")
COPIES = {"memcpy", "memset", "memmove"}
LARGEST = (1 << 31) - 1


class Kind(Enum):
    WORD = "word"
    NUMBER = "number"  # a whole number in whose place an expression of type int32_t may stand
    SIGN = "sign"  # a binary + or - right before a NUMBER
    SIZE = "size"  # of a local array: a larger one does as well
    BYTES = "bytes"  # how many bytes are copied: a number of type size_t
    NOTE = "note"  # a comment
    FIXED = "fixed"  # everything else


@dataclass(frozen=True, slots=True)
class Token:
    space: str  # before it
    text: str
    kind: Kind


def tokens(line: str) -> tuple[Token, ...]:
    """The tokens of a line."""
    return tuple(_Line(line).classified())


def partners(texts: list[str]) -> dict[int, int]:
    """For each bracket the position of the one that belongs to it, as far as both are in the line."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for at, text in enumerate(texts):
        if text in ("(", "[", "{"):
            stack.append(at)
        elif text in CLOSING and stack and texts[stack[-1]] == CLOSING[text]:
            opened = stack.pop()
            pairs |= {at: opened, opened: at}
    return pairs


class _Line:
    def __init__(self, line: str) -> None:
        found = [(m["space"], m[0][len(m["space"]) :], m.lastgroup or "") for m in TOKEN.finditer(line)]
        self.spaces, self.texts, self.groups = map(list, zip(*found, strict=True)) if found else ([], [], [])
        self._join_signs()
        self.partner = partners(self.texts)
        self.around = self._around()
        self.name, self.is_pointer = self._declared()

    def _join_signs(self) -> None:
        """A minus that belongs to its number becomes part of it."""
        for at in reversed(range(1, len(self.texts) - 1)):
            if self.texts[at] == "-" and self.groups[at + 1] == "number" and not self._ends_value(at - 1):
                self.texts[at : at + 2] = [f"-{self.texts[at + 1]}"]
                self.groups[at : at + 2] = ["number"]
                del self.spaces[at + 1]

    def _ends_value(self, at: int) -> bool:
        text = self.texts[at]
        if self.groups[at] == "word":
            return text not in STATEMENTS
        return self.groups[at] == "number" or text == "]" or (text == ")" and not self._ends_cast(at))

    def _ends_cast(self, at: int) -> bool:
        opened = partners(self.texts[: at + 1]).get(at)
        if opened is None or (opened > 0 and self.groups[opened - 1] == "word"):
            return False
        inner = self.texts[opened + 1 : at]
        return bool(inner) and all(text == "*" or TYPE.fullmatch(text) for text in inner)

    def _around(self) -> list[tuple[int, ...]]:
        """For each token the brackets that it stands in, outermost first."""
        around: list[tuple[int, ...]] = []
        stack: tuple[int, ...] = ()
        for at, text in enumerate(self.texts):
            if at in self.partner and text in CLOSING:
                stack = stack[:-1]
            around.append(stack)
            if at in self.partner and text not in CLOSING:
                stack = (*stack, at)
        return around

    def _declared(self) -> tuple[int | None, bool]:
        """Where the first name stands that the line declares, if it declares any, and whether it is a pointer."""
        first = self.partner.get(1, -1) + 1 if self.texts and self.texts[0].isupper() else 0
        end = first
        while end < len(self.texts) and (self.groups[end] == "word" or self.texts[end] == "*"):
            end += 1
        words = self.texts[first:end]
        follows = end < len(self.texts) and self.texts[end] in ("[", "=", ",", ";")
        if len(words) < 2 or words[0] in STATEMENTS or words[-1] == "*" or not follows:
            return None, False
        return end - 1, "*" in words

    def classified(self) -> list[Token]:
        kinds = [self._kind(at) for at in range(len(self.texts))]
        for at in range(1, len(kinds) - 1):
            if self.texts[at] in ("+", "-") and kinds[at + 1] is Kind.NUMBER and self._ends_value(at - 1):
                kinds[at] = Kind.SIGN
        return [Token(*parts) for parts in zip(self.spaces, self.texts, kinds, strict=True)]

    def _kind(self, at: int) -> Kind:
        match self.groups[at]:
            case "word":
                return Kind.WORD
            case "note":
                return Kind.NOTE
            case "number":
                return self._number(at)
        return Kind.FIXED

    def _number(self, at: int) -> Kind:
        text = self.texts[at]
        before = self.texts[at - 1] if at else ""
        if not re.fullmatch(r"-?\d+", text) or abs(int(text)) > LARGEST or (len(text) > 1 and text[0] == "0"):
            return Kind.FIXED
        if self.texts[0] in ("#", "static") or before == "case" or (at == 1 and before in ("+", "-")):
            return Kind.FIXED
        if any(self.texts[opened - 1].isupper() for opened in self.around[at] if opened):
            return Kind.FIXED  # a macro may do anything with it
        if before == "[":
            return self._index(at)
        return self._argument(at)

    def _index(self, at: int) -> Kind:
        """A number behind a bracket: of an array's declaration, or of an element."""
        base = at - 2
        while base > 0 and self.texts[base] == "]" and base in self.partner:
            base = self.partner[base] - 1
        if self.name is None or self.around[base]:
            return Kind.NUMBER
        if base == self.name:
            is_simple = base == at - 2 and not self.is_pointer and self.texts[at + 2 : at + 3] != ["["]
            return Kind.SIZE if is_simple and self.texts[at + 1] == "]" else Kind.FIXED
        previous = base - 1 if self.texts[base - 1] != "*" else base - 2
        return Kind.FIXED if self.texts[previous] == "," else Kind.NUMBER

    def _argument(self, at: int) -> Kind:
        """A number among arguments: it counts bytes as the last one of memcpy and its like."""
        opened = self.around[at][-1] if self.around[at] else 0
        if not opened or self.texts[opened - 1] not in COPIES:
            return Kind.NUMBER
        depth = len(self.around[at])
        commas = [i for i in range(opened, at) if self.texts[i] == "," and len(self.around[i]) == depth]
        if len(commas) < 2:
            return Kind.NUMBER
        return Kind.BYTES if commas[-1] == at - 1 and self.partner[opened] == at + 1 else Kind.FIXED
