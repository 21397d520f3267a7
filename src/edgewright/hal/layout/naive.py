"""The naive layout: every slot in a register of its own, as a base line for counts and for verification."""

from __future__ import annotations

from ..analysis.spaces import Spaces
from ..language.description import Description
from .assembling import Assembly, assemble
from .cells import Cell
from .layout import Layout


def lay_out_naive(description: Description, spaces: Spaces) -> Layout:
    """One register of the bus width for each slot (several for fields wider than the bus), in their order.

    Pins do not count: a field that shares a register would be read and put back, which the source does not say.
    """
    cells = {name: tuple(Cell((slot.name,)) for slot in space.slots) for name, space in spaces.items()}
    return assemble(description, spaces, cells, Assembly("naive", narrow=False))
