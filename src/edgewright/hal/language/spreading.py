"""Several fields at once: `assign(uart, parity = 1, stops = 2);` is an assignment of each, one after the other.

For a compiler it is a macro of the support header. The tool takes it apart in the text, line by line as it stands,
before anything else reads the source: what follows knows of plain assignments only.
"""

from __future__ import annotations

import re

_APART = re.compile(
    rb"""//[^\n]* | /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | ^[ \t]*\#(?:\\\r?\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_USE = re.compile(rb"\b(hal_)?assign\s*\(")
_FIELD = re.compile(rb"\s*([A-Za-z_]\w*(?:\s*(?:\.\s*\w+|\[[^\]]*\]))*)\s*=(?!=)")
_POINTER = re.compile(rb"[A-Za-z_]\w*(?:(?:->|\.)\w+|\[\w+\])*")
_OWN = re.compile(rb"^[ \t]*\#[ \t]*(?:define|undef)[ \t]+(?:hal_)?assign\b", re.MULTILINE)
_PREFIXED = b"EDGEWRIGHT_HAL_PREFIXED"


def spread(text: bytes) -> bytes:
    """The text with every assign(…) as assignments; what only looks like one, or is a macro of its own, stays."""
    if not _USE.search(text) or _OWN.search(text):
        return text
    code = _APART.sub(lambda found: re.sub(rb"[^\n]", b" ", found[0]), text)
    is_prefixed = _PREFIXED in text
    edits: list[tuple[int, int, bytes]] = []
    for use in _USE.finditer(code):
        if use[1] or not is_prefixed:
            edits += _edits(text, code, use.start(), use.end())
    for first, last, new in sorted(edits, reverse=True):
        text = text[:first] + new + text[last:]
    return text


def _edits(text: bytes, code: bytes, start: int, inside: int) -> list[tuple[int, int, bytes]]:
    """What to replace in a use: its name goes, each field gets the pointer, commas become semicolons."""
    commas, end = _commas(code, inside)
    after = re.compile(rb"\s*;").match(code, end + 1)
    if not commas or after is None:
        return []
    ends = [*commas[1:], end]
    fields = [_FIELD.match(code, first + 1, last) for first, last in zip(commas, ends, strict=True)]
    if not all(fields):
        return []
    pointer = text[inside : commas[0]].strip()
    pointer = pointer if _POINTER.fullmatch(pointer) else b"(" + pointer + b")"
    is_in_block = code[:start].rstrip()[-1:] in (b";", b"{", b"}")
    begin = commas[0] + 1 + len(re.match(rb"[ \t]*", code[commas[0] + 1 :])[0])  # type: ignore[index]
    lines = b"\n" * text.count(b"\n", start, begin)
    found = [(start, begin, lines if is_in_block else b"{ " + lines), (end, end + 1, b"")]
    found += [(field.start(1), field.start(1), pointer + b"->") for field in fields if field]
    found += [(comma, comma + 1, b";") for comma in commas[1:]]
    return found if is_in_block else [*found, (after.end(), after.end(), b" }")]


def _commas(code: bytes, at: int) -> tuple[list[int], int]:
    """The commas between arguments that begin at a place, and the parenthesis behind them; none where it is open."""
    commas, depth = [], 0
    for place in range(at, len(code)):
        sign = code[place : place + 1]
        if sign in (b"(", b"[", b"{"):
            depth += 1
        elif sign == b"," and depth == 0:
            commas.append(place)
        elif sign in (b")", b"]", b"}"):
            if depth == 0:
                return commas, place
            depth -= 1
    return [], len(code)
