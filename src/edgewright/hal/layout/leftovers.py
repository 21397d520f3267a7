"""Slots that no code accesses still need a place: first fit, each with its like."""

from __future__ import annotations

from collections.abc import Sequence

from .cells import Cell
from .rules import Rules


def packed(rules: Rules, names: Sequence[str]) -> tuple[Cell, ...]:
    """Cells for these slots, as few as first fit by size finds."""
    open_cells: list[list[str]] = []
    cells: list[Cell] = []
    bonds = dict.fromkeys(bond for name in names if len(bond := rules.bond(name)) > 1)
    cells += [Cell(tuple(name for name in rules.slots if name in bond)) for bond in bonds]
    single = [name for name in names if len(rules.bond(name)) == 1]
    for name in sorted(single, key=lambda name: -rules.slots[name].room):
        lanes = rules.lanes(name)
        if lanes > 1:
            cells.append(Cell((name,), lanes))
            continue
        home = next((cell for cell in open_cells if rules.together([*cell, name])), None)
        if home is None:
            open_cells.append([name])
        else:
            home.append(name)
    return (*cells, *(Cell(tuple(cell)) for cell in open_cells))
