"""CP-SAT, loaded when a model is first built, and the one way in which it is asked: so that answers repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .interrupts import interruptible
from .lazy import lazy_module

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy_module("ortools.sat.python.cp_model")  # pandas behind it takes long to load

__all__ = ["cp_model", "repeatable_solver", "solve"]


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
