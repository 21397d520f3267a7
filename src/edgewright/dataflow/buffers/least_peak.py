"""The order of firings with the least peak, by search: for small graphs.

States are visited in the order of the peak that it takes to reach them, so that the first way to the end is the best,
and the peak reached when the search is given up is still a bound. Where some firing can be done that leaves no more
than it found, and within the peak reached, no other needs a look: whatever follows, having done it first is never
worse, since firings do not get into each other's way and everything after it holds no more than it would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from .load import Load
from .untimed import Untimed

_MOST_LOOKS = 200_000  # at actors: less than a second

_Place = tuple[int, ...]  # firings done by each actor


@dataclass(frozen=True)
class LeastPeak:
    """A bound from below and, where the search came to its end, an order that meets it."""

    bound: int
    order: tuple[int, ...] | None  # actors, firing after firing


def least_peak(graph: Untimed, load: Load, bound: int, known: int) -> LeastPeak:
    """The order of one iteration with the least peak, between a bound and one that is known; no initial phases."""
    if sum(graph.each) * len(graph.actors) > _MOST_LOOKS:
        return LeastPeak(bound, None)
    actors = [(load.rises[name], load.falls[name]) for name in graph.actors]
    start = tuple(graph.start())
    came: dict[_Place, tuple[_Place, int]] = {}
    heap = [(max(bound, load.base), 0, start, load.base, start, -1)]
    looks = 0
    while heap:
        peak, done, place, held, before, actor = heappop(heap)
        if place in came:
            continue
        came[place] = before, actor
        bound = peak
        if place == graph.each:
            return LeastPeak(bound, _order(came, place))
        if peak >= known or looks > _MOST_LOOKS:
            break
        looks += len(actors)
        for one in _useful(graph, actors, place, peak, held):
            rises, falls = actors[one]
            risen = held + rises[place[one]]
            after = (*place[:one], place[one] + 1, *place[one + 1 :])
            heappush(heap, (max(peak, risen), done - 1, after, risen - falls[place[one]], place, one))
    return LeastPeak(min(bound, known), None)


def _useful(
    graph: Untimed, actors: Sequence[tuple[Sequence[int], Sequence[int]]], place: _Place, peak: int, held: int
) -> list[int]:
    """The actors that can fire; one alone, if that leaves no more than before and keeps within the peak."""
    able = [actor for actor in range(len(actors)) if graph.has_tokens(actor, place)]
    for actor in able:
        rise, fall = (moved[place[actor]] for moved in actors[actor])
        if rise <= fall and held + rise <= peak:
            return [actor]
    return able


def _order(came: dict[_Place, tuple[_Place, int]], place: _Place) -> tuple[int, ...]:
    order = []
    while any(place):
        place, actor = came[place]
        order.append(actor)
    return tuple(reversed(order))
