"""The cheapest capacities that meet all conditions known so far, by CP-SAT."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from ...lazy import lazy_module
from .circles import LeastSum
from .waits import Choice, Need

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy_module("ortools.sat.python.cp_model")  # pandas behind it takes long to load

_LARGEST = 1 << 60  # sums beyond this do not fit the solver


@dataclass
class Conditions:
    """What all live capacities meet."""

    least: Sequence[int]  # of each line
    choices: dict[Choice, None] = field(default_factory=dict)
    sums: dict[LeastSum, None] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Capacities that meet all conditions, where some were found, and what any of them cost at least."""

    capacities: list[int] | None
    bound: int
    work: float  # of the solver, in its deterministic time


def cheapest(known: Conditions, price: Sequence[int], dearest: int, work: float) -> Answer:
    """Capacities of least cost, which is known to be at most `dearest`; nothing is free."""
    lowest = sum(one * least for one, least in zip(price, known.least, strict=True))
    most = [least + (dearest - lowest) // one for least, one in zip(known.least, price, strict=True)]
    sums = [one for one in known.sums if sum(factor * most[at] for at, factor in one.factors) < _LARGEST]
    if sum(one * limit for one, limit in zip(price, most, strict=True)) >= _LARGEST:
        return Answer(None, lowest, 0)
    model = cp_model.CpModel()

    # Variables: the capacity of each line.
    capacity = [model.new_int_var(least, limit, "") for least, limit in zip(known.least, most, strict=True)]

    # Constraints: sums are reached; of each choice one way out is open.
    for one in sums:
        model.add(sum(factor * capacity[at] for at, factor in one.factors) >= one.least)
    ways = _Ways(model, capacity, most)
    for choice in known.choices:
        model.add_bool_or([ways.open(needs) for needs in choice if ways.can_open(needs)])

    # Objective
    model.minimize(sum(one * size for one, size in zip(price, capacity, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = work
    status = solver.solve(model)
    assert status != cp_model.INFEASIBLE
    found = [solver.value(one) for one in capacity] if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
    if found is not None and status == cp_model.OPTIMAL:
        bound = sum(one * size for one, size in zip(price, found, strict=True))
    else:
        bound = max(lowest, _downwards(solver.best_objective_bound))
    return Answer(found, bound, solver.response_proto.deterministic_time)


def _downwards(bound: float) -> int:
    """A whole number that is surely not above what the solver means: it thinks in floats."""
    return ceil(bound - 1e-6 * max(1.0, abs(bound) * 1e-6))


class _Ways:
    """Literals that stand for needs which are met; equal needs share one."""

    def __init__(self, model: cp_model.CpModel, capacity: Sequence[cp_model.IntVar], most: Sequence[int]) -> None:
        self._model = model
        self._capacity = capacity
        self._most = most
        self._met: dict[Need, cp_model.IntVar] = {}

    def can_open(self, needs: Iterable[Need]) -> bool:
        return all(least <= self._most[at] for at, least in needs)

    def open(self, needs: Sequence[Need]) -> cp_model.IntVar:
        if len(needs) == 1:
            return self._is_met(needs[0])
        literal = self._model.new_bool_var("")
        for need in needs:
            self._model.add_implication(literal, self._is_met(need))
        return literal

    def _is_met(self, need: Need) -> cp_model.IntVar:
        if need not in self._met:
            at, least = need
            literal = self._met[need] = self._model.new_bool_var("")
            self._model.add(self._capacity[at] >= least).only_enforce_if(literal)
            self._model.add(self._capacity[at] < least).only_enforce_if(~literal)
        return self._met[need]
