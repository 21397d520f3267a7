"""Quantised layers with TFLite's arithmetic, bit for bit as LiteRT's reference kernels compute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..operators import (
    ArgMax,
    AvgPool2d,
    Binary,
    BinaryKind,
    Cast,
    Clamp,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    DepthToSpace,
    Dequantize,
    Elu,
    Expand,
    Gather,
    L2Normalize,
    LeakyRelu,
    LogSoftmax,
    MatMul,
    MaxPool2d,
    Op,
    Pad,
    PRelu,
    Quantize,
    Reduce,
    ReduceKind,
    Reshape,
    Resize,
    Slice,
    Softmax,
    SpaceToDepth,
    Tile,
    Transpose,
    Unary,
    UnaryKind,
)
from ..region import Region
from ..tensor import Array, DType, Tensor
from . import tflite_elementwise as elementwise
from . import tflite_functions as functions
from . import tflite_images as images
from . import tflite_lines as lines
from . import tflite_products as products
from .operand import Kernel, Operand
from .table import KERNELS

_MOVES = (ArgMax, Cast, DepthToSpace, Expand, Gather, Reshape, Slice, SpaceToDepth, Tile, Transpose)

TFLITE: Mapping[type, Kernel] = {
    AvgPool2d: images.avg_pool2d,
    Binary: elementwise.binary,
    Clamp: elementwise.clamp,
    Concat: images.concat,
    Conv2d: products.conv2d,
    ConvTranspose2d: products.conv_transpose2d,
    Dense: products.dense,
    Dequantize: elementwise.dequantize,
    Elu: functions.elu,
    L2Normalize: lines.l2_normalize,
    LeakyRelu: elementwise.leaky_relu,
    LogSoftmax: lines.log_softmax,
    MatMul: products.matmul,
    MaxPool2d: images.max_pool2d,
    PRelu: elementwise.prelu,
    Pad: images.pad,
    Quantize: elementwise.quantize,
    Reduce: lines.reduce,
    Resize: images.resize,
    Softmax: lines.softmax,
    Unary: functions.unary,
    **{move: KERNELS[move] for move in _MOVES},
}

_SMALL = frozenset({DType.INT8, DType.UINT8})
_ALL = _SMALL | {DType.INT16}
_SIGNED = frozenset({DType.INT8, DType.INT16})

# Element types of operators that TFLite does not compute in all of int8, uint8 and int16.
_TYPES: Mapping[object, frozenset[DType]] = {
    Elu: frozenset({DType.INT8}),
    L2Normalize: _SMALL,
    LogSoftmax: _SMALL,
    MatMul: _SIGNED,
    PRelu: _SMALL,
    BinaryKind.DIV: _SMALL,
    BinaryKind.POW: frozenset(),
    BinaryKind.SQUARED_DIFFERENCE: frozenset({DType.INT8}),
    ReduceKind.PROD: frozenset(),
    UnaryKind.ABS: _SIGNED,
    UnaryKind.EXP: _SIGNED,
    UnaryKind.GELU: _SMALL,
    UnaryKind.GELU_TANH: _SMALL,
    UnaryKind.HARD_SWISH: _SMALL,
    UnaryKind.LOG: _SIGNED,
    UnaryKind.RSQRT: _SIGNED,
    UnaryKind.SIGMOID: _ALL,
    UnaryKind.TANH: _ALL,
}


def has_tflite_kernel(op: Op, dtype: DType) -> bool:
    """Whether TFLite computes this operator on quantised elements of this type."""
    if type(op) not in TFLITE:
        return False
    if isinstance(op, Dequantize | Quantize | Pad) or type(op) in _MOVES:
        return True
    kind = getattr(op, "kind", None)
    if isinstance(op, Unary):
        return dtype in _TYPES.get(kind, frozenset())
    return dtype in _TYPES.get(kind, _TYPES.get(type(op), _ALL))


def needs_one_scale(op: Op, dtype: DType) -> bool:
    """Whether TFLite's kernel compares or mixes stored values, so that inputs and output must share one scale."""
    match op:
        case Concat():
            return dtype is not DType.UINT8
        case Binary(BinaryKind.MIN | BinaryKind.MAX) | Reduce(kind=ReduceKind.MAX | ReduceKind.MIN):
            return True
        case AvgPool2d() | MaxPool2d() | Resize():
            return True
        case _:
            return False


def compute_tflite(op: Op, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """The region of the output, as LiteRT's reference kernels give it."""
    return TFLITE[type(op)](op, out, operands, result)
