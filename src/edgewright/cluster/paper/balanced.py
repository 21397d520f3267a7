"""Whole layers on devices so that the fullest device holds little: a local search, then an exact one (`completion`).

The search divides the layers of two devices as well as possible, by meeting in the middle (Horowitz & Sahni 1974), for
one pair after another. Devices may have limits: of two partitions the one that exceeds them less is better, and only
then the one whose fullest device holds less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from ...errors import Infeasible
from .completion import Completion
from .vertical import VerticalPartition, VerticalProblem, fullest_bound

Parts = list[list[int]]  # the layers of each device
MOST_DIVIDED = 24  # layers of a pair of devices that are divided at once; the other ones stay
MOST_PARTNERS = 16  # devices that the worst one shares its layers with, before the search ends
MIXED = 3  # devices whose layers are dealt out again before the search goes on


@dataclass(frozen=True)
class BalanceSettings:
    """How long to search. A search ends early where the gap is at most `tolerance`."""

    rounds: int = 100
    tolerance: float = 1e-4
    steps: int = 300_000  # of the exact search that follows; 0: none
    seed: int = 1


AS_USUAL = BalanceSettings()


def vertical_balanced(problem: VerticalProblem, settings: BalanceSettings = AS_USUAL) -> VerticalPartition:
    """A partition within the limits whose fullest device holds little, with its bound."""
    bound = fullest_bound(problem)
    parts = _searched(problem, settings, bound)
    completion = Completion(problem, settings.steps, gave_up=settings.steps == 0)
    while not completion.gave_up and not _is_good(problem, parts, bound, settings):
        excess, fullest = _worth(problem, enumerate(parts))
        devices = completion.within(problem.total if excess else fullest - problem.unit)
        if devices is not None:
            parts = [[layer for layer, other in enumerate(devices) if other == k] for k in range(problem.devices)]
        elif not completion.gave_up and not excess:
            bound = fullest
        elif not completion.gave_up:
            break
    excess, _ = _worth(problem, enumerate(parts))
    if excess:
        raise Infeasible(_refusal(problem, excess, is_proven=not completion.gave_up))
    devices = _device_of_each_layer(problem, parts)
    return VerticalPartition(devices, problem.loads(devices), bound)


def _refusal(problem: VerticalProblem, excess: int, *, is_proven: bool) -> str:
    proof = "no partition keeps" if is_proven else "no partition was found that keeps"
    return (
        f"{proof} the limits of {problem.devices} devices: the best one found exceeds them by {excess} bytes; "
        f"add devices, raise their limits, or split the largest layer ({max(problem.costs)} bytes)"
    )


def _searched(problem: VerticalProblem, settings: BalanceSettings, bound: int) -> Parts:
    """The best of several searches, each from the best so far with the layers of some devices mixed."""
    random = Random(settings.seed)
    empty: Parts = [[] for _ in range(problem.devices)]
    best = _improved(problem, _dealt(problem, range(len(problem.costs)), empty), random)
    for _ in range(settings.rounds):
        if _is_good(problem, best, bound, settings):
            break
        parts = _improved(problem, _mixed(problem, best, random), random)
        if _worth(problem, enumerate(parts)) <= _worth(problem, enumerate(best)):
            best = parts
    return best


def _is_good(problem: VerticalProblem, parts: Parts, bound: int, settings: BalanceSettings) -> bool:
    excess, fullest = _worth(problem, enumerate(parts))
    return not excess and fullest - bound <= settings.tolerance * fullest


def _worth(problem: VerticalProblem, parts: Iterable[tuple[int, Sequence[int]]]) -> tuple[int, int]:
    """What some devices hold beyond their limits, and what the fullest of them holds: less is better."""
    found = [_excess_and_load(problem, device, _load(problem, part)) for device, part in parts]
    return sum(excess for excess, _ in found), max(load for _, load in found)


def _load(problem: VerticalProblem, part: Iterable[int]) -> int:
    return sum(problem.costs[layer] for layer in part)


def _excess_and_load(problem: VerticalProblem, device: int, load: int) -> tuple[int, int]:
    return max(0, load - problem.ceilings[device]), load


def _dealt(problem: VerticalProblem, layers: Iterable[int], parts: Parts) -> Parts:
    """Each layer in turn, the largest first, on the device that holds least with it (Graham 1969)."""
    loads = [_load(problem, part) for part in parts]
    for layer in sorted(layers, key=lambda layer: -problem.costs[layer]):
        cost = problem.costs[layer]
        target = min(range(problem.devices), key=lambda k: _excess_and_load(problem, k, loads[k] + cost))
        parts[target].append(layer)
        loads[target] += cost
    return parts


def _mixed(problem: VerticalProblem, parts: Parts, random: Random) -> Parts:
    """The layers of some devices dealt out to these again, in random order."""
    chosen = random.sample(range(problem.devices), min(MIXED, problem.devices))
    layers = [layer for device in chosen for layer in parts[device]]
    random.shuffle(layers)
    found = [[] if device in chosen else list(part) for device, part in enumerate(parts)]
    loads = dict.fromkeys(chosen, 0)
    for layer in layers:
        cost = problem.costs[layer]
        emptiest = min(chosen, key=lambda k: _excess_and_load(problem, k, loads[k] + cost))
        target = emptiest if random.random() < 0.8 else random.choice(chosen)
        found[target].append(layer)
        loads[target] += cost
    return found


def _improved(problem: VerticalProblem, parts: Parts, random: Random) -> Parts:
    """Divides the layers of the worst device and of one with much room again, until that no longer helps."""
    while True:
        loads = [_load(problem, part) for part in parts]
        *others, worst = sorted(range(problem.devices), key=lambda k: _excess_and_load(problem, k, loads[k]))
        others.sort(key=lambda k: loads[k] - min(problem.ceilings[k], loads[worst]))
        for other in others[:MOST_PARTNERS]:
            old = (worst, parts[worst]), (other, parts[other])
            new = _divided(problem, old, random)
            if _worth(problem, new) < _worth(problem, old):
                parts[worst], parts[other] = new[0][1], new[1][1]
                break
        else:
            return parts


Pair = tuple[tuple[int, list[int]], tuple[int, list[int]]]  # two devices with their layers


def _divided(problem: VerticalProblem, pair: Pair, random: Random) -> Pair:
    """Two devices with their layers divided as well as possible; of many layers some stay where they are."""
    (one, first), (two, second) = pair
    layers = [*first, *second]
    random.shuffle(layers)
    free = layers[:MOST_DIVIDED]
    staying = [layer for layer in first if layer not in free], [layer for layer in second if layer not in free]
    total = _load(problem, layers)
    # Half of everything, or the nearest that both limits allow.
    wanted = sorted((total / 2, problem.ceilings[one], total - problem.ceilings[two]))[1]
    moved = set(nearest_subset([problem.costs[layer] for layer in free], wanted - _load(problem, staying[0])))
    return (
        (one, staying[0] + [layer for at, layer in enumerate(free) if at in moved]),
        (two, staying[1] + [layer for at, layer in enumerate(free) if at not in moved]),
    )


def nearest_subset(costs: Sequence[int], wanted: float) -> list[int]:
    """The indices of the costs whose sum is nearest to `wanted`: sums of each half, joined by binary search."""
    half = len(costs) // 2
    low, high = _subset_sums(costs[:half]), _subset_sums(costs[half:])
    order = np.argsort(high, kind="stable")
    at = np.searchsorted(high[order], wanted - low)
    above, below = order[at.clip(max=len(high) - 1)], order[(at - 1).clip(min=0)]
    partner = np.where(np.abs(low + high[above] - wanted) < np.abs(low + high[below] - wanted), above, below)
    best = int(np.abs(low + high[partner] - wanted).argmin())
    mask = best | int(partner[best]) << half
    return [index for index in range(len(costs)) if mask >> index & 1]


def _subset_sums(costs: Sequence[int]) -> NDArray[np.int64]:
    """The sum of each subset; bit i of its index says whether it contains the cost i."""
    sums = np.zeros(1, np.int64)
    for cost in costs:
        sums = np.concatenate([sums, sums + cost])
    return sums


def _device_of_each_layer(problem: VerticalProblem, parts: Parts) -> tuple[int, ...]:
    devices = {layer: device for device, part in enumerate(parts) for layer in part}
    return tuple(devices[layer] for layer in range(len(problem.costs)))
