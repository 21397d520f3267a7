"""Writers of activations and arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, pi, sqrt

import numpy as np

from .. import operators as ops
from ..onnx_names import ARITHMETIC, COMPARISONS, UNARY
from .node import NodeWriter


def activate(node: NodeWriter, activation: ops.Activation, x: str) -> str:
    """Nodes that apply the activation to a value."""
    match activation:
        case ops.Clamp(low, high):
            return _clamp(node, low, high, x)
        case ops.LeakyRelu(alpha):
            return node.add("LeakyRelu", [x], alpha=alpha)
        case ops.Elu(alpha, gamma):
            if gamma == 1:
                return node.add("Elu", [x], alpha=alpha)
            return node.add("Selu", [x], alpha=alpha, gamma=gamma)
        case ops.HardSigmoid(alpha, beta):
            return node.add("HardSigmoid", [x], alpha=alpha, beta=beta)
        case ops.Unary(kind):
            return node.add(UNARY[kind], [x]) if kind in UNARY else SPELLED[kind](node, x)


def _clamp(node: NodeWriter, low: float, high: float, x: str) -> str:
    if low == 0 and high == inf:
        return node.add("Relu", [x])
    if node.dtype.is_float:
        least, most = -inf, inf
    else:
        info = np.iinfo(node.dtype.numpy)
        least, most = info.min, info.max
    bounds = [
        node.number(value, what) if least < value < most else "" for value, what in ((low, "low"), (high, "high"))
    ]
    return node.add("Clip", [x, *bounds])


def _silu(node: NodeWriter, x: str) -> str:
    return node.add("Mul", [x, node.add("Sigmoid", [x])])


def _gelu(node: NodeWriter, x: str) -> str:
    erf = node.add("Erf", [node.add("Mul", [x, node.number(sqrt(0.5), "root")])])
    return _half(node, x, erf)


def _gelu_tanh(node: NodeWriter, x: str) -> str:
    cube = node.add("Mul", [node.add("Mul", [x, x]), x])
    inner = node.add("Add", [x, node.add("Mul", [cube, node.number(0.044715, "cubic")])])
    return _half(node, x, node.add("Tanh", [node.add("Mul", [inner, node.number(sqrt(2 / pi), "root")])]))


def _half(node: NodeWriter, x: str, gate: str) -> str:
    """The nodes of x * (1 + gate) / 2."""
    raised = node.add("Add", [gate, node.number(1.0, "one")])
    return node.add("Mul", [node.add("Mul", [x, raised]), node.number(0.5, "half")])


SPELLED: Mapping[ops.UnaryKind, Callable[[NodeWriter, str], str]] = {
    ops.UnaryKind.GELU: _gelu,
    ops.UnaryKind.GELU_TANH: _gelu_tanh,
    ops.UnaryKind.RSQRT: lambda node, x: node.add("Reciprocal", [node.add("Sqrt", [x])]),
    ops.UnaryKind.SILU: _silu,
    ops.UnaryKind.SQUARE: lambda node, x: node.add("Mul", [x, x]),
}


def binary(node: NodeWriter, op: ops.Binary) -> str:
    if op.kind is ops.BinaryKind.SQUARED_DIFFERENCE:
        difference = node.add("Sub", node.inputs())
        return node.add("Mul", [difference, difference])
    return node.add(ARITHMETIC[op.kind], node.inputs())


def compare(node: NodeWriter, op: ops.Compare) -> str:
    if op.kind is ops.CompareKind.NOT_EQUAL:
        return node.add("Not", [node.add("Equal", node.inputs())])
    return node.add(COMPARISONS[op.kind], node.inputs())


def batch_norm(node: NodeWriter, op: ops.BatchNorm) -> str:
    """Scale and shift along the last axis, as arithmetic: ONNX's BatchNormalization requires channels first."""
    x, scale, shift = node.inputs()
    return node.add("Add", [node.add("Mul", [x, scale]), shift])


def lstm_step(node: NodeWriter, op: ops.LstmStep) -> str:
    gates, cell = node.inputs()
    size = node.shape(1)[-1]

    def gate(which: int, kind: str) -> str:
        numbers = ((which * size, "start"), ((which + 1) * size, "end"), (-1, "axis"))
        return node.add(kind, [node.add("Slice", [gates, *(node.integers([n], what) for n, what in numbers)])])

    if op.part is ops.LstmPart.HIDDEN:
        return node.add("Mul", [gate(3, "Sigmoid"), node.add("Tanh", [cell])])
    new = node.add("Mul", [gate(0, "Sigmoid"), gate(2, "Tanh")])
    total = node.add("Add", [node.add("Mul", [gate(1, "Sigmoid"), cell]), new])
    return total if op.clip is None else _clamp(node, -op.clip, op.clip, total)
