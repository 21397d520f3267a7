"""The best layout by the cost model: a constraint model (CP-SAT) decides which slots share registers.

Local search improves the paper's layout, or the smallest map that first fit finds. The model starts from that layout,
and its result is never worse. Without a limit on the map every space is solved by itself, children first; with one, all
of them at once. In spaces of many slots the model finds nothing better, and local search alone has to do. All models of
a layout share one limit of time, so that what a small one leaves is for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod

from ... import cpsat
from ...cpsat import cp_model
from ...errors import Infeasible
from ..analysis.spaces import Joint, Spaces
from ..language.description import Description
from .cells import Cells
from .constraint_model import LayoutPart, Linear, Model, PartVariables, add_part, add_size, cells_of, hint
from .cost import LayoutGoal, cost_of
from .judge import checked
from .layout import Layout
from .local_search import Search
from .problem import RegisterLayoutProblem
from .rules import packed

PATIENCE = 0.2  # units of deterministic time for all models of a layout: about a second


@dataclass(slots=True)
class _SolvingTime:
    """The deterministic time that is left, and the models that are to share it."""

    left: float
    models: int

    def solve(self, solver: cp_model.CpSolver, model: cp_model.CpModel) -> int:
        """The solver's status after this model's share of the time."""
        solver.parameters.num_workers = 1
        solver.parameters.linearization_level = 2  # Booleans too: most models are proven, in a third of the time
        solver.parameters.max_deterministic_time = max(self.left / max(self.models, 1), 0.001)
        status = cpsat.solve(solver, model)
        self.left -= solver.response_proto.deterministic_time
        self.models -= 1
        return status


def lay_out_optimal(
    description: Description, spaces: Spaces, joints: Sequence[Joint], goal: LayoutGoal, patience: float = PATIENCE
) -> Layout:
    """The layout of least cost for a goal, after so much deterministic time; Infeasible where none keeps its limit.

    Without any time it is what local search finds.
    """
    problem = RegisterLayoutProblem.of(description, spaces, joints, goal)
    if goal.max_map is None:
        start = _searched(problem)
        if not patience:
            return _finish(problem, _Found(start, None))
        return _finish(problem, _better(problem, start, _each_by_itself(problem, start, patience)))
    if goal.has_views:
        return _within_limit(problem, patience)
    return _limited(problem, patience)


def _within_limit(problem: RegisterLayoutProblem, patience: float) -> Layout:
    """The better of two layouts under a limit: one in which views spare all read-modify-writes, and one without."""
    plain = _limited(problem.without_views(), patience)
    found = [plain]
    with suppress(Infeasible):
        found.append(_limited(problem, patience))
    return replace(min(found, key=lambda layout: _score(problem, layout)), optimal=False)


def _limited(problem: RegisterLayoutProblem, patience: float) -> Layout:
    """The layout of least cost that keeps the limit of a problem."""
    description, spaces, joints, goal = problem.description, problem.spaces, problem.joints, problem.goal
    assert goal.max_map is not None
    attempts = dict.fromkeys((goal, replace(goal, power_of_two=False)))
    undecided = False
    for one in (replace(problem, goal=other) for other in attempts):
        start = _searched(one)
        try:
            found = _at_once(one, start, patience)
        except _Undecided:
            undecided = True
            found = _Found(start, None) if _fits(one, start) else None
        if found is not None:
            return _finish(one, found)
    least = lay_out_optimal(description, spaces, joints, LayoutGoal(minimise="map", power_of_two=False))
    size = least.map_bytes(description)
    if size <= goal.max_map:
        return replace(least, optimal=False)
    if undecided:
        raise Infeasible(
            f"no layout within {goal.max_map} bytes was found in the time allowed, and none was ruled out. "
            f"Raise the limit on the map."
        )
    smallest = f"the smallest {'has' if least.optimal else 'that was found has'} {size}"
    raise Infeasible(
        f"no layout fits in {goal.max_map} bytes: {smallest}. "
        f"Raise the limit on the map to {size} bytes, or declare byte lanes or narrower fields."
    )


def _fits(problem: RegisterLayoutProblem, cells: Cells) -> bool:
    return (
        problem.goal.max_map is None or problem.assembled(cells).map_bytes(problem.description) <= problem.goal.max_map
    )


class _Undecided(Exception):
    """The solver ran out of time, or has too many slots, with neither a layout nor a proof that there is none."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Cells, and how far their score may lie above the least there is; None: nothing is known."""

    cells: Cells
    gap: float | None


def _searched(problem: RegisterLayoutProblem) -> Cells:
    """Where the models start: the paper's cells, or those of first fit, after local search."""
    parts = {name: problem.part(name) for name in problem.spaces}
    paper = problem.paper()
    whole = {name: (*problem.fixed(name), *of) for name, of in paper.items()}
    tight = {name: packed(problem.rules[name], parts[name].free) for name in paper}
    first = tight if problem.goal.minimise == "map" or not _fits(problem, whole) else paper
    cells = {n: [(frozenset(c.slots), c.lanes) for c in of] for n, of in first.items()}
    return {name: (*problem.fixed(name), *of) for name, of in Search(problem, parts, cells).run().items()}


def _each_by_itself(problem: RegisterLayoutProblem, start: Cells, patience: float) -> _Found:
    cells = dict(start)
    gap: float | None = 0.0
    instances = problem.instances()
    clock = _SolvingTime(patience, len(problem.spaces))
    for name, space in problem.spaces.items():
        if problem.is_large(name):
            gap = None
            continue
        done = problem.assembled(cells).spaces
        areas = sum(done[area.space].size * prod(area.counts) for area in space.areas)
        model = Model(problem.goal)
        chosen = _added(model, problem.part(name), start)
        size = add_size(model, chosen, areas, problem.most(space) + areas)
        try:
            found = _solved(problem, model, [chosen], instances[name] * size, clock)
        except _Undecided:  # what the search started from stays
            found = _Found({}, None)
        assert found is not None
        cells |= found.cells
        gap = None if gap is None or found.gap is None else gap + found.gap
    return _Found(cells, gap)


def _at_once(problem: RegisterLayoutProblem, start: Cells, patience: float) -> _Found | None:
    """All spaces in one model under the limit; None where that has no solution."""
    most = limit = problem.goal.max_map
    assert most is not None and limit is not None
    if any(map(problem.is_large, problem.spaces)):
        raise _Undecided
    while limit > 0:
        model = Model(problem.goal)
        sizes: dict[str, Linear] = {}
        parts = []
        for name, space in problem.spaces.items():
            parts.append(_added(model, problem.part(name), start))
            areas = sum(sizes[area.space] * prod(area.counts) for area in space.areas)
            sizes[name] = add_size(model, parts[-1], areas, problem.most(space))
        total = sum(sizes[device.group] for device in problem.description.devices)
        model.cp.add(total <= limit)
        found = _solved(problem, model, parts, total, _SolvingTime(patience, 1))
        if found is None:
            return None
        over = problem.assembled(found.cells).map_bytes(problem.description) - most
        if over <= 0:
            return _better(problem, start, found) if limit == most else _Found(found.cells, None)
        limit -= over  # gaps between pinned registers that nothing fills were not in the model
    return None


def _added(model: Model, part: LayoutPart, start: Cells) -> PartVariables:
    chosen = add_part(model, part)
    hint(model, chosen, start[part.space.name])
    return chosen


def _solved(
    problem: RegisterLayoutProblem, model: Model, parts: Sequence[PartVariables], size: Linear, clock: _SolvingTime
) -> _Found | None:
    """The best cells found, with those that were settled before; None where there are none."""
    model.cp.minimize(sum(weight * variable for weight, variable in model.terms) + model.goal.weights[2] * size)
    solver = cp_model.CpSolver()
    status = clock.solve(solver, model.cp)
    if status == cp_model.INFEASIBLE:
        return None
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise _Undecided
    names = [chosen.part.space.name for chosen in parts]
    cells = {n: (*problem.fixed(n), *cells_of(chosen, solver)) for n, chosen in zip(names, parts, strict=True)}
    gap = solver.objective_value - solver.best_objective_bound
    return _Found(cells, gap if all(map(problem.counts_views, names)) else None)


def _score(problem: RegisterLayoutProblem, layout: Layout) -> int:
    return cost_of(problem.description, problem.spaces, layout, problem.joints, problem.goal.sizes).score(
        problem.goal.weights
    )


def _better(problem: RegisterLayoutProblem, start: Cells, found: _Found) -> _Found:
    """The cheaper of what was started from and what was found, with the bound of the latter."""
    first, second = problem.assembled(start), problem.assembled(found.cells)
    saved = _score(problem, second) - _score(problem, first)
    if saved <= 0 or not _fits(problem, start):
        return found
    return _Found(start, None if found.gap is None else found.gap - saved)


def _finish(problem: RegisterLayoutProblem, found: _Found) -> Layout:
    layout = checked(problem.description, problem.spaces, problem.assembled(found.cells), problem.joints)
    score = _score(problem, layout)
    bound = problem.simple_bound() if found.gap is None else score - found.gap
    return replace(layout, optimal=bound >= score - 0.5, cost=float(score), bound=float(bound))
