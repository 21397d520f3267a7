"""Peak occupancy: the most that all channels hold at once, which is what a memory shared by all of them needs.

While an actor fires, it holds what it consumes and what it produces. Self-loops do not count: their tokens stand for
the state of an actor, or for rows that lie in its input buffer already.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..graph import Graph
from .bounds import least_capacities
from .downstream import downstream_first
from .least_peak import least_peak
from .load import Load, load
from .schedule import Schedule, lazy_schedule, runs_of
from .sized import Sized, Weight, live_firings, price
from .untimed import Untimed, untimed

_MOST_LOOKS = 3_000_000  # at actors, to find one that can fire: some seconds


@dataclass(frozen=True)
class Peak(Sized):
    """The most that all channels hold at once while a schedule runs."""


def occupancy(graph: Graph, schedule: Schedule, weight: Weight = "tokens") -> int:
    """The most that is held at once by all channels but self-loops, when actors fire in this order."""
    runs = [*schedule.first, *schedule.again]
    firings = Counter(dict.fromkeys(graph.by_name, 0))
    for actor, count in runs:
        firings[actor] += count
    return load(graph, firings, weight).peak(runs)


def peak_occupancy(graph: Graph, weight: Weight = "tokens") -> Peak:
    """A schedule with a low peak: in small graphs the least, proven; else the better of two that are made quickly."""
    ready = untimed(graph, live_firings(graph))
    loads = load(graph, dict(zip(ready.actors, ready.goal, strict=True)), weight)
    bound = max(loads.least_peak(), _largest_channel(ready, weight))
    schedule, bound = _lowest(graph, ready, loads, bound, weight)
    return Peak(occupancy(graph, schedule), occupancy(graph, schedule, "bytes"), weight, bound, schedule)


def _lowest(graph: Graph, ready: Untimed, loads: Load, bound: int, weight: Weight) -> tuple[Schedule, int]:
    """The best schedule found, and the bound, which the search may have raised."""
    best = lazy_schedule(graph)
    peak = occupancy(graph, best, weight)
    if peak == bound or best.first:
        return best, bound
    if sum(ready.each) * len(ready.actors) > _MOST_LOOKS:
        return best, bound
    other = runs_of(ready, downstream_first(ready, loads))
    if loads.peak(other) < peak:
        best, peak = Schedule((), other), loads.peak(other)
    found = least_peak(ready, loads, bound, peak)
    return (best if found.order is None else Schedule((), runs_of(ready, found.order))), found.bound


def _largest_channel(ready: Untimed, weight: Weight) -> int:
    """What some channel holds at one time, whatever the schedule."""
    least = zip(ready.lines, least_capacities(ready), strict=True)
    return max((price(line.channel, weight) * tokens for line, tokens in least), default=0)
