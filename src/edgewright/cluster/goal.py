"""What a division is to be good at, within which limits, and how good any could be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import exp, inf, log

from .. import text
from ..errors import InputError
from .costs import DivisionCost, DivisionCosts
from .devices import Cluster

SMOOTHNESS = 0.5  # weight of mean memory in a search: what lowers one of several peaks is a step forward


class ClusterAim(Enum):
    """What is made as small as can be."""

    BALANCE = "balance"  # memory and time together: the fullest device's bytes squared, times the period
    MEMORY = "memory"  # of the fullest device
    THROUGHPUT = "throughput"
    LATENCY = "latency"
    ENERGY = "energy"


@dataclass(frozen=True, slots=True)
class ClusterGoal:
    aim: ClusterAim = ClusterAim.BALANCE
    max_memory: int | None = None  # bytes of any device, beside what devices have
    min_throughput: float | None = None  # frames per second
    max_latency: float | None = None  # seconds
    max_energy: float | None = None  # joules per frame

    def check(self, cluster: Cluster) -> None:
        """An error where the cluster does not say what the goal asks about."""
        unknown = [device.name for device in cluster.devices if not device.active_watts]
        if unknown and (self.aim is ClusterAim.ENERGY or self.max_energy is not None):
            raise InputError(
                f"cluster '{cluster.name}': device '{unknown[0]}' has no power, so the energy of a frame is unknown; "
                'give it one, such as idle = "2.7 W" and active = "6.4 W"'
            )

    def value(self, cost: DivisionCost) -> float:
        """What is made small."""
        return self._combined(cost.fullest, cost.period, cost.latency, cost.energy)

    def _combined(self, memory: float, period: float, latency: float, energy: float) -> float:
        match self.aim:
            case ClusterAim.BALANCE:
                return (2 * log(memory) + log(period)) / 3
            case ClusterAim.MEMORY:
                return log(memory)
            case ClusterAim.THROUGHPUT:
                return log(period)
            case ClusterAim.LATENCY:
                return log(latency)
            case ClusterAim.ENERGY:
                return log(energy)

    def score(self, costs: DivisionCosts, cost: DivisionCost) -> tuple[float, float]:
        """By how much it breaks limits, then the value, with a little of everything else to tell equals apart."""
        rest = log(cost.fullest) + log(cost.period) + log(cost.latency)
        smooth = self._combined(cost.pressure, cost.period, cost.latency, cost.energy)
        excesses = [excess for excess, _ in self.broken(costs, cost)]
        excess = max(excesses, default=0.0) + 1e-2 * sum(excesses)  # else one full device beats many a little too full
        return excess, self.value(cost) + SMOOTHNESS * smooth + 1e-3 * rest

    def broken(self, costs: DivisionCosts, cost: DivisionCost) -> Iterator[tuple[float, str]]:
        """The limits that a division does not keep: by what factor less one, and in words."""
        for device in costs.cluster.devices:
            used, weights = cost.memory[device.name], cost.weights[device.name]
            if device.flash_bytes is not None:
                yield from _over(weights, device.flash_bytes, f"flash of '{device.name}' for weights")
                used -= weights
            yield from _over(used, device.ram_bytes, f"RAM of '{device.name}'")
            yield from _over(used, self.max_memory, f"the memory allowed on '{device.name}'")
        if self.min_throughput is not None and cost.period * self.min_throughput > 1:
            have, want = 1 / cost.period, self.min_throughput
            yield want / have - 1, f"{want:.4g} frames/s are asked for, and {have:.4g} can be had"
        for what, value, most, unit in (
            ("a frame takes", cost.latency, self.max_latency, "s"),
            ("a frame costs", cost.energy, self.max_energy, "J"),
        ):
            if most is not None and value > most:
                yield value / most - 1, f"{what} {value:.4g} {unit}, and {most:.4g} {unit} are allowed"

    def bound(self, costs: DivisionCosts) -> float:
        """A value that no division has less than: weights are somewhere, and work is done by somebody."""
        cluster, work = costs.cluster, costs.sketcher.work
        period = work / sum(device.macs_per_second for device in cluster.devices)
        idle = sum(device.idle_watts for device in cluster.devices) * period
        busy = min((each.active_watts - each.idle_watts) / each.macs_per_second for each in cluster.devices) * work
        memory = max(1.0, costs.weights_bytes / len(cluster.devices))
        return self._combined(memory, period, period, max(idle + busy, 1e-300))

    def gap(self, costs: DivisionCosts, cost: DivisionCost) -> float:
        """How far a division may be from the best, as a share of what it has: 0 is proven best."""
        bound = self.bound(costs)
        return max(0.0, 1 - exp(bound - self.value(cost))) if bound > -inf else 1.0


def _over(used: int, have: int | None, what: str) -> Iterator[tuple[float, str]]:
    if have is not None and used > have:
        yield used / max(have, 1) - 1, f"{what}: {text.size(used)} needed, {text.size(have)} there"
