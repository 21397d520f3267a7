"""Importers of reductions and arg-max."""

from __future__ import annotations

from functools import partial

from ..operators import ArgMax, Reduce, ReduceKind
from ..tensor import DType
from .context import Value
from .elementwise import Importer
from .node import OnnxNode


def _reduce(kind: ReduceKind, since: int, node: OnnxNode) -> Value:
    x = node.input(0)
    tensor = node.tensor(x)
    if tensor.quant is not None or tensor.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64):
        raise node.unsupported(f"reducing {tensor.dtype.value}")
    axes = node.axes(node.ints_from("axes", 1, since) or (), len(tensor.shape))
    keep = node.flag("keepdims", True)
    noop = node.flag("noop_with_empty_axes")
    if not axes:
        if noop:
            # Reducing over no axis leaves what is done to each element, such as the square of SumSquare.
            if kind in (ReduceKind.L1, ReduceKind.L2, ReduceKind.SUM_SQUARE):
                raise node.unsupported("noop_with_empty_axes without axes")
            return x
        axes = tuple(range(len(tensor.shape)))
    return node.layer(Reduce(axes, keep, kind), [x])


def reduce(kind: ReduceKind) -> Importer:
    """The axes are an input from opset 13 on for ReduceSum, from 18 on for the others."""
    return partial(_reduce, kind, 13 if kind is ReduceKind.SUM else 18)


def _arg(least: bool, node: OnnxNode) -> Value:
    x = node.input(0)
    axis = node.axis(node.integer("axis", 0), len(node.shape(x)))
    op = ArgMax((axis,), node.flag("keepdims", True), node.flag("select_last_index"), least)
    return node.layer(op, [x], dtype=DType.INT64)


def arg_max(node: OnnxNode) -> Value:
    return _arg(False, node)


def arg_min(node: OnnxNode) -> Value:
    return _arg(True, node)
