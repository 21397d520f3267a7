"""Peak occupancy: the most that all channels hold at once, which is the memory they need if they share it.

A firing actor holds both what it consumes and what it produces. Self-loops do not count: their tokens stand for an
actor's state, or for rows that are already in its input buffer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain, cycle, islice

import networkx as nx

from ..graph import Graph, Rates
from .bounds import least_capacities
from .schedule import Schedule, Sized, Weight, lazy_schedule, live_firings, price, runs_of
from .untimed import Untimed, untimed

Moves = tuple[Sequence[int], Sequence[int]]  # increases and decreases of an actor, by firing


@dataclass(frozen=True, eq=False)
class Load:
    """What each firing adds at its start and frees at its end; self-loops are left out."""

    base: int  # held before the first firing
    rises: Mapping[str, Sequence[int]]  # by actor and firing
    falls: Mapping[str, Sequence[int]]

    def peak(self, runs: Iterable[tuple[str, int]]) -> int:
        """The peak when actors fire in this order."""
        held = peak = self.base
        done = dict.fromkeys(self.rises, 0)
        for actor, count in runs:
            before = done[actor]
            done[actor] = after = before + count
            rises, falls = self.rises[actor], self.falls[actor]
            for firing in range(before, after):
                held += rises[firing]
                if held > peak:
                    peak = held
                held -= falls[firing]
        return peak

    def moves(self, graph: Untimed) -> list[Moves]:
        """Increases and decreases by actor number."""
        return [(self.rises[name], self.falls[name]) for name in graph.actors]

    def least_peak(self) -> int:
        """A lower bound for every order: each firing holds all that it consumes and produces."""
        firings = (
            rise + fall for actor in self.rises for rise, fall in zip(self.rises[actor], self.falls[actor], strict=True)
        )
        return max(self.base, max(firings, default=0))


def load(graph: Graph, firings: Mapping[str, int], weight: Weight) -> Load:
    """The load for these numbers of firings."""
    rises = {name: [0] * count for name, count in firings.items()}
    falls = {name: [0] * count for name, count in firings.items()}
    channels = [channel for channel in graph.channels if not channel.is_self_loop]
    for channel in channels:
        each = price(channel, weight)
        _add(rises[channel.source], channel.production, each)
        _add(falls[channel.target], channel.consumption, each)
    return Load(sum(price(one, weight) * one.tokens for one in channels), rises, falls)


def _add(totals: list[int], rates: Rates, each: int) -> None:
    moved = islice(chain(rates.initial, cycle(rates.cycle)), len(totals))
    totals[:] = [total + each * tokens for total, tokens in zip(totals, moved, strict=True)]


_MOST_LOOKS = 3_000_000  # actors examined to find one that can fire: some seconds


@dataclass(frozen=True)
class Peak(Sized):
    """The most that all channels hold at once during a schedule."""


def occupancy(graph: Graph, schedule: Schedule, weight: Weight = "tokens") -> int:
    """The peak of all channels except self-loops, when actors fire in this order."""
    runs = [*schedule.first, *schedule.again]
    firings = Counter(dict.fromkeys(graph.by_name, 0))
    for actor, count in runs:
        firings[actor] += count
    return load(graph, firings, weight).peak(runs)


def peak_occupancy(graph: Graph, weight: Weight = "tokens") -> Peak:
    """A schedule with a low peak: proven optimal in small graphs, else the better of two quick heuristics."""
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
    other = runs_of(ready.actors[actor] for actor in downstream_first(ready, loads))
    if loads.peak(other) < peak:
        best, peak = Schedule((), other), loads.peak(other)
    order = least_peak(ready, loads, bound, peak)
    if order.order is None:
        return best, order.bound
    return Schedule((), runs_of(ready.actors[actor] for actor in order.order)), order.bound


def _largest_channel(ready: Untimed, weight: Weight) -> int:
    """A lower bound from single channels, for any schedule."""
    least = zip(ready.lines, least_capacities(ready), strict=True)
    return max((price(line.channel, weight) * tokens for line, tokens in least), default=0)


def downstream_first(graph: Untimed, load: Load) -> list[int]:
    """An order of one iteration that empties channels before it fills them; for graphs without initial phases.

    A firing that leaves no more than it found, within the peak so far, goes first (see `least_peak`).
    """
    depth, moves = _depths(graph), load.moves(graph)
    place = graph.start()
    able = {actor for actor in range(len(graph.actors)) if graph.has_tokens(actor, place)}
    held = peak = load.base
    order: list[int] = []
    while able:
        ranked = sorted(able, key=lambda actor: (-depth[actor], actor))
        actor = (_free_moves(moves, ranked, place, peak - held) or ranked)[0]
        rise, fall = (moved[place[actor]] for moved in moves[actor])
        order.append(actor)
        peak = max(peak, held + rise)
        held += rise - fall
        place[actor] += 1
        for other in {actor, *(graph.lines[at].target for at in graph.outputs[actor])}:
            (able.add if graph.has_tokens(other, place) else able.discard)(other)
    return order


def _free_moves(moves: Sequence[Moves], able: Sequence[int], place: Sequence[int], room: int) -> list[int]:
    """The first of these actors whose next firing leaves no more than it found and fits; or None."""
    for actor in able:
        rise, fall = (moved[place[actor]] for moved in moves[actor])
        if rise <= fall and rise <= room:
            return [actor]
    return []


def _depths(graph: Untimed) -> list[int]:
    """The distance of each actor from the sources; actors of a cycle have the same distance."""
    cycles = nx.condensation(graph.links)
    depths: dict[int, int] = {}
    for part in nx.topological_sort(cycles):
        depths[part] = 1 + max((depths[before] for before in cycles.predecessors(part)), default=0)
    return [depths[cycles.graph["mapping"][actor]] for actor in range(len(graph.actors))]


_SEARCHED_LOOKS = 200_000  # actors examined: less than a second

_Place = tuple[int, ...]  # number of firings of each actor


@dataclass(frozen=True)
class LeastPeak:
    """A lower bound and, if the search was completed, an order that achieves it."""

    bound: int
    order: tuple[int, ...] | None  # actor of each firing


def least_peak(graph: Untimed, load: Load, bound: int, known: int) -> LeastPeak:
    """The order of one iteration with the least peak, given a bound and a known peak; no initial phases.

    States are visited by the peak needed to reach them, so the first path to the end is optimal, and the peak reached
    when the search stops early is still a bound. If some firing leaves no more than it found, within the peak reached,
    only that one is followed: doing it first is never worse, since firings do not disable each other and everything
    after it holds no more than otherwise.
    """
    if sum(graph.each) * len(graph.actors) > _SEARCHED_LOOKS:
        return LeastPeak(bound, None)
    moves = load.moves(graph)
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
        if peak >= known or looks > _SEARCHED_LOOKS:
            break
        looks += len(moves)
        able = [actor for actor in range(len(moves)) if graph.has_tokens(actor, place)]
        for one in _free_moves(moves, able, place, peak - held) or able:
            rises, falls = moves[one]
            risen = held + rises[place[one]]
            after = (*place[:one], place[one] + 1, *place[one + 1 :])
            heappush(heap, (max(peak, risen), done - 1, after, risen - falls[place[one]], place, one))
    return LeastPeak(min(bound, known), None)


def _order(came: dict[_Place, tuple[_Place, int]], place: _Place) -> tuple[int, ...]:
    order = []
    while any(place):
        place, actor = came[place]
        order.append(actor)
    return tuple(reversed(order))
