"""Edits of a source text: each replaces a span, and may contain the edited text of spans inside it.

Group definitions and devices leave the driver: the HAL header, included in place of the first, has them now.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from ..language.description import Span
from .c_text import indentation, newline, whole_lines


@dataclass(frozen=True, slots=True)
class Edit:
    """A span and its replacement. `text` is evaluated only when all edits are known."""

    span: Span
    text: Callable[[], str]


@dataclass(slots=True)
class EditedFile:
    """The text of one file with all its edits, whose spans are nested or disjoint."""

    original: bytes
    edits: dict[Span, Edit] = field(default_factory=dict)
    _sorted: list[Edit] = field(default_factory=list)

    def replace(self, span: Span, text: Callable[[], str]) -> None:
        """Records an edit; the first for a span counts: a file that several units include is visited again."""
        if span not in self.edits:
            self.put(span, text)

    def put(self, span: Span, text: Callable[[], str]) -> Edit:
        """As `replace`, and gives the edit back, for a text that asks for what is below it."""
        self.edits[span] = Edit(span, text)
        self._sorted = []
        return self.edits[span]

    def raw(self, span: Span) -> str:
        return self.original[slice(*span)].decode()

    def touched(self, span: Span) -> bool:
        """Whether an edit lies in the span."""
        return bool(self._outermost(span, None))

    def edited(self, span: Span, below: Edit | None = None) -> str:
        """The text of the span after all edits in it; `below` leaves out the edit that asks, and those around it."""
        parts, at = [], span[0]
        for edit in self._outermost(span, below):
            parts += [self.raw((at, edit.span[0])), edit.text()]
            at = edit.span[1]
        return "".join([*parts, self.raw((at, span[1]))])

    def _outermost(self, span: Span, below: Edit | None) -> list[Edit]:
        """The edits in a span that lie in no other one of it."""
        ordered = self._ordered()
        found: list[Edit] = []
        at = bisect_left(ordered, span[0], key=lambda edit: edit.span[0])
        while at < len(ordered) and (edit := ordered[at]).span[0] <= span[1]:
            at += 1
            if edit is below or edit.span[1] > span[1]:
                continue
            found.append(edit)
            at = max(at, bisect_left(ordered, edit.span[1], key=lambda edit: edit.span[0]))
        return found

    def _ordered(self) -> list[Edit]:
        """All edits as they begin, those around others first; sorted again when there are more of them."""
        if not self._sorted:
            self._sorted = sorted(self.edits.values(), key=lambda edit: (edit.span[0], -edit.span[1]))
        return self._sorted


def drop_definitions(sheet: EditedFile, spans: Iterable[Span], header: str) -> None:
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
