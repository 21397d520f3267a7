"""The order in which a file's operators can run. Files usually list them so, but nothing makes them."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from ...errors import ModelError
from .file import ModelFile


def execution_order(file: ModelFile) -> list[int]:
    """Indices of the operators, each after those it reads from; as in the file where that is possible (Kahn 1962)."""
    writer: dict[int, int] = {}
    given = set(file.inputs)
    for index, operator in enumerate(file.operators):
        for tensor in operator.outputs:
            name = file.tensors[tensor].name
            if tensor in writer:
                raise ModelError(f"tensor '{name}' is written by operators {writer[tensor]} and {index}")
            if tensor in given or file.tensors[tensor].data is not None:
                raise ModelError(f"operator {index} writes tensor '{name}', which is an input or a constant")
            writer[tensor] = index

    waiting = [len({writer[t] for t in operator.inputs if t in writer}) for operator in file.operators]
    readers: dict[int, list[int]] = {index: [] for index in range(len(file.operators))}
    for index, operator in enumerate(file.operators):
        for producer in {writer[t] for t in operator.inputs if t in writer}:
            readers[producer].append(index)

    ready = [index for index, count in enumerate(waiting) if count == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for reader in readers[index]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heappush(ready, reader)
    if len(order) < len(file.operators):
        stuck = sorted(set(range(len(file.operators))) - set(order))
        names = ", ".join(f"{index} ({file.operators[index].kind})" for index in stuck[:8])
        raise ModelError(f"the graph has a cycle, through or before these operators: {names}")
    return order
