"""Converts models of float16, bfloat16 and double to float32, in which we compute; and spectra to double.

A runtime that rounds every tensor to 16 bits is no reference for code that does not, and some layers of these types it
does not support: it gets the same model in float32, with the file's weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import numpy_helper

from ..tensor import Array
from .tensors import WIDENED

_FLOAT, _DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
_SPECTRA, _REAL_INPUTS = ("STFT",), (0, 2)  # operators, and the indices of their real inputs
# Attributes that name an element type; for QuantizeLinear and others it is an integer type.
_TYPE_ATTRIBUTES = ("to", "dtype")


def has_other_floats(model: onnx.ModelProto) -> bool:
    """Whether the model uses float16, bfloat16 or double; tensor values are not needed."""
    return any(
        kind in WIDENED
        for graph in graphs(model.graph)
        for kind in (
            *(value.type.tensor_type.elem_type for value in _values(graph)),
            *(attribute.i for attribute in _type_attributes(graph)),
            *(tensor.data_type for tensor in _tensors(graph)),
        )
    )


def make_float32(model: onnx.ModelProto) -> None:
    """Replaces all other float types in a model by float32, in place."""
    for graph in graphs(model.graph):
        for value in _values(graph):
            if value.type.tensor_type.elem_type in WIDENED:
                value.type.tensor_type.elem_type = _FLOAT
        for attribute in _type_attributes(graph):
            if attribute.i in WIDENED:
                attribute.i = _FLOAT
        for tensor in _tensors(graph):
            if tensor.data_type in WIDENED:
                values: Array = numpy_helper.to_array(tensor).astype("float32")
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def has_spectra(model: onnx.ModelProto) -> bool:
    return any(node.op_type in _SPECTRA for graph in graphs(model.graph) for node in graph.node)


def compute_spectra_in_double(model: onnx.ModelProto) -> None:
    """Adds casts around each STFT of a float32 model, in place.

    onnxruntime's float32 STFT is 40 times further from the exact result than our sums, and the logarithm that usually
    follows amplifies this beyond the tolerance.
    """
    for graph in graphs(model.graph):
        for node in [node for node in graph.node if node.op_type in _SPECTRA]:
            place = list(graph.node).index(node)
            casts = []
            for number in _REAL_INPUTS:
                if number < len(node.input) and node.input[number]:
                    wide = f"{node.output[0]}/double{number}"
                    casts.append(onnx.helper.make_node("Cast", [node.input[number]], [wide], to=_DOUBLE))
                    node.input[number] = wide
            output, wide = node.output[0], f"{node.output[0]}/double"
            node.output[0] = wide
            graph.node.insert(place + 1, onnx.helper.make_node("Cast", [wide], [output], to=_FLOAT))
            for cast in casts:
                graph.node.insert(place, cast)


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph, and those nested in its nodes."""
    yield graph
    for attribute in _attributes(graph):
        for inner in (attribute.g, *attribute.graphs):
            if inner.node:
                yield from graphs(inner)


def _attributes(graph: onnx.GraphProto) -> Iterator[onnx.AttributeProto]:
    return (attribute for node in graph.node for attribute in node.attribute)


def _type_attributes(graph: onnx.GraphProto) -> Iterator[onnx.AttributeProto]:
    return (attribute for attribute in _attributes(graph) if attribute.name in _TYPE_ATTRIBUTES)


def _values(graph: onnx.GraphProto) -> tuple[onnx.ValueInfoProto, ...]:
    return (*graph.input, *graph.output, *graph.value_info)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for attribute in _attributes(graph):
        yield from (attribute.t, *attribute.tensors)
