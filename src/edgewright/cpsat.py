"""CP-SAT, loaded on first use and always asked for repeatable answers.

It is an extra: without it, our own searches find plans, with weaker proofs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .interrupts import interruptible
from .lazy import is_installed, lazy_module

EXTRA = "solver"  # the extra of this package that installs OR-Tools

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy_module("ortools.sat.python.cp_model", EXTRA)  # slow to load, because of pandas

__all__ = ["EXTRA", "cp_model", "has_solver", "repeatable_solver", "solve"]


def has_solver() -> bool:
    """Whether OR-Tools is installed, with CP-SAT and the flow solvers for bounds."""
    return is_installed("ortools")


def repeatable_solver(work: float, **parameters: int) -> cp_model.CpSolver:
    """A solver with the same answer on every machine: one worker, limited by deterministic time (`work`) rather than
    seconds.

    `parameters` are passed to CP-SAT.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = work
    for name, value in parameters.items():
        setattr(solver.parameters, name, value)
    return solver


def solve(solver: cp_model.CpSolver, model: cp_model.CpModel) -> int:
    """Solves the model and returns the final status; an interrupt ends the search."""
    solver.parameters.catch_sigint_signal = False  # an interrupt ends the whole planning, not one solution
    return interruptible(lambda: solver.solve(model), solver.stop_search)
