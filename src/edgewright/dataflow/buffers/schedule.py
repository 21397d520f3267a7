"""Orders of firings that can be repeated for ever; a size with its schedule, and how far below it any other may lie."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from ...errors import ModelError
from ..checks.consistency import repetitions
from ..checks.liveness import blocked
from ..graph import Channel, Graph
from .untimed import UNLIMITED, State, Untimed, check_size, untimed

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
    ready = untimed(graph, repetitions(graph))
    capacity = [UNLIMITED if capacities is None else capacities[line.channel.name] for line in ready.lines]
    # those that nobody consumes from do the asking; others follow only if that left them behind
    order = sorted(range(len(ready.actors)), key=lambda actor: len(ready.outputs[actor]) > 0)
    state = ready.start()
    first = _pull(ready, state, capacity, [(actor, graph.actors[actor].initial_phases) for actor in order])
    goals = [done + each for done, each in zip(state, ready.each, strict=True)]
    again = _pull(ready, state, capacity, [(actor, goals[actor]) for actor in order])
    return Schedule(runs_of(ready, first), runs_of(ready, again))


def runs_of(ready: Untimed, order: Iterable[int]) -> Runs:
    """Firing after firing, taken together where an actor fires several times in a row."""
    return tuple((ready.actors[actor], sum(1 for _ in same)) for actor, same in groupby(order))


def _pull(ready: Untimed, state: State, capacity: Sequence[int], goals: Iterable[tuple[int, int]]) -> list[int]:
    """The actors that fire to bring each to its goal; `state` is moved on. In a live graph no demand comes back."""
    order: list[int] = []
    for goal in goals:
        asked = [goal] if state[goal[0]] < goal[1] else []
        while asked:
            actor, wanted = asked[-1]
            lacking = _lacking(ready, state, capacity, actor)
            if lacking is not None:
                asked.append(lacking)
                assert len(asked) <= len(ready.actors), "the graph is not live"
                continue
            order.append(actor)
            state[actor] += 1
            if state[actor] == wanted:
                asked.pop()
    return order


def _lacking(ready: Untimed, state: State, capacity: Sequence[int], actor: int) -> tuple[int, int] | None:
    """An actor that the next firing of this one waits for, and the firings it must have done; None if it can fire."""
    following = state[actor] + 1
    taking, making = ready.tables[actor]
    for made, source, taken in taking:
        if made[state[source]] < taken[following]:
            return source, bisect_left(made, taken[following])
    for at, taken, target, made in making:
        if made[following] - taken[state[target]] > capacity[at]:
            return target, bisect_left(taken, made[following] - capacity[at])
    return None


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
