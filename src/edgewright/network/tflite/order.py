"""The order in which a file's operators can run. Files usually list them so, but nothing makes them."""

from __future__ import annotations

from ...errors import ModelError
from ..topology import execution_order
from .file import ModelFile


def operator_order(file: ModelFile) -> list[int]:
    """Indices of the operators, each after those it reads from; as in the file where that is possible."""
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

    order = execution_order([{writer[t] for t in operator.inputs if t in writer} for operator in file.operators])
    if len(order) < len(file.operators):
        stuck = sorted(set(range(len(file.operators))) - set(order))
        names = ", ".join(f"{index} ({file.operators[index].kind})" for index in stuck[:8])
        raise ModelError(f"the graph has a cycle, through or before these operators: {names}")
    return order
