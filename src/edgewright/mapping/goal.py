"""The goals of a mapping, and the mapping that meets them: limits on latency and memory, and the objective.

The exact solver minimises sums over stages at a given period. Real latency and memory also depend on slots and waiting,
and come from the dataflow graph of the result; if that exceeds a limit, the solver runs again with a tighter one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np

from .. import text
from ..errors import Infeasible, InputError
from ..platform import Power
from .answer import UNKNOWN, MappingAnswer
from .assignment import assign_exact, mapping_of, single_processors
from .board_mapping import BoardMapping, MappedStage
from .bound import throughput_bound
from .downsets import Floats
from .exact import NO_LIMITS, Cost, MappingLimits, PipelineSolver, StageChoice, best_under_load, latency, map_exact
from .problem import MappingProblem
from .timed_graph import timing_of

Minimise = Literal["period", "latency", "memory", "energy"]
_TRIES = 6  # number of tighter limits


@dataclass(frozen=True)
class MappingGoal:
    """What to minimise, and limits."""

    minimise: Minimise = "period"
    max_latency: float | None = None  # seconds
    ram: int | None = None  # bytes for arenas and FIFOs
    min_throughput: float | None = None  # frames per second
    limits: MappingLimits = NO_LIMITS


ANY_GOAL = MappingGoal()


def map_for(problem: MappingProblem, goal: MappingGoal = ANY_GOAL, power: Power = UNKNOWN) -> MappingAnswer:
    """The mapping for the goal, or an error that says which limit cannot be met."""
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
            return _proven(_or_assigned(answer, goal), goal)
        latency_factor, ram_factor = excess
        asked = replace(
            asked,
            max_latency=asked.max_latency and asked.max_latency / latency_factor,
            ram=asked.ram and int(asked.ram / ram_factor),
        )
    raise Infeasible(_short(answer, goal))


def check(problem: MappingProblem, goal: MappingGoal, power: Power) -> None:
    """Raises an error for limits that no mapping can meet."""
    if impossible := problem.impossible():
        names = ", ".join(f"'{name}'" for name in impossible)
        raise Infeasible(f"no processor of the board can run {names}; profile it with an executor that can")
    stages = goal.limits.stages
    if stages is not None and stages > len(problem.layers):
        there = text.plural(len(problem.layers), "layer")
        raise InputError(f"{stages} stages are asked for, but network '{problem.name}' has {there}")
    if goal.minimise == "energy" and power.active is None:
        raise InputError("the board says no [power] active, so energy is unknown; add it to the board file")


def _solved(problem: MappingProblem, goal: MappingGoal, power: Power) -> BoardMapping:
    at_most = 1 / goal.min_throughput if goal.min_throughput else inf
    if goal.minimise == "period" and goal.max_latency is None and goal.ram is None:
        return map_exact(problem, goal.limits)
    solve, value = _search(problem, goal, power, at_most)
    try:
        mapping = best_under_load(problem, goal.limits, solve, value)
    except Infeasible:
        raise Infeasible(_least(problem, goal)) from None
    return replace(mapping, optimal=False)


Solve = Callable[[PipelineSolver], tuple[MappedStage, ...]]


def _search(
    problem: MappingProblem, goal: MappingGoal, power: Power, at_most: float
) -> tuple[Solve, Callable[[BoardMapping], float]]:
    """The parameters of the solver, and the least value of the objective."""

    def cost_of(solver: PipelineSolver, what: Minimise) -> Cost:
        return {"latency": latency, "memory": memory(solver), "energy": energy(problem, power)}.get(what, latency)

    def solve(solver: PipelineSolver) -> tuple[MappedStage, ...]:
        costs = list(_limited(solver, goal))
        if goal.minimise == "period":
            periods = {cost: solver.shortest_period(cost, 1.0) for cost in costs}
            within = {cost: x for cost, x in periods.items() if x is not None and x <= at_most * (1 + 1e-9)}
            pipelines = (solver.cheapest(period, cost) for cost, period in within.items())
            return min((stages for stages in pipelines if _keeps(solver, goal, stages)), key=_period, default=())
        for cost in (cost_of(solver, goal.minimise), *costs):
            stages = solver.cheapest(at_most, cost)
            if _keeps(solver, goal, stages):
                least = solver.least(at_most, cost)
                fastest = solver.shortest_period(cost, least)  # of equally good ones, the fastest
                return solver.cheapest(fastest, cost) if fastest is not None else stages
        return ()

    def value(mapping: BoardMapping) -> float:
        if goal.minimise == "period":
            return mapping.load_period
        if goal.minimise == "latency":
            return sum(sum(stage.seconds) for stage in mapping.stages)
        answer = MappingAnswer(mapping, timing_of(mapping), inf, power)
        return float(answer.memory_bytes) if goal.minimise == "memory" else answer.energy or 0.0

    return solve, value


def _limited(solver: PipelineSolver, goal: MappingGoal) -> Iterator[Cost]:
    """Costs with a budget of 1; for two limits, mixtures of them."""
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
    for share in (0.5, 0.25, 0.75, 0.1, 0.9):
        yield mixed(share, limits[0], limits[1])


def mixed(share: float, one: Cost, other: Cost) -> Cost:
    """A weighted sum of two costs."""

    def cost(choice: StageChoice) -> Floats:
        both = share * one(choice)
        if share < 1:
            both = both + (1 - share) * other(choice)
        return np.where(np.isfinite(choice.seconds), both, np.inf)

    return cost


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
    """Bytes: an arena for each replica, and a slot for every tensor it reads or writes."""
    cuts = solver.cuts
    moved = cuts.moved_outside
    each = cuts.working_bytes + moved.bytes_in + moved.bytes_out

    def cost(choice: StageChoice) -> Floats:
        return np.where(np.isfinite(choice.seconds), choice.replicas * each, np.inf)

    return cost


def energy(problem: MappingProblem, power: Power) -> Cost:
    """Joules per frame of busy processors; the board's idle power depends on the period alone."""
    watts = ((power.active or 0.0) - (power.idle or 0.0)) / sum(pool.cores for pool in problem.pools)

    def cost(choice: StageChoice) -> Floats:
        return watts * choice.seconds * (sum(choice.cores) / choice.replicas)

    return cost


def _proven(answer: MappingAnswer, goal: MappingGoal) -> MappingAnswer:
    """The answer, marked optimal also if limits cost nothing: none is faster even without them."""
    if answer.mapping.optimal or goal.minimise != "period":
        return answer
    free = map_exact(answer.mapping.problem, goal.limits)
    is_fastest = free.optimal and answer.timing.period <= free.load_period * (1 + 1e-9)
    return replace(answer, mapping=replace(answer.mapping, optimal=is_fastest))


def _or_assigned(answer: MappingAnswer, goal: MappingGoal) -> MappingAnswer:
    """The answer, or the best mapping without order if that is faster in spite of its waiting."""
    if goal != ANY_GOAL or answer.gap < 1e-3:
        return answer
    try:
        problem = single_processors(answer.mapping.problem)
    except Infeasible:  # some layer has times for several cores only
        return answer
    assignment = assign_exact(problem, "slowest", effort=0.3)
    if assignment.value >= answer.timing.period:
        return answer
    mapping = replace(mapping_of(problem, assignment.genes, "exact"), problem=answer.mapping.problem)
    other = MappingAnswer(mapping, timing_of(mapping), answer.bound, answer.power)
    return other if other.throughput > answer.throughput else answer


def _excess(answer: MappingAnswer, goal: MappingGoal) -> tuple[float, float] | None:
    """The factors by which latency and memory exceed their limits; None if they do not."""
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
    """A sentence on which limit is exceeded, and by how much."""
    for what, limit in (("latency", goal.max_latency), ("memory", goal.ram)):
        if limit is None:
            continue
        least = map_for(problem, MappingGoal("latency" if what == "latency" else "memory", limits=goal.limits))
        if what == "latency" and least.latency > limit:
            return _short(least, goal)
        if what == "memory" and least.memory_bytes > limit:
            return _short(least, replace(goal, max_latency=None))
    return "no mapping keeps all limits together, though each alone can be kept; relax one of them"
