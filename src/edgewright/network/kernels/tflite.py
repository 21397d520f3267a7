"""Quantised layers with TFLite's arithmetic, bit for bit as LiteRT's reference kernels compute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import operators as ops
from ..region import Region
from ..tensor import Array, DType, Tensor
from . import tflite_elementwise as elementwise
from . import tflite_functions as functions
from . import tflite_images as images
from . import tflite_lines as lines
from . import tflite_products as products
from .operand import Kernel, Operand
from .recurrent import stored_lstm_step
from .table import KERNELS

_COMPUTED: Mapping[type, Kernel] = {
    ops.AvgPool2d: images.avg_pool2d,
    ops.Binary: elementwise.binary,
    ops.Clamp: elementwise.clamp,
    ops.Concat: images.concat,
    ops.Conv2d: products.convolution,
    ops.ConvTranspose2d: products.convolution,
    ops.Dense: products.dense,
    ops.Dequantize: elementwise.dequantize,
    ops.Elu: functions.elu,
    ops.L2Normalize: lines.l2_normalize,
    ops.LeakyRelu: elementwise.leaky_relu,
    ops.LogSoftmax: lines.log_softmax,
    ops.LstmStep: stored_lstm_step,
    ops.MatMul: products.matmul,
    ops.MaxPool2d: images.max_pool2d,
    ops.PRelu: elementwise.prelu,
    ops.Pad: images.pad,
    ops.Quantize: elementwise.quantize,
    ops.Reduce: lines.reduce,
    ops.Resize: images.resize,
    ops.Softmax: lines.softmax,
    ops.Unary: functions.unary,
}
# Stored integers pass these unchanged, or only their order matters.
_MOVED: Mapping[type, Kernel] = {
    kind: kernel
    for kind, kernel in KERNELS.items()
    if kind not in _COMPUTED and (kind.moves or kind.order_only or kind in (ops.Cast, ops.Compare))
}
TFLITE: Mapping[type, Kernel] = {**_COMPUTED, **_MOVED}

_SMALL = frozenset({DType.INT8, DType.UINT8})
_ALL = _SMALL | {DType.INT16}
_SIGNED = frozenset({DType.INT8, DType.INT16})

# Element types of operators that TFLite does not support in all of int8, uint8 and int16.
_TYPES: Mapping[object, frozenset[DType]] = {
    ops.Elu: frozenset({DType.INT8}),
    ops.L2Normalize: _SMALL,
    ops.LogSoftmax: _SMALL,
    ops.LstmStep: frozenset({DType.INT16}),
    ops.MatMul: _SIGNED,
    ops.PRelu: _SMALL,
    ops.BinaryKind.DIV: _SMALL,
    ops.BinaryKind.POW: frozenset(),
    ops.BinaryKind.SQUARED_DIFFERENCE: frozenset({DType.INT8}),
    ops.ReduceKind.PROD: frozenset(),
    ops.UnaryKind.ABS: _SIGNED,
    ops.UnaryKind.EXP: _SIGNED,
    ops.UnaryKind.GELU: _ALL,
    ops.UnaryKind.GELU_TANH: _ALL,
    ops.UnaryKind.HARD_SWISH: _SMALL,
    ops.UnaryKind.LOG: _SIGNED,
    ops.UnaryKind.RSQRT: _SIGNED,
    ops.UnaryKind.SIGMOID: _ALL,
    ops.UnaryKind.SQRT: _SIGNED,
    ops.UnaryKind.TANH: _ALL,
}


def has_tflite_kernel(op: ops.Op, dtype: DType) -> bool:
    """Whether TFLite computes this operator on quantised elements of this type."""
    if type(op) not in TFLITE:
        return False
    if isinstance(op, ops.Dequantize | ops.Quantize | ops.Pad) or type(op) in _MOVED:
        return True
    kind = getattr(op, "kind", None)
    if isinstance(op, ops.Unary):
        return dtype in _TYPES.get(kind, frozenset())
    return dtype in _TYPES.get(kind, _TYPES.get(type(op), _ALL))


def needs_one_scale(op: ops.Op, dtype: DType) -> bool:
    """Whether TFLite's kernel compares or mixes stored values, so that inputs and output must share one scale."""
    match op:
        case ops.Concat():
            return dtype is not DType.UINT8
        case (
            ops.Binary(ops.BinaryKind.MIN | ops.BinaryKind.MAX)
            | ops.Reduce(kind=ops.ReduceKind.MAX | ops.ReduceKind.MIN)
        ):
            return True
        case ops.AvgPool2d() | ops.MaxPool2d() | ops.Resize():
            return True
        case _:
            return False


def compute_tflite(op: ops.Op, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """The region of the output, as LiteRT's reference kernels compute it."""
    return TFLITE[type(op)](op, out, operands, result)
