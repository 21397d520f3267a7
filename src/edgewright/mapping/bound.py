"""An upper bound for all mappings: the linear program in which each layer divides its frames freely over processors.

Every mapping gives each layer's frames to some executions, and no pool has more core-seconds in a second than cores.
The program keeps only that: no order, no stages, no transfers. Total work over all cores would only bound boards with
equal cores. A GPU fully occupies the core that drives it, so each set of driven GPUs is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import isfinite
from typing import Any

from ..cpsat import EXTRA
from ..lazy import load_package
from .exact import NO_LIMITS, MappingLimits
from .problem import MappingProblem


def throughput_bound(problem: MappingProblem, limits: MappingLimits = NO_LIMITS) -> float:
    """An upper bound in frames per second; 0 if some layer cannot run at all.

    Times grow with the number of busy cores, so the bound is the maximum over these numbers.
    """
    rates = [0.0]
    for busy in problem.loads_worth_trying():
        loaded = problem.slowed(busy).with_cores(busy)
        rates += [_rate(loaded, limits, driven) for driven in _driven(loaded)]
    return max(rates)


def _driven(problem: MappingProblem) -> Iterator[tuple[tuple[str, str], ...]]:
    """The GPUs in use and the pools of the cores that drive them: (GPU, driver), one entry per GPU; none is also an
    option."""
    choices: list[list[tuple[tuple[str, str], ...]]] = []
    for pool in problem.pools:
        if pool.is_gpu:
            drivers = {e.driver for e in problem.executions if e.pool == pool.name and e.driver}
            ways: list[tuple[tuple[str, str], ...]] = [()]
            for count in range(1, pool.cores + 1):
                ways += [((pool.name, driver),) * count for driver in sorted(drivers)]
            choices.append(ways)
    for combination in product(*choices):
        yield tuple(pair for pairs in combination for pair in pairs)


def _rate(problem: MappingProblem, limits: MappingLimits, driven: tuple[tuple[str, str], ...]) -> float:
    cores = Counter({pool.name: pool.cores for pool in problem.pools if not pool.is_gpu})
    for gpu, driver in driven:
        cores[gpu] += 1
        cores[driver] -= 1
    if min(cores.values(), default=0) < 0:
        return 0.0
    pywraplp = load_package("ortools.linear_solver.pywraplp", EXTRA)
    solver = pywraplp.Solver.CreateSolver("GLOP")

    # Variables: the throughput, and the frames per second of each layer on each execution.
    longest = max((s for e in problem.executions for s in e.seconds if isfinite(s)), default=0.0)
    if not longest:
        return float("inf")
    # In frames per `longest` seconds, for numbers near 1.
    rate = solver.NumVar(0, solver.infinity(), "rate")
    work: dict[str, list[Any]] = {}
    given: list[list[Any]] = [[] for _ in problem.layers]
    for execution in problem.executions:
        if cores[execution.pool] < execution.lanes or execution.lanes > (limits.lanes or execution.lanes):
            continue
        for layer, seconds in enumerate(execution.seconds):
            if isfinite(seconds):
                share = solver.NumVar(0, solver.infinity(), "")
                given[layer].append(share)
                work.setdefault(execution.pool, []).append(share * (seconds / longest * execution.lanes))

    # Constraints: every frame passes every layer; no pool exceeds its capacity.
    for shares in given:
        solver.Add(sum(shares) == rate)
    for pool, terms in work.items():
        solver.Add(sum(terms) <= cores[pool])

    solver.Maximize(rate)
    return rate.solution_value() / longest if solver.Solve() == pywraplp.Solver.OPTIMAL else 0.0
