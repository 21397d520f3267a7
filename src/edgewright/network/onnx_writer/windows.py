"""Writers of convolutions, pools and products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ...errors import Unsupported
from ..operators import AvgPool2d, Conv2d, ConvTranspose2d, Dense, FinishSums, MatMul, MaxPool2d, Pads, PartialSum
from ..tensor import Array, Quant
from .graph import is_stored
from .node import NodeWriter


def window(op: Conv2d | ConvTranspose2d | MaxPool2d, kernel: Sequence[int], pads: Pads) -> dict[str, Any]:
    """The attributes that all windows share."""
    return {"kernel_shape": kernel, "strides": op.stride, "dilations": op.dilation, "pads": pads}


def conv(node: NodeWriter, op: Conv2d) -> str:
    x, pads = _cropped(node, op.pads)
    attributes = window(op, node.tensor(1).shape[1:3], pads)
    return node.add("Conv", [x, node.input(1), *_bias(node)], **attributes, group=op.groups)


def conv_transpose(node: NodeWriter, op: ConvTranspose2d) -> str:
    if min(op.pads) < 0:
        raise Unsupported(f"layer '{node.layer.name}': ONNX cannot crop the output by {op.pads}")
    inputs = [node.input(), _transpose_weights(node, op.groups), *_bias(node)]
    attributes = window(op, node.tensor(1).shape[1:3], op.pads)
    return node.add("ConvTranspose", inputs, **attributes, output_padding=op.extra, group=op.groups)


def _transpose_weights(node: NodeWriter, groups: int) -> str:
    """Weights (O, kh, kw, C / groups) as (C, O / groups, kh, kw)."""
    name, tensor = node.layer.inputs[1], node.tensor(1)
    if groups == 1:
        return node.graph.real(name, (3, 0, 1, 2))
    o, kh, kw, depth = tensor.shape
    weights = constant_weights(node)
    if is_stored(tensor):  # ONNX has no axis for these scales
        assert tensor.quant is not None
        zero, scale = (np.array(v).reshape(-1, 1, 1, 1) for v in (tensor.quant.zero, tensor.quant.scale))
        weights = ((weights.astype(np.int32) - zero) * scale).astype(np.float32)
    split = weights.reshape(groups, o // groups, kh, kw, depth).transpose(0, 4, 1, 2, 3)
    return node.graph.constant(split.reshape(groups * depth, o // groups, kh, kw), name)


def constant_weights(node: NodeWriter) -> Array:
    """The values of the weights, which must be constant."""
    name, constants = node.layer.inputs[1], node.graph.network.constants
    if name not in constants:
        raise Unsupported(f"layer '{node.layer.name}': weights '{name}' are computed, which is not written")
    return constants[name]


def _bias(node: NodeWriter) -> list[str]:
    """The bias as real numbers, if any; a stored one counts steps of the products."""
    if node.count < 3:
        return []
    name, tensor = node.layer.inputs[2], node.tensor(2)
    x, w = node.tensor(0).quant, node.tensor(1).quant
    if tensor.dtype.is_float or x is None or w is None:
        return [node.graph.real(name)]
    scales = tuple(float(np.float32(x.scale[0]) * np.float32(scale)) for scale in w.scale)
    quant = Quant(scales, (0,) * len(scales), 0)
    return [node.graph.dequantized(node.graph.value(name), tensor, quant, 0)]


def sums(node: NodeWriter, op: PartialSum | FinishSums) -> str:
    """Refused: ONNX has no operator that requantises integer sums as the whole layer does."""
    raise Unsupported(
        f"layer '{node.layer.name}': integer sums that cross from one part to another are not written as ONNX. "
        f"Cut '{type(op.product).__name__}' along its outputs, or run the parts with our own library"
    )


def max_pool(node: NodeWriter, op: MaxPool2d) -> str:
    x, pads = _cropped(node, op.pads)
    return node.add("MaxPool", [x], **window(op, op.kernel, pads))


def avg_pool(node: NodeWriter, op: AvgPool2d) -> str:
    top, left, bottom, right = op.pads
    x, pads = _cropped(node, (top, left, bottom - op.uncounted[0], right - op.uncounted[1]))
    attributes = {}
    if op.dilation != (1, 1):
        node.graph.opset = max(node.graph.opset, 19)
        attributes["dilations"] = op.dilation
    return node.add(
        "AveragePool",
        [x],
        kernel_shape=op.kernel,
        strides=op.stride,
        pads=pads,
        count_include_pad=int(op.count_pads),
        ceil_mode=int(any(op.uncounted)),
        **attributes,
    )


def _cropped(node: NodeWriter, pads: Pads) -> tuple[str, Pads]:
    """The image cropped by negative pads, and the remaining pads."""
    x = node.input()
    if min(pads) >= 0:
        return x, pads
    top, left, bottom, right = (min(p, 0) for p in pads)
    amounts = node.integers((0, 0, top, left, 0, 0, bottom, right), "crop")
    top, left, bottom, right = (max(p, 0) for p in pads)
    return node.add("Pad", [x, amounts]), (top, left, bottom, right)


def dense(node: NodeWriter, op: Dense) -> str:
    """Gemm for a matrix; MatMul and Add for more axes."""
    x, w, bias = node.input(), _matrix(node), _bias(node)
    if len(node.tensor(0).shape) == 2:
        return node.add("Gemm", [x, w, *bias], transB=1)
    product = node.add("MatMul", [x, node.add("Transpose", [w], perm=(1, 0))])
    return node.add("Add", [product, *bias]) if bias else product


def _matrix(node: NodeWriter) -> str:
    """The weights (O, K) as real numbers, for any axes that form K."""
    name, tensor = node.layer.inputs[1], node.tensor(1)
    if len(tensor.shape) == 2:
        return node.graph.real(name)
    shape = (tensor.shape[0], prod(tensor.shape[1:]))
    if name not in node.graph.network.constants:
        return node.add("Reshape", [node.graph.real(name), node.integers(shape, "matrix")])
    value = node.graph.constant(constant_weights(node).reshape(shape), name)
    return value if tensor.quant is None else node.graph.dequantized(value, tensor, tensor.quant, 0)


def matmul(node: NodeWriter, op: MatMul) -> str:
    operands = []
    for i, transposed in enumerate((op.transpose_a, op.transpose_b)):
        rank = len(node.tensor(i).shape)
        swapped = (*range(rank - 2), rank - 1, rank - 2)
        operands.append(node.graph.real(node.layer.inputs[i], swapped if transposed else None))
    return node.add("MatMul", operands)
