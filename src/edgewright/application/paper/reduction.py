"""Runs layers by parts until the application fits (M 6.5.2, Algorithms 9 and 10), corrected.

Of the points that fit, the one with the least slow-down is chosen, then the one with the least memory; the printed
version chooses the least memory, which slows networks down needlessly. Every chromosome is evaluated once, and network
by network. Few genes are tried in all combinations; more are left to NSGA-II.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, combinations, product

import numpy as np

from ...errors import InputError
from ...network import Array
from .edges import PaperApplication, PaperEdge, PaperNetwork
from .reuse import reuse, total

Genes = Mapping[str, frozenset[str]]  # of each network: what runs by parts
CALL_MACS = 1000  # cost of starting an additional phase, in MACs
MOST_TRIED = 12  # genes of all networks; the genetic search handles more
POPULATION, GENERATIONS, SEED = 60, 60, 1
START = 0.8  # share of genes set in the first population, as in the authors' tool


@dataclass(frozen=True)
class PaperPoint:
    """A chromosome and its figures."""

    genes: Genes
    memory: int
    slowdowns: tuple[float, ...]  # of each network, as a share
    edges: tuple[PaperEdge, ...]

    @property
    def slowdown(self) -> float:
        return sum(self.slowdowns)

    @property
    def chosen(self) -> int:
        """The number of layers that run by parts."""
        return sum(map(len, self.genes.values()))


@dataclass
class Evaluation:
    """Algorithm 10, with a cache."""

    application: PaperApplication
    _edges: dict[tuple[str, frozenset[str]], tuple[PaperEdge, ...]] = field(default_factory=dict)

    def point(self, genes: Genes) -> PaperPoint:
        edges = tuple(chain.from_iterable(self._derived(one, genes) for one in self.application.networks))
        memory = total(reuse(edges, self.application.meet))
        slow = tuple(slowdown(one, genes.get(one.name, frozenset())) for one in self.application.networks)
        return PaperPoint(dict(genes), memory, slow, edges)

    def _derived(self, network: PaperNetwork, genes: Genes) -> tuple[PaperEdge, ...]:
        key = (network.name, genes.get(network.name, frozenset()))
        if key not in self._edges:
            self._edges[key] = network.edges(key[1])
        return self._edges[key]


def slowdown(network: PaperNetwork, by_parts: frozenset[str]) -> float:
    """The estimated share of time that phases add: each starts a kernel; inputs and outputs compute nothing."""
    layers = {layer.name for layer in network.network.layers} - network.free
    phases = network.phases(by_parts)
    extra = sum(phases[name] - 1 for name in layers) * CALL_MACS
    return extra / max(1, network.network.total_macs + len(layers) * CALL_MACS)


def reduce_buffers(application: PaperApplication, limit: int | None) -> tuple[PaperPoint, bool]:
    """Algorithm 9: the point that fits with the least slow-down, and whether it fits; else that with least memory."""
    evaluation = Evaluation(application)
    whole = evaluation.point({})
    if limit is not None and whole.memory <= limit:
        return whole, True
    count = sum(len(one.genes) for one in application.networks)
    points = list(_all_points(evaluation) if count <= MOST_TRIED else _evolved(evaluation))
    fitting = [point for point in points if limit is not None and point.memory <= limit]
    if fitting:
        return min(fitting, key=lambda p: (round(p.slowdown, 12), p.memory, p.chosen)), True
    return min(points, key=lambda p: (p.memory, round(p.slowdown, 12), p.chosen)), limit is None


def _all_points(evaluation: Evaluation) -> Iterator[PaperPoint]:
    networks = evaluation.application.networks
    for chosen in product(*(_subsets(one.genes) for one in networks)):
        yield evaluation.point({one.name: genes for one, genes in zip(networks, chosen, strict=True)})


def _subsets(genes: Sequence[str]) -> list[frozenset[str]]:
    return [frozenset(some) for size in range(len(genes) + 1) for some in combinations(genes, size)]


def _evolved(evaluation: Evaluation) -> Iterator[PaperPoint]:
    """The points of NSGA-II: two-point crossover, bit flips, one objective per network and one for memory."""
    try:
        from pymoo.algorithms.moo.nsga2 import NSGA2
        from pymoo.operators.crossover.pntx import TwoPointCrossover
        from pymoo.operators.mutation.bitflip import BitflipMutation
        from pymoo.optimize import minimize
        from pymoo.problems.functional import FunctionalProblem
    except ImportError as error:
        raise InputError(
            "the paper's search over this many layers takes pymoo: pip install edgewright[application]"
        ) from error
    networks = evaluation.application.networks
    places = [(one.name, gene) for one in networks for gene in one.genes]
    seen: dict[bytes, PaperPoint] = {}

    def objective(which: int, bits: Array) -> float:
        key = np.asarray(bits, dtype=bool).tobytes()
        if key not in seen:
            chosen = [place for place, bit in zip(places, bits, strict=True) if bit]
            seen[key] = evaluation.point(
                {one.name: frozenset(gene for name, gene in chosen if name == one.name) for one in networks}
            )
        return (seen[key].memory, *seen[key].slowdowns)[which]

    problem = FunctionalProblem(
        len(places), [partial(objective, which) for which in range(1 + len(networks))], xl=0, xu=1
    )
    rng = np.random.default_rng(SEED)
    start = rng.random((POPULATION, len(places))) < START
    start[0] = False
    algorithm = NSGA2(
        pop_size=POPULATION,
        sampling=start,
        crossover=TwoPointCrossover(),
        mutation=BitflipMutation(),
        eliminate_duplicates=True,
    )
    minimize(problem, algorithm, ("n_gen", GENERATIONS), seed=SEED, verbose=False)
    yield from seen.values()
