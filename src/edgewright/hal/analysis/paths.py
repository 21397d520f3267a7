"""Where events of a function lie to each other: what comes always before, always after, and in between."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from .accesses import Access
from .functions import Event, Flow


@dataclass(frozen=True)
class Paths:
    """Questions about a control flow graph, answered for accesses by number."""

    flow: Flow

    @cached_property
    def _graph(self) -> nx.DiGraph:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(self.flow.blocks)))
        graph.add_edges_from((at, to) for at, block in enumerate(self.flow.blocks) for to in block.next)
        return graph

    @cached_property
    def where(self) -> dict[int, tuple[int, int]]:
        """Block and position of every access."""
        return {
            event.number: (at, position)
            for at, block in enumerate(self.flow.blocks)
            for position, event in enumerate(block.events)
            if isinstance(event, Access)
        }

    @cached_property
    def _dominators(self) -> dict[int, int]:
        return dict(nx.immediate_dominators(self._graph, 0))

    @cached_property
    def _postdominators(self) -> dict[int, int]:
        return dict(nx.immediate_dominators(self._graph.reverse(copy=True), len(self.flow.blocks) - 1))

    def guard(self, access: int) -> tuple[int, ...]:
        return self.flow.blocks[self.where[access][0]].guard

    def is_always_before(self, first: int, second: int) -> bool:
        """Whether control that gets to the second access has come through the first."""
        (at, position), (to, later) = self.where[first], self.where[second]
        return position < later if at == to else _climbs(self._dominators, to, at)

    def is_always_after(self, first: int, second: int) -> bool:
        """Whether control that gets to the first access goes on to the second."""
        (at, position), (to, later) = self.where[first], self.where[second]
        return position < later if at == to else _climbs(self._postdominators, at, to)

    def between(self, first: int, second: int) -> list[Event]:
        """All events on ways from the first access to the second that do not pass the first again."""
        (at, position), (to, later) = self.where[first], self.where[second]
        blocks = self.flow.blocks
        if at == to and position < later:
            return list(blocks[at].events[position + 1 : later])
        inner = self._graph.subgraph(n for n in self._graph if n != at)
        after = set().union(*({n} | nx.descendants(inner, n) for n in blocks[at].next if n != at))
        before = {to} | nx.ancestors(inner, to)
        middle = after & before
        found = list(blocks[at].events[position + 1 :])
        for number in sorted(middle - {to}):
            found += blocks[number].events
        is_in_loop = any(n in middle for n in blocks[to].next)
        return found + list(blocks[to].events if is_in_loop else blocks[to].events[:later])

    def governed(self, access: int) -> frozenset[int]:
        """The reads on whose values it depends whether the access happens at all."""
        at = self.where[access][0]
        reads: set[int] = set()
        for branch in self.flow.branches:
            if self._decides(branch.block, at):
                reads |= branch.reads
        return frozenset(reads)

    def _decides(self, branch: int, at: int) -> bool:
        """Whether the block is reached on some way from the branch, but not on all."""
        if branch == at:
            return False
        reached = at in nx.descendants(self._graph, branch)
        return reached and not _climbs(self._postdominators, branch, at)


def _climbs(tree: dict[int, int], at: int, to: int) -> bool:
    """Whether `to` is above `at` in a tree of dominators."""
    while at in tree and tree[at] not in (at, None):
        at = tree[at]
        if at == to:
            return True
    return False
