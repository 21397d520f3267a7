"""The exact models: whether a placement fits a limit, and the least peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ...cpsat import cp_model, has_solver, repeatable_solver, solve
from .grid import Grid


class Status(Enum):
    """The outcome of a search."""

    FOUND = "found"
    IMPOSSIBLE = "proven impossible"
    GAVE_UP = "gave up"


@dataclass(frozen=True)
class Budget:
    """The effort of a search. Counted, not timed, so that the answer is the same on every machine."""

    conflicts: int
    work: float  # CP-SAT's deterministic time; 0.01 are about a second on these models


def fit(grid: Grid, limit: int, order: Sequence[int], budget: Budget) -> tuple[Status, list[int]]:
    """Offsets within `limit` bytes, or proof that there are none.

    The search always places the box with the lowest possible position there, with `order` as tie-break: the canonical
    placements of MiniMalloc (Moffitt, ASPLOS'23), pruned by CP-SAT's propagation and learning.
    """
    if any(grid.ceiling(i, limit) < (box.fixed or 0) for i, box in enumerate(grid.boxes)):
        return Status.IMPOSSIBLE, []
    if not has_solver():
        return Status.GAVE_UP, []
    model, offset = _placements(grid, limit)
    model.add_decision_strategy([offset[i] for i in order], cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE)
    solver = _solver(budget)
    if not grid.special:  # a buffer that another may overlap should not lie lowest
        solver.parameters.search_branching = cp_model.FIXED_SEARCH
    status = solve(solver, model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Status.FOUND, [solver.value(o) for o in offset]
    return (Status.IMPOSSIBLE if status == cp_model.INFEASIBLE else Status.GAVE_UP), []


def minimise(
    grid: Grid, known: Sequence[int], bound: int, budget: Budget, cliques: Sequence[Sequence[int]] = ()
) -> tuple[list[int], int]:
    """The best offsets found, at least as good as `known`, and a proven lower bound of the peak in bytes.

    `cliques` are groups of boxes that must not overlap. They add no constraints, but let the solver reason about more
    than two boxes at once.
    """
    if not has_solver():
        return list(known), bound
    limit = grid.peak(known)
    model, offset = _placements(grid, limit)
    rooms = [model.new_fixed_size_interval_var(o, box.size, "") for o, box in zip(offset, grid.boxes, strict=True)]
    for clique in cliques:
        model.add_no_overlap(rooms[i] for i in clique)
    peak = model.new_int_var(bound, limit, "peak")
    for o, box in zip(offset, grid.boxes, strict=True):
        model.add(o * grid.unit + box.top <= peak)
    model.minimize(peak)
    for o, value in zip(offset, known, strict=True):
        model.add_hint(o, value)
    solver = _solver(budget)
    status = solve(solver, model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return [solver.value(o) for o in offset], max(bound, round(solver.best_objective_bound))
    assert status == cp_model.UNKNOWN, "the known placement satisfies the model"
    return list(known), bound


def _solver(budget: Budget) -> cp_model.CpSolver:
    return repeatable_solver(
        budget.work,
        random_seed=0,
        max_number_of_conflicts=budget.conflicts,
        linearization_level=0,
        cp_model_probing_level=0,
    )


def _placements(grid: Grid, limit: int) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    """A model of all placements within `limit` bytes (S eqs 4.24-4.26, as rectangles in time and address)."""
    model = cp_model.CpModel()
    # Variables: one offset for each box, in units.
    offset = []
    for i, box in enumerate(grid.boxes):
        low, high = (0, grid.ceiling(i, limit)) if box.fixed is None else (box.fixed, box.fixed)
        offset.append(model.new_int_var(low, high, f"offset{i}"))

    # Constraints: rectangles do not overlap; pairs that rectangles cannot express are ordered one by one.
    lives = _trimmed_lives(grid)
    life, room = [], []
    for o, box, (start, end) in zip(offset, grid.boxes, lives, strict=True):
        if start < end and box.size > 0:
            life.append(model.new_fixed_size_interval_var(start, end - start, ""))
            room.append(model.new_fixed_size_interval_var(o, box.size, ""))
    model.add_no_overlap_2d(life, room)
    for i, rivals in enumerate(grid.rivals):
        for j, g_ij, g_ji in rivals:
            if i < j and not (_meet(lives[i], lives[j]) and grid.boxes[i].size and grid.boxes[j].size):
                i_below = model.new_bool_var("")
                model.add(offset[i] + g_ij <= offset[j]).only_enforce_if(i_below)
                model.add(offset[j] + g_ji <= offset[i]).only_enforce_if(~i_below)
    return model, offset


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return max(a[0], b[0]) < min(a[1], b[1])  # false for a life that was cut to nothing


def _trimmed_lives(grid: Grid) -> list[tuple[int, int]]:
    """Lifetimes shortened until no special pair meets; each cut is as short as possible."""
    lives = [(box.start, box.end) for box in grid.boxes]
    for i, j in sorted(grid.special):
        if not _meet(lives[i], lives[j]):
            continue
        from_, to = max(lives[i][0], lives[j][0]), min(lives[i][1], lives[j][1])
        cuts = [(k, cut) for k in (i, j) for cut in ((lives[k][0], from_), (to, lives[k][1]))]
        k, cut = min(cuts, key=lambda c: (lives[c[0]][1] - lives[c[0]][0]) - (c[1][1] - c[1][0]))
        lives[k] = cut
    return lives
