"""The genetic search of M 3.5.2: one gene per layer, the processor that runs it. A generation is one array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...platform import Power
from ..answer import UNKNOWN, MappingAnswer
from ..assignment import Assignment, AssignmentGoal, AssignmentProblem, Genes, mapping_of, single_processors
from ..bound import throughput_bound
from ..downsets import Floats
from ..goal import ANY_GOAL, check
from ..problem import MappingProblem
from ..timed_graph import timing_of

Fitness = Callable[[Genes], Floats]  # of each row; the least is the fittest


@dataclass(frozen=True)
class GeneticSettings:
    """Parameters as in M 3.6."""

    population: int = 1000
    epochs: int = 500
    mutation: float = 0.05
    patience: int = 50  # epochs without improvement that end a search
    searches: int = 3  # with different first generations; the paper does not give a number
    seed: int = 1


AS_PUBLISHED = GeneticSettings()


def map_genetic(
    problem: MappingProblem,
    goal: AssignmentGoal = "balance",
    power: Power = UNKNOWN,
    settings: GeneticSettings = AS_PUBLISHED,
) -> MappingAnswer:
    """The fittest mapping of the paper's kind, with its phases and predictions."""
    check(problem, ANY_GOAL, power)
    processors = single_processors(problem)
    assignment = assign_genetic(processors, goal, settings)
    mapping = mapping_of(processors, assignment.genes, "ga")
    return MappingAnswer(mapping, timing_of(mapping), throughput_bound(problem), power)


def assign_genetic(
    problem: AssignmentProblem, goal: AssignmentGoal = "balance", settings: GeneticSettings = AS_PUBLISHED
) -> Assignment:
    """The fittest mapping of several searches: two-parent crossover, mutation of a single gene."""
    fitness = partial(problem.values, goal=goal)
    genes, value = evolve(fitness, len(problem.problem.layers), len(problem.processors), settings)
    return Assignment(tuple(genes.tolist()), value, 0.0)


def evolve(fitness: Fitness, layers: int, processors: int, settings: GeneticSettings) -> tuple[Genes, float]:
    """The processors with the least fitness over several searches, and that fitness."""
    random = np.random.default_rng(settings.seed)
    fittest = [_searched(fitness, layers, processors, settings, random) for _ in range(settings.searches)]
    return min(fittest, key=lambda one: one[1])


def _searched(
    fitness: Fitness, layers: int, processors: int, settings: GeneticSettings, random: np.random.Generator
) -> tuple[Genes, float]:
    """The fittest of one search. Duplicates in fitness are ranked last, to keep diversity."""
    genes = first_generation(settings.population, layers, processors, random)
    values = fitness(genes)
    best, since = np.inf, 0
    for _ in range(settings.epochs):
        since = 0 if values.min() < best else since + 1
        best = values.min()
        if since >= settings.patience:
            break
        children = offspring(genes, values, settings.mutation, processors, random)
        genes = np.concatenate([genes, children])
        values = np.concatenate([values, fitness(children)])
        again = np.ones(len(values), bool)
        again[np.unique(values, return_index=True)[1]] = False
        fittest = np.lexsort((values, again))[: settings.population]
        genes, values = genes[fittest], values[fittest]
    return genes[values.argmin()], float(values.min())


def first_generation(population: int, layers: int, processors: int, random: np.random.Generator) -> Genes:
    """Random mappings, each with its own preferences: a GPU may get nearly all layers, or none."""
    shares = random.dirichlet(np.full(processors, 0.5), population).cumsum(1)
    return (random.random((population, layers, 1)) > shares[:, None, :-1]).sum(2)


def offspring(genes: Genes, values: Floats, mutation: float, processors: int, random: np.random.Generator) -> Genes:
    """As many children from tournament-selected parents: one-point crossover, some with a single mutated gene."""
    count, layers = genes.shape
    one, two = (random.permutation(count) for _ in range(2))
    mothers = genes[np.where(values[one] <= values[two], one, two)]
    fathers = np.roll(mothers, 1, axis=0)
    is_first = np.arange(layers) < random.integers(1, max(2, layers), (count, 1))
    children = np.where(is_first, mothers, fathers)
    changed = np.flatnonzero(random.random(count) <= mutation)
    children[changed, random.integers(0, layers, len(changed))] = random.integers(0, processors, len(changed))
    return children
