"""All kernels, fastest first. Of the kernels that make an offer at a site, the first whose scratch fits is selected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from ..network.operators import Op
from ..program.selection import CallKind
from . import cmsis
from .dsp import conv as dsp
from .dsp import depthwise_rows
from .dsp import partials as dsp_partials
from .dsp import windows as dsp_windows
from .helium import products as helium
from .kernel import Kernel
from .nests import (
    dynamic,
    elementwise,
    float32,
    lines,
    lookup,
    means,
    moves,
    pads,
    partials,
    pools,
    products,
    qlinear,
    recurrent,
    reductions,
    resize,
    split_sums,
    tflite,
    tflite_images,
    tflite_lines,
    windows,
)
from .portable import additions, depthwise, depthwise_direct
from .portable import partials as portable_partials
from .portable import pools as portable_pools
from .portable import products as portable
from .simd import conv as simd
from .simd import depthwise as simd_depthwise
from .simd import int8 as simd_int8
from .simd import lines as simd_lines
from .simd import partials as simd_partials
from .simd import pool as simd_pool

CATALOGUE: Sequence[Kernel] = (
    # an installed CMSIS-NN, where it is asked for
    *(cmsis.CONV, cmsis.DENSE, cmsis.POOL, cmsis.ADD, cmsis.SOFTMAX),
    # vectors of application processors
    *(simd_depthwise.DEPTHWISE, simd_depthwise.DEPTHWISE_INT8, simd.CONV, simd_int8.CONV_INT8),
    *(simd.DENSE, simd_int8.DENSE_INT8, simd_pool.POOL, simd_lines.MAP, simd_lines.ADD_INT8, simd_lines.MEAN),
    simd_lines.LRN,
    # bytes on microcontrollers
    *(helium.CONV, helium.DEPTHWISE, helium.DENSE),
    *(dsp.CONV, dsp.SMALL_DENSE, dsp.PIXELS, dsp_windows.WINDOWS, depthwise_rows.DEPTHWISE_ROWS),
    *(depthwise_direct.DIRECT, depthwise.RING, depthwise.LEAST_RING),
    *(portable.DENSE, portable.PAIRS, portable.CONV),
    *(portable_pools.MAX_POOL, portable_pools.AVERAGE_POOL, portable_pools.MEAN, additions.ADD),
    # real numbers, and bytes whose scales are found as they come
    *(float32.CONV, float32.DENSE, dynamic.CONV, dynamic.PRODUCT, dynamic.RANGE, dynamic.QUANTIZE),
    # plain loops: windows and products
    *(windows.CONV, products.DENSE, products.MATMUL, pools.MAX_POOL, pools.AVERAGE_POOL),
    # element by element
    *(lookup.LOOKUP, tflite.ACTIVATION, tflite.PRELU, tflite.BINARY, tflite.QUANTIZE, tflite.DEQUANTIZE),
    *(qlinear.PAIRS, qlinear.BINARY),
    *(elementwise.ACTIVATION, elementwise.PRELU, elementwise.BINARY, elementwise.BATCH_NORM),
    *(elementwise.CAST, elementwise.COMPARE, elementwise.SELECT, elementwise.QUANTIZE, recurrent.LSTM_STEP),
    # along an axis
    *(tflite_lines.SOFTMAX, tflite_lines.WIDE_SOFTMAX, tflite_lines.LOG_SOFTMAX, tflite_lines.L2_NORMALIZE),
    *(tflite_lines.REDUCE, lines.SOFTMAX_TERMS, lines.SOFTMAX, lines.LOG_SOFTMAX, lines.L2_NORMALIZE, lines.LRN),
    *(reductions.POOLED_MEAN, reductions.REDUCE, reductions.ARG_MAX, reductions.TOP_K, reductions.BOXES),
    # moving elements
    *(moves.RESHAPE, moves.TRANSPOSE, tflite_images.CONCAT, moves.CONCAT, moves.SLICE, pads.PAD),
    *(moves.EXPAND, moves.TILE, moves.SPACE_TO_DEPTH, moves.DEPTH_TO_SPACE, moves.GATHER, moves.GATHER_ELEMENTS),
    *(tflite_images.RESIZE_NEAREST, tflite_images.RESIZE_LINEAR, resize.NEAREST, resize.LINEAR),
    # partial sums
    *(simd_partials.ADD_CONV, dsp_partials.ADD_CONV, portable_partials.ADD_CONV, partials.ADD_CONV),
    *(simd_partials.ADD_DENSE, dsp_partials.ADD_DENSE, portable_partials.ADD_DENSE, partials.ADD_DENSE),
    *(means.ADD_PIXELS, means.ADD_ELEMENTS),
    *(dsp_partials.FINISH, portable_partials.FINISH, partials.FINISH, means.FINISH),
    # integer sums between parts of a network
    *(split_sums.PARTIAL, split_sums.FINISH),
)

BY_NAME: Mapping[str, Kernel] = {kernel.name: kernel for kernel in CATALOGUE}


_KERNELS: Mapping[tuple[type, CallKind], tuple[Kernel, ...]] = {
    (operator, kind): tuple(k for k in CATALOGUE if operator in k.operators and k.kind is kind)
    for operator in get_args(Op)
    for kind in CallKind
}


def kernels_for(operator: type, kind: CallKind) -> tuple[Kernel, ...]:
    """The kernels for calls of an operator, fastest first."""
    return _KERNELS[operator, kind]
