"""Actors and channels as messages name them."""

from __future__ import annotations

from collections.abc import Sequence

from ..text import printable, shortened
from .graph import Actor, Channel

ROOM = 60  # characters that a name may take in a message


def quoted(name: str) -> str:
    return f"'{shortened(printable(name), ROOM)}'"


def labelled(thing: Actor | Channel) -> str:
    """The name and, where it has one, what it stands for: 'add_3' (Add)."""
    if not thing.note:
        return quoted(thing.name)
    return f"{quoted(thing.name)} ({shortened(printable(thing.note), ROOM)})"


def listed(words: Sequence[str], most: int) -> str:
    """The words with commas between; the middle of a long list is left out."""
    if len(words) <= most:
        return ", ".join(words)
    head = most - most // 2
    return ", ".join([*words[:head], f"… {len(words) - most:,} more …", *words[len(words) - most // 2 :]])
