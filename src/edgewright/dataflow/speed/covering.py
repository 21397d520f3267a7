"""The cheapest levels that no known cut forbids, by CP-SAT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...lazy import lazy_module
from .storage import Cut, SizedChannel

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy_module("ortools.sat.python.cp_model")  # pandas behind it takes long to load

_WORK = 20.0  # CP-SAT's deterministic time for one answer: some tens of seconds


def cheapest(stores: Mapping[str, SizedChannel], cuts: Sequence[Cut], least: int) -> dict[str, int] | None:
    """Levels of least cost, known to be `least` or more, such that each cut is passed by one of its channels.

    None where that could not be proven in the time allowed.
    """
    floor = dict.fromkeys(stores, 0)
    for cut in cuts:
        if len(cut) == 1:
            ((name, level),) = cut.items()
            floor[name] = max(floor[name], level + 1)
    open_cuts = [cut for cut in cuts if all(floor[name] <= level for name, level in cut.items())]
    return _solved(stores, floor, open_cuts, least) if open_cuts else floor


def _solved(
    stores: Mapping[str, SizedChannel], floor: Mapping[str, int], cuts: Sequence[Cut], least: int
) -> dict[str, int] | None:
    model = cp_model.CpModel()

    # Variables: the level of each channel, which is its floor or just passes a cut; whether it passes each cut.
    passing = {name: {low} for name, low in floor.items()}
    for cut in cuts:
        for name, level in cut.items():
            passing[name].add(level + 1)
    domains = {name: cp_model.Domain.from_values(sorted(levels)) for name, levels in passing.items()}
    chosen = {name: model.new_int_var_from_domain(domain, name) for name, domain in domains.items()}
    pairs = sorted({pair for cut in cuts for pair in cut.items()})
    passes = {pair: model.new_bool_var("") for pair in pairs}

    # Constraints: each cut is passed by one of its channels.
    for (name, level), literal in passes.items():
        model.add(chosen[name] > level).only_enforce_if(literal)
        model.add(chosen[name] <= level).only_enforce_if(~literal)
    for cut in cuts:
        model.add_bool_or([passes[pair] for pair in cut.items()])

    # Objective
    cost = sum(store.price * (store.tokens + store.step * chosen[name]) for name, store in stores.items())
    model.add(cost >= least)
    model.minimize(cost)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = _WORK
    if solver.solve(model) != cp_model.OPTIMAL:
        return None
    return {name: solver.value(level) for name, level in chosen.items()}
