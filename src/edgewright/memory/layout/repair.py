"""A placement that is nearly low enough, made so: only what lives near an offender moves. Proofs are left to others."""

from dataclasses import replace

from edgewright.memory.layout.exact import Budget, Status, fit
from edgewright.memory.layout.first_fit import in_order
from edgewright.memory.layout.grid import Grid

_REACH = (2, 8, 32)  # births and deaths before and after an offender's life that may be rearranged
_MOST_OUT, _MOST_FREE = 1 / 16, 1 / 4  # shares of all boxes beyond which a change is not local


def repair(grid: Grid, offsets: list[int], limit: int, budget: Budget) -> list[int] | None:
    """Offsets within `limit` bytes, or None if that takes more than local changes.

    Boxes beyond the limit are lifted out and put back one by one, each with its neighbourhood in time free to move and
    the rest of the memory as it is. In a long network crowded moments are few and far apart, so each step is small.
    """
    offsets = list(offsets)
    out = {i for i, o in enumerate(offsets) if o > grid.ceiling(i, limit)}
    if len(out) > _MOST_OUT * len(grid.boxes):
        return None
    for box in sorted(out, key=lambda i: -grid.crowding[i]):
        out.remove(box)
        for reach in _REACH:
            low, high = grid.boxes[box].start - reach, grid.boxes[box].end + reach
            free = {i for i, b in enumerate(grid.boxes) if i not in out and b.start < high and b.end > low}
            if len(free) > _MOST_FREE * len(grid.boxes):
                return None
            if (moved := _rearrange(grid, offsets, free, out, limit, budget)) is not None:
                offsets = moved
                break
        else:
            return None
    return offsets


def _rearrange(
    grid: Grid, offsets: list[int], free: set[int], out: set[int], limit: int, budget: Budget
) -> list[int] | None:
    """New offsets for the boxes in `free`; their rivals stay, save those in `out`, which are not placed at all."""
    rivals = {j for i in free for j, _, _ in grid.rivals[i]} - free - out
    chosen = sorted(free | rivals)
    place = {i: n for n, i in enumerate(chosen)}
    boxes = tuple(grid.boxes[i] if i in free else replace(grid.boxes[i], fixed=offsets[i]) for i in chosen)
    special = {(place[i], place[j]): g for (i, j), g in grid.special.items() if i in place and j in place}
    part = Grid(grid.unit, boxes, special)
    status, found = fit(part, limit, in_order(part, "crowding"), budget)
    if status is not Status.FOUND:
        return None
    moved = list(offsets)
    for i, o in zip(chosen, found, strict=True):
        moved[i] = o
    return moved
