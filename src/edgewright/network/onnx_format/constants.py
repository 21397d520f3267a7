"""Importers of constants: Constant, ConstantOfShape, Shape, Size, Range, EyeLike."""

from __future__ import annotations

from math import ceil, isfinite, prod

import numpy as np

from .context import Constant, Value
from .node import FOLD_LIMIT, OnnxNode
from .tensors import check_shape, dtype_of


def constant(node: OnnxNode) -> Value:
    name = node.outputs[0]
    if (data := node.stored("value")) is not None:
        return Constant(name, data)
    if "value_int" in node.attributes:
        return Constant(name, np.array(node.integer("value_int", 0), np.int64))
    if (integers := node.integers("value_ints")) is not None:
        return Constant(name, np.array(integers, np.int64))
    if "value_float" in node.attributes:
        return Constant(name, np.array(node.real("value_float", 0.0), np.float32))
    if (reals := node.reals("value_floats")) is not None:
        return Constant(name, np.array(reals, np.float32))
    raise node.unsupported("only tensors and numbers are supported as values")


def constant_of_shape(node: OnnxNode) -> Value:
    """One value repeated as a view, which takes no memory."""
    shape = check_shape(node.array_ints(node.input(0), "shape"), str(node))
    value = node.stored("value")
    if value is None:
        value = np.zeros((), np.float32)
    if value.size != 1:
        raise node.error(f"the value has {value.size} elements, not one")
    return Constant(node.outputs[0], np.broadcast_to(value.reshape(()), shape))


def shape_of(node: OnnxNode) -> Value:
    shape = node.shape(node.input(0))
    start, end = node.integer("start", 0), node.integer("end", len(shape))
    return Constant(node.outputs[0], np.array(shape[slice(start, end)], np.int64))


def size_of(node: OnnxNode) -> Value:
    return Constant(node.outputs[0], np.array(prod(node.shape(node.input(0))), np.int64))


def range_(node: OnnxNode) -> Value:
    values = [node.array(node.input(i), name) for i, name in enumerate(("start", "limit", "delta"))]
    if any(value.size != 1 for value in values):
        raise node.error("start, limit and delta must be one number each")
    start, limit, delta = (value.reshape(-1)[0] for value in values)
    if delta == 0 or not all(isfinite(value) for value in (start, limit, delta)):
        raise node.error(f"cannot count from {start} to {limit} in steps of {delta}")
    count = max(ceil((limit.item() - start.item()) / delta.item()), 0)
    if count > FOLD_LIMIT:
        raise node.unsupported(f"counts {count} numbers")
    steps = np.arange(count, dtype=np.int64)
    return Constant(node.outputs[0], (start + steps * delta).astype(values[0].dtype))


def eye_like(node: OnnxNode) -> Value:
    shape = node.shape(node.input(0))
    if len(shape) != 2 or prod(shape) > FOLD_LIMIT:
        raise node.unsupported(f"a diagonal of {list(shape)}")
    to = node.integer("dtype", 0)
    dtype = dtype_of(to, "dtype") if to else node.tensor(node.input(0)).dtype
    return Constant(node.outputs[0], np.eye(*shape, node.integer("k", 0), dtype.numpy))
