"""What the tool does not take, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import EdgewrightError
from .description import Place


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """One thing in the source that cannot be laid out or rewritten."""

    place: Place
    what: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" + (f"; {self.hint}" if self.hint else "")


class Refused(EdgewrightError):
    """A driver that breaks a rule of the language; `refusals` has every place."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        self.refusals = tuple(sorted(set(refusals)))
        super().__init__("\n".join(map(str, self.refusals)))
