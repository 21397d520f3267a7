"""The lexical level of C: comments and literals, whose text is not code, and the semicolon behind a statement."""

from __future__ import annotations

import re

_APART = re.compile(rb"""//[^\n]*|/\*.*?\*/|(?P<literal>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.DOTALL)
_SEMICOLON = re.compile(rb"(?:\s|/\*.*?\*/|//[^\n]*)*;", re.DOTALL)


def blanked(text: bytes, literals: bool = True) -> bytes:
    """The text with blanks in place of comments, and of literals unless they are to stay: no offset or line changes."""

    def blank(found: re.Match[bytes]) -> bytes:
        return found[0] if found["literal"] and not literals else re.sub(rb"[^\n]", b" ", found[0])

    return _APART.sub(blank, text)


def past_semicolon(text: bytes, at: int) -> int:
    """One past the semicolon that comes next, comments aside; the place itself where something else comes first."""
    found = _SEMICOLON.match(text, at)
    return found.end() if found else at
