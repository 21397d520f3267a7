"""The fixed texts of a page: style sheets, script, skeleton. And the cards at its head."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Card:
    title: str
    figure: str
    detail: str
    is_proven: bool = False
