"""Figures at the head of a page, each on a card of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Card:
    title: str
    figure: str
    detail: str
    is_proven: bool = False
