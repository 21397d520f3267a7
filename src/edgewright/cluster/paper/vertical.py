"""Vertical partitioning (T 4): whole layers on devices, not necessarily consecutive ones, by T's rules (1) to (4).

T balances devices, eq. (1), by a genetic search. Ours (`balanced`) makes the fullest device small, with a bound. Both
take plain costs of layers, so that they serve any way of counting memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import gcd

import numpy as np

from ...errors import Infeasible, InputError
from ...mapping.assignment import Genes
from ...mapping.downsets import Floats
from ...mapping.paper.genetic import GeneticSettings, evolve
from .layers import FLOAT32_BYTES, PaperLayer

# T 5. It names no patience and no number of searches.
T_SETTINGS = GeneticSettings(population=5000, epochs=100, mutation=0.05, patience=100, searches=1)


@dataclass(frozen=True)
class VerticalProblem:
    """What each layer costs on the device that holds it, and how much each device holds, in the same unit."""

    costs: tuple[int, ...]
    devices: int
    limits: tuple[int, ...] | None = None  # of each device; None: no limits

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise InputError(f"cannot divide layers over {self.devices} devices; give 1 or more")
        if not self.costs or min(self.costs) < 0:
            raise InputError("expected at least one layer, and no negative costs")
        if self.limits is not None and len(self.limits) != self.devices:
            raise InputError(f"{self.devices} devices have {len(self.limits)} limits; give one for each")
        if self.limits is not None and min(self.limits) < 0:
            raise InputError(f"a device has a limit of {min(self.limits)}; give limits of 0 or more")

    @cached_property
    def total(self) -> int:
        return sum(self.costs)

    @cached_property
    def unit(self) -> int:
        """What all costs are multiples of."""
        return reduce(gcd, self.costs) or 1

    @cached_property
    def ceilings(self) -> tuple[int, ...]:
        """What each device can hold at most."""
        return self.limits if self.limits is not None else (self.total,) * self.devices

    def loads(self, devices: Sequence[int]) -> tuple[int, ...]:
        """What each device holds, for a device of each layer."""
        loads = [0] * self.devices
        for cost, device in zip(self.costs, devices, strict=True):
            loads[device] += cost
        return tuple(loads)


@dataclass(frozen=True)
class VerticalPartition:
    """The device of each layer. In no partition the fullest device holds less than `bound`."""

    devices: tuple[int, ...]
    loads: tuple[int, ...]
    bound: int

    @property
    def fullest(self) -> int:
        return max(self.loads)

    @property
    def gap(self) -> float:
        """The share of the fullest device that a better partition could save at most."""
        return (self.fullest - self.bound) / self.fullest if self.fullest else 0.0

    @property
    def optimal(self) -> bool:
        return self.fullest == self.bound

    @property
    def saving(self) -> float:
        """The share of one device's memory that the fullest device saves: the first figure of T table 3."""
        return 1 - self.fullest / sum(self.loads) if self.fullest else 0.0

    @property
    def best_saving(self) -> float:
        """The saving that no partition exceeds."""
        return 1 - self.bound / sum(self.loads) if self.fullest else 0.0


def vertical_costs(layers: Sequence[PaperLayer], value_bytes: int = FLOAT32_BYTES) -> tuple[int, ...]:
    """Bytes of each layer by T's rules (2) to (4): weights, inputs and outputs; nothing is reused."""
    return tuple(layer.values * value_bytes for layer in layers)


def fullest_bound(problem: VerticalProblem) -> int:
    """What the fullest device holds at least: its share, the largest layer, or the last two of the n + 1 largest."""
    costs = sorted(problem.costs, reverse=True)
    shared = sum(costs[problem.devices - 1 : problem.devices + 1]) if len(costs) > problem.devices else 0
    return max(-(-_level(problem) // problem.unit) * problem.unit, costs[0], shared)


def _level(problem: VerticalProblem) -> int:
    """The height of the fullest device if layers could be poured like a liquid, up to the limits."""
    left = problem.total
    for index, limit in enumerate(sorted(problem.ceilings)):
        even = -(-left // (problem.devices - index))
        if even <= limit:
            return even
        left -= limit
    raise Infeasible(
        f"layers take {problem.total} bytes and {problem.devices} devices hold {problem.total - left}: "
        f"{left} bytes short; add devices or raise their limits"
    )


def vertical_genetic(problem: VerticalProblem, settings: GeneticSettings = T_SETTINGS) -> VerticalPartition:
    """The partition with the least sum of differences between devices, eq. (1), that T's genetic search finds.

    T knows no limits, and neither does this search.
    """
    costs = np.array(problem.costs, np.float64)

    def imbalance(genes: Genes) -> Floats:
        places = genes + problem.devices * np.arange(len(genes))[:, None]
        weights = np.broadcast_to(costs, genes.shape)
        loads = np.bincount(places.ravel(), weights.ravel(), problem.devices * len(genes))
        loads = loads.reshape(len(genes), problem.devices)
        loads.sort(axis=1)
        # Of sorted loads, the one at index i is the larger one in i pairs and the smaller one in n - 1 - i.
        signs = 2 * np.arange(problem.devices) - (problem.devices - 1)
        return np.asarray(2 * (loads @ signs), np.float64)  # the sum of (1) goes over ordered pairs

    genes, _ = evolve(imbalance, len(costs), problem.devices, settings)
    devices = tuple(int(gene) for gene in genes)
    return VerticalPartition(devices, problem.loads(devices), fullest_bound(problem))
