"""The loops of a control flow graph, however they are written: with keywords or with goto.

Found after Havlak (1997) as Ramalingam (1999) mended it: a loop belongs to the block of it that a walk in depth first
visits first, its header; every cycle passes the header of the innermost loop that it lies in, also where control can
enter in several places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Edges = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Loops:
    innermost: tuple[int | None, ...]  # by block: the header of the innermost loop around it, itself for a header
    back: tuple[tuple[int, int], ...]  # edges that lead back to a header: without them there is no cycle


def loops_of(before: Edges, reached: Sequence[tuple[int, int, int]]) -> Loops:
    """The loops of a graph, given where control comes from; `reached` are its blocks as `depth_first` gives them."""
    span = {block: (first, last) for block, first, last in reached}

    def is_above(header: int, block: int) -> bool:
        return span[header][0] <= span[block][0] <= span[header][1]

    ways_in = {block: [b for b in before[block] if not is_above(block, b)] for block in span}
    stands_for = list(range(len(before)))  # a block of a loop that was found: its header
    around: list[int | None] = [None] * len(before)
    headers: set[int] = set()
    back: list[tuple[int, int]] = []
    for header, _, _ in reversed(reached):
        latches = [block for block in before[header] if is_above(header, block)]
        if not latches:
            continue
        headers.add(header)
        back += [(latch, header) for latch in latches]
        body: set[int] = set()
        waiting = [_found(stands_for, latch) for latch in latches]
        while waiting:
            block = waiting.pop()
            if block == header or block in body:
                continue
            body.add(block)
            for source in ways_in[block]:
                source = _found(stands_for, source)
                if is_above(header, source):
                    waiting.append(source)
                else:  # another way into the loop, beside its header
                    ways_in[header].append(source)
        for block in body:
            stands_for[block] = around[block] = header
    return Loops(tuple(b if b in headers else around[b] for b in range(len(before))), tuple(back))


def depth_first(edges: Edges, root: int = 0) -> list[tuple[int, int, int]]:
    """The blocks that are reached, as a walk in depth first meets them, with their numbers and the last below each."""
    order: dict[int, int] = {root: 0}
    last: dict[int, int] = {}
    path = [(root, iter(edges[root]))]
    while path:
        block, rest = path[-1]
        to = next((to for to in rest if to not in order), None)
        if to is None:
            last[block] = len(order) - 1
            path.pop()
        else:
            order[to] = len(order)
            path.append((to, iter(edges[to])))
    return [(block, number, last[block]) for block, number in order.items()]


def _found(stands_for: list[int], block: int) -> int:
    while stands_for[block] != block:
        stands_for[block] = stands_for[stands_for[block]]
        block = stands_for[block]
    return block
