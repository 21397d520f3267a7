"""Models whose 8-bit products onnxruntime computes exactly on every processor.

On x86-64 without VNNI it saturates sums of two products of uint8 inputs and int8 weights at 16 bits. Weights and their
zero point, both raised by 128, give the same sums. Asked for precision it raises most of them itself, but not those of
integer operators without optimisation, and wrongly where weights of several scales state no zero point.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from ..tensor import Array
from .float32 import graphs

_INT8, _UINT8 = onnx.TensorProto.INT8, onnx.TensorProto.UINT8
_OFFSET = 128
_REAL = ("Conv", "ConvTranspose", "Gemm", "MatMul")  # onnxruntime computes them on integers where it can


@dataclass(frozen=True)
class _Operands:
    """The numbers of an operator's inputs: what is multiplied, and the zero points of both."""

    x: int
    weights: int
    x_zero: int
    weights_zero: int


_INTEGER = {
    "QLinearConv": _Operands(0, 3, 2, 5),
    "QLinearMatMul": _Operands(0, 3, 2, 5),
    "QGemm": _Operands(0, 3, 2, 5),
    "ConvInteger": _Operands(0, 1, 2, 3),
    "MatMulInteger": _Operands(0, 1, 2, 3),
    "MatMulIntegerToFloat": _Operands(0, 1, 4, 5),
}
_DEQUANTIZE = _Operands(0, 0, 2, 2)  # of weights


def has_inexact_products(model: onnx.ModelProto) -> bool:
    """Whether the model has int8 weights that have to be changed; tensor values are not needed."""
    return any(True for graph in graphs(model.graph) for _ in _changes(graph))


def make_products_exact(model: onnx.ModelProto) -> None:
    """Makes int8 weights of uint8 inputs uint8, and states the zero points of others, in place."""
    for graph in graphs(model.graph):
        constants = {tensor.name: tensor for tensor in graph.initializer}
        for node, operands, is_raised in list(_changes(graph)):
            name, zero = node.input[operands.weights], _input(node, operands.weights_zero)
            if not zero:
                shape = tuple(constants[node.input[1]].dims) if operands is _DEQUANTIZE else ()
                zero = _add(graph, constants, f"{name}/zero", np.zeros(shape, np.int8))
            if is_raised:
                node.input[operands.weights] = _add(graph, constants, f"{name}/raised", _raised(constants[name]))
                zero = _add(graph, constants, f"{zero}/raised", _raised(constants[zero]))
            while len(node.input) <= operands.weights_zero:
                node.input.append("")
            node.input[operands.weights_zero] = zero


def _raised(tensor: onnx.TensorProto) -> Array:
    values: Array = (numpy_helper.to_array(tensor).astype(np.int16) + _OFFSET).astype(np.uint8)
    return values


def _add(graph: onnx.GraphProto, constants: dict[str, onnx.TensorProto], name: str, values: Array) -> str:
    """The name of a constant, which is added to the graph if it is missing."""
    if name not in constants:
        constants[name] = numpy_helper.from_array(values, name)
        graph.initializer.append(constants[name])
    return name


def _changes(graph: onnx.GraphProto) -> Iterator[tuple[onnx.NodeProto, _Operands, bool]]:
    """Nodes whose constant int8 weights have to be raised (True), or whose zero point has to be stated (False)."""
    constants = {tensor.name: tensor.data_type for tensor in graph.initializer}
    types, makers, readers = _types(graph), _makers(graph), defaultdict[str, list[onnx.NodeProto]](list)
    for node in graph.node:
        for name in node.input:
            readers[name].append(node)
    for node in graph.node:
        operands = _DEQUANTIZE if node.op_type == "DequantizeLinear" else _INTEGER.get(node.op_type)
        if operands is None or constants.get(_input(node, operands.weights)) != _INT8:
            continue
        zero = _input(node, operands.weights_zero)
        if zero and constants.get(zero) != _INT8:
            continue
        if operands is _DEQUANTIZE and not zero and _input(node, 1) not in constants:
            continue  # a zero point has the shape of the scale
        if operands is _DEQUANTIZE:
            is_raised = any(_has_unsigned_input(reader, makers, types) for reader in readers[node.output[0]])
        else:
            is_raised = _type(node, operands, types) == _UINT8
        if is_raised or (operands is _DEQUANTIZE and not zero):
            yield node, operands, is_raised


def _has_unsigned_input(node: onnx.NodeProto, makers: Mapping[str, onnx.NodeProto], types: Mapping[str, int]) -> bool:
    """Whether an operator on real numbers reads a dequantised uint8 tensor."""
    sources = [makers[name] for name in node.input[:2] if name in makers] if node.op_type in _REAL else []
    return any(source.op_type == "DequantizeLinear" and types.get(source.input[0]) == _UINT8 for source in sources)


def _input(node: onnx.NodeProto, number: int) -> str:
    return node.input[number] if number < len(node.input) else ""


def _type(node: onnx.NodeProto, operands: _Operands, types: Mapping[str, int]) -> int | None:
    """The element type of an operator's input, which its zero point shares."""
    return types.get(_input(node, operands.x_zero)) or types.get(_input(node, operands.x))


def _makers(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    return {name: node for node in graph.node for name in node.output}


def _types(graph: onnx.GraphProto) -> dict[str, int]:
    """Element types of tensors, where the graph states them or an operator implies them."""
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info)}
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "DynamicQuantizeLinear":
            types |= {node.output[0]: _UINT8, node.output[2]: _UINT8}
        elif node.op_type == "QuantizeLinear":
            types[node.output[0]] = types.get(_input(node, 2), _UINT8)
        elif node.op_type == "DequantizeLinear" and _input(node, 2) in types:
            types[node.input[0]] = types[node.input[2]]
    return types
