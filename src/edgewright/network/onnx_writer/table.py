"""Which function writes which operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .. import operators as ops
from . import dynamic, elementwise, rearrange, windows

NCHW = (0, 3, 1, 2)
IMAGES = (
    ops.AvgPool2d, ops.BatchNorm, ops.Conv2d, ops.ConvTranspose2d, ops.DepthToSpace, ops.Lrn, ops.MaxPool2d,
    ops.Resize, ops.SpaceToDepth,
)  # fmt: skip

WRITERS: Mapping[type, Callable[..., str]] = {
    # windows and products
    ops.Conv2d: windows.conv,
    ops.ConvTranspose2d: windows.conv_transpose,
    ops.MaxPool2d: windows.max_pool,
    ops.AvgPool2d: windows.avg_pool,
    ops.Dense: windows.dense,
    ops.MatMul: windows.matmul,
    ops.DynamicProduct: dynamic.dynamic_product,
    ops.PartialSum: windows.sums,
    ops.FinishSums: windows.sums,
    # element by element
    **dict.fromkeys(ops.ACTIVATIONS, elementwise.activation),
    ops.PRelu: elementwise.prelu,
    ops.Binary: elementwise.binary,
    ops.BatchNorm: elementwise.batch_norm,
    ops.Cast: elementwise.cast,
    ops.Compare: elementwise.compare,
    ops.Select: elementwise.select,
    ops.LstmStep: elementwise.lstm_step,
    ops.Quantize: elementwise.passed,
    ops.Dequantize: elementwise.passed,
    ops.DynamicRange: dynamic.dynamic_range,
    ops.DynamicQuantize: dynamic.dynamic_quantize,
    # along an axis
    ops.Softmax: rearrange.softmax,
    ops.LogSoftmax: rearrange.log_softmax,
    ops.L2Normalize: rearrange.l2_normalize,
    ops.Lrn: rearrange.lrn,
    ops.Reduce: rearrange.reduce,
    ops.ArgMax: rearrange.arg_max,
    ops.TopK: rearrange.top_k,
    ops.NonMaxSuppression: rearrange.non_max_suppression,
    # moving elements
    ops.Reshape: rearrange.reshape,
    ops.Transpose: rearrange.transpose,
    ops.Concat: rearrange.concat,
    ops.Slice: rearrange.slice_,
    ops.Pad: rearrange.pad,
    ops.Expand: rearrange.expand,
    ops.Tile: rearrange.tile,
    ops.SpaceToDepth: rearrange.space_to_depth,
    ops.DepthToSpace: rearrange.depth_to_space,
    ops.Gather: rearrange.gather,
    ops.GatherElements: rearrange.gather_elements,
    ops.Resize: rearrange.resize,
}
