"""Where events of a function lie to each other: what comes always before, always after, and in between.

Sets of blocks are bits of integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import networkx as nx

from .accesses import Access
from .functions import Event, Flow

Blocks = int  # bit n: block n is one of them
Positions = Mapping[int, Sequence[int]]  # places of some events, by block


@dataclass(frozen=True)
class Paths:
    """Questions about a control flow graph, answered for accesses by number."""

    flow: Flow
    _around: dict[tuple[int, int], Blocks] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def where(self) -> dict[int, tuple[int, int]]:
        """Block and position of every access."""
        return {
            event.number: (at, position)
            for at, block in enumerate(self.flow.blocks)
            for position, event in enumerate(block.events)
            if isinstance(event, Access)
        }

    def guard(self, access: int) -> tuple[int, ...]:
        return self.flow.blocks[self.where[access][0]].guard

    def is_always_before(self, first: int, second: int) -> bool:
        """Whether control that gets to the second access has come through the first."""
        (at, position), (to, later) = self.where[first], self.where[second]
        return position < later if at == to else bool(self._dominators[to] >> at & 1)

    def is_always_after(self, first: int, second: int) -> bool:
        """Whether control that gets to the first access goes on to the second."""
        (at, position), (to, later) = self.where[first], self.where[second]
        return position < later if at == to else bool(self._postdominators[at] >> to & 1)

    def between(self, first: int, second: int) -> Iterator[Event]:
        """All events on ways from the first access to the second that do not pass the first again."""
        for block, start, end in self.stretches(first, second):
            yield from self.flow.blocks[block].events[start:end]

    def stretches(self, first: int, second: int) -> Iterator[tuple[int, int, int]]:
        """The same by block: first event and one past the last."""
        (at, position), (to, later) = self.where[first], self.where[second]
        blocks = self.flow.blocks
        if at == to and position < later:
            yield at, position + 1, later
            return
        middle = self._middle(at, to)
        yield at, position + 1, len(blocks[at].events)
        for block in bits(middle & ~(1 << to)):
            yield block, 0, len(blocks[block].events)
        is_in_loop = any(middle >> n & 1 for n in blocks[to].next)
        yield to, 0, len(blocks[to].events) if is_in_loop else later

    def first_among(self, positions: Positions, blocks: Blocks, first: int, second: int) -> tuple[int, int] | None:
        """The first of some events (`blocks` are those that have any) that lies between two accesses."""
        (at, position), (to, later) = self.where[first], self.where[second]
        if at == to and position < later:
            return next(((at, p) for p in positions.get(at, ()) if position < p < later), None)
        middle = self._middle(at, to) & ~(1 << to)
        if not blocks & (middle | 1 << at | 1 << to):
            return None
        for block, start, end in self.stretches(first, second):
            for p in positions.get(block, ()):
                if start <= p < end:
                    return block, p
        return None

    @cached_property
    def in_loops(self) -> Blocks:
        """The blocks from which a way leads back to them."""
        return sum(1 << at for at, reached in enumerate(self._reach) if reached >> at & 1)

    def reached_from(self, block: int) -> Blocks:
        """The blocks from which a way leads to a block."""
        return self._reached_from[block]

    def chain(self, block: int) -> int:
        """The first of all blocks that happen together with a block: each before or after it, and never one alone.

        Of two such blocks one dominates the other, which postdominates it; then the same holds for all blocks between
        them in the tree of dominators, so that looking one step up suffices.
        """
        return self._chains[block]

    @cached_property
    def _chains(self) -> list[int]:
        found = list(range(len(self.flow.blocks)))
        for block, parent in self._tree:
            if self._postdominators[parent] >> block & 1:
                found[block] = found[parent]
        return found

    @cached_property
    def _tree(self) -> list[tuple[int, int]]:
        """Blocks with their immediate dominators, those above before those below."""
        return list(_dominated([block.next for block in self.flow.blocks], 0))

    def governed(self, access: int) -> frozenset[int]:
        """The reads on whose values it depends whether the access happens at all."""
        at = self.where[access][0]
        known = self._governed.get(at)
        if known is None:
            decisive = (branch.reads for branch in self.flow.branches if self._decides(branch.block, at))
            known = self._governed[at] = frozenset[int]().union(*decisive)
        return known

    @cached_property
    def _governed(self) -> dict[int, frozenset[int]]:
        return {}

    def _decides(self, branch: int, at: int) -> bool:
        """Whether the block is reached on some way from the branch, but not on all."""
        reached = self._reach[branch] >> at & 1
        return branch != at and bool(reached) and not self._postdominators[branch] >> at & 1

    def _middle(self, at: int, to: int) -> Blocks:
        """Blocks on ways from one block to another that do not pass the first again."""
        known = self._around.get((at, to))
        if known is None:
            known = self._around[at, to] = self._found_middle(at, to)
        return known

    def _found_middle(self, at: int, to: int) -> Blocks:
        if not self._reach[at] >> at & 1:  # in no loop: no way comes back
            return self._reach[at] & (self._reached_from[to] | 1 << to)
        forward = self._spread(at, [block.next for block in self.flow.blocks], at)
        return forward & (self._spread(to, self._before, at) | 1 << to)

    def _spread(self, start: int, edges: Sequence[Sequence[int]], without: int) -> Blocks:
        """The blocks that edges lead to from a block, never through `without`."""
        found, todo = 0, [n for n in edges[start] if n != without]
        while todo:
            block = todo.pop()
            if not found >> block & 1:
                found |= 1 << block
                todo += [n for n in edges[block] if n != without]
        return found

    @cached_property
    def _before(self) -> list[list[int]]:
        before: list[list[int]] = [[] for _ in self.flow.blocks]
        for at, block in enumerate(self.flow.blocks):
            for to in block.next:
                before[to].append(at)
        return before

    @cached_property
    def _reach(self) -> list[Blocks]:
        return _closed([block.next for block in self.flow.blocks])

    @cached_property
    def _reached_from(self) -> list[Blocks]:
        return _closed(self._before)

    @cached_property
    def _dominators(self) -> list[Blocks]:
        return _above([block.next for block in self.flow.blocks], 0)

    @cached_property
    def _postdominators(self) -> list[Blocks]:
        return _above(self._before, len(self.flow.blocks) - 1)


def bits(blocks: Blocks) -> Iterator[int]:
    while blocks:
        low = blocks & -blocks
        yield low.bit_length() - 1
        blocks ^= low


def _closed(edges: Sequence[Sequence[int]]) -> list[Blocks]:
    """For each block all that can be reached from it by one edge or more."""
    reach = [0] * len(edges)
    changed = True
    while changed:
        changed = False
        for at in reversed(range(len(edges))):
            more = reach[at]
            for to in edges[at]:
                more |= 1 << to | reach[to]
            changed = changed or more != reach[at]
            reach[at] = more
    return reach


def _above(edges: Sequence[Sequence[int]], root: int) -> list[Blocks]:
    """For each block those that every way from the root to it passes; none for blocks that are not reached."""
    above = [0] * len(edges)
    for block, parent in _dominated(edges, root):
        above[block] = above[parent] | 1 << parent
    return above


def _dominated(edges: Sequence[Sequence[int]], root: int) -> Iterator[tuple[int, int]]:
    """Every block that is reached with its immediate dominator, from the root down."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(edges)))
    graph.add_edges_from((at, to) for at, block in enumerate(edges) for to in block)
    tree = nx.immediate_dominators(graph, root)
    down = nx.DiGraph((up, n) for n, up in tree.items() if up not in (n, None))
    for block in nx.dfs_preorder_nodes(down, root) if root in down else ():
        if block != root:
            yield block, tree[block]
