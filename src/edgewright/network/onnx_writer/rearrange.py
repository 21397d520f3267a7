"""Writers of operators that move elements, reduce them, or normalise along an axis."""

from __future__ import annotations

from math import floor, prod

import numpy as np

from ...errors import Unsupported
from .. import operators as ops
from ..onnx_names import REDUCTIONS
from ..tensor import DType
from .graph import element_type
from .node import NodeWriter


def slice_(node: NodeWriter, op: ops.Slice) -> str:
    return _sliced(node, node.input(), op.starts, op.sizes, op.steps, tuple(range(len(op.starts))))


def _sliced(
    node: NodeWriter,
    x: str,
    starts: tuple[int, ...],
    sizes: tuple[int, ...],
    steps: tuple[int, ...],
    axes: tuple[int, ...],
) -> str:
    ends = [start + size * step for start, size, step in zip(starts, sizes, steps, strict=True)]
    ends = [end if end >= 0 else -(1 << 31) for end in ends]  # -1 would be the last element
    parts = ((starts, "starts"), (ends, "ends"), (axes, "axes"), (steps, "steps"))
    return node.add("Slice", [x, *(node.integers(values, what) for values, what in parts)])


def pad(node: NodeWriter, op: ops.Pad) -> str:
    if op.mode is ops.PadMode.SYMMETRIC:
        return _mirrored(node, op)
    amounts = node.integers((*op.before, *op.after), "pads")
    value = [node.number(op.value, "value")] if op.mode is ops.PadMode.CONSTANT else []
    return node.add("Pad", [node.input(), amounts, *value], mode=op.mode.value)


def _mirrored(node: NodeWriter, op: ops.Pad) -> str:
    """Symmetric padding, which ONNX lacks: along each axis, reversed slices are joined to the ends."""
    x = node.input()
    for axis, (before, after) in enumerate(zip(op.before, op.after, strict=True)):
        size = node.shape()[axis]
        start, stop = max(0, -before), size - max(0, -after)
        if (start, stop) != (0, size):
            x = _sliced(node, x, (start,), (stop - start,), (1,), (axis,))
        parts = [x]
        if before > 0:
            parts.insert(0, _sliced(node, x, (before - 1,), (before,), (-1,), (axis,)))
        if after > 0:
            parts.append(_sliced(node, x, (stop - start - 1,), (after,), (-1,), (axis,)))
        x = node.add("Concat", parts, axis=axis) if len(parts) > 1 else x
    return x


def resize(node: NodeWriter, op: ops.Resize) -> str:
    """By scales if the file gave them and they lead to the size; else by sizes."""
    n, c, h, w = node.shape()
    scaled = op.scale is not None and (floor(h * op.scale[0]), floor(w * op.scale[1])) == op.size
    if scaled and op.scale is not None:
        numbers = ["", node.graph.constant(np.array((1, 1, *op.scale), np.float32), f"{node.layer.name}_scales")]
    else:
        numbers = ["", "", node.integers((n, c, *op.size), "sizes")]
    return node.add(
        "Resize",
        [node.input(), *numbers],
        mode=op.mode.value,
        coordinate_transformation_mode=op.coordinates.value,
        nearest_mode=op.rounding.value,
    )


def reduce(node: NodeWriter, op: ops.Reduce) -> str:
    axes = node.integers(op.axes, "axes")
    x = node.input()
    return node.add(REDUCTIONS[op.kind], [x, axes], keepdims=int(op.keep), noop_with_empty_axes=1)


def arg_max(node: NodeWriter, op: ops.ArgMax) -> str:
    kind = "ArgMin" if op.least else "ArgMax"
    (axis,) = op.axes
    return _index(
        node, node.add(kind, [node.input()], axis=axis, keepdims=int(op.keep), select_last_index=int(op.last))
    )


def top_k(node: NodeWriter, op: ops.TopK) -> str:
    inputs = [node.input(), node.integers((op.count,), "k")]
    return _index(node, node.add("TopK", inputs, unread=1, axis=op.axis, largest=int(not op.least)))


def non_max_suppression(node: NodeWriter, op: ops.NonMaxSuppression) -> str:
    """ONNX returns all boxes with scores above a limit, each with its batch and class."""
    (number,) = node.shape(1)
    shapes = ((1, number, 4), (1, 1, number))
    inputs = [
        node.add("Reshape", [node.input(i), node.integers(shape, f"shape_{i}")]) for i, shape in enumerate(shapes)
    ]
    least = float(np.nextafter(np.float32(op.score_threshold), np.float32(-np.inf)))
    inputs += [
        node.integers((op.count,), "count"),
        node.number(op.iou_threshold, "overlap"),
        node.number(least, "least"),
    ]
    selected = node.add("NonMaxSuppression", inputs)
    places = node.add("Gather", [selected, node.graph.constant(np.array(2), "column")], axis=1)
    filled = node.add("Concat", [places, node.integers((-1,) * op.count, "missing")], axis=0)
    ends = [node.integers((n,), what) for n, what in ((0, "start"), (op.count, "end"))]
    return _index(node, node.add("Slice", [filled, *ends]))


def _index(node: NodeWriter, index: str) -> str:
    """int64, as ONNX requires, converted to the layer's type."""
    if node.result.dtype is DType.INT64:
        return index
    return node.add("Cast", [index], to=element_type(node.result.dtype))


def softmax(node: NodeWriter, op: ops.Softmax) -> str:
    x = node.input()
    if op.beta != 1:
        x = node.add("Mul", [x, node.number(op.beta, "beta")])
    return node.add("Softmax", [x], axis=op.axis)


def l2_normalize(node: NodeWriter, op: ops.L2Normalize) -> str:
    x = node.input()
    norm = node.add("ReduceL2", [x, node.integers((op.axis,), "axes")], keepdims=1)
    return node.add("Div", [x, node.add("Clip", [norm, node.number(op.epsilon, "epsilon")])])


def lrn(node: NodeWriter, op: ops.Lrn) -> str:
    """LRN, which ONNX defines along axis 1 of an image; other tensors are reshaped before and after."""
    if op.size % 2 == 0:
        raise Unsupported(f"layer '{node.layer.name}': LRN across an even number of channels is not written")
    x, shape = node.input(), node.shape()
    attributes = {"size": op.size, "alpha": op.alpha, "beta": op.beta, "bias": op.bias}
    if len(shape) == 4 and node.form is not None:
        return node.add("LRN", [x], **attributes)
    flat = (prod(shape[:-1]), shape[-1], 1, 1)
    y = node.add("LRN", [node.add("Reshape", [x, node.integers(flat, "image")])], **attributes)
    return node.add("Reshape", [y, node.integers(shape, "shape")])
