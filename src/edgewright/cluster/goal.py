"""What a division is to be good at, within which limits, and how good any could be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import ceil, exp, inf, log

from .. import text
from ..errors import Infeasible, InputError
from .costs import DivisionCost, DivisionCosts
from .devices import ClusterDevice

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
    penalty: float | None = None  # of broken limits, which else come before everything

    @property
    def has_limits(self) -> bool:
        """Whether times or energy are limited."""
        return any(limit is not None for limit in (self.min_throughput, self.max_latency, self.max_energy))

    def check(self, costs: DivisionCosts) -> None:
        """An error where the cluster lacks figures that the goal asks about, or cannot hold the weights."""
        cluster = costs.cluster
        unknown = [device.name for device in cluster.devices if not device.active_watts]
        if unknown and (self.aim is ClusterAim.ENERGY or self.max_energy is not None):
            raise InputError(
                f"cluster '{cluster.name}': device '{unknown[0]}' has no power, so the energy of a frame is unknown; "
                'give it one, such as idle = "2.7 W" and active = "6.4 W"'
            )
        room = {device.name: self.weights_room(device) for device in cluster.devices}
        have, need = sum(room.values()), costs.weights_bytes
        if need > have:
            largest = max(room, key=lambda name: room[name])
            more = ceil((need - have) / max(1, room[largest]))
            raise Infeasible(
                f"'{costs.network.name}' has {text.size(need)} of weights; the {len(room)} devices of cluster "
                f"'{cluster.name}' hold {text.size(int(have))} in all ({text.size(int(need - have))} short). "
                f"{more:,} more like '{largest}' would hold them, or {text.size(ceil(need / len(room)))} on each"
            )

    def weights_room(self, device: ClusterDevice) -> float:
        """Bytes that a device has for weights at most."""
        if device.flash_bytes is not None:
            return device.flash_bytes
        return min(inf if size is None else size for size in (device.ram_bytes, self.max_memory))

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
        value = self.value(cost) + SMOOTHNESS * smooth + 1e-3 * rest
        return (excess, value) if self.penalty is None else (0.0, value + self.penalty * excess)

    def broken(self, costs: DivisionCosts, cost: DivisionCost) -> Iterator[tuple[float, str]]:
        """The limits that a division does not keep: by what factor less one, and in words."""
        for device in costs.cluster.devices:
            name, used, weights = device.name, cost.memory[device.name], cost.weights[device.name]
            if device.flash_bytes is not None:
                yield from _over(name, weights, device.flash_bytes, "flash for weights")
                used -= weights
            yield from _over(name, used, device.ram_bytes, "RAM")
            yield from _over(name, used, self.max_memory, "memory", "may use")
        if self.min_throughput is not None and cost.period * self.min_throughput > 1:
            have, want = 1 / cost.period, self.min_throughput
            yield want / have - 1, f"{have:.4g} frames/s; {want:.4g} are asked for ({want - have:.4g} short)"
        if (most := self.max_latency) is not None and cost.latency > most:
            took, late = text.duration(cost.latency), text.duration(cost.latency - most)
            yield cost.latency / most - 1, f"a frame takes {took}; {text.duration(most)} are allowed ({late} too long)"
        if (most := self.max_energy) is not None and cost.energy > most:
            over = cost.energy - most
            yield cost.energy / most - 1, f"a frame costs {cost.energy:.4g} J; {most:.4g} are allowed ({over:.4g} over)"

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


def _over(name: str, used: int, have: int | None, what: str, verb: str = "has") -> Iterator[tuple[float, str]]:
    if have is not None and used > have:
        sizes = f"{text.size(used)} of {what}; it {verb} {text.size(have)} ({text.size(used - have)} short)"
        yield used / max(have, 1) - 1, f"'{name}' needs {sizes}"
