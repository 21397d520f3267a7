"""Helpers on C text: looking at the source, and the types, literals and masks of generated code."""

from __future__ import annotations

import re

from ..language.description import Span
from ..language.lexical import blanked, past_semicolon
from ..layout.layout import Piece


def grouped(text: str) -> str:
    """The text as an operand: in parentheses, unless it is a single word."""
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def as_argument(text: str) -> str:
    """The text as an argument of a call: in parentheses where a comma would split it."""
    return f"({text})" if _has_bare_comma(text) else text


def _has_bare_comma(text: str) -> bool:
    depth = 0
    for byte in blanked(text.encode()):
        depth += (byte in b"([{") - (byte in b")]}")
        if byte == ord(",") and depth == 0:
            return True
    return False


def line_start(text: bytes, at: int) -> int:
    return text.rfind(b"\n", 0, at) + 1


def indentation(text: bytes, at: int) -> str | None:
    """What stands before a place on its line, if that is blank."""
    before = text[line_start(text, at) : at]
    return None if before.strip() else before.decode()


def line_indentation(text: bytes, at: int) -> str:
    """The blanks that the line of a place begins with."""
    line = text[line_start(text, at) : at]
    return line[: len(line) - len(line.lstrip())].decode()


def statement_end(text: bytes, span: Span) -> int:
    """One past the statement, with the semicolon that belongs to it."""
    if text[slice(*span)].endswith((b";", b"}")):
        return span[1]
    return past_semicolon(text, span[1])


def newline(text: bytes) -> str:
    return "\r\n" if b"\r\n" in text else "\n"


def whole_lines(text: bytes, span: Span) -> Span:
    """The span with the rest of its lines where nothing else stands on them."""
    first, last = line_start(text, span[0]), text.find(b"\n", span[1])
    last = len(text) if last < 0 else last + 1
    alone = not text[first : span[0]].strip() and not text[span[1] : last].strip()
    return (first, last) if alone else span


def field_type(bits: int) -> str:
    """The C type of a field: the smallest that holds it."""
    return f"uint{type_bits(bits)}_t"


def read_type(kind: str, count: int) -> str:
    """The type of a variable for a value that is read together with others, so many in all.

    Flags that are tested or put together again are words: compilers see then that all of them are bits of one.
    """
    return "uint32_t" if count > 2 and kind != "uint64_t" else kind


def type_bits(bits: int) -> int:
    return next(width for width in (8, 16, 32, 64) if bits <= width)


def arithmetic_type(width: int) -> str:
    """The type to shift and mask a register in: never narrower than int, so that nothing becomes signed."""
    return "uint32_t" if width <= 32 else "uint64_t"


def literal(value: int) -> str:
    return f"0x{value:x}u" if value < 1 << 32 else f"0x{value:x}ull"


def ones(bits: int) -> int:
    return (1 << bits) - 1


def register_mask(piece: Piece) -> int:
    """The bits of the register that the piece covers, all lanes included."""
    return ones(piece.size * piece.lanes) << piece.bit


def end_bit(piece: Piece) -> int:
    """One past the last bit of the piece."""
    return piece.bit + piece.size * piece.lanes
