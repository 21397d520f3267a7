"""Which function writes which operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
    FinishSums,
    Gather,
    L2Normalize,
    LogSoftmax,
    Lrn,
    MatMul,
    MaxPool2d,
    Pad,
    PartialSum,
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
from . import dynamic, elementwise, rearrange, windows

NCHW = (0, 3, 1, 2)
IMAGES = (AvgPool2d, BatchNorm, Conv2d, ConvTranspose2d, DepthToSpace, Lrn, MaxPool2d, Resize, SpaceToDepth)

WRITERS: Mapping[type, Callable[..., str]] = {
    # windows and products
    Conv2d: windows.conv,
    ConvTranspose2d: windows.conv_transpose,
    MaxPool2d: windows.max_pool,
    AvgPool2d: windows.avg_pool,
    Dense: windows.dense,
    MatMul: windows.matmul,
    DynamicProduct: dynamic.dynamic_product,
    PartialSum: windows.sums,
    FinishSums: windows.sums,
    # element by element
    **dict.fromkeys(ACTIVATIONS, elementwise.activation),
    PRelu: elementwise.prelu,
    Binary: elementwise.binary,
    BatchNorm: elementwise.batch_norm,
    Cast: elementwise.cast,
    Quantize: elementwise.passed,
    Dequantize: elementwise.passed,
    DynamicRange: dynamic.dynamic_range,
    DynamicQuantize: dynamic.dynamic_quantize,
    # along an axis
    Softmax: rearrange.softmax,
    LogSoftmax: rearrange.log_softmax,
    L2Normalize: rearrange.l2_normalize,
    Lrn: rearrange.lrn,
    Reduce: rearrange.reduce,
    ArgMax: rearrange.arg_max,
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
    Resize: rearrange.resize,
}
