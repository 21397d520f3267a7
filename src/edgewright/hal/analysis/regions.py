"""The conflict graph of a function, and the access regions that its colouring gives (S 6.4.2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses that must not become one, and why (an edge of the conflict graph, S 6.4.2)."""

    first: int
    second: int
    reason: str


@dataclass(frozen=True, slots=True)
class Regions:
    """The conflict graph of a function and its colouring: accesses of one region may be combined."""

    conflicts: tuple[Conflict, ...]
    regions: tuple[tuple[int, ...], ...]  # numbers of accesses
