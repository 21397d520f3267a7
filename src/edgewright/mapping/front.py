"""Mappings that are Pareto-optimal in throughput, latency and memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..platform import Power
from .answer import UNKNOWN, MappingAnswer
from .board_mapping import BoardMapping, MappedStage, with_busy_cores
from .bound import throughput_bound
from .exact import Cost, PipelineSolver, latency
from .goal import MappingGoal, check, memory, mixed
from .problem import MappingProblem
from .timed_graph import timing_of

PERIODS = 12  # between the shortest and the longest useful one
SHARES = (1.0, 0.5, 0.001)  # weight of latency, beside memory, in the objective at each


def mapping_front(problem: MappingProblem, goal: MappingGoal, power: Power = UNKNOWN) -> tuple[MappingAnswer, ...]:
    """The mappings, fastest first. At each of some periods latency, memory and a mixture are minimised exactly."""
    check(problem, goal, power)
    bound = throughput_bound(problem, goal.limits)
    solver = PipelineSolver(problem.slowed({pool.name: pool.cores for pool in problem.pools}), goal.limits)
    answers: dict[tuple[MappedStage, ...], MappingAnswer] = {}
    for stages in _candidates(solver):
        if stages and stages not in answers:
            mapping = with_busy_cores(BoardMapping(solver.problem, stages, "exact", False), problem)
            answers[stages] = MappingAnswer(mapping, timing_of(mapping), bound, power)
    kept = _undominated(answer for answer in answers.values() if _is_allowed(answer, goal))
    return tuple(sorted(kept, key=lambda answer: -answer.throughput))


def _candidates(solver: PipelineSolver) -> Iterator[tuple[MappedStage, ...]]:
    fastest = solver.fastest()
    if not fastest:
        return
    late, large = _relative(solver, latency), _relative(solver, memory(solver))
    yield fastest
    shortest = max(stage.period for stage in fastest)
    longest = [solver.shortest_period(cost, 1.0) or shortest for cost in (late, large)]  # longer periods gain nothing
    for period in np.linspace(shortest, max(shortest, *longest), PERIODS):
        for share in SHARES:
            yield solver.cheapest(float(period), mixed(share, late, large))


def _relative(solver: PipelineSolver, cost: Cost) -> Cost:
    """The cost relative to its minimum."""
    least = solver.least(np.inf, cost) or 1.0
    return lambda choice: cost(choice) / least


def _is_allowed(answer: MappingAnswer, goal: MappingGoal) -> bool:
    return (
        (goal.max_latency is None or answer.latency <= goal.max_latency)
        and (goal.ram is None or answer.memory_bytes <= goal.ram)
        and (goal.min_throughput is None or answer.throughput >= goal.min_throughput)
    )


def _undominated(answers: Iterable[MappingAnswer]) -> list[MappingAnswer]:
    points = {(round(-a.throughput, 9), round(a.latency, 12), a.memory_bytes): a for a in answers}
    return [
        answer
        for point, answer in points.items()
        if not any(
            other != point and all(theirs <= ours for theirs, ours in zip(other, point, strict=True))
            for other in points
        )
    ]
