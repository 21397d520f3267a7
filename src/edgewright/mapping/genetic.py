"""The genetic search of M 3.5.2 on pymoo: a gene for each layer, the processor that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..platform import Power
from .answer import UNKNOWN, MappingAnswer
from .assignment import Assignment, AssignmentGoal, AssignmentProblem, mapping_of, single_processors
from .bound import throughput_bound
from .goal import ANY_GOAL, check
from .problem import MappingProblem
from .timed_graph import timing_of

if TYPE_CHECKING:
    from .assignment import Genes
    from .downsets import Floats


@dataclass(frozen=True)
class GeneticSettings:
    """As in M 3.6."""

    population: int = 1000
    epochs: int = 500
    mutation: float = 0.05
    patience: int = 50  # epochs without gain after which the search ends
    seed: int = 1


AS_PUBLISHED = GeneticSettings()


def map_genetic(
    problem: MappingProblem,
    goal: AssignmentGoal = "balance",
    power: Power = UNKNOWN,
    settings: GeneticSettings = AS_PUBLISHED,
) -> MappingAnswer:
    """The fittest mapping of the paper's kind, with its phases and what follows from them."""
    check(problem, ANY_GOAL, power)
    processors = single_processors(problem)
    found = assign_genetic(processors, goal, settings)
    mapping = mapping_of(processors, found.genes, "ga")
    return MappingAnswer(mapping, timing_of(mapping), throughput_bound(problem), power)


def assign_genetic(
    problem: AssignmentProblem,
    goal: AssignmentGoal = "balance",
    settings: GeneticSettings = AS_PUBLISHED,
) -> Assignment:
    """The fittest mapping found: two-parent crossover, mutation of a single gene."""
    try:
        from pymoo.algorithms.soo.nonconvex.ga import GA
        from pymoo.core.duplicate import NoDuplicateElimination
        from pymoo.core.infill import InfillCriterion
        from pymoo.core.population import Population
        from pymoo.core.problem import Problem
        from pymoo.core.survival import Survival
        from pymoo.operators.sampling.rnd import IntegerRandomSampling
        from pymoo.optimize import minimize
    except ModuleNotFoundError as error:
        raise InputError("the genetic search runs on pymoo: pip install 'edgewright[mapping]'") from error

    class Fitness(Problem):  # type: ignore[misc]
        """All mappings of a generation at once; processors that cannot run a layer cost more than any mapping."""

        def __init__(self) -> None:
            most = len(problem.processors) - 1
            super().__init__(n_var=len(problem.problem.layers), n_obj=1, xl=0, xu=most, vtype=int)

        def _evaluate(self, x: Genes, out: dict[str, Any], *_: object, **__: object) -> None:
            values = problem.values(x.astype(int), goal)
            out["F"] = np.where(np.isfinite(values), values, 1e30)[:, None]

    class Mating(InfillCriterion):  # type: ignore[misc]
        """All children at once: pymoo's own operators go from one to the next, which takes most of the time."""

        def _do(
            self, _problem: Problem, pop: Population, count: int, random_state: Any = None, **__: object
        ) -> Population:
            genes, values = pop.get("X"), pop.get("F")[:, 0]
            children = offspring(genes, values, count, settings.mutation, len(problem.processors), random_state)
            return Population.new("X", children)

    class Fittest(Survival):  # type: ignore[misc]
        """The fittest of parents and children, in this order."""

        def _do(self, _problem: Problem, pop: Population, n_survive: int = 0, **_: object) -> Population:
            return pop[np.argsort(pop.get("F")[:, 0], kind="stable")[:n_survive]]

    class FirstIsBest(GA):  # type: ignore[misc]
        def _set_optimum(self) -> None:
            self.opt = self.pop[:1]

    algorithm = FirstIsBest(
        pop_size=settings.population,
        sampling=IntegerRandomSampling(),
        mating=Mating(eliminate_duplicates=NoDuplicateElimination()),
        survival=Fittest(),
        eliminate_duplicates=False,
        advance_after_initial_infill=True,
    )
    result = minimize(Fitness(), algorithm, _until(settings), seed=settings.seed, verbose=False)
    genes = tuple(int(gene) for gene in result.X)
    return Assignment(genes, float(problem.values(np.array([genes]), goal)[0]), 0.0)


def offspring(
    genes: Genes, values: Floats, count: int, mutation: float, processors: int, random: np.random.Generator
) -> Genes:
    """Children of parents that each beat another one: cut at one place, and some with a single gene changed."""
    layers, pairs = genes.shape[1], -(-count // 2)
    rivals = np.concatenate([random.permutation(len(genes)) for _ in range(-(-4 * pairs // len(genes)))])
    one, two = rivals[: 4 * pairs].reshape(2, -1)
    parents = genes[np.where(values[one] <= values[two], one, two)].reshape(2, pairs, layers)
    is_first = np.arange(layers) < random.integers(1, max(2, layers), (pairs, 1))
    children = np.where(is_first, parents, parents[::-1]).reshape(-1, layers)[:count]
    changed = np.flatnonzero(random.random(count) <= mutation)
    children[changed, random.integers(0, layers, len(changed))] = random.integers(0, processors, len(changed))
    return children


def _until(settings: GeneticSettings) -> Any:
    """After so many epochs, or when the best has not become better for a while."""
    from pymoo.core.termination import Termination

    class Patience(Termination):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.best, self.since = float("inf"), 0

        def _update(self, algorithm: Any) -> float:
            value = float(algorithm.opt[0].F[0])
            self.since = 0 if value < self.best else self.since + 1
            self.best = min(value, self.best)
            return max(algorithm.n_gen / settings.epochs, float(self.since >= settings.patience))

    return Patience()
