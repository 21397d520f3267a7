"""Placement by first fit: one buffer after the other at the lowest free address; nearly valid placements are
repaired."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from .bound import lower_bound
from .coarsen import Coarse, MergeLevel, coarsen
from .exact import Budget, Status, fit
from .grid import Grid, addresses, to_grid
from .problem import LayoutProblem, Placement

Order = Callable[[Grid, int], tuple[int, ...]]

# Sort keys, smallest first. "crowding" takes the buffers of the most contested moments first.
ORDERS: dict[str, Order] = {
    "crowding": lambda g, i: (-g.crowding[i], g.boxes[i].start - g.boxes[i].end, -g.boxes[i].size),
    "size": lambda g, i: (-g.boxes[i].size,),
    "life": lambda g, i: (g.boxes[i].start - g.boxes[i].end, -g.boxes[i].size),
    "area": lambda g, i: ((g.boxes[i].start - g.boxes[i].end) * g.boxes[i].size,),
    "crowding, size": lambda g, i: (-g.crowding[i], -g.boxes[i].size),
    "end": lambda g, i: (-g.boxes[i].end, -g.boxes[i].size),  # an output that overlaps its input comes before the input
    "start": lambda g, i: (g.boxes[i].start, -g.boxes[i].size),
}
_CLIMB_WORK = 1_000_000  # pairs examined while climbing: about a second
_CLIMB_STEPS = 200


def in_order(grid: Grid, order: str) -> list[int]:
    """The boxes of `grid`, sorted by one of `ORDERS`."""
    return sorted(range(len(grid.boxes)), key=lambda i: ORDERS[order](grid, i))


def place_greedy_by_size(problem: LayoutProblem) -> Placement:
    """The placement of TensorFlow Lite Micro's greedy planner: largest first, each in the first gap that holds it.

    The baseline of S 4.3.2. It ignores special pairs and keeps their buffers apart; buffers with a fixed address go
    first, as with an offline plan there.
    """
    grid = to_grid(LayoutProblem(problem.items, {}, problem.alignment))
    offsets = first_fit(grid, in_order(grid, "size"))
    return Placement(addresses(problem, grid, offsets), grid.peak(offsets), lower_bound(problem), "greedy by size")


def best_first_fit(grid: Grid, enough: int, climb: bool) -> tuple[list[int], str]:
    """The offsets with the lowest peak over several orders, and the order used; stops at `enough` bytes.

    With `climb`, also tries orders in which single buffers are moved forward.
    """
    best: list[int] = []
    best_peak, method = -1, ""
    start: tuple[Coarse, str] | None = None
    for coarse in (coarsen(grid, MergeLevel.NOTHING), coarsen(grid, MergeLevel.BLOCKS)):
        for name in ORDERS:
            offsets = first_fit(coarse.grid, in_order(coarse.grid, name))
            peak = coarse.grid.peak(offsets)
            if best_peak < 0 or peak < best_peak:
                best, best_peak, start = coarse.refine(offsets), peak, (coarse, name)
                method = f"first fit by {name}"
            if best_peak <= enough:
                return best, method
    if climb and start is not None:
        coarse, name = start
        offsets = _climb(coarse.grid, in_order(coarse.grid, name), enough, random.Random(0))
        if coarse.grid.peak(offsets) < best_peak:
            best, method = coarse.refine(offsets), "first fit, improved"
    return best, method


def first_fit(grid: Grid, order: Sequence[int]) -> list[int]:
    """Offsets (units): each box in turn at the lowest position its placed rivals leave. Fixed boxes go first."""
    offsets = [-1 if box.fixed is None else box.fixed for box in grid.boxes]
    _place_rest(grid, order, offsets)
    return offsets


def _place_rest(grid: Grid, order: Sequence[int], offsets: list[int], limit: int | None = None) -> bool:
    """Places these boxes beside those with offsets; False as soon as one ends above `limit` bytes."""
    boxes, rivals = grid.boxes, grid.rivals
    for i in order:
        if boxes[i].fixed is not None:
            continue
        taken = [(at - drop, at + lift) for j, drop, lift in rivals[i] if (at := offsets[j]) >= 0]
        taken.sort()
        here = 0
        for low, high in taken:
            if here <= low:  # all further ones lie above
                break
            if high > here:
                here = high
        if limit is not None and here * grid.unit + boxes[i].top > limit:
            return False
        offsets[i] = here
    return True


def _climb(grid: Grid, order: list[int], enough: int, rng: random.Random) -> list[int]:
    """The best offsets found by moving a box at the peak forward in the order, before one of its rivals."""
    best = offsets = first_fit(grid, order)
    peak = best_peak = grid.peak(offsets)
    work = len(grid.boxes) + sum(map(len, grid.rivals))
    for _ in range(min(_CLIMB_STEPS, _CLIMB_WORK // max(1, work))):
        if best_peak <= enough:
            break
        at_peak = [i for i, o in enumerate(offsets) if o * grid.unit + grid.boxes[i].top == peak]
        i = rng.choice(at_peak)
        rank = {box: n for n, box in enumerate(order)}
        earlier = sorted(rank[j] for j, _, _ in grid.rivals[i] if rank[j] < rank[i])
        if not earlier:
            break
        at = rng.choice(earlier)
        rest = [i, *order[at : rank[i]], *order[rank[i] + 1 :]]
        trial, placed = [*order[:at], *rest], list(offsets)
        for j in rest:  # earlier ones stay where they are
            placed[j] = -1 if grid.boxes[j].fixed is None else placed[j]
        fits = _place_rest(grid, rest, placed, peak)
        if not fits and rng.random() < 0.02:  # a rare step up escapes dead ends
            fits, placed = True, first_fit(grid, trial)
        if fits:
            order, offsets, peak = trial, placed, grid.peak(placed)
        if peak < best_peak:
            best, best_peak = offsets, peak
    return best


_REACH = (2, 8, 32)  # births and deaths around an offender's lifetime that may be rearranged
_MOST_OUT, _MOST_FREE = 1 / 16, 1 / 4  # shares of all boxes beyond which a change is not local


def repair(grid: Grid, offsets: list[int], limit: int, budget: Budget) -> list[int] | None:
    """Offsets within `limit` bytes, or None if local changes do not suffice.

    Boxes beyond the limit are removed and inserted again one by one; each may move its neighbours in time, the rest of
    the memory stays. In a long network crowded moments are far apart, so each step is small.
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
    """New offsets for the boxes in `free`; their rivals stay, except those in `out`, which are not placed."""
    rivals = {j for i in free for j, _, _ in grid.rivals[i]} - free - out
    chosen = sorted(free | rivals)
    place = {i: n for n, i in enumerate(chosen)}
    boxes = tuple(grid.boxes[i] if i in free else replace(grid.boxes[i], fixed=offsets[i]) for i in chosen)
    special = {(place[i], place[j]): g for (i, j), g in grid.special.items() if i in place and j in place}
    part = Grid(grid.unit, boxes, special)
    status, fitted = fit(part, limit, in_order(part, "crowding"), budget)
    if status is not Status.FOUND:
        return None
    moved = list(offsets)
    for i, o in zip(chosen, fitted, strict=True):
        moved[i] = o
    return moved
