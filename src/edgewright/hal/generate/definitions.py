"""Group definitions and devices leave the driver: the HAL header, included in place of the first, has them now."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ..language.description import Span
from .edits import Sheet
from .texts import indentation, newline, whole_lines


def drop_definitions(sheet: Sheet, spans: Iterable[Span], header: str) -> None:
    """Replaces the first definition of a file by an include, and takes the others away."""
    for number, span in enumerate(sorted(spans)):
        if number == 0:
            sheet.replace(span, partial(_include, sheet.original, span, header))
        else:
            sheet.replace(_with_blank_line(sheet.original, whole_lines(sheet.original, span)), str)


def _include(text: bytes, span: Span, header: str) -> str:
    """The include on a line of its own; a comment may follow it."""
    end = newline(text)
    before = "" if indentation(text, span[0]) is not None else end
    rest = text[span[1] :].split(b"\n", 1)[0].strip()
    after = "" if not rest or rest.startswith((b"//", b"/*")) else end
    return f'{before}#include "{header}"{after}'


def _with_blank_line(text: bytes, span: Span) -> Span:
    """The lines with the blank one after them, if another is before them: one is enough."""
    rest = text[span[1] :]
    is_between = text[: span[0]].endswith((b"\n\n", b"\n\r\n")) and rest.startswith((b"\n", b"\r\n"))
    return (span[0], span[1] + rest.index(b"\n") + 1) if is_between else span
