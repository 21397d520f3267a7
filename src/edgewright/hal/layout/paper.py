"""The paper's heuristic: fields that most places of the code access at once share registers (S 6.4.4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..analysis.spaces import Joint, Space, Spaces
from ..language.description import Description
from .assembly import Assembly, assemble
from .cells import Cell, pinned_cells
from .judge import checked
from .layout import Layout
from .rules import Rules


def lay_out_paper(description: Description, spaces: Spaces, joints: Sequence[Joint]) -> Layout:
    """The layout of S 6.4.4, except where it would break a rule of side effects."""
    cells = paper_cells(description, spaces, joints)
    layout = assemble(description, spaces, cells, Assembly("paper", narrow=False))
    return checked(description, spaces, layout, joints)


def paper_cells(description: Description, spaces: Spaces, joints: Sequence[Joint]) -> dict[str, tuple[Cell, ...]]:
    """The cells of every space; child groups come first, and are placed once for all their instances."""
    return {name: _cells(description, space, joints) for name, space in spaces.items()}


def combinations(space: str, joints: Iterable[Joint]) -> list[tuple[str, ...]]:
    """The list C: sets of slots that regions access at once, by number of regions, then by size."""
    found = Counter(tuple(sorted(set(joint.slots))) for joint in joints if joint.space == space)
    several = [(names, regions) for names, regions in found.items() if len(names) > 1]
    return [names for names, regions in sorted(several, key=lambda item: (-item[1], -len(item[0]), item[0]))]


def _cells(description: Description, space: Space, joints: Sequence[Joint]) -> tuple[Cell, ...]:
    rules = Rules.of(description, space, joints)
    listed = combinations(space.name, joints)
    cells = list(pinned_cells(description, space))
    placed = {name for cell in cells for name in cell.slots}
    for slot in space.slots:
        if slot.name not in placed:
            combination = next((names for names in listed if slot.name in names), ())
            names = _fitting(rules, space, rules.bond(slot.name), set(combination) - placed)
            cells.append(Cell(names))
            placed |= set(names)
    return tuple(cells)


def _fitting(rules: Rules, space: Space, first: frozenset[str], others: set[str]) -> tuple[str, ...]:
    """Slots and those of their combination that fit beside them and may, in the order of the group."""
    chosen = list(first)
    for slot in space.slots:
        more = rules.bond(slot.name)
        if slot.name in others and not more & set(chosen) and rules.together([*chosen, *more]):
            chosen += more
    return tuple(slot.name for slot in space.slots if slot.name in chosen)
