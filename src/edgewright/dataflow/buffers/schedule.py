"""Repeatable orders of firings; and a size with its schedule and its lower bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from ...errors import ModelError
from ..checks.consistency import repetitions
from ..checks.demand import Demand, supplies
from ..checks.liveness import blocked
from ..graph import Channel, Graph
from .untimed import check_size

Runs = tuple[tuple[str, int], ...]  # actors with the number of consecutive firings


@dataclass(frozen=True)
class Schedule:
    """Firings that happen once, for initial phases, and those of one iteration, which repeat."""

    first: Runs
    again: Runs


def lazy_schedule(graph: Graph, capacities: Mapping[str, int] | None = None) -> Schedule:
    """An order in which an actor fires only when another, ultimately one without consumers, needs its tokens.

    The graph must be live under the capacities, if there are any.
    """
    firings = repetitions(graph)
    check_size(graph, firings)
    # actors without consumers start; others follow only if they were left behind
    ends = {actor: all(one.is_self_loop for one in channels) for actor, channels in graph.outputs.items()}
    asking = sorted(graph.actors, key=lambda actor: not ends[actor.name])
    order: list[str] = []
    demand = Demand(graph, list(graph.by_name), supplies(graph, capacities), order)
    is_live = demand.reach({actor.name: actor.initial_phases for actor in asking})
    first = runs_of(order)
    order.clear()
    is_live &= demand.reach({actor.name: demand.fired[actor.name] + firings[actor.name] for actor in asking})
    assert is_live, "the graph is not live"
    return Schedule(first, runs_of(order))


def runs_of(order: Iterable[str]) -> Runs:
    """Firings grouped into runs of the same actor."""
    return tuple((actor, sum(1 for _ in same)) for actor, same in groupby(order))


Weight = Literal["tokens", "bytes"]  # what a token counts: one, or its bytes


def price(channel: Channel, weight: Weight) -> int:
    """What one token of the channel counts."""
    return channel.token_bytes if weight == "bytes" else 1


@dataclass(frozen=True)
class Sized:
    """A size in both measures, minimised in one of them (`weight`), with a lower bound."""

    tokens: int
    size_bytes: int
    weight: Weight
    bound: int
    schedule: Schedule

    @property
    def is_optimal(self) -> bool:
        return self.bound == (self.tokens if self.weight == "tokens" else self.size_bytes)


def live_firings(graph: Graph) -> Mapping[str, int]:
    """The repetition vector of a live, sufficiently small graph; an error explains if it is not."""
    firings = repetitions(graph)
    check_size(graph, firings)
    dead = blocked(graph)
    if dead is not None:
        raise ModelError(str(dead))
    return firings
