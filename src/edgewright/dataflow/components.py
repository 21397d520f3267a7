"""Strongly connected components of a directed graph given by its edges."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def strong_components(nodes: Sequence[Node], edges: Iterable[tuple[Node, Node]]) -> Mapping[Node, int]:
    """The number of the component that each node is in (Kosaraju: without recursion, so that depth does not matter)."""
    onwards: dict[Node, list[Node]] = {node: [] for node in nodes}
    back: dict[Node, list[Node]] = {node: [] for node in nodes}
    for start, end in edges:
        onwards[start].append(end)
        back[end].append(start)
    number: dict[Node, int] = {}
    for count, node in enumerate(reversed(_finished(nodes, onwards))):
        if node in number:
            continue
        number[node] = count
        waiting = [node]
        while waiting:
            for before in back[waiting.pop()]:
                if before not in number:
                    number[before] = count
                    waiting.append(before)
    return number


def _finished(nodes: Sequence[Node], onwards: Mapping[Node, Sequence[Node]]) -> Sequence[Node]:
    """Nodes in the order in which a depth-first walk leaves them."""
    seen: set[Node] = set()
    order: list[Node] = []
    for root in nodes:
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(onwards[root]))]
        while path:
            node, rest = path[-1]
            following = next((other for other in rest if other not in seen), None)
            if following is None:
                order.append(node)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(onwards[following])))
    return order
