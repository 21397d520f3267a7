"""Importers of the last layers of detectors: box decoding and non-maximum suppression.

Outputs have the requested maximum number of boxes; missing ones are zeros, and the number of boxes is an output.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from ...errors import Unsupported
from .. import operators as ops
from ..kernels.scales import dequantized
from ..tensor import Array, DType
from .import_state import LayerImport

FLOAT, WHOLE = DType.FLOAT32, DType.INT32
MOST_BOXES = 4096  # largest number of boxes
_DIV, _MUL, _ADD, _SUB, _MAX = (ops.Binary(ops.BinaryKind[name]) for name in ("DIV", "MUL", "ADD", "SUB", "MAX"))


def detection_postprocess(layer: LayerImport) -> None:
    """TensorFlow's SSD post-processing: decodes boxes relative to anchors, and takes the best class of each."""
    options = _options(layer)
    count = int(options.get("max_detections", 0))
    is_plain = not options.get("use_regular_nms", False) and options.get("max_classes_per_detection", 1) == 1
    if not is_plain or not 1 <= count <= MOST_BOXES:
        raise Unsupported(
            f"it gives {count} boxes, several classes of a box, or compares those of each class among themselves; "
            "export the model with use_regular_nms=false and max_classes_per_detection=1"
        )
    boxes, scores, anchors = layer.shape(0), layer.shape(1), _anchors(layer)
    if len(boxes) != 3 or boxes[0] != 1 or boxes[2] < 4 or scores[:2] != boxes[:2] or anchors.shape != (boxes[1], 4):
        raise Unsupported(f"boxes {boxes}, scores {scores} and anchors {anchors.shape}")
    number, classes = boxes[1], int(options.get("num_classes", scores[2]))
    if not 1 <= classes <= scores[2]:
        raise layer.error(f"{classes} classes of {scores[2]}")
    scales = [float(options.get(f"{axis}_scale", 1.0)) for axis in "yxhw"]
    limits = (float(options.get("nms_score_threshold", 0.0)), float(options.get("nms_iou_threshold", 0.5)))
    if not all(1e-6 < scale < 1e6 for scale in scales) or not all(-1e6 < limit < 1e6 for limit in limits):
        raise layer.error(f"boxes of scales {scales}, with limits {limits}")
    corners = _corners(layer, anchors, scales)
    # Without the background class, which comes first.
    cut = ops.Slice((0, 0, scores[2] - classes), (1, number, classes), (1, 1, 1))
    named = layer.inner(cut, [layer.input(1)], "named")
    best = layer.inner(ops.Reduce((2,), False, ops.ReduceKind.MAX), [named], "best")
    which = layer.inner(ops.ArgMax((2,), False), [named], "class", WHOLE)
    score = _flat(layer, _real(layer, best, "score"), (number,))
    kept = _Kept(layer, corners, score, count, limits)
    numbers = layer.inner(ops.Cast(FLOAT), [_flat(layer, which, (number,))], "classes", FLOAT)
    for position, (values, shape) in enumerate(((corners, (1, count, 4)), (numbers, (1, count)), (score, (1, count)))):
        layer.emit(ops.Reshape(shape), [kept.of(values, f"output_{position}")], position)
    layer.emit(ops.Reshape((1,)), [kept.count(FLOAT)], 3)


def non_max_suppression(layer: LayerImport) -> None:
    """Drops boxes that overlap a better one by at least the given amount."""
    if len(layer.operator.inputs) > 5 and layer.value(5, "sigma").any():
        raise Unsupported("scores of boxes that overlap are lowered (sigma)")
    (count,) = layer.integers(2, "number of boxes")
    limits = [np.float32(layer.value(i, "threshold").reshape(())) for i in (4, 3)]
    if not 1 <= count <= MOST_BOXES or layer.tensor(0).dtype is not FLOAT or layer.tensor(1).dtype is not FLOAT:
        raise Unsupported(f"{count} of {layer.tensor(0)} are asked for")
    if not np.isfinite(limits).all():
        raise layer.error(f"its limits are {limits}")
    above, below = float(np.nextafter(limits[0], np.float32(np.inf))), float(np.nextafter(limits[1], np.float32(-1)))
    kept = _Kept(layer, layer.input(0), layer.input(1), count, (above, below))
    layer.emit(ops.Reshape((count,)), [kept.places])
    if len(layer.outputs) > 2:
        layer.emit(ops.Reshape((count,)), [kept.of(layer.input(1), "scores")], 1)
    layer.emit(ops.Reshape(()), [kept.count(WHOLE)], len(layer.outputs) - 1)


class _Kept:
    """The selected boxes: their indices, 0 for missing ones, and the gathered data."""

    def __init__(self, layer: LayerImport, boxes: str, scores: str, count: int, limits: tuple[float, float]) -> None:
        self.layer = layer
        kept = layer.inner(ops.NonMaxSuppression(count, *limits), [boxes, scores], "kept", WHOLE)
        zero = layer.constant("first", np.zeros((), np.int32))
        at_least = ops.Compare(ops.CompareKind.GREATER_EQUAL)
        self.are_there = layer.inner(at_least, [kept, zero], "are_there", DType.BOOL)
        self.places = layer.inner(_MAX, [kept, zero], "places", WHOLE)

    def of(self, values: str, tag: str) -> str:
        layer, shape = self.layer, self.layer.state.builder.shape(values)
        picked = layer.inner(ops.Gather(0), [values, self.places], f"{tag}/picked", FLOAT)
        are_there = self.are_there
        if len(shape) > 1:
            size = layer.state.builder.shape(are_there)[0]
            are_there = layer.inner(ops.Reshape((size, 1)), [are_there], f"{tag}/rows", DType.BOOL)
        zero = layer.constant("nothing", np.zeros((), np.float32))
        return layer.inner(ops.Select(), [are_there, picked, zero], tag, FLOAT)

    def count(self, dtype: DType) -> str:
        ones = self.layer.inner(ops.Cast(dtype), [self.are_there], "ones", dtype)
        return self.layer.inner(ops.Reduce((0,), False, ops.ReduceKind.SUM), [ones], "count", dtype)


def _options(layer: LayerImport) -> dict[str, Any]:
    try:
        options = flexbuffers.Loads(layer.operator.custom)
    except Exception as error:  # any failure caused by a damaged buffer
        raise layer.error("its options cannot be read; was the file cut short?") from error
    if not isinstance(options, dict) or not all(isinstance(value, bool | int | float) for value in options.values()):
        raise layer.error("its options are no numbers")
    return options


def _anchors(layer: LayerImport) -> Array:
    values, quant = layer.value(2, "anchors"), layer.tensor(2).quant
    return values.astype(np.float32) if quant is None else dequantized(values, quant)


def _real(layer: LayerImport, name: str, tag: str) -> str:
    tensor = layer.state.builder.tensors[name]
    return name if tensor.quant is None else layer.inner(ops.Dequantize(), [name], tag, FLOAT)


def _flat(layer: LayerImport, name: str, shape: tuple[int, ...]) -> str:
    return layer.inner(ops.Reshape(shape), [name], f"{name}/flat", layer.state.builder.tensors[name].dtype, None)


def _corners(layer: LayerImport, anchors: Array, scales: list[float]) -> str:
    """(N, 4): y, x of one corner, then of the other. Anchors and encoded boxes have centres and sizes."""
    number, width = layer.shape(0)[1:]
    boxes = _flat(layer, _real(layer, layer.input(0), "boxes"), (number, width))

    def add_layer(op: ops.Op, tag: str, *inputs: str) -> str:
        return layer.inner(op, inputs, tag, FLOAT)

    def known(values: Any, tag: str) -> str:
        return layer.constant(tag, np.ascontiguousarray(values, np.float32))

    sizes = known(anchors[:, 2:], "sizes")
    places = add_layer(ops.Slice((0, 0), (number, 2), (1, 1)), "places_in", boxes)
    raised = add_layer(ops.Slice((0, 2), (number, 2), (1, 1)), "sizes_in", boxes)
    moved = add_layer(_MUL, "moved", add_layer(_DIV, "steps", places, known(scales[:2], "place_scales")), sizes)
    centre = add_layer(_ADD, "centre", moved, known(anchors[:, :2], "centres"))
    size = add_layer(
        ops.Unary(ops.UnaryKind.EXP), "grown", add_layer(_DIV, "powers", raised, known(scales[2:], "size_scales"))
    )
    half = add_layer(_MUL, "half", add_layer(_MUL, "halved", size, known(0.5, "one_half")), sizes)
    return add_layer(
        ops.Concat(1), "corners", add_layer(_SUB, "near", centre, half), add_layer(_ADD, "far", centre, half)
    )
