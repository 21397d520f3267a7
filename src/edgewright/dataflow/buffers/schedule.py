"""Orders of firings that can be repeated for ever; a size with its schedule, and how far below it any other may lie."""

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

Runs = tuple[tuple[str, int], ...]  # actors, and how often each fires in a row


@dataclass(frozen=True)
class Schedule:
    """What fires once, where there are initial phases, and what then fires again and again: one iteration."""

    first: Runs
    again: Runs


def lazy_schedule(graph: Graph, capacities: Mapping[str, int] | None = None) -> Schedule:
    """An order in which an actor fires only when another, in the end one without consumers, asks for it.

    For a graph that is live under the capacities, if there are any.
    """
    firings = repetitions(graph)
    check_size(graph, firings)
    # those that nobody consumes from do the asking; others follow only if that left them behind
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
    """Firing after firing, taken together where an actor fires several times in a row."""
    return tuple((actor, sum(1 for _ in same)) for actor, same in groupby(order))


Weight = Literal["tokens", "bytes"]  # what a token counts as: one, or its bytes


def price(channel: Channel, weight: Weight) -> int:
    """What one token of the channel counts as."""
    return channel.token_bytes if weight == "bytes" else 1


@dataclass(frozen=True)
class Sized:
    """A size in both measures, least in one of them (`weight`), where nothing goes below `bound`."""

    tokens: int
    size_bytes: int
    weight: Weight
    bound: int
    schedule: Schedule

    @property
    def is_optimal(self) -> bool:
        return self.bound == (self.tokens if self.weight == "tokens" else self.size_bytes)


def live_firings(graph: Graph) -> Mapping[str, int]:
    """The repetition vector of a graph that is live and small enough; an error that says why if it is not."""
    firings = repetitions(graph)
    check_size(graph, firings)
    dead = blocked(graph)
    if dead is not None:
        raise ModelError(str(dead))
    return firings
