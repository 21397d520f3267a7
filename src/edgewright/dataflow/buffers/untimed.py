"""Runs a graph without time: only the order of firings and the tokens on the channels count.

A firing needs its tokens and the space for what it produces at its start, and gives the space of its tokens back at its
end (so that a self-loop holds both at once). Seen that way space is one more kind of token, which flows against the
channel; every queue has one producer and one consumer, no firing takes away what another waits for, and a graph can run
for ever self-timed exactly when it can run for ever one firing after the other, in whatever order.

How far is far enough? Let q be the firings of one iteration and n those of the initial phases. A graph that has come
to n + q cannot stop: a dead state x beyond it has the tokens of x - q, and the first firing that went beyond x - q
found no more tokens and no more space than there are in x, so that it could fire there too. Nor, without initial
phases, need an actor go beyond q before the others are there: who waits for an actor that has done its q firings waits
for tokens, or space, that were there at the start. Initial phases can shift that by some iterations (`_lead`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, cycle, islice

import networkx as nx

from ...errors import Unsupported
from ..graph import Channel, Graph, Rates, quoted

UNLIMITED = 1 << 200  # capacity of a channel that never blocks
MOST_ENTRIES = 4_000_000  # of all tables together: some hundred MB, and tens of seconds at worst

State = list[int]  # firings done by each actor
Run = tuple[int, int]  # an actor, and how often it fires in a row

_Taking = tuple[list[int], int, list[int]]  # produced, source, consumed
_Making = tuple[int, list[int], int, list[int]]  # line, consumed, target, produced


@dataclass(frozen=True, eq=False)
class Line:
    """A channel between two actors, as tables over the firings done."""

    channel: Channel
    source: int
    target: int
    produced: list[int]  # total tokens after n firings of the source, including initial ones
    consumed: list[int]  # tokens consumed by n firings of the target

    def space(self, state: Sequence[int]) -> int:
        """The capacity that the next firing of the source needs."""
        return self.produced[state[self.source] + 1] - self.consumed[state[self.target]]


@dataclass(frozen=True, eq=False)
class Untimed:
    """A graph prepared for runs; self-loops are left out, because they do not connect actors."""

    actors: tuple[str, ...]
    lines: tuple[Line, ...]
    goal: tuple[int, ...]  # after these firings nothing can stop
    limit: tuple[int, ...]  # firings after which an actor pauses
    each: tuple[int, ...]  # firings in one iteration

    @cached_property
    def inputs(self) -> Sequence[Sequence[int]]:
        """For each actor the lines that it consumes from."""
        return _grouped(len(self.actors), [line.target for line in self.lines])

    @cached_property
    def outputs(self) -> Sequence[Sequence[int]]:
        """For each actor the lines that it produces into."""
        return _grouped(len(self.actors), [line.source for line in self.lines])

    @cached_property
    def links(self) -> nx.DiGraph:
        """The receivers of each actor's tokens."""
        links = nx.DiGraph()
        links.add_nodes_from(range(len(self.actors)))
        links.add_edges_from((line.source, line.target) for line in self.lines)
        return links

    def start(self) -> State:
        return [0] * len(self.actors)

    def is_done(self, state: State) -> bool:
        return all(done >= goal for done, goal in zip(state, self.goal, strict=True))

    def run(self, state: State, capacity: Sequence[int], first: Iterable[int] | None = None) -> list[Run]:
        """The runs that fire, in order, until nothing more can; `state` is advanced.

        What fires under some capacities fires under larger ones too: a run may continue after some were raised, and
        `first` then names the actors this freed.
        """
        waiting = deque(range(len(self.actors)) if first is None else first)
        queued = set(waiting)
        runs = []
        while waiting:
            actor = waiting.popleft()
            queued.discard(actor)
            before = state[actor]
            after = self.reach(actor, state, capacity)
            if after > before:
                state[actor] = after
                runs.append((actor, after - before))
                fresh = [other for other in self._around[actor] if other not in queued]
                queued.update(fresh)
                waiting.extend(fresh)
        return runs

    def has_tokens(self, actor: int, state: Sequence[int]) -> bool:
        """Whether tokens and the limit allow the next firing."""
        next_firing = state[actor] + 1
        return next_firing <= self.limit[actor] and all(
            line.produced[state[line.source]] >= line.consumed[next_firing] for line in self.into(actor)
        )

    def into(self, actor: int) -> list[Line]:
        return [self.lines[at] for at in self.inputs[actor]]

    def reach(self, actor: int, state: State, capacity: Sequence[int]) -> int:
        """The firings that the actor can do before another one fires."""
        before = after = state[actor]
        taking, making = self.tables[actor]
        best = self.limit[actor]
        for produced, source, consumed in taking:
            after = bisect_right(consumed, produced[state[source]], before) - 1
            if after <= before:
                return before
            best = min(best, after)
        for at, consumed, target, produced in making:
            after = bisect_right(produced, capacity[at] + consumed[state[target]], before) - 1
            if after <= before:
                return before
            best = min(best, after)
        return best

    @cached_property
    def tables(self) -> list[tuple[list[_Taking], list[_Making]]]:
        """The lines of each actor, as local tables: accessing them takes most of the time."""
        taking = [
            [(one.produced, one.source, one.consumed) for one in self.into(actor)] for actor in range(len(self.actors))
        ]
        making = [
            [(at, line.consumed, line.target, line.produced) for at in ats for line in [self.lines[at]]]
            for ats in self.outputs
        ]
        return list(zip(taking, making, strict=True))

    @cached_property
    def _around(self) -> list[list[int]]:
        """For each actor those that its firings may free; consumers last, so that they run first."""
        before: list[dict[int, None]] = [{} for _ in self.actors]
        for line in self.lines:
            before[line.target][line.source] = None
        for line in self.lines:
            before[line.source][line.target] = None
        return [list(others) for others in before]


def untimed(graph: Graph, firings: Mapping[str, int]) -> Untimed:
    """The graph prepared for runs, with these firings per iteration."""
    place = {actor.name: at for at, actor in enumerate(graph.actors)}
    channels = [channel for channel in graph.channels if not channel.is_self_loop]
    ahead = 1 + _lead(channels, firings)
    goal = tuple(actor.initial_phases + firings[actor.name] for actor in graph.actors)
    limit = tuple(actor.initial_phases + ahead * firings[actor.name] for actor in graph.actors)
    check_size(graph, dict(zip(place, limit, strict=True)))
    lines = tuple(
        Line(
            channel,
            place[channel.source],
            place[channel.target],
            sums(channel.production, limit[place[channel.source]], channel.tokens),
            sums(channel.consumption, limit[place[channel.target]]),
        )
        for channel in channels
    )
    return Untimed(tuple(place), lines, goal, limit, tuple(firings[name] for name in place))


def sums(rates: Rates, firings: int, tokens: int = 0) -> list[int]:
    """Total tokens after 0, 1, ... firings, including `tokens` initial ones."""
    moved = islice(chain(rates.initial, cycle(rates.cycle)), firings)
    return list(accumulate(moved, initial=tokens))


def check_size(graph: Graph, firings: Mapping[str, int]) -> None:
    """Refuses a graph with too many firings for tables."""
    entries = sum(firings[one.source] + firings[one.target] for one in graph.channels) + sum(firings.values())
    if entries > MOST_ENTRIES:
        raise Unsupported(
            f"graph {quoted(graph.name)}: firings use its channels {entries:,} times in one iteration; buffers are "
            f"sized up to {MOST_ENTRIES:,}. Give the actors fewer phases, or rates with a larger common divisor"
        )


def _lead(channels: Iterable[Channel], firings: Mapping[str, int]) -> int:
    """Iterations that an actor may have to be ahead of another, because initial phases move more or fewer tokens.

    Each step of a chain of waiting actors adds at most what the channel lacks, or has in excess, when all actors have
    just done their initial phases; a chain uses a channel once.
    """
    channels = list(channels)
    if not any(channel.production.initial or channel.consumption.initial for channel in channels):
        return 0
    lead = 2
    for channel in channels:
        each = channel.production.total * (firings[channel.source] // len(channel.production.cycle))
        off = abs(channel.tokens + sum(channel.production.initial) - sum(channel.consumption.initial))
        lead += 1 + -(-off // each) if each else 0
    return lead


def _grouped(count: int, keys: Sequence[int]) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in range(count)]
    for at, key in enumerate(keys):
        groups[key].append(at)
    return groups
