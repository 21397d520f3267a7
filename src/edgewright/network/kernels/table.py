"""Which kernel computes which operator on real numbers and plain integers."""

from __future__ import annotations

from collections.abc import Mapping

from ..operators import (
    ACTIVATIONS,
    ArgMax,
    AvgPool2d,
    BatchNorm,
    Binary,
    Cast,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    DepthToSpace,
    Dequantize,
    DynamicProduct,
    DynamicQuantize,
    DynamicRange,
    Expand,
    Gather,
    L2Normalize,
    LogSoftmax,
    Lrn,
    MatMul,
    MaxPool2d,
    Pad,
    PRelu,
    Quantize,
    Reduce,
    Reshape,
    Resize,
    Slice,
    Softmax,
    SpaceToDepth,
    Tile,
    Transpose,
)
from . import dynamic, elementwise, linear, rearrange, reduce, resize, scales
from .operand import Kernel

KERNELS: Mapping[type, Kernel] = {
    # windows and products
    Conv2d: linear.conv2d,
    ConvTranspose2d: linear.conv_transpose2d,
    Dense: linear.dense,
    MatMul: linear.matmul,
    DynamicProduct: dynamic.dynamic_product,
    MaxPool2d: linear.max_pool2d,
    AvgPool2d: linear.avg_pool2d,
    # element by element
    **dict.fromkeys(ACTIVATIONS, elementwise.activation),
    PRelu: elementwise.prelu,
    Binary: elementwise.binary,
    BatchNorm: elementwise.batch_norm,
    Cast: elementwise.cast,
    Quantize: scales.quantize,
    Dequantize: scales.dequantize,
    DynamicRange: dynamic.dynamic_range,
    DynamicQuantize: dynamic.dynamic_quantize,
    # along an axis
    Softmax: reduce.softmax,
    LogSoftmax: reduce.log_softmax,
    L2Normalize: reduce.l2_normalize,
    Lrn: reduce.lrn,
    Reduce: reduce.reduce,
    ArgMax: reduce.arg_max,
    # moving elements
    Reshape: rearrange.reshape,
    Transpose: rearrange.transpose,
    Concat: rearrange.concat,
    Slice: rearrange.slice_,
    Pad: rearrange.pad,
    Expand: rearrange.expand,
    Tile: rearrange.tile,
    SpaceToDepth: rearrange.space_to_depth,
    DepthToSpace: rearrange.depth_to_space,
    Gather: rearrange.gather,
    Resize: resize.resize,
}
