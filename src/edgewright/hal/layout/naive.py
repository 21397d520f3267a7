"""The naive layout: every slot in a register of its own, as a base line for counts and for verification."""

from __future__ import annotations

from ..analysis.spaces import Space, Spaces
from ..language.description import Description
from .assembling import Assembly, assemble
from .cells import Cell, pinned_cells
from .layout import Layout


def lay_out_naive(description: Description, spaces: Spaces) -> Layout:
    """One register of the bus width for each slot (several for fields wider than the bus), in their order."""
    cells = {name: _cells(description, space) for name, space in spaces.items()}
    return assemble(description, spaces, cells, Assembly("naive", narrow=False))


def _cells(description: Description, space: Space) -> tuple[Cell, ...]:
    free = (Cell((slot.name,)) for slot in space.slots if slot.field.pinned is None)
    return (*pinned_cells(description, space), *free)
