"""The table of functions that restrict each operator to a region."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from .. import operators as ops
from ..operators.base import normal_axis
from ..region import Region, Shape
from ..tensor import DType
from . import moves, windows
from .answer import Answer, RestrictedOperator, WidenedRegion, unchanged
from .resize import resize


def restrict(op: ops.Op, out: Region, shapes: Sequence[Shape], dtype: DType = DType.FLOAT32) -> Answer:
    """How to compute the region of the output without the rest; `dtype` is the type of the first input."""
    if isinstance(op, ops.Resize):
        return resize(op, out, shapes, dtype)
    return RESTRICTIONS.get(type(op), unchanged)(op, out, shapes)


def restrictable_hull(op: ops.Op, out: Region, shapes: Sequence[Shape], dtype: DType = DType.FLOAT32) -> Region:
    """The smallest region around `out` that a restricted operator computes; the whole output is always one."""
    while isinstance(answer := restrict(op, out, shapes, dtype), WidenedRegion):
        assert out in answer.region and answer.region != out, f"{op}: {out} becomes {answer.region}"
        out = answer.region
    return out


def _whole_axis(op: ops.Op, out: Region, shapes: Sequence[Shape], axis: int, reason: str) -> Answer:
    """The unchanged operator if the region contains the whole axis."""
    whole = (0, op.output_shape(shapes)[axis])
    if out.bounds[axis] != whole:
        return WidenedRegion(out.with_axis(axis, whole), axis, reason)
    return unchanged(op, out, shapes)


def _line(op: ops.Softmax | ops.LogSoftmax | ops.L2Normalize, out: Region, shapes: Sequence[Shape]) -> Answer:
    axis = normal_axis(op.axis, len(shapes[0]))
    return _whole_axis(op, out, shapes, axis, "each element depends on all along it")


def _top_k(op: ops.TopK, out: Region, shapes: Sequence[Shape]) -> Answer:
    """Finds the top elements up to the last one of the region, and keeps those of the region."""
    axis = normal_axis(op.axis, len(shapes[0]))
    start, stop = out.bounds[axis]
    kept = Region.whole(out.shape).with_axis(axis, (start, stop)) if start else None
    return RestrictedOperator(replace(op, count=stop), op.needs(out, shapes), kept)


def _lrn(op: ops.Lrn, out: Region, shapes: Sequence[Shape]) -> Answer:
    """Normalises all channels that the region's windows reach, and keeps those of the region."""
    (read,) = op.needs(out, shapes)
    if read == out:
        return RestrictedOperator(op, (read,))
    start = out.bounds[-1][0] - read.bounds[-1][0]
    kept = Region.whole(out.shape).with_axis(-1, (start, start + out.shape[-1]))
    return RestrictedOperator(op, (read,), kept)


def _lstm_step(op: ops.LstmStep, out: Region, shapes: Sequence[Shape]) -> Answer:
    answer = _whole_axis(op, out, shapes, len(out.bounds) - 1, "the gates of each element lie far from each other")
    if isinstance(answer, WidenedRegion):
        return answer
    return RestrictedOperator(op, (out.with_axis(-1, (0, shapes[0][-1])), out))


def _dynamic_range(op: ops.DynamicRange, out: Region, shapes: Sequence[Shape]) -> Answer:
    return _whole_axis(op, out, shapes, len(out.bounds) - 1, "scale, inverse and zero point belong together")


def _custom(op: ops.Custom, out: Region, shapes: Sequence[Shape]) -> Answer:
    for axis in range(len(out.bounds)):
        answer = _whole_axis(op, out, shapes, axis, "what a custom operator computes may depend on where it lies")
        if isinstance(answer, WidenedRegion):
            return answer
    return unchanged(op, out, shapes)


def _non_max_suppression(op: ops.NonMaxSuppression, out: Region, shapes: Sequence[Shape]) -> Answer:
    return _whole_axis(op, out, shapes, 0, "each box depends on all better ones")


def _finish_sums(op: ops.FinishSums, out: Region, shapes: Sequence[Shape]) -> Answer:
    """Uses the scales and weights of the region's channels."""
    made, (start, stop) = op, out.bounds[-1] if out.bounds else (0, 1)
    if len(op.weight_scales) > 1:
        made = replace(made, weight_scales=op.weight_scales[start:stop])
    if len(op.shapes) > 1:
        made = replace(made, shapes=(op.shapes[0], (stop - start, *op.shapes[1][1:])))
    return RestrictedOperator(made, op.needs(out, shapes))


RESTRICTIONS: Mapping[type, Callable[..., Answer]] = {  # operators whose result depends on the position of the region
    # windows and products
    ops.Conv2d: windows.convolution,
    ops.ConvTranspose2d: windows.convolution,
    ops.DynamicProduct: windows.dynamic_product,
    ops.MaxPool2d: windows.max_pool2d,
    ops.AvgPool2d: windows.avg_pool2d,
    ops.PartialSum: windows.partial_sum,
    ops.FinishSums: _finish_sums,
    # along an axis
    ops.DynamicRange: _dynamic_range,
    ops.Softmax: _line,
    ops.LogSoftmax: _line,
    ops.L2Normalize: _line,
    ops.Lrn: _lrn,
    ops.LstmStep: _lstm_step,
    ops.TopK: _top_k,
    ops.Custom: _custom,
    ops.NonMaxSuppression: _non_max_suppression,
    # moving elements
    ops.Reshape: moves.reshape,
    ops.Concat: moves.concat,
    ops.Slice: moves.slice_,
    ops.Pad: moves.pad,
    ops.Expand: moves.expand,
    ops.Tile: moves.tile,
    ops.SpaceToDepth: moves.space_to_depth,
    ops.DepthToSpace: moves.depth_to_space,
    ops.Resize: resize,
}
