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
from .portable import products as portable
from .portable.additions import ADD
from .portable.depthwise import LEAST_RING, RING
from .portable.depthwise_direct import DIRECT
from .portable.pools import AVERAGE_POOL, MAX_POOL, MEAN
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
        cmsis.CONV,
        simd.conv2d,
        helium.CONV,
        helium.DEPTHWISE,
        CONV,
        PIXELS,
        WINDOWS,
        DEPTHWISE_ROWS,
        DIRECT,
        RING,
        LEAST_RING,
        portable.PAIRS,
        portable.CONV,
        reals.conv2d,
        windows.conv2d,
    ),
    ConvTranspose2d: (windows.conv_transpose2d,),
    Dense: (
        cmsis.DENSE,
        simd.dense,
        helium.DENSE,
        SMALL_DENSE,
        PIXELS,
        portable.DENSE,
        portable.PAIRS,
        portable.CONV,
        reals.dense,
        products.dense,
    ),
    MatMul: (products.matmul,),
    DynamicProduct: (dynamic.dynamic_product,),
    MaxPool2d: (cmsis.POOL, simd.max_pool2d, MAX_POOL, pools.max_pool2d),
    AvgPool2d: (cmsis.POOL, simd.avg_pool2d, AVERAGE_POOL, pools.avg_pool2d),
    # element by element
    Clamp: _ACTIVATION,
    LeakyRelu: _ACTIVATION,
    Elu: _ACTIVATION,
    HardSigmoid: _ACTIVATION,
    Unary: _ACTIVATION,
    PRelu: (tflite.prelu, elementwise.prelu),
    Binary: (cmsis.ADD, simd.binary, ADD, tflite.binary, elementwise.binary),
    BatchNorm: (simd.batch_norm, elementwise.batch_norm),
    Cast: (elementwise.cast,),
    Quantize: (lookup.lookup, tflite.quantize, elementwise.quantize),
    Dequantize: (tflite.dequantize, elementwise.dequantize),
    DynamicRange: (dynamic.dynamic_range,),
    DynamicQuantize: (dynamic.dynamic_quantize,),
    # along an axis
    Softmax: (cmsis.SOFTMAX, tflite_lines.softmax, lines.softmax),
    LogSoftmax: (tflite_lines.log_softmax, lines.log_softmax),
    L2Normalize: (tflite_lines.l2_normalize, lines.l2_normalize),
    Lrn: (lines.lrn,),
    Reduce: (simd.reduce, MEAN, tflite_lines.reduce, lines.reduce),
    ArgMax: (lines.arg_max,),
    # moving elements
    Reshape: (moves.reshape,),
    Transpose: (moves.transpose,),
    Concat: (tflite_images.concat, moves.concat),
    Slice: (moves.slice_,),
    Pad: (pads.pad,),
    Expand: (moves.expand,),
    Tile: (moves.tile,),
    SpaceToDepth: (moves.space_to_depth,),
    DepthToSpace: (moves.depth_to_space,),
    Gather: (moves.gather,),
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
