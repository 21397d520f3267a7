"""Merges: which accesses of a function become one, given where the layout put their fields."""

from __future__ import annotations

from dataclasses import dataclass

from .analysis.accesses import Kind
from .analysis.joints import Kept
from .analysis.spaces import Use


@dataclass(frozen=True, slots=True)
class Merge:
    """Accesses of one register made one, or a write that fills it: reads happen at the first, writes at the last."""

    kind: Kind
    uses: tuple[Use, ...]  # by access number; a slot that is read twice appears twice
    known: tuple[Use, ...] = ()  # earlier assignments: what they wrote is put back, so that nothing is read first

    @property
    def slots(self) -> tuple[str, ...]:
        """Each slot once, in the order of the first access to it."""
        return tuple(dict.fromkeys(use.slot for use in self.uses))

    @property
    def kept(self) -> tuple[str, ...]:
        """The slots that a write puts back because it knows what they hold."""
        return tuple(use.slot for use in self.known)

    @property
    def at(self) -> Use:
        return self.uses[0] if self.kind is Kind.READ else self.uses[-1]


@dataclass(frozen=True, slots=True)
class Merging:
    merges: tuple[Merge, ...]
    kept: tuple[Kept, ...] = ()
