"""CP-SAT, loaded when a model is first built, and the one way in which it is asked: so that answers repeat.

It is an extra: without it, plans come from searches of our own, which prove less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .interrupts import interruptible
from .lazy import is_installed, lazy_module

EXTRA = "solver"  # of this package, which brings OR-Tools

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy_module("ortools.sat.python.cp_model", EXTRA)  # pandas behind it takes long to load

__all__ = ["EXTRA", "cp_model", "has_solver", "repeatable_solver", "solve"]


def has_solver() -> bool:
    """Whether OR-Tools is installed, with CP-SAT and the flows that bounds come from."""
    return is_installed("ortools")


def repeatable_solver(work: float, **parameters: int) -> cp_model.CpSolver:
    """A solver that gives the same answer on every machine: one worker, and `work` in deterministic time, not seconds.

    Other `parameters` are CP-SAT's own.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = work
    for name, value in parameters.items():
        setattr(solver.parameters, name, value)
    return solver


def solve(solver: cp_model.CpSolver, model: cp_model.CpModel) -> int:
    """The solver's status at its end; an interrupt ends it."""
    solver.parameters.catch_sigint_signal = False  # an interrupt is for whoever plans, not for one solution
    return interruptible(lambda: solver.solve(model), solver.stop_search)
