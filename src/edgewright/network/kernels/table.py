"""Which kernel computes which operator on real numbers and plain integers."""

from __future__ import annotations

from collections.abc import Mapping

from .. import operators as ops
from . import dynamic, elementwise, linear, rearrange, recurrent, reduce, resize, scales
from .operand import Kernel

KERNELS: Mapping[type, Kernel] = {
    # windows and products
    ops.Conv2d: linear.conv2d,
    ops.ConvTranspose2d: linear.conv_transpose2d,
    ops.Dense: linear.dense,
    ops.MatMul: linear.matmul,
    ops.DynamicProduct: dynamic.dynamic_product,
    ops.MaxPool2d: linear.max_pool2d,
    ops.AvgPool2d: linear.avg_pool2d,
    # element by element
    **dict.fromkeys(ops.ACTIVATIONS, elementwise.activation),
    ops.PRelu: elementwise.prelu,
    ops.Binary: elementwise.binary,
    ops.BatchNorm: elementwise.batch_norm,
    ops.Cast: elementwise.cast,
    ops.Compare: elementwise.compare,
    ops.Select: elementwise.select,
    ops.LstmStep: recurrent.lstm_step,
    ops.Quantize: scales.quantize,
    ops.Dequantize: scales.dequantize,
    ops.DynamicRange: dynamic.dynamic_range,
    ops.DynamicQuantize: dynamic.dynamic_quantize,
    # along an axis
    ops.Softmax: reduce.softmax,
    ops.LogSoftmax: reduce.log_softmax,
    ops.L2Normalize: reduce.l2_normalize,
    ops.Lrn: reduce.lrn,
    ops.Reduce: reduce.reduce,
    ops.ArgMax: reduce.arg_max,
    ops.TopK: reduce.top_k,
    ops.NonMaxSuppression: reduce.non_max_suppression,
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
    ops.Resize: resize.resize,
}
