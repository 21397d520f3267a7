"""Importers of the fused operators that onnxruntime writes into optimised models."""

from __future__ import annotations

from .. import operators as ops
from ..operators import Activation, BinaryKind, Unary, UnaryKind
from . import linear, normalise, windows
from .context import Value
from .elementwise import NAMED, activation, pairwise
from .node import OnnxNode


def _activated(node: OnnxNode, y: Value, kind: str, numbers: tuple[float, ...]) -> Value:
    """The activation named by the attribute, with its parameters."""
    op: Activation
    match kind, numbers:
        case "", _:
            return y
        case (("Relu" | "Sigmoid" | "Tanh"), _):
            op = NAMED[kind]
        case "LeakyRelu", (alpha, *_):
            op = ops.LeakyRelu(alpha)
        case "Clip", (low, high):
            op = ops.Clamp(low, high)
        case "HardSigmoid", (alpha, beta):
            op = ops.HardSigmoid(alpha, beta)
        case _:
            raise node.unsupported(f"the activation '{kind}' with {len(numbers)} parameters")
    return node.layer(op, [y], "activation")


def conv(node: OnnxNode) -> Value:
    """Another tensor may be added before the activation."""
    y, other = windows.conv(node), node.optional(3)
    if other is not None:
        y = pairwise(node, BinaryKind.ADD, y, other, "sum")
    return _activated(node, y, node.text("activation", ""), node.reals("activation_params") or ())


def gemm(node: OnnxNode) -> Value:
    y = linear.gemm(node)
    numbers = tuple(node.real(f"activation_{name}", 0.0) for name in ("alpha", "beta"))
    return _activated(node, y, node.text("activation", ""), numbers)


def matmul(node: OnnxNode) -> Value:
    """alpha * A' * B', with the last two axes of either transposed if requested."""
    if node.flag("transBatchA") or node.flag("transBatchB"):
        raise node.unsupported("batches are turned")
    a, b = node.input(0), node.input(1)
    turned = [
        node.transposed(value, (*range(rank - 2), rank - 1, rank - 2), tag) if node.flag(name) else value
        for value, name, tag in ((a, "transA", "a"), (b, "transB", "b"))
        if (rank := len(node.shape(value))) > 1
    ]
    if len(turned) < 2:
        raise node.unsupported("multiplies vectors")
    y, alpha = linear.product(node, *turned), node.real("alpha", 1.0)
    return y if alpha == 1.0 else pairwise(node, BinaryKind.MUL, y, node.number("alpha", alpha), "scaled")


def gelu(node: OnnxNode) -> Value:
    """BiasGelu and FastGelu: of x and a bias, by erf or by tanh."""
    x, bias = node.input(0), node.optional(1)
    kind = UnaryKind.GELU_TANH if node.op_type == "FastGelu" else UnaryKind.GELU
    return node.layer(Unary(kind), [x if bias is None else pairwise(node, BinaryKind.ADD, x, bias, "sum")])


def quick_gelu(node: OnnxNode) -> Value:
    """x * sigmoid(alpha * x)."""
    x, alpha = node.input(0), node.real("alpha", 1.702)
    if alpha == 1.0:
        return activation(node, Unary(UnaryKind.SILU))
    steep = pairwise(node, BinaryKind.MUL, x, node.number("alpha", alpha), "steep")
    return pairwise(node, BinaryKind.MUL, x, node.layer(Unary(UnaryKind.SIGMOID), [steep], "gate"))


def skip_layer_norm(node: OnnxNode) -> tuple[Value, ...]:
    """The sum of two tensors and a bias, normalised along the last axis; the fourth output is the sum."""
    total = pairwise(node, BinaryKind.ADD, node.input(0), node.input(1), "sum")
    if (bias := node.optional(4)) is not None:
        total = pairwise(node, BinaryKind.ADD, total, bias, "all")
    y = normalise.normalised(node, total, (len(node.shape(total)) - 1,), node.real("epsilon", 1e-12))
    y = normalise.scaled(node, y, node.input(2), node.optional(3))
    return (y, y, y, total) if len(node.outputs) > 3 and not any(node.outputs[1:3]) else (y,)
