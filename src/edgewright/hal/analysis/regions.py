"""The conflict graph of a function, and the access regions that its colouring gives (S 6.4.2)."""

from __future__ import annotations

from dataclasses import dataclass

LISTED = 128  # accesses of a function up to which its conflicts are listed: they grow with the square


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses that must not become one, and why (an edge of the conflict graph, S 6.4.2)."""

    first: int
    second: int
    reason: str


@dataclass(frozen=True, slots=True)
class Regions:
    """The conflict graph of a function and its colouring: accesses of one region may be combined."""

    conflicts: tuple[Conflict, ...] | None  # None where nobody would read so many
    regions: tuple[tuple[int, ...], ...]  # numbers of accesses

    @property
    def unlisted(self) -> str:
        """What is said in place of the conflicts, where there are too many."""
        accesses = sum(map(len, self.regions))
        return f"with {accesses} accesses there are too many to list"
