"""Importers of operators that compute element by element, along an axis, or between element types."""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite

from ...errors import Unsupported
from .. import operators as ops
from ..decompositions import is_index, running_sums
from ..kernels.scales import dequantized
from ..kernels.tflite_fixed import multiply, quantize_multiplier
from ..tensor import Array, DType, Tensor
from .import_state import InnerLayers, LayerImport

_OPTIONS: dict[ops.BinaryKind, Any] = {
    ops.BinaryKind.ADD: tflite.AddOptions,
    ops.BinaryKind.SUB: tflite.SubOptions,
    ops.BinaryKind.MUL: tflite.MulOptions,
    ops.BinaryKind.DIV: tflite.DivOptions,
}

MOST_SUMMED = 1024  # elements of running sums, whose products grow quadratically
MOST_HOT = 1 << 16  # elements of a counter that is compared with an index


def elementwise(layer: LayerImport, op: ops.Op) -> None:
    layer.same_type(0)
    layer.emit(op, [layer.input()])


def binary(layer: LayerImport, kind: ops.BinaryKind) -> None:
    layer.same_type(0, 1)
    activation = None
    if kind in _OPTIONS:
        options = layer.options(_OPTIONS[kind])
        activation = layer.fused(options.FusedActivationFunction())
        if kind in (ops.BinaryKind.ADD, ops.BinaryKind.SUB) and options.PotScaleInt16():
            _refuse_shifts(layer)
    layer.emit(ops.Binary(kind, activation), [layer.input(0), layer.input(1)])


def _refuse_shifts(layer: LayerImport) -> None:
    """In old files 16-bit sums whose scales are all powers of two are shifted, which rounds differently."""
    result = layer.result()
    tensors = (layer.tensor(0), layer.tensor(1), result)
    scales = [tensor.quant.scale[0] for tensor in tensors if tensor.quant is not None]
    is_power = all(abs(np.log2(scale) - np.rint(np.log2(scale))) < 1e-3 for scale in scales)
    if result.dtype is DType.INT16 and scales and is_power:
        raise Unsupported("16-bit elements are added by shifts")


def compare(layer: LayerImport, kind: ops.CompareKind) -> None:
    """Compares stored integers of one scale directly.

    LiteRT compares 256 times their real values, rounded: the same, unless that makes neighbours equal.
    """
    a, b = layer.tensor(0), layer.tensor(1)
    if a.dtype is not b.dtype or (a.quant is None) != (b.quant is None):
        raise Unsupported(f"compares {a} with {b}, of another type")
    if a.quant is not None and b.quant is not None:
        steps = multiply(np.arange(-255, 256) << 8, *quantize_multiplier(a.quant.scale[0]))
        if a.quant != b.quant or not (np.diff(steps) > 0).all():
            if not layer.is_constant(1):
                raise Unsupported(f"compares {a} with {b}, of other scales or of such below 1/256")
            kind, limits = _limits(layer, kind, a, b)
            layer.emit(ops.Compare(kind), [layer.input(0), layer.constant("limit", limits, a.quant)])
            return
    layer.emit(ops.Compare(kind), [layer.input(0), layer.input(1)])


_TURNS = {  # kinds that hold from a number on, or up to it, as comparisons of stored integers
    ops.CompareKind.GREATER: ops.CompareKind.GREATER_EQUAL,
    ops.CompareKind.GREATER_EQUAL: ops.CompareKind.GREATER_EQUAL,
    ops.CompareKind.LESS: ops.CompareKind.LESS_EQUAL,
    ops.CompareKind.LESS_EQUAL: ops.CompareKind.LESS_EQUAL,
}


def _limits(layer: LayerImport, kind: ops.CompareKind, a: Tensor, b: Tensor) -> tuple[ops.CompareKind, Array]:
    """A constant of another scale as stored integers of the first operand's: the first, or last, for which it holds."""
    info = np.iinfo(a.dtype.numpy)
    every = np.arange(info.min, info.max + 1)

    def steps(values: Array, tensor: Tensor) -> Array:
        assert tensor.quant is not None
        offset = values.astype(np.int64) - tensor.quant.zero[0]
        return multiply(offset << 8, *quantize_multiplier(tensor.quant.scale[0]))

    stored, known = steps(every, a), steps(layer.value(1, "constant"), b)
    if kind not in _TURNS or known.size > MOST_HOT:
        raise Unsupported(f"compares {a} with {b}, of another scale")
    is_beyond = kind in (ops.CompareKind.GREATER, ops.CompareKind.LESS_EQUAL)  # equal ones come before the first
    first = np.searchsorted(stored, known, "right" if is_beyond else "left")
    places = first if _TURNS[kind] is ops.CompareKind.GREATER_EQUAL else first - 1
    if (places < 0).any() or (places >= every.size).any():
        raise Unsupported(f"compares {a} with {b}, which is always or never so")
    return _TURNS[kind], every[places].astype(a.dtype.numpy)


def logical_not(layer: LayerImport) -> None:
    false = layer.constant("false", np.array(False))
    layer.emit(ops.Compare(ops.CompareKind.EQUAL), [layer.input(), false])


def select(layer: LayerImport) -> None:
    """The first version's condition may select whole items; SELECT_V2 broadcasts."""
    result = layer.result()
    layer.same_type(1, 2)
    if any(layer.tensor(i).quant != result.quant for i in (1, 2)):
        raise Unsupported("chooses between tensors of different scales")
    if layer.operator.kind == "SELECT" and layer.shape(0) not in ((), (1,), layer.shape(1)):
        raise Unsupported(f"a condition of shape {layer.shape(0)} for {layer.shape(1)}")
    layer.emit(ops.Select(), [layer.input(i) for i in range(3)])


def floor_div(layer: LayerImport) -> None:
    """Shape arithmetic is evaluated here. Truncated quotients of integers are one too large below zero."""
    if layer.is_constant(0) and layer.is_constant(1):
        _known(layer, np.floor_divide)
    elif layer.result().dtype is DType.FLOAT32:
        layer.same_type(0, 1)
        layer.emit(ops.Unary(ops.UnaryKind.FLOOR), [_pair(layer, _DIV, layer.input(0), layer.input(1), "quotient")])
    else:
        quotient, _, is_below = _divided(layer)
        one = layer.constant("one", np.ones((), layer.result().dtype.numpy))
        layer.emit(ops.Select(), [is_below, _pair(layer, _SUB, quotient, one, "below"), quotient])


def floor_mod(layer: LayerImport) -> None:
    """The remainder, with the sign of the divisor."""
    if layer.is_constant(0) and layer.is_constant(1):
        _known(layer, np.mod)
    elif layer.result().dtype is DType.FLOAT32:
        layer.same_type(0, 1)
        quotient = _pair(layer, _DIV, layer.input(0), layer.input(1), "quotient")
        floor = layer.inner(ops.Unary(ops.UnaryKind.FLOOR), [quotient], "floor", DType.FLOAT32)
        layer.emit(ops.Binary(_SUB), [layer.input(0), _pair(layer, _MUL, floor, layer.input(1), "divided")])
    else:
        _, rest, is_below = _divided(layer)
        layer.emit(ops.Select(), [is_below, _pair(layer, _ADD, rest, layer.input(1), "turned"), rest])


_ADD, _SUB, _MUL, _DIV = (ops.BinaryKind[name] for name in ("ADD", "SUB", "MUL", "DIV"))


def _known(layer: LayerImport, function: np.ufunc) -> None:
    a, b = layer.value(0, "dividend"), layer.value(1, "divisor")
    if not np.all(b):
        raise layer.error("divides by zero")
    layer.emit_constant(np.asarray(function(a, b)))


def _pair(layer: LayerImport, kind: ops.BinaryKind, a: str, b: str, suffix: str) -> str:
    return layer.inner(ops.Binary(kind), [a, b], suffix, layer.result().dtype)


def _divided(layer: LayerImport) -> tuple[str, str, str]:
    """The truncated quotient of integers, the remainder, and whether remainder and divisor differ in sign."""
    layer.same_type(0, 1)
    a, b = layer.input(0), layer.input(1)
    quotient = _pair(layer, _DIV, a, b, "cut")
    rest = _pair(layer, _SUB, a, _pair(layer, _MUL, quotient, b, "product"), "rest")
    # By their signs, because the product of the numbers may overflow.
    one, other = (layer.inner(ops.Unary(ops.UnaryKind.SIGN), [x], f"sign_{i}") for i, x in enumerate((rest, b)))
    zero = layer.constant("zero", np.zeros((), layer.result().dtype.numpy))
    less, sides = ops.Compare(ops.CompareKind.LESS), _pair(layer, _MUL, one, other, "sides")
    return quotient, rest, layer.inner(less, [sides, zero], "is_other", DType.BOOL)


def add_n(layer: LayerImport) -> None:
    count = len(layer.operator.inputs)
    layer.same_type(*range(count))
    total = layer.input(0)
    for i in range(1, count - 1):
        total = _pair(layer, _ADD, total, layer.input(i), f"sum_{i}")
    op = ops.Binary(_ADD) if count > 1 else ops.Reshape(layer.result().shape)
    layer.emit(op, [total, layer.input(count - 1)] if count > 1 else [total])


def cum_sum(layer: LayerImport) -> None:
    layer.same_type(0)
    options, shape = layer.options(tflite.CumsumOptions), layer.shape()
    (axis,) = layer.axes(1, "axis")
    if layer.result().dtype is not DType.FLOAT32 or shape[axis] > MOST_SUMMED:
        raise Unsupported(f"{layer.result().type_name} or more than {MOST_SUMMED} elements are summed along an axis")
    exclusive, backward = options.Exclusive(), options.Reverse()
    layer.emit(*running_sums(InnerLayers(layer), layer.input(), axis, exclusive=exclusive, backward=backward))


def top_k(layer: LayerImport) -> None:
    """Outputs of the file: the values, gathered by the indices, and the indices."""
    (count,) = layer.integers(1, "number of elements")
    if layer.result(1).dtype is not DType.INT32:
        raise Unsupported(f"the indices are {layer.result(1).type_name}")
    layer.emit(ops.TopK(-1, count), [layer.input()], 1)
    layer.move(ops.GatherElements(-1), [layer.input(), layer.state.names[layer.outputs[1]]])


def one_hot(layer: LayerImport) -> None:
    """The on-value where a counter along a new axis equals the index, the off-value elsewhere."""
    (depth,) = layer.integers(1, "depth")
    shape, dtype = layer.shape(), layer.tensor().dtype
    axis = layer.options(tflite.OneHotOptions).Axis()
    axis = len(shape) if axis == -1 else axis
    if not 0 <= axis <= len(shape) or not 1 <= depth <= MOST_HOT or dtype not in (DType.INT32, DType.INT64):
        raise Unsupported(f"a depth of {depth} along axis {axis}, with {dtype.value} indices")
    index = layer.inner(ops.Reshape((*shape[:axis], 1, *shape[axis:])), [layer.input()], "index", dtype)
    is_on = is_index(InnerLayers(layer), index, depth, axis, dtype, from_end=False)
    layer.same_type(2, 3)
    layer.emit(ops.Select(), [is_on, layer.input(2), layer.input(3)])


def reduce_bool(layer: LayerImport, kind: ops.ReduceKind) -> None:
    """Any is the maximum, All the minimum."""
    layer.same_type(0)
    axes = layer.axes(1)
    keep = bool(layer.options(tflite.ReducerOptions).KeepDims())
    number = layer.inner(ops.Cast(DType.INT32), [layer.input()], "number", DType.INT32)
    reduced = layer.inner(ops.Reduce(axes, keep, kind), [number], "found", DType.INT32)
    layer.emit(ops.Cast(DType.BOOL), [reduced])


def leaky_relu(layer: LayerImport) -> None:
    elementwise(layer, ops.LeakyRelu(_finite(layer, layer.options(tflite.LeakyReluOptions).Alpha(), "slope")))


def prelu(layer: LayerImport) -> None:
    layer.same_type(0, 1)
    layer.emit(ops.PRelu(), [layer.input(0), layer.input(1)])


def gelu(layer: LayerImport) -> None:
    is_rough = layer.options(tflite.GeluOptions).Approximate()
    elementwise(layer, ops.Unary(ops.UnaryKind.GELU_TANH if is_rough else ops.UnaryKind.GELU))


def softmax(layer: LayerImport) -> None:
    beta = _finite(layer, layer.options(tflite.SoftmaxOptions).Beta(), "beta")
    if layer.result().dtype is not DType.INT16 or layer.tensor().quant is None:  # 8 bits may become 16
        layer.same_type(0)
    layer.emit(ops.Softmax(-1, beta), [layer.input()])


def l2_normalization(layer: LayerImport) -> None:
    if layer.options(tflite.L2NormOptions).FusedActivationFunction() != 0:
        raise Unsupported("an activation is folded in")
    elementwise(layer, ops.L2Normalize(-1, 1e-6))


def local_response_normalization(layer: LayerImport) -> None:
    """TensorFlow's alpha multiplies the sum of squares, ours their mean."""
    options = layer.options(tflite.LocalResponseNormalizationOptions)
    size = 2 * options.Radius() + 1
    if size < 1:
        raise layer.error(f"the radius is {options.Radius()}")
    alpha, beta, bias = (
        _finite(layer, value, what)
        for value, what in ((options.Alpha(), "alpha"), (options.Beta(), "beta"), (options.Bias(), "bias"))
    )
    elementwise(layer, ops.Lrn(size, alpha * size, beta, bias))


def reduce(layer: LayerImport, kind: ops.ReduceKind) -> None:
    layer.same_type(0)
    axes = layer.axes(1)
    keep = bool(layer.options(tflite.ReducerOptions).KeepDims())
    layer.emit(ops.Reduce(axes, keep, kind), [layer.input()])


def arg_max(layer: LayerImport, least: bool) -> None:
    axes = layer.axes(1, "axis")
    if len(axes) != 1 or layer.result().dtype not in (DType.INT32, DType.INT64):
        raise layer.error(f"axes {axes} with a {layer.result().type_name} result")
    layer.emit(ops.ArgMax(axes, False, least=least), [layer.input()])


def quantize(layer: LayerImport) -> None:
    if layer.result().quant is None:
        raise layer.error("the result has no scale")
    if not layer.tensor().dtype.is_float and layer.tensor().quant is None:
        raise layer.error("integers without a scale")
    layer.emit(ops.Quantize(), [layer.input()])


def dequantize(layer: LayerImport) -> None:
    """Weights are dequantised when read; float16 weights are real already, and only stored to save space."""
    tensor, result = layer.tensor(), layer.result()
    if result.dtype is not DType.FLOAT32 or (tensor.quant is None and tensor.dtype is not DType.FLOAT16):
        raise layer.error(f"cannot turn {tensor.dtype.value} into {result.type_name}")
    if layer.is_constant():
        value, quant = layer.value(0, "weights"), tensor.quant
        layer.emit_constant(value.astype(np.float32) if quant is None else dequantized(value, quant))
    elif tensor.dtype is DType.FLOAT16:
        layer.emit(ops.Cast(DType.FLOAT32), [layer.input()])
    else:
        layer.emit(ops.Dequantize(), [layer.input()])


def cast(layer: LayerImport) -> None:
    """Converts the stored elements, ignoring quantisation."""
    layer.emit(ops.Cast(layer.result().dtype), [layer.input()])


def _finite(layer: LayerImport, value: float, what: str) -> float:
    if not np.isfinite(value):
        raise layer.error(f"the {what} is {value}")
    return float(value)
