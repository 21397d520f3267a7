"""Dependencies of firings as tables: one node for each firing of an iteration, one edge for each wait.

An edge from firing m to firing n with delay d means: firing n of an iteration starts when firing m of the iteration d
before has ended. Space on a limited channel is a separate channel, which runs backwards and initially holds the free
places. Firings of an actor start in order, and their output arrives in that order (a channel is a queue): where a later
firing may end first, nodes for the arrivals are added.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError
from ..checks.consistency import repetitions
from ..graph import Actor, Channel, Graph, Rates, check_times, quoted

MOST_FIRINGS = 250_000  # per iteration: about ten seconds if each waits for the previous one
MOST_EDGES = 40_000_000
LARGEST = 2**60  # of any number of tokens

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ActorNodes:
    """The nodes of an actor: its starts, then its arrivals if they have separate nodes."""

    first: int
    firings: int
    times: Ints  # of the firings of one iteration
    has_arrivals: bool

    @property
    def starts(self) -> slice:
        return slice(self.first, self.first + self.firings)

    @property
    def arrivals(self) -> slice:
        return slice(self.first + self.firings, self.stop)

    @property
    def stop(self) -> int:
        return self.first + self.firings * (2 if self.has_arrivals else 1)

    def ended(self, firing: Ints) -> tuple[Ints, Ints]:
        """The node at which a firing's output is available, and its delay."""
        if self.has_arrivals:
            return self.arrivals.start + firing, np.zeros_like(firing)
        return self.first + firing, self.times[firing]


@dataclass(frozen=True, eq=False)
class Queue:
    """A channel's cyclic part: cumulative counts of tokens produced and consumed by the firings of an iteration."""

    produced: Ints
    consumed: Ints
    tokens: int  # after the initial phases; negative if these take what later ones make
    space_slot: int  # slot of the edges that wait for space


class PrecedenceGraph:
    """The edges by slot and node: edge [s, n] comes from node `source[s, n]`.

    Slot 0 holds the order of an actor's firings; it also fills the entries of nodes without further edges.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.blocks = _blocks(graph)
        self.nodes = max((block.stop for block in self.blocks.values()), default=0)
        slots, self._token_slots, space_slots = _slots(graph)
        if slots * self.nodes > MOST_EDGES:
            raise ModelError(_too_large(graph, self.nodes))
        self.source: Ints = np.empty((slots, self.nodes), np.int64)
        self.weight: Ints = np.zeros((slots, self.nodes), np.int64)
        self.delay: Ints = np.zeros((slots, self.nodes), np.int64)
        for block in self.blocks.values():
            self._order(block)
        self.queues = {c.name: self._queue(c, space_slots[c.name]) for c in graph.channels if c.production.total}
        self._firsts = [block.first for block in self.blocks.values()]
        self._layers: Sequence[Ints] | None = None
        number = {name: i for i, name in enumerate(self.blocks)}
        self._space: dict[tuple[int, int], str] = {}  # by slot and number of the waiting actor
        for name, queue in self.queues.items():
            self._space[queue.space_slot, number[graph.channel[name].source]] = name
            self._wait_for_tokens(graph.channel[name], queue)

    def limit(self, name: str, capacity: int | None) -> None:
        """Sets the channel's capacity; None: no limit."""
        queue = self.queues.get(name)
        if queue is None:  # only initial phases use it
            return
        self._layers = None
        channel = self.graph.channel[name]
        nodes = self.blocks[channel.source].starts
        if capacity is None:
            for table in (self.source, self.weight, self.delay):
                table[queue.space_slot, nodes] = table[0, nodes]
        else:
            firing, delay = _awaited(queue.produced, queue.consumed, capacity - queue.tokens)
            self._put(queue.space_slot, nodes, self.blocks[channel.target], firing, delay)

    def limit_all(self, capacities: Mapping[str, int] | None) -> None:
        for name in self.queues:
            self.limit(name, None if capacities is None else capacities.get(name))

    def layers(self) -> Sequence[Ints]:
        """The nodes in an order that follows the waits inside an iteration."""
        if self._layers is None:
            self._layers = layers(self.source, self.delay <= 0)
        return self._layers

    def waits_for_space(self, edges: Iterable[tuple[int, int]]) -> set[str]:
        """The channels whose space some of the edges wait for."""
        waiting = {(slot, self._number(node)) for slot, node in edges}
        return {self._space[place] for place in waiting if place in self._space}

    def actors_of(self, edges: Iterable[tuple[int, int]]) -> set[str]:
        """The actors of the nodes at which the edges end."""
        names = tuple(self.blocks)
        return {names[number] for number in {self._number(node) for _, node in edges}}

    def _number(self, node: int) -> int:
        """The actor's number, in the order of blocks."""
        return bisect_right(self._firsts, node) - 1

    def _order(self, block: ActorNodes) -> None:
        parts = [block.starts, block.arrivals] if block.has_arrivals else [block.starts]
        for part in parts:
            before = np.arange(part.start, part.stop) - 1
            before[0] = part.stop - 1
            self.source[:, part] = before
            self.delay[:, part.start] = 1
        if block.has_arrivals:
            self.source[1, block.arrivals] = np.arange(block.starts.start, block.starts.stop)
            self.weight[1, block.arrivals] = block.times
            self.delay[1, block.arrivals] = 0

    def _queue(self, channel: Channel, slot: int) -> Queue:
        cycles = self.blocks[channel.source].firings // len(channel.production.cycle)
        tokens = channel.tokens + sum(channel.production.initial) - sum(channel.consumption.initial)
        if max(cycles * channel.production.total, abs(tokens)) > LARGEST:
            raise ModelError(f"channel {quoted(channel.name)} moves or holds more than {LARGEST:,} tokens")
        produced = _upto_each(channel.production, self.blocks[channel.source].firings)
        consumed = _upto_each(channel.consumption, self.blocks[channel.target].firings)
        return Queue(produced, consumed, tokens, slot)

    def _wait_for_tokens(self, channel: Channel, queue: Queue) -> None:
        firing, delay = _awaited(queue.consumed, queue.produced, queue.tokens)
        nodes = self.blocks[channel.target].starts
        self._put(self._token_slots[channel.name], nodes, self.blocks[channel.source], firing, delay)

    def _put(self, slot: int, nodes: slice, on: ActorNodes, firing: Ints, delay: Ints) -> None:
        self.source[slot, nodes], self.weight[slot, nodes] = on.ended(firing)
        self.delay[slot, nodes] = delay


def _awaited(consumed: Ints, produced: Ints, tokens: int) -> tuple[Ints, Ints]:
    """For each consuming firing the producing one it waits for, and the distance in iterations."""
    cycle = int(produced[-1])
    ahead, left = divmod(tokens, cycle)
    back, needed = np.divmod(consumed - left - 1, cycle)
    return np.searchsorted(produced, needed + 1), ahead - back


def _upto_each(rates: Rates, firings: int) -> Ints:
    return np.cumsum(np.tile(np.array(rates.cycle, np.int64), firings // len(rates.cycle)))


def _slots(graph: Graph) -> tuple[int, dict[str, int], dict[str, int]]:
    """The number of slots, and for each channel the slots of its tokens and its space.

    Slot 0 is the order of firings and, for arrivals, slot 1 the firing itself.
    """
    used = {actor.name: 1 for actor in graph.actors}
    tokens, space = {}, {}
    for channel in graph.channels:
        tokens[channel.name] = used[channel.target]
        used[channel.target] += 1
        space[channel.name] = used[channel.source]
        used[channel.source] += 1
    return max([2, *used.values()]), tokens, space


def _blocks(graph: Graph) -> dict[str, ActorNodes]:
    check_times(graph)
    counts = repetitions(graph)
    firings = sum(counts.values())
    if firings > MOST_FIRINGS:
        raise ModelError(_too_large(graph, firings))
    blocks: dict[str, ActorNodes] = {}
    first = 0
    for actor in graph.actors:
        times = _times(graph, actor, counts[actor.name])
        may_overtake = len(set(times.tolist())) > 1 and not any(
            channel.is_serial for channel in graph.inputs[actor.name]
        )
        blocks[actor.name] = ActorNodes(first, counts[actor.name], times, may_overtake)
        first = blocks[actor.name].stop
    return blocks


def _times(graph: Graph, actor: Actor, firings: int) -> Ints:
    """Execution times of one iteration, in integer units."""
    assert actor.times is not None
    cycle = [int(time * graph.time_unit) for time in actor.times[actor.initial_phases :]]
    if max(cycle) > LARGEST:
        raise ModelError(
            f"actor {quoted(actor.name)} has an execution time too long to reckon with: {max(actor.times)}"
        )
    return np.tile(np.array(cycle, np.int64), firings // actor.phases)


def _too_large(graph: Graph, firings: int) -> str:
    return (
        f"graph {quoted(graph.name)} makes {firings:,} firings in one iteration, too many to look at one by one. "
        "Check its rates, or divide them by what they have in common"
    )


def layers(source: Ints, is_now: NDArray[np.bool_]) -> Sequence[Ints]:
    """The nodes in layers, such that edges without delay lead from one layer to a later one.

    Nodes on cycles of such edges, and their successors, come last, together.
    """
    slots, nodes = source.shape
    ends = np.broadcast_to(np.arange(nodes), (slots, nodes))[is_now]
    starts = source[is_now]
    by_start = np.argsort(starts, kind="stable")
    onwards = ends[by_start]
    first = np.searchsorted(starts[by_start], np.arange(nodes + 1))
    waiting = np.bincount(ends, minlength=nodes)
    layer = np.flatnonzero(waiting == 0)
    layers = []
    while layer.size:
        layers.append(layer)
        waiting[layer] = -1
        reached, edges = np.unique(onwards[_ranges(first[layer], first[layer + 1])], return_counts=True)
        waiting[reached] -= edges
        layer = reached[waiting[reached] == 0]
    rest = np.flatnonzero(waiting > 0)
    return [*layers, rest] if rest.size else layers


def _ranges(first: Ints, last: Ints) -> Ints:
    """The integers of each range, one range after the other."""
    lengths = last - first
    skipped = np.repeat(first - np.cumsum(lengths) + lengths, lengths)
    return skipped + np.arange(int(lengths.sum()))
