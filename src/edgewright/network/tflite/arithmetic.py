"""Importers for operators that compute element by element, along an axis, or between element types."""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite

from ...errors import ModelError, Unsupported
from ..operators import (
    ArgMax,
    Binary,
    BinaryKind,
    Cast,
    Dequantize,
    Elu,
    L2Normalize,
    LeakyRelu,
    LogSoftmax,
    Lrn,
    Op,
    PRelu,
    Quantize,
    Reduce,
    ReduceKind,
    Softmax,
    Unary,
    UnaryKind,
)
from ..tensor import DType
from .convolution import dequantized
from .import_state import LayerImport

_OPTIONS: dict[BinaryKind, Any] = {
    BinaryKind.ADD: tflite.AddOptions,
    BinaryKind.SUB: tflite.SubOptions,
    BinaryKind.MUL: tflite.MulOptions,
    BinaryKind.DIV: tflite.DivOptions,
}


def elementwise(layer: LayerImport, op: Op) -> None:
    layer.same_type(0)
    layer.emit(op, [layer.input()])


def unary(layer: LayerImport, kind: UnaryKind) -> None:
    elementwise(layer, Unary(kind))


def binary(layer: LayerImport, kind: BinaryKind) -> None:
    layer.same_type(0, 1)
    activation = None
    if kind in _OPTIONS:
        options = layer.options(_OPTIONS[kind])
        activation = layer.fused(options.FusedActivationFunction())
        if kind in (BinaryKind.ADD, BinaryKind.SUB) and options.PotScaleInt16():
            _refuse_shifts(layer)
    layer.emit(Binary(kind, activation), [layer.input(0), layer.input(1)])


def _refuse_shifts(layer: LayerImport) -> None:
    """16-bit sums whose scales are all powers of two are shifted in old files, which rounds otherwise."""
    result = layer.result()
    tensors = (layer.tensor(0), layer.tensor(1), result)
    scales = [tensor.quant.scale[0] for tensor in tensors if tensor.quant is not None]
    is_power = all(abs(np.log2(scale) - np.rint(np.log2(scale))) < 1e-3 for scale in scales)
    if result.dtype is DType.INT16 and scales and is_power:
        raise Unsupported("16-bit elements are added by shifts")


def floor_div(layer: LayerImport) -> None:
    """Only as arithmetic on shapes."""
    a, b = layer.value(0, "dividend"), layer.value(1, "divisor")
    if not np.all(b):
        raise ModelError(f"layer '{layer.label}' divides by zero")
    layer.emit_constant(np.floor_divide(a, b))


def floor_mod(layer: LayerImport) -> None:
    """Only as arithmetic on shapes."""
    a, b = layer.value(0, "dividend"), layer.value(1, "divisor")
    if not np.all(b):
        raise ModelError(f"layer '{layer.label}' divides by zero")
    layer.emit_constant(np.mod(a, b))


def leaky_relu(layer: LayerImport) -> None:
    elementwise(layer, LeakyRelu(_finite(layer, layer.options(tflite.LeakyReluOptions).Alpha(), "slope")))


def prelu(layer: LayerImport) -> None:
    layer.same_type(0, 1)
    layer.emit(PRelu(), [layer.input(0), layer.input(1)])


def elu(layer: LayerImport) -> None:
    elementwise(layer, Elu())


def gelu(layer: LayerImport) -> None:
    is_rough = layer.options(tflite.GeluOptions).Approximate()
    unary(layer, UnaryKind.GELU_TANH if is_rough else UnaryKind.GELU)


def softmax(layer: LayerImport) -> None:
    beta = _finite(layer, layer.options(tflite.SoftmaxOptions).Beta(), "beta")
    if layer.result().dtype is not DType.INT16 or layer.tensor().quant is None:  # 8 bits may become 16
        layer.same_type(0)
    layer.emit(Softmax(-1, beta), [layer.input()])


def log_softmax(layer: LayerImport) -> None:
    elementwise(layer, LogSoftmax(-1))


def l2_normalization(layer: LayerImport) -> None:
    if layer.options(tflite.L2NormOptions).FusedActivationFunction() != 0:
        raise Unsupported("an activation is folded in")
    elementwise(layer, L2Normalize(-1, 1e-6))


def local_response_normalization(layer: LayerImport) -> None:
    """TensorFlow's alpha multiplies the sum of squares, ours their mean."""
    options = layer.options(tflite.LocalResponseNormalizationOptions)
    size = 2 * options.Radius() + 1
    if size < 1:
        raise ModelError(f"layer '{layer.label}': the radius is {options.Radius()}")
    alpha, beta, bias = (
        _finite(layer, value, what)
        for value, what in ((options.Alpha(), "alpha"), (options.Beta(), "beta"), (options.Bias(), "bias"))
    )
    elementwise(layer, Lrn(size, alpha * size, beta, bias))


def reduce(layer: LayerImport, kind: ReduceKind) -> None:
    layer.same_type(0)
    axes = _axes(layer, layer.integers(1, "axes"))
    keep = bool(layer.options(tflite.ReducerOptions).KeepDims())
    layer.emit(Reduce(axes, keep, kind), [layer.input()])


def arg_max(layer: LayerImport, least: bool) -> None:
    axes = _axes(layer, layer.integers(1, "axis"))
    if len(axes) != 1 or layer.result().dtype not in (DType.INT32, DType.INT64):
        raise ModelError(f"layer '{layer.label}': axes {axes} with a {layer.result().type_name} result")
    layer.emit(ArgMax(axes, False, least=least), [layer.input()])


def quantize(layer: LayerImport) -> None:
    if layer.result().quant is None:
        raise ModelError(f"layer '{layer.label}': the result has no scale")
    if not layer.tensor().dtype.is_float and layer.tensor().quant is None:
        raise ModelError(f"layer '{layer.label}': integers without a scale")
    layer.emit(Quantize(), [layer.input()])


def dequantize(layer: LayerImport) -> None:
    """Weights are made real when read; float16 weights are real already, and stored so to save space."""
    tensor, result = layer.tensor(), layer.result()
    if result.dtype is not DType.FLOAT32 or (tensor.quant is None and tensor.dtype is not DType.FLOAT16):
        raise ModelError(f"layer '{layer.label}' cannot turn {tensor.dtype.value} into {result.type_name}")
    if layer.is_constant():
        value, quant = layer.value(0, "weights"), tensor.quant
        layer.emit_constant(value.astype(np.float32) if quant is None else dequantized(value, quant))
    elif tensor.dtype is DType.FLOAT16:
        layer.emit(Cast(DType.FLOAT32), [layer.input()])
    else:
        layer.emit(Dequantize(), [layer.input()])


def cast(layer: LayerImport) -> None:
    """Elements as they are stored, whatever a quantisation would make of them."""
    layer.emit(Cast(layer.result().dtype), [layer.input()])


def _axes(layer: LayerImport, axes: tuple[int, ...]) -> tuple[int, ...]:
    rank = len(layer.shape())
    if any(not -rank <= axis < rank for axis in axes):
        raise ModelError(f"layer '{layer.label}': axes {axes} of a tensor of rank {rank}")
    return tuple(sorted({axis % rank for axis in axes}))


def _finite(layer: LayerImport, value: float, what: str) -> float:
    if not np.isfinite(value):
        raise ModelError(f"layer '{layer.label}': the {what} is {value}")
    return float(value)
