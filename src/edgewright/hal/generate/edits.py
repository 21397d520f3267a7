"""Edits of a source text: each replaces a span, and may ask for the text of spans inside it, edited in their turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..language.description import Span


@dataclass(frozen=True, slots=True)
class Edit:
    """A span and what to put in its place; `text` is asked only when all edits are known."""

    span: Span
    text: Callable[[], str]


@dataclass(slots=True)
class Sheet:
    """The text of one file with the edits to make in it; spans are nested or apart."""

    original: bytes
    edits: dict[Span, Edit] = field(default_factory=dict)

    def replace(self, span: Span, text: Callable[[], str]) -> None:
        """Plans an edit; the first for a span counts, as a file that several units include is seen more than once."""
        self.edits.setdefault(span, Edit(span, text))

    def put(self, span: Span, text: Callable[[], str]) -> Edit:
        """As `replace`, and gives the edit back, for a text that asks for what is below it."""
        self.edits[span] = Edit(span, text)
        return self.edits[span]

    def raw(self, span: Span) -> str:
        return self.original[slice(*span)].decode()

    def touched(self, span: Span) -> bool:
        """Whether an edit lies in the span."""
        return any(span[0] <= first and last <= span[1] for first, last in self.edits)

    def edited(self, span: Span, below: Edit | None = None) -> str:
        """The text of the span after all edits in it; `below` leaves out the edit that asks, and those around it."""
        parts, at = [], span[0]
        for edit in self._outermost(span, below):
            parts += [self.raw((at, edit.span[0])), edit.text()]
            at = edit.span[1]
        return "".join([*parts, self.raw((at, span[1]))])

    def _outermost(self, span: Span, below: Edit | None) -> list[Edit]:
        inside = [
            e for e in self.edits.values() if span[0] <= e.span[0] and e.span[1] <= span[1] and e is not below
        ]
        inside.sort(key=lambda edit: (edit.span[0], -edit.span[1]))
        found: list[Edit] = []
        for edit in inside:
            if not found or edit.span[0] >= found[-1].span[1]:
                found.append(edit)
        return found
