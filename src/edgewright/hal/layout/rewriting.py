"""Read-modify-write: which writes have to put back what else is in their register (S table 6.1)."""

from __future__ import annotations

from collections.abc import Container

from ..analysis.spaces import Space
from ..language.meaning import Natures
from .layout import Register


def put_back(register: Register, slots: Container[str], space: Space, natures: Natures) -> frozenset[str]:
    """The slots that a write of these has to leave as they are: others of its register, or in other lanes the same."""
    beside = [space.slot(p.slot) for p in register.pieces if p.slot not in slots or p.lanes > 1]
    return frozenset(slot.name for slot in beside if natures.of(slot.group, slot.field.name).kept)


def rewrites(register: Register, slots: Container[str], space: Space, natures: Natures) -> bool:
    """Whether a write of the slots has to read the register first; slots whose values are known are among them."""
    return bool(put_back(register, slots, space, natures))
