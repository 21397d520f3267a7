"""Read-modify-write: which writes have to put back what else is in their register (S table 6.1)."""

from __future__ import annotations

from collections.abc import Container

from ..analysis.spaces import Space
from ..language.meaning import Natures
from .layout import Register


def rewrites(register: Register, slots: Container[str], space: Space, natures: Natures) -> bool:
    """Whether a write of the slots has to read the register first: other fields, or other lanes, are to be kept."""
    for piece in register.pieces:
        slot = space.slot(piece.slot)
        is_beside = piece.slot not in slots or piece.lanes > 1
        if is_beside and natures.of(slot.group, slot.field.name).kept:
            return True
    return False
