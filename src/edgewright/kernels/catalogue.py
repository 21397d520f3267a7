"""Which emitters write which operator: fastest first, the last one takes everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..network.operators import (
    ArgMax,
    AvgPool2d,
    BatchNorm,
    Binary,
    Cast,
    Clamp,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    DepthToSpace,
    Dequantize,
    DynamicProduct,
    DynamicQuantize,
    DynamicRange,
    Elu,
    Expand,
    Gather,
    HardSigmoid,
    L2Normalize,
    LeakyRelu,
    LogSoftmax,
    Lrn,
    MatMul,
    MaxPool2d,
    Op,
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
    Unary,
)
from . import cmsis, shares
from .call import Call as Site
from .dsp.conv import CONV, SMALL_DENSE
from .dsp.depthwise_rows import DEPTHWISE_ROWS
from .dsp.pixels import PIXELS
from .dsp.windows import WINDOWS
from .helium import products as helium
from .kernel import Kernel
from .nests import (
    dynamic,
    elementwise,
    lines,
    lookup,
    moves,
    pads,
    pools,
    products,
    qlinear,
    reals,
    reductions,
    resize,
    tflite,
    tflite_images,
    tflite_lines,
    windows,
)
from .portable import depthwise
from .portable import products as portable
from .portable import sums as small
from .printing.source import Source
from .simd import products as simd

# Writes the step, or says False and writes nothing: then the next emitter for the operator is asked.
Emitter = Callable[[Site, Source], bool]
_ACTIVATION: Sequence[Emitter | Kernel] = (
    simd.activation,
    lookup.LOOKUP,
    tflite.ACTIVATION,
    elementwise.ACTIVATION,
)

EMITTERS: Mapping[type, Sequence[Emitter | Kernel]] = {
    # windows and products
    Conv2d: (
        cmsis.conv2d,
        simd.conv2d,
        helium.conv2d,
        CONV,
        PIXELS,
        WINDOWS,
        DEPTHWISE_ROWS,
        depthwise.conv2d,
        portable.conv2d,
        reals.conv2d,
        windows.conv2d,
    ),
    ConvTranspose2d: (windows.conv_transpose2d,),
    Dense: (
        cmsis.dense,
        simd.dense,
        helium.dense,
        SMALL_DENSE,
        PIXELS,
        portable.dense,
        reals.dense,
        products.dense,
    ),
    MatMul: (products.matmul,),
    DynamicProduct: (dynamic.dynamic_product,),
    MaxPool2d: (cmsis.max_pool2d, simd.max_pool2d, small.max_pool2d, pools.max_pool2d),
    AvgPool2d: (cmsis.avg_pool2d, simd.avg_pool2d, small.avg_pool2d, pools.avg_pool2d),
    # element by element
    Clamp: _ACTIVATION,
    LeakyRelu: _ACTIVATION,
    Elu: _ACTIVATION,
    HardSigmoid: _ACTIVATION,
    Unary: _ACTIVATION,
    PRelu: (tflite.PRELU, elementwise.PRELU),
    Binary: (
        cmsis.binary,
        simd.binary,
        small.binary,
        tflite.BINARY,
        qlinear.PAIRS,
        qlinear.BINARY,
        elementwise.BINARY,
    ),
    BatchNorm: (simd.batch_norm, elementwise.BATCH_NORM),
    Cast: (elementwise.CAST,),
    Quantize: (lookup.LOOKUP, tflite.QUANTIZE, elementwise.QUANTIZE),
    Dequantize: (tflite.DEQUANTIZE, elementwise.QUANTIZE),
    DynamicRange: (dynamic.dynamic_range,),
    DynamicQuantize: (dynamic.dynamic_quantize,),
    # along an axis
    Softmax: (cmsis.softmax, tflite_lines.SOFTMAX, tflite_lines.WIDE_SOFTMAX, lines.SOFTMAX_TERMS, lines.SOFTMAX),
    LogSoftmax: (tflite_lines.LOG_SOFTMAX, lines.LOG_SOFTMAX),
    L2Normalize: (tflite_lines.L2_NORMALIZE, lines.L2_NORMALIZE),
    Lrn: (lines.LRN,),
    Reduce: (simd.reduce, small.reduce, tflite_lines.REDUCE, reductions.POOLED_MEAN, reductions.REDUCE),
    ArgMax: (reductions.ARG_MAX,),
    # moving elements
    Reshape: (moves.reshape,),
    Transpose: (moves.transpose,),
    Concat: (tflite_images.CONCAT, moves.concat),
    Slice: (moves.slice_,),
    Pad: (pads.pad,),
    Expand: (moves.expand,),
    Tile: (moves.tile,),
    SpaceToDepth: (moves.space_to_depth,),
    DepthToSpace: (moves.depth_to_space,),
    Gather: (moves.gather,),
    Resize: (tflite_images.RESIZE_NEAREST, tflite_images.RESIZE_LINEAR, resize.NEAREST, resize.LINEAR),
}

# Layers whose output is summed up share by share (see `shares_form`): what adds a share, fastest first; what makes the
# whole output of complete sums.
ADDERS: Mapping[type[Op], tuple[Emitter | Kernel, ...]] = {
    Conv2d: shares.ADD_CONV2D,
    Dense: shares.ADD_DENSE,
    Reduce: shares.ADD_MEAN,
    AvgPool2d: shares.ADD_MEAN,
}
FINISHERS: Mapping[type[Op], tuple[Emitter | Kernel, ...]] = {
    Conv2d: shares.FINISH_PRODUCTS,
    Dense: shares.FINISH_PRODUCTS,
    Reduce: shares.FINISH_MEAN,
    AvgPool2d: shares.FINISH_MEAN,
}
