"""Statements that access several fields at once, rewritten into one assignment per field before anything else reads
them.

`assign(uart, parity = 1, stops = 2);` is a macro of the support header. Only uses that libclang traces to that header
count, so another macro of the same name is left alone. `read_and_clear(uart->errors)` reads flags and writes back what
it has read. `*channel = (bfGroup Channel){.count = 8};` is plain C and sets the members that it does not name to 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .cursors import (
    KINDS,
    Cursor,
    bare,
    binary_operator,
    children,
    is_group,
    notes,
    span,
    top_level,
    unary_operator,
    walk,
)
from .description import Span
from .lexical import blanked
from .nodes import ARRAYS, RECORD, acts

_FIELD = re.compile(rb"\s*([A-Za-z_]\w*(?:\s*(?:\.\s*\w+|\[[^\]]*\]))*)\s*=(?!=)")
_DESIGNATED = re.compile(rb"\s*\.\s*(\w+)\s*=(?!=)")
_POINTER = re.compile(rb"[A-Za-z_]\w*(?:(?:->|\.)\w+|\[\w+\])*")
_ASSIGN, _TAKE = ("assign", "hal_assign"), ("read_and_clear", "hal_read_and_clear")
_TWICE = re.compile(rb"(?!.*(?:\+\+|--))[\w\s.\[\]&|^~+*/%<>-]+", re.DOTALL)  # nothing acts in it: may be there twice
_LITERAL = re.compile(rb"=\s*\(\s*(?:hal_)?bfGroup\b")
_UNMOVED = frozenset(("ro", "w1c", "w1s"))  # writing 0 does nothing
_ACTING = frozenset(("fifo", "wo", "wse", "gathers"))  # writing 0 may do anything

Edits = list[tuple[int, int, bytes]]  # first byte, one past the last, what comes there


def desugar(units: Iterable[Any], files: Mapping[str, bytes], header: str) -> dict[str, bytes]:
    """The files with all such statements rewritten to single assignments; a statement that cannot be rewritten stays,
    and is refused later.

    `header` is the name of the support header, of which a driver may have a copy.
    """
    codes = {name: blanked(text) for name, text in files.items()}
    edits: dict[str, set[tuple[int, int, bytes]]] = {}
    for unit in units:
        for file, found in (*_words(unit, files, codes, header), *_literals(unit, files, codes)):
            edits.setdefault(file, set()).update(found)
    return {name: _edited(text, edits.get(name, ())) for name, text in files.items()}


def has_literal(text: bytes) -> bool:
    """Whether a literal of a group stands in a file."""
    return bool(_LITERAL.search(blanked(text)))


def _edited(text: bytes, edits: Iterable[tuple[int, int, bytes]]) -> bytes:
    for first, last, new in sorted(edits, reverse=True):
        text = text[:first] + new + text[last:]
    return text


def _words(
    unit: Any, files: Mapping[str, bytes], codes: Mapping[str, bytes], header: str
) -> Iterator[tuple[str, Edits]]:
    """The edits for each use of `assign` and `read_and_clear` that is not inside another macro."""
    end = "", 0
    for cursor in top_level(unit):
        file = str(cursor.extent.start.file)
        if cursor.kind is not KINDS.MACRO_INSTANTIATION or file not in files:
            continue
        start, last = span(cursor)
        if end[0] == file and last <= end[1]:
            continue
        end = file, last
        defined = cursor.referenced
        is_ours = defined is not None and defined.location.file and Path(defined.location.file.name).name == header
        name = str(cursor.spelling).encode()
        if is_ours and cursor.spelling in (*_ASSIGN, *_TAKE) and codes[file].startswith(name, start):
            inside = codes[file].index(b"(", start) + 1
            apart = _assigned if cursor.spelling in _ASSIGN else _taken
            yield file, apart(files[file], codes[file], start, inside)


def _taken(text: bytes, code: bytes, start: int, inside: int) -> Edits:
    """The edit for `read_and_clear(uart->errors)`, which becomes `(uart->errors = uart->errors)`."""
    commas, end = _commas(code, inside)
    is_plain = not commas and _TWICE.fullmatch(code, inside, end)
    begin = end - len(text[inside:end].lstrip())
    return [(start, begin, b"(" + text[begin:end].strip() + b" = ")] if is_plain else []


def _assigned(text: bytes, code: bytes, start: int, inside: int) -> Edits:
    """The edits for one use of `assign`: its name goes, each field gets the pointer, commas become semicolons."""
    commas, end = _commas(code, inside)
    if not commas:
        return []
    pointer = text[inside : commas[0]].strip()
    prefix = (pointer if _POINTER.fullmatch(pointer) else b"(" + pointer + b")") + b"->"
    begin = commas[0] + 1 + len(re.match(rb"[ \t]*", code[commas[0] + 1 :])[0])  # type: ignore[index]
    return _statements(text, code, (start, begin, end), commas, _FIELD, prefix)


def _statements(
    text: bytes,
    code: bytes,
    where: tuple[int, int, int],
    commas: Sequence[int],
    item: re.Pattern[bytes],
    prefix: bytes,
    around: tuple[bytes, bytes] = (b"", b""),
) -> Edits:
    """The edits that split a statement with a list of items into one statement per item.

    Each item gets the prefix, and the texts in `around` go before and behind all of them. There are none where the text
    is not a statement, or has no such list.
    """
    start, begin, end = where
    after = re.compile(rb"\s*;").match(code, end + 1)
    is_trailing = len(commas) > 1 and not code[commas[-1] + 1 : end].strip()
    starts, ends = (commas[:-1], commas[1:]) if is_trailing else (commas, [*commas[1:], end])
    items = [item.match(code, first + 1, last) for first, last in zip(starts, ends, strict=True)]
    if after is None or not all(items):
        return []
    is_in_block = code[:start].rstrip()[-1:] in (b";", b"{", b"}")
    lines = b"\n" * text.count(b"\n", start, begin) + around[0]
    found = [(start, begin, lines if is_in_block else b"{ " + lines), (end, end + 1, around[1])]
    for one in filter(None, items):
        dot = code.find(b".", one.start(), one.start(1))
        first = dot if dot >= 0 else one.start(1)
        found.append((max(first, begin), one.start(1), prefix))
    found += [(comma, comma + 1, b"" if is_trailing and comma == commas[-1] else b";") for comma in commas[1:]]
    return found if is_in_block else [*found, (after.end(), after.end(), b" }")]


def _commas(code: bytes, at: int) -> tuple[list[int], int]:
    """The commas of a list that begins at `at`, and the closing bracket; none where the list does not end."""
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


def _literals(unit: Any, files: Mapping[str, bytes], codes: Mapping[str, bytes]) -> Iterator[tuple[str, Edits]]:
    """The edits for each assignment of a literal to a group."""
    names = {name for name, code in codes.items() if _LITERAL.search(code)}
    for top in top_level(unit) if names else ():
        file = str(top.extent.start.file)
        if top.kind is not KINDS.FUNCTION_DECL or file not in names:
            continue
        for cursor in walk(top):
            if cursor.kind is KINDS.BINARY_OPERATOR and binary_operator(cursor) == "=":
                target, value = map(bare, children(cursor))
                if value.kind is KINDS.COMPOUND_LITERAL_EXPR:
                    yield file, _filled(files[file], codes[file], span(cursor), target, value)


def _filled(text: bytes, code: bytes, whole: Span, target: Cursor, value: Cursor) -> Edits:
    """The edits for a literal: one assignment per member in order, 0 for those without a value, and members that
    hardware changes last.

    In C all values are computed before anything is stored, and the target is evaluated once. A literal with a value
    that may read a field, or has another effect, is therefore not split.
    """
    group = value.type.get_canonical().get_declaration()
    through = target.kind is KINDS.UNARY_OPERATOR and unary_operator(target) == "*"
    place = bare(next(iter(children(target)))) if through else target
    indices = [children(inner)[1] for inner in walk(place) if inner.kind is KINDS.ARRAY_SUBSCRIPT_EXPR]
    is_quiet = all(map(_has_no_effect, (value, *indices))) and not any(map(acts, walk(place)))
    name = text[slice(*span(place))].strip()
    first, last = span(value)
    brace = code.find(b"{", first, last)
    commas, end = _commas(code, brace + 1)
    if not is_group(group) or not is_quiet or brace < 0 or end >= last:
        return []
    named = {item[1].decode() for item in re.finditer(rb"[{,]\s*\.\s*(\w+)", code[brace:end])}
    prefix = (name if not through or _POINTER.fullmatch(name) else b"(" + name + b")") + (b"->" if through else b".")
    members = [member for member in children(group) if member.kind is KINDS.FIELD_DECL]
    rest = [member for member in members if member.spelling not in named and not _marks(member) & _UNMOVED]
    is_nested = any(member.type.get_canonical().kind in (RECORD, *ARRAYS) for member in members)
    if is_nested or any(_marks(member) & _ACTING for member in rest):
        return []
    zeros = {member.spelling: prefix + member.spelling.encode() + b" = 0" for member in rest}
    late = [zeros.pop(member.spelling) for member in rest if "hw" in _marks(member)]
    begin = brace + 1 + len(re.match(rb"[ \t]*", code[brace + 1 :])[0])  # type: ignore[index]
    around = b"".join(zero + b"; " for zero in zeros.values()), b"".join(b"; " + zero for zero in late)
    return _statements(text, code, (whole[0], begin, end), [brace, *commas], _DESIGNATED, prefix, around)


def _has_no_effect(expression: Cursor) -> bool:
    """Whether evaluating an expression has no side effect and reads no field."""
    return not any(acts(inner) or _is_field(inner) for inner in walk(expression))


def _is_field(cursor: Cursor) -> bool:
    """Whether an expression names a member of a group."""
    is_member = cursor.kind is KINDS.MEMBER_REF_EXPR and cursor.referenced is not None
    return is_member and is_group(cursor.referenced.semantic_parent)


def _marks(member: Cursor) -> set[str]:
    """The names of a field's attributes."""
    return {name.split(":")[0] for name, _ in notes(member)}
