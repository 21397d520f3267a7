"""The best pipeline: stages, processors, lanes and replicas, by dynamic programming over the cuts.

A stage lies between two cuts; one execution with a number of replicas runs it, and occupies some cores of each pool.
The best pipelines up to each cut, for each number of cores, follow from those up to earlier cuts with fewer cores:
exact, and fast, since there are few cuts (`downsets`). The period is a maximum over stages; latency, memory and energy
are sums, which are minimised at a given period, and bisection over the possible stage periods finds the best one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import inf

import numpy as np

from ..errors import Infeasible
from .board_mapping import BoardMapping, MappedStage, stage_of, with_busy_cores
from .downsets import Downsets, Floats, find_cuts
from .problem import Execution, MappingProblem

_NEAR = 1 + 1e-9  # the same times added in another order
Counts = tuple[int, ...]  # cores of each pool


@dataclass(frozen=True)
class MappingLimits:
    """Limits on stages, replicas and lanes."""

    stages: int | None = None
    replicas: int | None = None  # per stage
    lanes: int | None = None


NO_LIMITS = MappingLimits()


@dataclass(frozen=True)
class StageChoice:
    """An execution of a stage, and its cost between each pair of cuts."""

    execution: Execution
    replicas: int
    cores: Counts
    seconds: Floats

    @property
    def period(self) -> Floats:
        return self.seconds / self.replicas


Cost = Callable[[StageChoice], Floats]  # a stage's contribution to a sum to minimise


class PipelineSolver:
    """One problem with its cuts and several objectives. Times are those with all cores busy."""

    def __init__(
        self, problem: MappingProblem, limits: MappingLimits = NO_LIMITS, cuts: Downsets | None = None
    ) -> None:
        self.problem = problem
        self.limits = limits
        self.cuts = replace(cuts, problem=problem) if cuts else find_cuts(problem)
        self.capacity: Counts = tuple(pool.cores for pool in problem.pools)

    @cached_property
    def choices(self) -> tuple[StageChoice, ...]:
        return tuple(self._choices())

    def _choices(self) -> Iterator[StageChoice]:
        names = [pool.name for pool in self.problem.pools]
        for execution in self.problem.executions:
            if execution.lanes > (self.limits.lanes or inf):
                continue
            seconds = self.cuts.seconds(execution)
            for replicas in range(1, (self.limits.replicas or max(self.capacity)) + 1):
                taken = execution.cores(replicas)
                cores = tuple(taken.get(name, 0) for name in names)
                if all(few <= many for few, many in zip(cores, self.capacity, strict=True)):
                    yield StageChoice(execution, replicas, cores, seconds)

    def fastest(self) -> tuple[MappedStage, ...]:
        """The stages with the shortest period and, among those, the lowest latency."""
        period = self._search(lambda choice: choice.period, np.maximum).value
        return self.cheapest(period, latency) if period < inf else ()

    def cheapest(self, period: float, cost: Cost) -> tuple[MappedStage, ...]:
        """The stages with the lowest sum of costs within the period; none if impossible."""
        return self._search_within(period, cost).stages()

    def least(self, period: float, cost: Cost) -> float:
        """The lowest sum of costs."""
        return self._search_within(period, cost).value

    def periods(self) -> Floats:
        """Every period that a stage can have, shortest first."""
        periods = np.concatenate([np.unique(choice.period) for choice in self.choices])
        return np.unique(periods[np.isfinite(periods)])

    def shortest_period(self, cost: Cost, most: float) -> float | None:
        """The shortest period at which the sum of costs is within the limit; None if there is none."""
        periods = self.periods()
        if not len(periods) or self.least(periods[-1], cost) > most * _NEAR:
            return None
        at = bisect_left(periods[:-1], True, key=lambda period: self.least(period, cost) <= most * _NEAR)
        return float(periods[at])

    def _search_within(self, period: float, cost: Cost) -> _Search:
        """The search for the lowest sum of costs over stages within the period."""
        return self._search(lambda choice: np.where(choice.period <= period * _NEAR, cost(choice), np.inf), np.add)

    def _search(self, cost: Cost, join: np.ufunc) -> _Search:
        return _Search(self, [(choice, cost(choice)) for choice in self.choices], join)


class _Search:
    """The least value up to each cut, for each number of cores (and of stages if they are limited)."""

    def __init__(self, solver: PipelineSolver, costs: Sequence[tuple[StageChoice, Floats]], join: np.ufunc) -> None:
        self.solver, self.costs, self.join = solver, costs, join
        self.best: dict[tuple[int, Counts], Floats] = {}
        self.last = solver.limits.stages or 0  # 0: stages are not counted
        self.start = np.full(len(solver.cuts.sets), np.inf)  # before any stage: no layers, no cost
        self.start[0] = 0.0
        cores_taken = product(*(range(count + 1) for count in solver.capacity))  # of each pool, fewer first
        for stages, cores in product(range(min(1, self.last), self.last + 1), cores_taken):
            value = self.start.copy()
            for _, rest, cost in self._steps(stages, cores):
                np.minimum(value, join(self._before(rest)[:, None], cost).min(0), out=value)
            self.best[stages, cores] = value

    def _steps(self, stages: int, cores: Counts) -> Iterator[tuple[StageChoice, tuple[int, Counts], Floats]]:
        """Last stages that leave cores for those before them."""
        for choice, cost in self.costs:
            rest = tuple(have - take for have, take in zip(cores, choice.cores, strict=True))
            if min(rest) >= 0:
                yield choice, (max(0, stages - 1), rest), cost

    def _before(self, rest: tuple[int, Counts]) -> Floats:
        """The least values with this many stages and cores for everything before the last stage."""
        return self.best[rest] if rest[0] or not self.last else self.start

    @property
    def value(self) -> float:
        return float(self.best[self.last, self.solver.capacity][-1])

    def stages(self) -> tuple[MappedStage, ...]:
        """The stages of the least value, reconstructed from the last one backwards."""
        if self.value == inf:
            return ()
        mapped: list[MappedStage] = []
        stages, cores, stop = self.last, self.solver.capacity, len(self.solver.cuts.sets) - 1
        while stop:
            start, choice, (stages, cores) = self._last_stage(stages, cores, stop)
            layers = self.solver.cuts.layers(start, stop)
            mapped.append(stage_of(self.solver.problem, [layers], choice.execution, choice.replicas))
            stop = start
        return tuple(reversed(mapped))

    def _last_stage(self, stages: int, cores: Counts, stop: int) -> tuple[int, StageChoice, tuple[int, Counts]]:
        wanted = self.best[stages, cores][stop]
        for choice, rest, cost in self._steps(stages, cores):
            values = self.join(self._before(rest), cost[:, stop])
            start = int(values.argmin())
            if values[start] == wanted:
                return start, choice, rest
        raise AssertionError("a value that no stage has")


def latency(choice: StageChoice) -> Floats:
    """Seconds that a frame spends in a stage."""
    return choice.seconds


def map_exact(problem: MappingProblem, limits: MappingLimits = NO_LIMITS) -> BoardMapping:
    """The mapping with the highest throughput among pipelines with stages, lanes and replicas."""
    return best_under_load(problem, limits, PipelineSolver.fastest, lambda mapping: mapping.load_period)


def best_under_load(
    problem: MappingProblem,
    limits: MappingLimits,
    solve: Callable[[PipelineSolver], tuple[MappedStage, ...]],
    value: Callable[[BoardMapping], float],
) -> BoardMapping:
    """The best of the solutions for each number of busy cores, since times depend on it."""
    cuts = find_cuts(problem)
    mappings: list[BoardMapping] = []
    for busy in problem.loads_worth_trying():
        solver = PipelineSolver(problem.slowed(busy).with_cores(busy), limits, cuts)
        if stages := solve(solver):
            mapping = BoardMapping(solver.problem, stages, "exact", cuts.complete)
            mappings.append(with_busy_cores(mapping, problem))
    if not mappings:
        raise Infeasible("no mapping keeps the limits")
    return min(mappings, key=value)
