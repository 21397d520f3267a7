"""A processor for each layer: the mappings of M 3.5.2, their loads and fitness, and the best of them by CP-SAT.

Such a mapping may give a processor layers from several places of the network. They run in phases (M Algorithm 2). If a
phase waits for another processor that waited for an earlier phase, the period is longer than any load: it is computed
with the dataflow graph (`timed_graph`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..cpsat import cp_model, repeatable_solver, solve
from ..dataflow.cnn.subnets import Wiring, cut
from ..errors import Infeasible
from .board_mapping import BoardMapping, stage_of
from .downsets import Flags, Floats
from .problem import Execution, MappingProblem

AssignmentGoal = Literal["balance", "slowest"]  # eq. 3.1, or the time of the slowest processor
Genes = NDArray[np.int64]  # a row for each mapping: the processor of each layer
EFFORT = 3.0  # deterministic seconds of CP-SAT
_UNITS = 1 << 20  # time units of the solver, for the longest load of a single processor


@dataclass(frozen=True)
class AssignmentProblem:
    """Layers and single processors; a GPU and the core that drives it count as one processor (M 2.3)."""

    problem: MappingProblem  # with the times of all cores busy
    processors: tuple[str, ...]
    executions: tuple[Execution, ...]  # of each processor

    @cached_property
    def seconds(self) -> Floats:
        """Seconds of each layer on each processor, including a GPU's transfers of inputs and outputs."""
        seconds = np.array([execution.seconds for execution in self.executions]).T
        for column, execution in enumerate(self.executions):
            pool = self.problem.pool[execution.pool]
            for tensor in self.problem.tensors if pool.is_gpu else ():
                if tensor.producer is None:
                    for reader in tensor.readers:
                        seconds[reader, column] += pool.reading.seconds(1, tensor.bytes)
                elif tensor.is_output:
                    seconds[tensor.producer, column] += pool.writing.seconds(1, tensor.bytes)
        return seconds

    def moving(self, edge: tuple[int, int, int], processor: int) -> tuple[float, float]:
        """Seconds to write and read what an edge carries between processors."""
        pool = self.problem.pool[self.executions[processor].pool]
        return pool.writing.seconds(1, edge[2]), pool.reading.seconds(1, edge[2])

    def loads(self, genes: Genes) -> Floats:
        """Eq. 3.2 for each mapping and each processor, with eq. 3.4 only for edges that cross."""
        loads = self._summed(genes, self.seconds[np.arange(genes.shape[1]), genes])
        if not self.problem.edges or not self.problem.has_moves:
            return loads
        sources, targets = (genes[:, [edge[end] for edge in self.problem.edges]] for end in (0, 1))
        edges, crosses = np.arange(sources.shape[1]), sources != targets
        loads += self._summed(sources, np.where(crosses, self.moves[0][edges, sources], 0.0))
        loads += self._summed(targets, np.where(crosses, self.moves[1][edges, targets], 0.0))
        return loads

    def _summed(self, processors: Genes, seconds: Floats) -> Floats:
        """What each row spends on each processor."""
        count = len(self.processors)
        places = processors + count * np.arange(len(processors))[:, None]
        sums = np.bincount(places.ravel(), seconds.ravel(), count * len(processors))
        return sums.astype(np.float64).reshape(len(processors), count)

    @cached_property
    def moves(self) -> Floats:
        """Seconds to write and read what each edge carries, on each processor."""
        costs = [[self.moving(edge, p) for p in range(len(self.processors))] for edge in self.problem.edges]
        return np.array(costs).transpose(2, 0, 1)

    def values(self, genes: Genes, goal: AssignmentGoal) -> Floats:
        """The objective: the sum of all differences between loads (eq. 3.1), or the greatest load."""
        loads = self.loads(genes)
        possible: Flags = np.asarray(np.isfinite(loads).all(1))
        if goal == "slowest":
            value = loads.max(1)
        else:
            finite = np.where(possible[:, None], loads, 0.0)
            value = np.abs(finite[:, :, None] - finite[:, None, :]).sum((1, 2))
        return np.where(possible, value, np.inf)


def single_processors(problem: MappingProblem) -> AssignmentProblem:
    """Each core separately, with the fastest runtime for the whole network; the first ones drive the GPUs."""
    slowed = problem.slowed({pool.name: pool.cores for pool in problem.pools})
    processors: list[str] = []
    executions: list[Execution] = []
    left = {pool.name: pool.cores for pool in problem.pools}
    for pool in sorted(problem.pools, key=lambda pool: not pool.is_gpu):
        fitting = [e for e in slowed.executions if e.pool == pool.name and e.lanes == 1]
        for number in range(1, pool.cores + 1):
            free = [e for e in fitting if e.driver is None or left[e.driver]]
            if not free or not left[pool.name]:
                break
            best = min(free, key=_preference)
            name = f"{pool.name}{number}" if pool.cores > 1 else pool.name
            for taken in best.cores(1):
                left[taken] -= 1
            processors.append(name)
            executions.append(best)
    for number, layer in enumerate(problem.layers):
        if not any(isfinite(execution.seconds[number]) for execution in executions):
            raise Infeasible(f"no core by itself and no GPU has a time for layer '{layer}'; profile it on one core")
    return AssignmentProblem(slowed, tuple(processors), tuple(executions))


def _preference(execution: Execution) -> tuple[int, float]:
    """A sort key: most layers, then the least time."""
    finite = [seconds for seconds in execution.seconds if isfinite(seconds)]
    return -len(finite), sum(finite)


def mapping_of(problem: AssignmentProblem, genes: Sequence[int], method: str) -> BoardMapping:
    """The mapping with its phases, divided so that no processor waits in a cycle."""
    layers = problem.problem.layers
    before = {layer: frozenset(layers[other] for other in problem.problem.before[i]) for i, layer in enumerate(layers)}
    wiring = Wiring(layers, before, {layer: problem.processors[genes[i]] for i, layer in enumerate(layers)})
    place = {layer: i for i, layer in enumerate(layers)}
    subnets = cut(wiring)
    stages = []
    for name, execution in zip(problem.processors, problem.executions, strict=True):
        if name in subnets:
            parts = [[place[layer] for layer in part] for part in subnets[name]]
            stages.append(stage_of(problem.problem, parts, _fastest(problem, execution, parts)))
    return BoardMapping(problem.problem, tuple(stages), method, optimal=False)


def _fastest(problem: AssignmentProblem, execution: Execution, parts: Sequence[Sequence[int]]) -> Execution:
    """The fastest runtime for these layers on the same processor."""
    place = execution.pool, execution.lanes, execution.driver
    layers = [layer for part in parts for layer in part]
    others = [e for e in problem.problem.executions if (e.pool, e.lanes, e.driver) == place]
    return min(others, key=lambda other: problem.problem.time(layers, other))


@dataclass(frozen=True)
class Assignment:
    """A processor for each layer, with its value; `bound` is a lower bound for all assignments."""

    genes: tuple[int, ...]
    value: float
    bound: float

    @property
    def optimal(self) -> bool:
        return self.value <= self.bound * (1 + 1e-3) + 1e-12


def assign_exact(problem: AssignmentProblem, goal: AssignmentGoal = "slowest", effort: float = EFFORT) -> Assignment:
    """The assignment with the least value, proven or with a bound."""
    seconds = problem.seconds
    processors = range(len(problem.processors))
    unit = np.where(np.isfinite(seconds), seconds, 0.0).sum(0).max() / _UNITS or 1.0
    model = cp_model.CpModel()

    # Variables: the processor of each layer, and the load of each processor.
    runs = {
        (layer, p): model.new_bool_var("")
        for layer in range(len(seconds))
        for p in processors
        if isfinite(seconds[layer, p])
    }
    load = [model.new_int_var(0, 4 * _UNITS, "") for _ in processors]

    # Constraints: each layer runs once; a load is the work plus the transfers on its crossing edges.
    for layer in range(len(seconds)):
        model.add_exactly_one(runs[layer, p] for p in processors if (layer, p) in runs)
    for p in processors:
        terms = [
            round(seconds[layer, p] / unit) * runs[layer, p] for layer in range(len(seconds)) if (layer, p) in runs
        ]
        terms += _crossing(problem, model, runs, p, unit)
        model.add(load[p] == sum(terms))

    # Objective, with a start solution.
    start = _start(problem, goal)
    for (layer, p), variable in runs.items():
        model.add_hint(variable, start[layer] == p)
    if goal == "slowest":
        slowest = model.new_int_var(0, 4 * _UNITS, "")
        model.add_max_equality(slowest, load)
        model.minimize(slowest)
    else:
        differences = []
        for p in processors:
            for q in range(p):
                difference = model.new_int_var(0, 4 * _UNITS, "")
                model.add_abs_equality(difference, load[p] - load[q])
                differences.append(2 * difference)  # the sum of 3.1 is over ordered pairs
        model.minimize(sum(differences))

    solver = repeatable_solver(effort)
    status = solve(solver, model)
    genes = [start]
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        genes.append(
            [
                next(p for p in processors if (layer, p) in runs and solver.value(runs[layer, p]))
                for layer in range(len(seconds))
            ]
        )
    values = problem.values(np.array(genes), goal)
    best = int(values.argmin())
    bound = max(0.0, solver.best_objective_bound * unit) if status != cp_model.UNKNOWN else 0.0
    return Assignment(tuple(genes[best]), float(values[best]), min(bound, float(values[best])))


def _crossing(
    problem: AssignmentProblem,
    model: cp_model.CpModel,
    runs: dict[tuple[int, int], cp_model.IntVar],
    processor: int,
    unit: float,
) -> list[cp_model.LinearExprT]:
    """The load that edges add if their other end runs elsewhere."""
    terms: list[cp_model.LinearExprT] = []
    for edge in problem.problem.edges:
        writing, reading = problem.moving(edge, processor)
        ends = [runs.get((layer, processor)) for layer in edge[:2]]
        for mine, other, cost in ((ends[0], ends[1], writing), (ends[1], ends[0], reading)):
            price = round(cost / unit)
            if mine is None or not price:
                continue
            if other is None:
                terms.append(price * mine)
                continue
            crosses = model.new_bool_var("")
            model.add_bool_and(mine, other.negated()).only_enforce_if(crosses)
            model.add_bool_or(mine.negated(), other, crosses)
            terms.append(price * crosses)
    return terms


def _start(problem: AssignmentProblem, goal: AssignmentGoal) -> list[int]:
    """Assigns each layer in turn, longest first, to the processor where it ends first (Graham 1969); improved by
    exchanges."""
    seconds = problem.seconds
    loads = np.zeros(seconds.shape[1])
    genes = np.zeros(len(seconds), int)
    for layer in sorted(range(len(seconds)), key=lambda layer: -seconds[layer].min()):
        genes[layer] = int((loads + seconds[layer]).argmin())
        loads[genes[layer]] += seconds[layer, genes[layer]]
    return [int(gene) for gene in _exchanged(problem, goal, genes)]


def _exchanged(problem: AssignmentProblem, goal: AssignmentGoal, genes: Genes, rounds: int = 200) -> Genes:
    """A mapping that no move of one layer, and no exchange of two in a sample, improves."""
    random = np.random.default_rng(1)
    best = problem.values(genes[None], goal)[0]
    for _ in range(rounds):
        tried = np.concatenate([_moves(genes, len(problem.processors)), _swaps(genes, random)])
        values = problem.values(tried, goal)
        if not values.min() < best:
            break
        genes, best = tried[int(values.argmin())], values.min()
    return genes


def _moves(genes: Genes, processors: int) -> Genes:
    layers, targets = np.divmod(np.arange(len(genes) * processors), processors)
    tried = np.repeat(genes[None], len(layers), 0)
    tried[np.arange(len(layers)), layers] = targets
    return tried


def _swaps(genes: Genes, random: np.random.Generator, most: int = 2000) -> Genes:
    one, two = random.integers(0, len(genes), (2, most))
    apart = genes[one] != genes[two]
    one, two = one[apart], two[apart]
    tried = np.repeat(genes[None], len(one), 0)
    rows = np.arange(len(one))
    tried[rows, one], tried[rows, two] = genes[two], genes[one]
    return tried
