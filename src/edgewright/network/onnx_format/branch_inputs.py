"""Values of inputs on which branches depend: what an `Equal` of the file compares them with."""

from __future__ import annotations

from collections.abc import Collection

import onnx
from onnx import numpy_helper

from ..tensor import Array


def compared_values(graph: onnx.GraphProto, inputs: Collection[str]) -> dict[str, Array]:
    """For each of these inputs that an Equal compares with a constant, that constant in the shape of the input."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            constants[node.output[0]] = node.attribute[0].t
    shapes = {value.name: value.type.tensor_type.shape for value in graph.input}
    values: dict[str, Array] = {}
    for node in graph.node:
        for name, other in (node.input, reversed(node.input)) if node.op_type == "Equal" else ():
            if name in inputs and other in constants:
                value = numpy_helper.to_array(constants[other])
                if value.size == 1:
                    values.setdefault(name, value.reshape([1 for _ in shapes[name].dim]))
    return values
