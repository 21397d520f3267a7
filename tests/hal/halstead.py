"""Halstead's metrics of C, by rules that are written down here; they follow those of Testwell CMT++.

A source is counted as its developer writes it, before the preprocessor:

- comments, #include lines and include guards (#ifndef, #endif, and a #define of a name alone) do not count;
- a #define with a body counts: `#define` as an operator, its name as an operand, its body as any other code;
- operators: keywords that are no types, qualifiers, punctuators; attributes of bit fields are qualifiers, and bfGroup
  is `struct`. A pair of brackets counts once, each kind an operator of its own;
- the parentheses of if, for, while, switch, of words of the language and of attributes do not count again;
- operands: names (of functions and types too), numbers, characters and strings, each spelling one of its own.

The n's are numbers of different ones, the N's how often they stand there (Halstead 1977).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

_TOKEN = re.compile(
    r"""(?P<define>^[ \t]*\#[ \t]*define\b)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[<>=!+\-*/%&|^]=|&&|\|\||::|[^\s\w])""",
    re.VERBOSE | re.MULTILINE,
)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_UNCOUNTED = re.compile(r"^[ \t]*#[ \t]*(?!define\b)[^\n]*$|^[ \t]*#[ \t]*define[ \t]+\w+[ \t]*$", re.MULTILINE)
_CLOSING = frozenset(")]}")
_WITH_PARENTHESES = frozenset(
    [
        "for",
        "if",
        "switch",
        "while",
        "rse",
        "wse",
        "reset_value",
        "pin",
        "together",
        "gathers",
        "assign",
        "read_and_clear",
    ]
)
_KEYWORDS = """
    auto break case const continue default do else enum extern goto inline register restrict return sizeof static
    struct typedef union volatile
"""
_ATTRIBUTES = "bfGroup ro wo w1c w1s clear_on_read fifo hw shared_with_isr split snapshot"
_OPERATORS = frozenset(f"{_KEYWORDS} {_ATTRIBUTES}".split())


@dataclass(frozen=True, slots=True)
class Halstead:
    """The four counts, and what Halstead makes of them."""

    operators: int  # n1, different ones
    operands: int  # n2
    all_operators: int  # N1
    all_operands: int  # N2

    @property
    def volume(self) -> float:
        """Bits that the program takes when every word of its vocabulary takes as many."""
        vocabulary = self.operators + self.operands
        return (self.all_operators + self.all_operands) * log2(vocabulary) if vocabulary else 0.0

    @property
    def difficulty(self) -> float:
        return self.operators / 2 * self.all_operands / self.operands if self.operands else 0.0

    @property
    def effort(self) -> float:
        return self.difficulty * self.volume


def halstead(source: str) -> Halstead:
    """The metrics of a source, or of several put one after the other."""
    words = list(_words(source))
    operators = [word for word, is_operator in words if is_operator]
    operands = [word for word, is_operator in words if not is_operator]
    return Halstead(len(set(operators)), len(set(operands)), len(operators), len(operands))


def _words(source: str) -> Iterator[tuple[str, bool]]:
    """What counts, and whether it is an operator."""
    text = _UNCOUNTED.sub("", _COMMENT.sub(" ", source).replace("\\\n", " "))
    tokens = [(str(match.lastgroup), match.group().strip()) for match in _TOKEN.finditer(text)]
    before = ""
    for (kind, word), (_, after) in zip(tokens, [*tokens[1:], ("", "")], strict=True):
        if word not in _CLOSING and not (word == "(" and before in _WITH_PARENTHESES):
            yield word, _is_operator(kind, word, after)
        before = word


def _is_operator(kind: str, word: str, after: str) -> bool:
    if word in _WITH_PARENTHESES:
        return after == "("
    return kind in ("mark", "define") or word in _OPERATORS
