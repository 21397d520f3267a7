"""Models of float16, bfloat16 and double as models of float32, which is how we compute them.

A runtime that rounds every tensor to 16 bits is no reference for code that does not, and some layers of these types it
does not know: it is handed the same model in float32, with the weights that the file holds.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import numpy_helper

from ..tensor import Array

_OTHER_FLOATS = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE)
_FLOAT = onnx.TensorProto.FLOAT
# Attributes that name an element type; that of QuantizeLinear and others is an integer's.
_TYPE_ATTRIBUTES = ("to", "dtype")


def make_float32(model: onnx.ModelProto) -> bool:
    """Makes float32 of all other floats in a model, in place; whether there were any."""
    found = [_changed(graph) for graph in _graphs(model.graph)]
    return any(found)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph, and those inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from _graphs(inner)


def _changed(graph: onnx.GraphProto) -> bool:
    tensors = [*graph.initializer]
    is_changed = False
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type in _OTHER_FLOATS:
            value.type.tensor_type.elem_type = _FLOAT
            is_changed = True
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        tensors += [attribute.t, *attribute.tensors]
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _OTHER_FLOATS:
            attribute.i = _FLOAT
            is_changed = True
    for tensor in tensors:
        if tensor.data_type in _OTHER_FLOATS:
            values: Array = numpy_helper.to_array(tensor).astype("float32")
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
            is_changed = True
    return is_changed
