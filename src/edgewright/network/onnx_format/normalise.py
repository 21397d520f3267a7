"""Importers of normalisations: batch, instance, layer and group norm, LRN, softmax."""

from __future__ import annotations

from math import prod

import numpy as np

from .. import operators as ops
from ..tensor import Array, DType
from .context import Constant, Value
from .node import OnnxNode


def _channels_last(node: OnnxNode, x: Value) -> Value:
    rank = len(node.shape(x))
    return node.transposed(x, (0, *range(2, rank), 1), "nhwc") if rank > 2 else x


def _channels_second(node: OnnxNode, y: Value) -> Value:
    rank = len(node.shape(y))
    return node.transposed(y, (0, rank - 1, *range(1, rank - 1)), "nchw") if rank > 2 else y


def _require_float(node: OnnxNode, x: Value, rank: int = 1) -> None:
    if node.tensor(x).dtype is not DType.FLOAT32 or node.tensor(x).quant is not None:
        raise node.unsupported(f"works on floats, not on {node.tensor(x).dtype.value}")
    if len(node.shape(x)) < rank:
        raise node.error(f"needs a tensor of rank {rank} or more, not {list(node.shape(x))}")


def batch_norm(node: OnnxNode) -> Value:
    """x * scale + shift for each channel; mean, variance and epsilon are folded in with double precision."""
    x = node.input(0)
    _require_float(node, x, 2)
    is_training = node.flag("training_mode")
    if is_training and not isinstance(x, Constant):
        raise node.unsupported("training mode; export the model for inference")
    if not node.flag("spatial", True):
        raise node.unsupported("spatial=0 is not supported")
    channels = node.shape(x)[1]
    gamma, beta, mean, variance = (
        _per_channel(node, node.input(i + 1), name, channels)
        for i, name in enumerate(("scale", "bias", "mean", "variance"))
    )
    if is_training:  # of weights that a network standardises with their own mean and variance
        data = np.moveaxis(node.array(x, "x").astype(np.float64), 1, 0).reshape(channels, -1)
        mean, variance = data.mean(axis=1), data.var(axis=1)
    if (variance < 0).any():
        raise node.error("the variance is negative")
    root = np.sqrt(variance + node.real("epsilon", 1e-5))
    if (root == 0).any():
        raise node.error("the variance and epsilon are zero")
    scale = gamma / root
    shift = beta - mean * scale
    if isinstance(x, Constant):
        column = (channels, *(1,) * (len(node.shape(x)) - 2))
        return node.constant("y", (x.data * scale.reshape(column) + shift.reshape(column)).astype(np.float32))
    operands = [node.constant("scale", scale.astype(np.float32)), node.constant("shift", shift.astype(np.float32))]
    return _channels_second(node, node.layer(ops.BatchNorm(), [_channels_last(node, x), *operands]))


def _per_channel(node: OnnxNode, value: Value, name: str, channels: int) -> Array:
    data = node.array(value, name)
    if data.shape != (channels,):
        raise node.error(f"{name} has shape {list(data.shape)} for {channels} channels")
    return data.astype(np.float64)


def lrn(node: OnnxNode) -> Value:
    x = node.input(0)
    _require_float(node, x, 2)
    size = node.integer("size", 0)
    if not 1 <= size < 2**31:
        raise node.error(f"attribute 'size' is {size}")
    op = ops.Lrn(size, node.real("alpha", 1e-4), node.real("beta", 0.75), node.real("bias", 1.0))
    return _channels_second(node, node.layer(op, [_channels_last(node, x)]))


def normalised(node: OnnxNode, x: Value, axes: tuple[int, ...], epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) along the axes, as layers."""
    mean = node.layer(ops.Reduce(axes, True, ops.ReduceKind.MEAN), [x], "mean")
    centred = node.layer(ops.Binary(ops.BinaryKind.SUB), [x, mean], "centred")
    square = node.layer(ops.Unary(ops.UnaryKind.SQUARE), [centred], "square")
    variance = node.layer(ops.Reduce(axes, True, ops.ReduceKind.MEAN), [square], "variance")
    shifted = node.layer(ops.Binary(ops.BinaryKind.ADD), [variance, node.number("epsilon", epsilon)], "shifted")
    factor = node.layer(ops.Unary(ops.UnaryKind.RSQRT), [shifted], "factor")
    return node.layer(ops.Binary(ops.BinaryKind.MUL), [centred, factor])


def scaled(node: OnnxNode, y: Value, scale: Value, bias: Value | None) -> Value:
    y = node.layer(ops.Binary(ops.BinaryKind.MUL), [y, scale], "scaled")
    return y if bias is None else node.layer(ops.Binary(ops.BinaryKind.ADD), [y, bias], "biased")


def instance_norm(node: OnnxNode) -> Value:
    x, scale, bias = (node.input(i) for i in range(3))
    _require_float(node, x, 3)
    rank, channels = len(node.shape(x)), node.shape(x)[1]
    column = (channels, *(1,) * (rank - 2))
    y = normalised(node, x, tuple(range(2, rank)), node.real("epsilon", 1e-5))
    return scaled(node, y, node.reshaped(scale, column, "scale"), node.reshaped(bias, column, "bias"))


def layer_norm(node: OnnxNode) -> Value:
    x = node.input(0)
    _require_float(node, x)
    rank = len(node.shape(x))
    axes = tuple(range(node.axis(node.integer("axis", -1), rank), rank))
    y = normalised(node, x, axes, node.real("epsilon", 1e-5))
    result = scaled(node, y, node.input(1), node.optional(2))
    if node.shape(result) != node.shape(x):
        raise node.error(f"scale or bias do not fit {list(node.shape(x))}")
    return result


def group_norm(node: OnnxNode) -> Value:
    """Normalised in groups of channels; scale and bias are per channel from opset 21, per group before."""
    x, scale, bias = (node.input(i) for i in range(3))
    _require_float(node, x, 3)
    n, channels, *image = node.shape(x)
    groups = node.integer("num_groups", 0)
    if groups < 1 or channels % groups:
        raise node.error(f"{channels} channels do not divide into {groups} groups")
    y = node.reshaped(x, (n, groups, channels // groups * prod(image)), "groups")
    y = normalised(node, y, (2,), node.real("epsilon", 1e-5))
    if node.opset < 21:
        column: tuple[int, ...] = (groups, 1)
        y = scaled(node, y, node.reshaped(scale, column, "scale"), node.reshaped(bias, column, "bias"))
        return node.reshaped(y, node.shape(x), "channels")
    column = (channels, *(1 for _ in image))
    y = node.reshaped(y, node.shape(x), "channels")
    return scaled(node, y, node.reshaped(scale, column, "scale"), node.reshaped(bias, column, "bias"))


def lp_norm(node: OnnxNode) -> Value:
    """Divided by the norm along an axis; zeros stay zeros."""
    x, p = node.input(0), node.integer("p", 2)
    _require_float(node, x)
    axis = node.axis(node.integer("axis", -1), len(node.shape(x)))
    if p == 2:
        return node.layer(ops.L2Normalize(axis), [x])
    if p != 1:
        raise node.error(f"the norm is {p}, neither 1 nor 2")
    size = node.layer(ops.Reduce((axis,), True, ops.ReduceKind.L1), [x], "norm")
    some = node.layer(ops.Binary(ops.BinaryKind.MAX), [size, node.number("least", 1e-30)], "some")
    return node.layer(ops.Binary(ops.BinaryKind.DIV), [x, some])


def softmax(node: OnnxNode, kind: type[ops.Softmax | ops.LogSoftmax]) -> Value:
    """Along one axis or, before opset 13, along all axes from `axis` on as one."""
    x, is_old = node.input(0), node.opset < 13
    _require_float(node, x)
    shape = node.shape(x)
    axis = node.axis(node.integer("axis", 1 if is_old else -1), len(shape))
    if not is_old or prod(shape[axis + 1 :]) == 1:
        return node.layer(kind(axis), [x])
    matrix = node.reshaped(x, (prod(shape[:axis]), prod(shape[axis:])), "matrix")
    return node.reshaped(node.layer(kind(1), [matrix]), shape, "shaped")
