"""What a graph's text tells before anything is read: what the layers behind an input expect, where control flow is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import onnx

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE, onnx.TensorProto.BFLOAT16)
CONTROL = ("If", "Loop", "Scan", "SequenceMap")


def expected_sizes(graph: onnx.GraphProto, name: str) -> tuple[int | str, ...] | None:
    """The sizes that the layer reading an input has weights for, '?' where it takes any; None where none tells."""
    weights = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    readers = {name}
    for node in graph.node:
        if not node.input or node.input[0] not in readers:
            continue
        if node.op_type in ("QuantizeLinear", "DequantizeLinear", "Cast", "Identity", "Mul", "Sub", "Add", "Div"):
            readers.update(node.output)  # of the same shape
        shape = weights.get(node.input[1], ()) if len(node.input) > 1 else ()
        if node.op_type == "Conv" and len(shape) > 2:
            groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
            return ("?", shape[1] * max(groups, 1), *("?" for _ in shape[2:]))
        if node.op_type in ("Gemm", "MatMul") and len(shape) == 2:
            is_turned = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
            return ("?", shape[1] if is_turned else shape[0])
    return None


def control_flow(graph: onnx.GraphProto) -> Mapping[str, int]:
    """How often each operator of control flow stands in the graph, and in graphs inside."""
    return Counter(node.op_type for node in _nodes(graph) if node.op_type in CONTROL)


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        for node in current.node:
            yield node
            waiting += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
