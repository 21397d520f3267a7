"""C text under construction: lines, blocks whose indentation Python's `with` shows, and identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...text import printable

Expr = int | str  # a number, or a C expression of type int32_t
Fields = Mapping[str, "Expr | Fields"]  # of a C struct, by name, in the order of its declaration


class CWriter:
    """Lines of C. `with c.block("for (...)"):` opens braces and indents."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "") -> None:
        self.lines.append("    " * self._depth + text if text else "")

    def add(self, lines: Iterable[str]) -> None:
        """Lines that another writer has made, indented for this place."""
        for text in lines:
            self.line(text)

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def header_head(guard: str, includes: Iterable[str] = (), defined: Iterable[str] = ()) -> list[str]:
    """The first lines of a header: its guard, <stdint.h> and what else is included, linkage for C++."""
    head = [f"#ifndef {guard}", f"#define {guard}", *defined, "", "#include <stdint.h>", *includes, ""]
    return [*head, "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]


def header_foot(guard: str) -> list[str]:
    return ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */"]


def identifier(name: str) -> str:
    """A C identifier that reminds of `name`: letters, digits and single underscores, none at the ends."""
    text = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_")
    return text if text and not text[0].isdigit() else f"m{text}"


def comment(text: str) -> str:
    """`text` made safe inside a C comment: it ends no comment, and reads as what it is."""
    return printable(text.replace("\n", " ")).replace("\\", "/").replace("*/", "* /").replace("/*", "/ *")


def times(value: Expr, factor: int) -> Expr:
    """value * factor, folded where both are numbers."""
    if isinstance(value, int):
        return value * factor
    if factor in (0, 1):
        return 0 if factor == 0 else value
    return f"{operand(value)} * {factor}"


def plus(*values: Expr) -> Expr:
    """The sum, with the numbers folded into one."""
    number = sum(v for v in values if isinstance(v, int))
    terms = [v for v in values if isinstance(v, str)]
    if not terms:
        return number
    text = " + ".join(terms)
    return text if number == 0 else f"{text} {'+' if number > 0 else '-'} {abs(number)}"


def modulo(value: Expr, n: int) -> Expr:
    return value % n if isinstance(value, int) else f"{operand(value)} % {n}"


def offset(at: Sequence[Expr], strides: Sequence[int], window: tuple[int, int] | None = None) -> Expr:
    """How far the element at these indices lies; along the axis of `window` = (axis, n), index i is found at i % n."""
    terms: list[Expr] = []
    for axis, (index, stride) in enumerate(zip(at, strides, strict=True)):
        if window and axis == window[0]:
            index = modulo(index, window[1])
        terms.append(times(index, stride))
    return plus(*terms)


def advanced(pointer: str, by: Expr) -> str:
    """The pointer, so many elements on."""
    return pointer if by == 0 else f"{pointer} + {by}"


def braced(values: Iterable[Expr]) -> str:
    """The initialiser of an array."""
    return f"{{{', '.join(map(str, values))}}}"


def designated(fields: Fields) -> str:
    """The initialiser of a struct, which names its fields.

    >>> designated({"x": {"row": 8, "pixel": 2}, "pads": 1})
    '{.x = {.row = 8, .pixel = 2}, .pads = 1}'
    """
    return braced(
        f".{name} = {designated(value) if isinstance(value, Mapping) else value}" for name, value in fields.items()
    )


def struct_fields(names: Sequence[str], values: Sequence[Expr]) -> Fields:
    """The fields of these names with values in the same order."""
    return dict(zip(names, values, strict=True))


def wrapped(definition: str, width: int = 120) -> list[str]:
    """A definition of one line, cut behind commas into lines of at most `width` characters where it is longer."""
    lines, rest = [], definition
    while len(rest) > width and (end := rest.rfind(", ", 8, width)) > 0:
        lines.append(rest[: end + 1])
        rest = f"    {rest[end + 2 :]}"
    return [*lines, rest]


def operand(value: Expr) -> str:
    """The value as an operand of any operator: in brackets unless it is one word."""
    text = str(value)
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def summand(value: Expr) -> str:
    """The value behind a plus or a minus: in brackets where it has operators of its own."""
    text = str(value)
    return f"({text})" if " " in text else text


def at_least(value: Expr, limit: int) -> Expr:
    return max(value, limit) if isinstance(value, int) else f"ew_max({value}, {limit})"


def at_most(value: Expr, limit: int) -> Expr:
    return min(value, limit) if isinstance(value, int) else f"ew_min({value}, {limit})"
