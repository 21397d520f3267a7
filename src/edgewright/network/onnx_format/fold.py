"""Evaluates nodes whose inputs are all constant, such as the shape arithmetic that exporters write.

ONNX's own reference evaluator computes the values. Only operators whose output size can be bounded in advance are
evaluated, so that no file makes us allocate more than `FOLD_LIMIT` elements.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
import onnx.reference

from ...errors import ModelError
from ..operators.base import broadcast_shape
from ..region import Shape
from ..tensor import Array
from .node import FOLD_LIMIT


def _broadcast(shapes: Sequence[Shape]) -> int:
    return prod(broadcast_shape(shapes))


def _together(shapes: Sequence[Shape]) -> int:
    return sum(prod(shape) for shape in shapes)


def _every_pair(shapes: Sequence[Shape]) -> int:
    return prod(prod(shape) for shape in shapes)


_BOUNDS: dict[Callable[[Sequence[Shape]], int], str] = {
    _broadcast: """Abs Add And Ceil Clip Cos Div Equal Erf Exp Floor Greater GreaterOrEqual IsInf IsNaN Less
        LessOrEqual Log Max Mean Min Mod Mul Neg Not Or Pow Reciprocal Relu Round Sigmoid Sign Sin Sqrt Sub Sum
        Tanh Where Xor""",
    _together: """ArgMax ArgMin Concat CumSum NonZero ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd
        ReduceSum ReduceSumSquare ScatterElements ScatterND Trilu Unique""",
    _every_pair: "GatherElements GatherND",
}
FOLDABLE = {name: bound for bound, names in _BOUNDS.items() for name in names.split()}


def folded(proto: onnx.NodeProto, opset: int, inputs: Sequence[Array | None], where: str) -> list[Array] | None:
    """The outputs of a node with these inputs; None if it is not evaluated here."""
    given = [data for data in inputs if data is not None]
    if proto.op_type not in FOLDABLE or not given:
        return None
    shapes = [tuple(data.shape) for data in given]
    try:
        if max(FOLDABLE[proto.op_type](shapes), _together(shapes)) > FOLD_LIMIT:
            return None
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from error
    feeds = {name: data for name, data in zip(proto.input, inputs, strict=True) if data is not None}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            evaluator = onnx.reference.ReferenceEvaluator(proto, opsets={"": opset})
            results: list[Any] = evaluator.run(None, feeds)
    except Exception as error:  # any failure of the evaluator is the node's fault
        raise ModelError(f"{where} cannot be worked out: {error or type(error).__name__}") from error
    arrays = [np.asarray(result) for result in results]
    # The evaluator keeps doubles of intermediate results.
    return [data.astype(np.float32) if data.dtype == np.float64 else data for data in arrays]
