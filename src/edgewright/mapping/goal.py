"""What is asked of a mapping, and the mapping that answers it: limits on latency and memory, and what is to be small.

The exact solver minimises sums over stages at a given period. Latency and memory as they really are depend on slots and
waiting too, and are read off the dataflow graph of what was found; where that exceeds a limit, the solver is asked
again with a tighter one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Literal

import numpy as np

from .. import text
from ..errors import Infeasible, InputError
from ..platform import Power
from .assignment import assign_exact, mapping_of, single_processors
from .bound import throughput_bound
from .downsets import Floats
from .exact import Choice, Cost, MappingLimits, PipelineSolver, best_under_load, latency, map_exact
from .mapped import BoardMapping, MappedStage
from .problem import MappingProblem
from .timed_graph import Timing, timing_of

Minimise = Literal["period", "latency", "memory", "energy"]
_TRIES = 6  # tighter limits


@dataclass(frozen=True)
class MappingGoal:
    """What to minimise, and what not to exceed."""

    minimise: Minimise = "period"
    max_latency: float | None = None  # seconds
    ram: int | None = None  # bytes of arenas and FIFOs
    min_throughput: float | None = None  # frames a second
    limits: MappingLimits = MappingLimits()


@dataclass(frozen=True)
class MappingAnswer:
    """A mapping with all that is predicted of it."""

    mapping: BoardMapping
    timing: Timing
    bound: float  # frames a second that no mapping exceeds
    power: Power = Power()

    @property
    def throughput(self) -> float:
        return 1 / self.timing.period if self.timing.period else inf

    @property
    def gap(self) -> float:
        """How far the bound lies above the throughput, as a share of the bound."""
        return max(0.0, 1 - self.throughput / self.bound) if self.bound else 0.0

    @property
    def latency(self) -> float:
        return self.timing.latency

    @cached_property
    def memory_bytes(self) -> int:
        """Arenas of all workers, estimated by the layer that needs most, and the slots of all FIFOs."""
        sizes = self.mapping.problem.working_bytes
        arenas = sum(stage.replicas * max(sizes[layer] for layer in stage.layers) for stage in self.mapping.stages)
        return arenas + self.timing.fifo_bytes

    @property
    def utilisation(self) -> tuple[float, ...]:
        """The share of time that each stage's workers are busy."""
        return tuple(
            stage.period / self.timing.period if self.timing.period else 0.0 for stage in self.mapping.stages
        )

    @property
    def energy(self) -> float | None:
        """Joules per frame, an estimate: the board draws `active` when all its processors are busy, `idle` when none."""
        if self.power.active is None:
            return None
        idle = self.power.idle or 0.0
        busy = sum(
            share * sum(stage.cores.values())
            for share, stage in zip(self.utilisation, self.mapping.stages, strict=True)
        )
        cores = sum(pool.cores for pool in self.mapping.problem.pools)
        return (idle + (self.power.active - idle) * busy / cores) * self.timing.period


def map_for(problem: MappingProblem, goal: MappingGoal = MappingGoal(), power: Power = Power()) -> MappingAnswer:
    """The mapping that the goal asks for, or an error that says what is short."""
    check(problem, goal, power)
    bound = throughput_bound(problem, goal.limits)
    if goal.min_throughput and goal.min_throughput > bound:
        raise Infeasible(
            f"no mapping gives {goal.min_throughput:g} frames a second: the bound is {bound:.4g}; "
            "ask for less, or give more cores"
        )
    asked = goal
    for _ in range(_TRIES):
        answer = MappingAnswer(mapping := _solved(problem, asked, power), timing_of(mapping), bound, power)
        excess = _excess(answer, goal)
        if not excess:
            return _or_assigned(answer, goal)
        latency_factor, ram_factor = excess
        asked = replace(
            asked,
            max_latency=asked.max_latency and asked.max_latency / latency_factor,
            ram=asked.ram and int(asked.ram / ram_factor),
        )
    raise Infeasible(_short(answer, goal))


def check(problem: MappingProblem, goal: MappingGoal, power: Power) -> None:
    """An error for what no mapping can give."""
    if impossible := problem.impossible():
        names = ", ".join(f"'{name}'" for name in impossible)
        raise Infeasible(f"no processor of the board can run {names}; profile it with an executor that can")
    stages = goal.limits.stages
    if stages is not None and stages > len(problem.layers):
        raise InputError(
            f"{stages} stages are asked for, but network '{problem.name}' has {text.plural(len(problem.layers), 'layer')}"
        )
    if goal.minimise == "energy" and power.active is None:
        raise InputError("the board says no [power] active, so energy is unknown; add it to the board file")


def _solved(problem: MappingProblem, goal: MappingGoal, power: Power) -> BoardMapping:
    at_most = 1 / goal.min_throughput if goal.min_throughput else inf
    if goal.minimise == "period" and goal.max_latency is None and goal.ram is None:
        return map_exact(problem, goal.limits)
    solve, value = _search(problem, goal, power, at_most)
    try:
        found = best_under_load(problem, goal.limits, solve, value)
    except Infeasible:
        raise Infeasible(_least(problem, goal)) from None
    is_sum_exact = goal.max_latency is None or goal.ram is None
    return replace(found, optimal=found.optimal and is_sum_exact)


Solve = Callable[[PipelineSolver], tuple[MappedStage, ...]]


def _search(
    problem: MappingProblem, goal: MappingGoal, power: Power, at_most: float
) -> tuple[Solve, Callable[[BoardMapping], float]]:
    """How the solver is asked, and what is least of the best one."""

    def cost_of(solver: PipelineSolver, what: Minimise) -> Cost:
        return {"latency": latency, "memory": memory(solver), "energy": energy(problem, power)}.get(what, latency)

    def solve(solver: PipelineSolver) -> tuple[MappedStage, ...]:
        costs = list(_limited(solver, goal))
        best: tuple[MappedStage, ...] = ()
        if goal.minimise == "period":
            for cost in costs:
                period = solver.shortest_period(cost, 1.0)
                if period is not None and period <= at_most * (1 + 1e-9):
                    stages = solver.cheapest(period, cost)
                    if _keeps(solver, goal, stages) and (not best or _period(stages) < _period(best)):
                        best = stages
            return best
        for cost in (cost_of(solver, goal.minimise), *costs):
            stages = solver.cheapest(at_most, cost)
            if not stages or not _keeps(solver, goal, stages):
                continue
            least = solver.least(at_most, cost)
            fastest = solver.shortest_period(cost, least)  # of those that are as good, the fastest
            stages = solver.cheapest(fastest, cost) if fastest is not None else stages
            return stages
        return best

    def value(mapping: BoardMapping) -> float:
        if goal.minimise == "period":
            return mapping.load_period
        if goal.minimise == "latency":
            return sum(sum(stage.seconds) for stage in mapping.stages)
        answer = MappingAnswer(mapping, timing_of(mapping), inf, power)
        return float(answer.memory_bytes) if goal.minimise == "memory" else answer.energy or 0.0

    return solve, value


def _limited(solver: PipelineSolver, goal: MappingGoal) -> Iterator[Cost]:
    """Costs of which at most 1 may be spent; with two limits some mixtures of them."""
    limits: list[Cost] = []
    if goal.max_latency is not None:
        most_seconds = goal.max_latency
        limits.append(lambda choice: latency(choice) / most_seconds)
    if goal.ram is not None:
        most_bytes, bytes_of = max(1, goal.ram), memory(solver)
        limits.append(lambda choice: bytes_of(choice) / most_bytes)
    if len(limits) < 2:
        yield from limits
        return
    for share in (0.5, 0.25, 0.75, 0.1, 0.9, 0.0, 1.0):
        yield lambda choice, share=share: share * limits[0](choice) + (1 - share) * limits[1](choice)  # type: ignore[misc]


def _keeps(solver: PipelineSolver, goal: MappingGoal, stages: tuple[MappedStage, ...]) -> bool:
    seconds = sum(sum(stage.seconds) for stage in stages)
    if not stages or seconds > (goal.max_latency or inf) * (1 + 1e-9):
        return False
    if goal.ram is None:
        return True
    mapping = BoardMapping(solver.problem, stages, "", False)
    return MappingAnswer(mapping, timing_of(mapping), inf).memory_bytes <= goal.ram


def _period(stages: tuple[MappedStage, ...]) -> float:
    return max(stage.period for stage in stages)


def memory(solver: PipelineSolver) -> Cost:
    """Bytes: an arena for each replica, and a slot of every tensor that it takes or hands over."""
    cuts = solver.cuts
    moved = cuts.moved_outside
    each = cuts.working_bytes + moved.bytes_in + moved.bytes_out

    def cost(choice: Choice) -> Floats:
        return np.where(np.isfinite(choice.seconds), choice.replicas * each, np.inf)

    return cost


def energy(problem: MappingProblem, power: Power) -> Cost:
    """Joules per frame of what is busy; what the board draws idle depends on the period alone."""
    watts = ((power.active or 0.0) - (power.idle or 0.0)) / sum(pool.cores for pool in problem.pools)

    def cost(choice: Choice) -> Floats:
        return watts * choice.seconds * (sum(choice.cores) / choice.replicas)

    return cost


def _or_assigned(answer: MappingAnswer, goal: MappingGoal) -> MappingAnswer:
    """The answer, or the best mapping without order where that is faster in spite of its waiting."""
    if goal != MappingGoal() or answer.gap < 1e-3:
        return answer
    problem = single_processors(answer.mapping.problem)
    found = assign_exact(problem, "slowest", effort=1.0)
    if found.value >= answer.timing.period:
        return answer
    mapping = replace(mapping_of(problem, found.genes, "exact"), problem=answer.mapping.problem)
    other = MappingAnswer(mapping, timing_of(mapping), answer.bound, answer.power)
    return other if other.throughput > answer.throughput else answer


def _excess(answer: MappingAnswer, goal: MappingGoal) -> tuple[float, float] | None:
    """By what factors latency and memory exceed their limits; None where they do not."""
    late = max(1.0, answer.latency / goal.max_latency) if goal.max_latency else 1.0
    full = max(1.0, answer.memory_bytes / goal.ram) if goal.ram else 1.0
    return None if late <= 1 + 1e-9 and full <= 1 else (late, full)


def _short(answer: MappingAnswer, goal: MappingGoal) -> str:
    if goal.max_latency and answer.latency > goal.max_latency:
        return (
            f"no mapping was found with a latency of {goal.max_latency * 1e3:.4g} ms; the nearest has "
            f"{answer.latency * 1e3:.4g} ms: allow {(answer.latency - goal.max_latency) * 1e3:.3g} ms more"
        )
    assert goal.ram is not None
    return (
        f"no mapping was found in {text.size(goal.ram)}; the nearest needs {text.size(answer.memory_bytes)}: "
        f"allow {text.size(answer.memory_bytes - goal.ram)} more"
    )


def _least(problem: MappingProblem, goal: MappingGoal) -> str:
    """What is short, and by how much."""
    for what, limit in (("latency", goal.max_latency), ("memory", goal.ram)):
        if limit is None:
            continue
        least = map_for(problem, MappingGoal("latency" if what == "latency" else "memory", limits=goal.limits))
        if what == "latency" and least.latency > limit:
            return _short(least, goal)
        if what == "memory" and least.memory_bytes > limit:
            return _short(least, replace(goal, max_latency=None))
    return "no mapping keeps all limits together, though each alone can be kept; relax one of them"
