"""Sorts the nodes of an ONNX graph topologically; reports cycles and undefined names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import onnx

from ...errors import ModelError
from ..network import execution_order


def sorted_nodes(nodes: Sequence[onnx.NodeProto], known: Collection[str]) -> list[tuple[int, onnx.NodeProto]]:
    """The nodes with their indices in the file, each after those that write its inputs.

    Files should be sorted, and then keep their order; some are not. `known` are names defined elsewhere.
    """
    writer: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in writer or name in known:
                raise ModelError(f"tensor '{name}' is written twice, the second time by {title(node, i)}")
            writer[name] = i
    before: list[set[int]] = []
    for i, node in enumerate(nodes):
        read = {name for name in names_read(node) if name}
        if missing := sorted(name for name in read if name not in writer and name not in known):
            raise ModelError(f"{title(node, i)} reads '{missing[0]}', which nothing writes")
        before.append({writer[name] for name in read if name in writer})
    order = execution_order(before)
    if len(order) < len(nodes):
        raise ModelError(f"the graph has a cycle through {_cycle(nodes, before, order)}")
    return [(i, nodes[i]) for i in order]


def title(node: onnx.NodeProto, index: int) -> str:
    """The name of a node in messages."""
    return f"{node.op_type or 'node'} '{node.name or f'#{index}'}'"


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node reads, including those that its nested graphs take from outside."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            inside = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            inside.update(name for inner in graph.node for name in inner.output)
            for inner in graph.node:
                yield from (name for name in names_read(inner) if name not in inside)
            yield from (value.name for value in graph.output if value.name not in inside)


def _cycle(nodes: Sequence[onnx.NodeProto], before: Sequence[set[int]], order: Sequence[int]) -> str:
    """The nodes of one cycle, in order. Every remaining node waits for another one."""
    left = set(range(len(nodes))) - set(order)
    at, seen = min(left), dict[int, int]()  # position on the way back from the first node
    while at not in seen:
        seen[at] = len(seen)
        at = max(before[at] & left)
    cycle = [*reversed(list(seen)[seen[at] :])]
    first = cycle.index(min(cycle))
    cycle = cycle[first:] + cycle[:first]
    shown = [title(nodes[i], i) for i in cycle[:8]]
    return " -> ".join([*shown, "..."] if len(cycle) > 8 else [*shown, shown[0]])
