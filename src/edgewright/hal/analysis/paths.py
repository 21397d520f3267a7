"""The order of events in a function: what always comes before, always after (by dominators), and in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import networkx as nx

from .accesses import Access
from .functions import Event, Flow
from .loops import Edges, Loops, depth_first, loops_of


@dataclass(frozen=True, slots=True)
class _Tree:
    """A tree of dominators: a block is above another if its numbers enclose the other's."""

    above: dict[int, int]  # by block, the one directly above
    numbers: dict[int, tuple[int, int]]  # of a block, and of the last below it

    def is_above(self, one: int, other: int) -> bool:
        """Whether a block is another one or above it; a block that is not in the tree is neither."""
        if one not in self.numbers or other not in self.numbers:
            return False
        first, last = self.numbers[one]
        return first <= self.numbers[other][0] <= last


@dataclass(frozen=True)
class Paths:
    """Questions about a control flow graph, answered for accesses by number."""

    flow: Flow
    _inner: dict[int, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    _governed: dict[int, frozenset[int]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def where(self) -> dict[int, tuple[int, int]]:
        """Block and position of every access."""
        return {
            event.number: (at, position)
            for at, block in enumerate(self.flow.blocks)
            for position, event in enumerate(block.events)
            if isinstance(event, Access)
        }

    @property
    def has_loop(self) -> bool:
        return bool(self._loops.back)

    def guard(self, access: int) -> tuple[int, ...]:
        return self.flow.blocks[self.where[access][0]].guard

    def loop(self, access: int) -> int | None:
        """The innermost loop around an access: the number of its header."""
        return self._loops.innermost[self.where[access][0]]

    def is_always_before(self, first: int, second: int) -> bool:
        """Whether control that gets to the second access has come through the first."""
        (at, position), (to, later) = self.where[first], self.where[second]
        return position < later if at == to else self._dominators.is_above(at, to)

    def is_always_after(self, first: int, second: int) -> bool:
        """Whether control that gets to the first access goes on to the second, before it comes to the first again.

        A loop may never end: what follows it is not certain to happen.
        """
        (at, position), (to, later) = self.where[first], self.where[second]
        return position < later if at == to else self._postdominators.is_above(to, at)

    def is_on_the_way(self, first: int, second: int) -> bool:
        """Whether control can get from the first access to the second."""
        (at, position), (to, later) = self.where[first], self.where[second]
        return (at == to and position < later) or to in self._reach(at)

    def between(self, first: int, second: int) -> Iterator[Event]:
        """All events on ways from the first access to the second that do not pass the first again."""
        (at, position), (to, later) = self.where[first], self.where[second]
        blocks = self.flow.blocks
        if at == to and position < later:
            yield from blocks[at].events[position + 1 : later]
            return
        middle = self._middle(at, to)
        yield from blocks[at].events[position + 1 :]
        for block in sorted(middle - {to}):
            yield from blocks[block].events
        yield from blocks[to].events if to in middle else blocks[to].events[:later]

    def distance(self, first: int, second: int) -> int:
        """The events between two accesses, and the blocks that they are in beyond the second's own."""
        (at, position), (to, later) = self.where[first], self.where[second]
        blocks = 0 if at == to and position < later else len(self._middle(at, to) - {to}) + 1
        return blocks + sum(1 for _ in self.between(first, second))

    def backwards(self, access: int) -> Iterator[tuple[Event | None, bool]]:
        """The events on ways to an access, the nearest first, and of each whether it comes always before the access.

        It ends where the access's loop begins. None stands for a block on the way, so that empty ones count too.
        """
        block, position = self.where[access]
        yield from ((event, True) for event in reversed(self.flow.blocks[block].events[:position]))
        start, passed = self._loops.innermost[block], {block}
        while block != start and block in self._dominators.above:
            for other in self._inside(block):
                if other not in passed:
                    passed.add(other)
                    yield None, False
                    yield from ((event, False) for event in self.flow.blocks[other].events)
            block = self._dominators.above[block]
            if block in passed:
                continue
            passed.add(block)
            yield None, True
            yield from ((event, True) for event in reversed(self.flow.blocks[block].events))

    def governed(self, access: int) -> frozenset[int]:
        """The reads on whose values it depends whether the access happens at all."""
        at = self.where[access][0]
        if at not in self._governed:
            decisive = (branch.reads for branch in self.flow.branches if self._decides(branch.block, at))
            self._governed[at] = frozenset[int]().union(*decisive)
        return self._governed[at]

    def _decides(self, branch: int, at: int) -> bool:
        """Whether the block is reached on some way from the branch, but not on all."""
        return branch != at and at in self._reach(branch) and not self._postdominators.is_above(at, branch)

    def _reach(self, block: int) -> set[int]:
        return _spread(block, self._edges)

    def _middle(self, at: int, to: int) -> set[int]:
        """Blocks on ways from one block to another that do not pass the first again."""
        back = _spread(to, self._before, at)
        if at == to or not self._dominators.is_above(at, to):
            back &= _spread(at, self._edges, at) | {to}
        return back

    def _inside(self, block: int) -> tuple[int, ...]:
        """The blocks on ways to a block from the one directly above it in the tree of dominators."""
        if block not in self._inner:
            self._inner[block] = tuple(sorted(_spread(block, self._before, self._dominators.above[block])))
        return self._inner[block]

    @cached_property
    def _edges(self) -> Edges:
        return [block.next for block in self.flow.blocks]

    @cached_property
    def _reached(self) -> list[tuple[int, int, int]]:
        return depth_first(self._edges)

    @cached_property
    def _loops(self) -> Loops:
        return loops_of(self._before, self._reached)

    @cached_property
    def _before(self) -> Edges:
        """Where control comes from, by block; none from blocks that are never reached."""
        before: list[list[int]] = [[] for _ in self.flow.blocks]
        for at, _, _ in self._reached:
            for to in self._edges[at]:
                before[to].append(at)
        return before

    @cached_property
    def _dominators(self) -> _Tree:
        return _tree(self._edges, 0)

    @cached_property
    def _postdominators(self) -> _Tree:
        """Of the graph in which every loop can be left for good where it goes back: it may run for ever."""
        last = len(self.flow.blocks) - 1
        before = [list(sources) for sources in self._before]
        before[last] += [latch for latch, _ in self._loops.back]
        return _tree(before, last)


def _spread(start: int, edges: Edges, without: int | None = None) -> set[int]:
    """The blocks reachable from a block without passing through `without`."""
    found: set[int] = set()
    waiting = [to for to in edges[start] if to != without]
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting += [to for to in edges[block] if to != without]
    return found


def _tree(edges: Edges, root: int) -> _Tree:
    """The tree of the blocks that every way from the root passes."""
    graph = nx.DiGraph()
    graph.add_node(root)
    graph.add_edges_from((at, to) for at, block in enumerate(edges) for to in block)
    above = {block: up for block, up in nx.immediate_dominators(graph, root).items() if up not in (block, None)}
    below: list[list[int]] = [[] for _ in edges]
    for block, up in above.items():
        below[up].append(block)
    return _Tree(above, {block: (first, last) for block, first, last in depth_first(below, root)})
