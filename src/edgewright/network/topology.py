"""An order in which things can run that wait for each other. What they are, and what a cycle means, others say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import heapify, heappop, heappush


def execution_order(before: Sequence[Collection[int]]) -> list[int]:
    """Indices, each after those in its `before`; as given where that is possible (Kahn 1962).

    Those in a cycle, or behind one, are missing.
    """
    waiting = [len(set(those)) for those in before]
    after: list[list[int]] = [[] for _ in before]
    for index, those in enumerate(before):
        for earlier in set(those):
            after[earlier].append(index)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for later in after[index]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heappush(ready, later)
    return order
