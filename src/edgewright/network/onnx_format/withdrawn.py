"""Importers of experimental operators that ONNX withdrew: old converters wrote them, and onnxruntime still reads
them."""

from __future__ import annotations

import numpy as np

from .. import operators as ops
from .context import Value
from .elementwise import pairwise
from .node import OnnxNode
from .rearrange import cut


def affine(node: OnnxNode) -> Value:
    """alpha * x + beta."""
    return _scaled(node, node.number("alpha", node.real("alpha", 1.0)), node.number("beta", node.real("beta", 0.0)))


def image_scaler(node: OnnxNode) -> Value:
    """scale * x + a bias for each channel of an image."""
    shape, bias = node.shape(node.input(0)), node.reals("bias") or ()
    if len(shape) != 4 or len(bias) != shape[1]:
        raise node.error(f"{len(bias)} biases for an image {list(shape)}")
    offset = node.constant("bias", np.array(bias, np.float32).reshape(-1, 1, 1))
    return _scaled(node, node.number("scale", node.real("scale", 1.0)), offset)


def _scaled(node: OnnxNode, factor: Value, offset: Value) -> Value:
    product = pairwise(node, ops.BinaryKind.MUL, node.input(0), factor, "scaled")
    return pairwise(node, ops.BinaryKind.ADD, product, offset)


def crop(node: OnnxNode) -> Value:
    """Crops borders (left, top, right, bottom) of an image; with `scale`, the height and width to keep."""
    shape, border, kept = node.shape(node.input(0)), node.integers("border"), node.integers("scale")
    if len(shape) != 4 or border is None or len(border) != 4 or len(kept or (1, 1)) != 2:
        raise node.error(f"borders {border} and scale {kept} do not fit {list(shape)}")
    left, top, right, bottom = border
    height, width = kept or (shape[2] - top - bottom, shape[3] - left - right)
    is_inside = min(*border, height - 1, width - 1) >= 0 and top + height <= shape[2] and left + width <= shape[3]
    if not is_inside:
        raise node.error(f"borders {border} and scale {kept} do not fit {list(shape)}")
    return cut(node, node.input(0), {2: (top, height, 1), 3: (left, width, 1)})


def scaled_tanh(node: OnnxNode) -> Value:
    """alpha * tanh(beta * x)."""
    alpha, beta = node.number("alpha", node.real("alpha", 1.0)), node.number("beta", node.real("beta", 1.0))
    scaled = pairwise(node, ops.BinaryKind.MUL, node.input(0), beta, "scaled")
    return pairwise(node, ops.BinaryKind.MUL, node.layer(ops.Unary(ops.UnaryKind.TANH), [scaled], "tanh"), alpha)
