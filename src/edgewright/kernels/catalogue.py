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
    reals,
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
    lookup.lookup,
    tflite.activation,
    elementwise.activation,
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
        reals.CONV,
        windows.CONV,
    ),
    ConvTranspose2d: (windows.CONV,),
    Dense: (
        cmsis.dense,
        simd.dense,
        helium.dense,
        SMALL_DENSE,
        PIXELS,
        portable.dense,
        reals.DENSE,
        products.DENSE,
    ),
    MatMul: (products.MATMUL,),
    DynamicProduct: (dynamic.CONV, dynamic.PRODUCT),
    MaxPool2d: (cmsis.max_pool2d, simd.max_pool2d, small.max_pool2d, pools.MAX_POOL),
    AvgPool2d: (cmsis.avg_pool2d, simd.avg_pool2d, small.avg_pool2d, pools.AVERAGE_POOL),
    # element by element
    Clamp: _ACTIVATION,
    LeakyRelu: _ACTIVATION,
    Elu: _ACTIVATION,
    HardSigmoid: _ACTIVATION,
    Unary: _ACTIVATION,
    PRelu: (tflite.prelu, elementwise.prelu),
    Binary: (cmsis.binary, simd.binary, small.binary, tflite.binary, elementwise.binary),
    BatchNorm: (simd.batch_norm, elementwise.batch_norm),
    Cast: (elementwise.cast,),
    Quantize: (lookup.lookup, tflite.quantize, elementwise.quantize),
    Dequantize: (tflite.dequantize, elementwise.dequantize),
    DynamicRange: (dynamic.RANGE,),
    DynamicQuantize: (dynamic.QUANTIZE,),
    # along an axis
    Softmax: (cmsis.softmax, tflite_lines.softmax, lines.softmax),
    LogSoftmax: (tflite_lines.log_softmax, lines.log_softmax),
    L2Normalize: (tflite_lines.l2_normalize, lines.l2_normalize),
    Lrn: (lines.lrn,),
    Reduce: (simd.reduce, small.reduce, tflite_lines.reduce, lines.reduce),
    ArgMax: (lines.arg_max,),
    # moving elements
    Reshape: (moves.RESHAPE,),
    Transpose: (moves.TRANSPOSE,),
    Concat: (tflite_images.concat, moves.CONCAT),
    Slice: (moves.SLICE,),
    Pad: (pads.PAD,),
    Expand: (moves.EXPAND,),
    Tile: (moves.TILE,),
    SpaceToDepth: (moves.SPACE_TO_DEPTH,),
    DepthToSpace: (moves.DEPTH_TO_SPACE,),
    Gather: (moves.GATHER,),
    Resize: (tflite_images.resize, resize.resize),
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
