"""Importers of element-wise operators: activations, arithmetic, casts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

import numpy as np
import onnx
from onnx.helper import np_dtype_to_tensor_dtype

from .. import operators as ops
from ..decompositions import is_index
from ..kernels.elementwise import converted
from ..onnx_names import UNARY
from ..operators.base import broadcast_shape
from ..tensor import DType
from .context import Computed, Constant, Value
from .node import FOLD_LIMIT, OnnxNode
from .tensors import WIDENED, dtype_of, element_type_name

Importer = Callable[[OnnxNode], Value | tuple[Value, ...]]

# Activations of fused layers, by the names of ONNX's attributes.
NAMED: Mapping[str, ops.Activation] = {
    "Relu": ops.Clamp(0.0),
    **{UNARY[kind]: ops.Unary(kind) for kind in map(ops.UnaryKind, ("sigmoid", "softplus", "softsign", "tanh"))},
}
FLOAT_MAX = float(np.finfo(np.float32).max)


def _require_real(node: OnnxNode, *values: Value) -> None:
    """Refuses arithmetic on the stored integers of quantised tensors, which our layers would treat as real numbers."""
    for value in values:
        tensor = node.tensor(value)
        if tensor.quant is not None:
            raise node.unsupported(f"arithmetic on the stored integers of the quantised tensor '{tensor.name}'")
        if tensor.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64):
            raise node.unsupported(f"arithmetic on {tensor.dtype.value}")


def activation(node: OnnxNode, op: ops.Op) -> Value:
    """An activation on floats; most are defined for nothing else."""
    _require_real(node, node.input(0))
    if not node.tensor(node.input(0)).dtype.is_float:
        raise node.unsupported(f"works on floats, not on {node.tensor(node.input(0)).dtype.value}")
    return node.layer(op, [node.input(0)])


def unary(node: OnnxNode, kind: ops.UnaryKind) -> Value:
    x = node.input(0)
    if kind in (ops.UnaryKind.ABS, ops.UnaryKind.NEG, ops.UnaryKind.SIGN):  # defined for integers too
        _require_real(node, x)
        return node.layer(ops.Unary(kind), [x])
    return activation(node, ops.Unary(kind))


def parametric(node: OnnxNode, op: type[ops.LeakyRelu | ops.Elu | ops.HardSigmoid], *names: str) -> Value:
    """An activation whose fields have the names and defaults of ONNX's attributes."""
    defaults = op()
    return activation(node, op(**{name: node.real(name, getattr(defaults, name)) for name in names}))


def clip(node: OnnxNode) -> Value:
    """Bounds are attributes before opset 11, then inputs; the largest float means no bound."""
    if node.opset < 11:
        low, high = node.real("min", -FLOAT_MAX), node.real("max", FLOAT_MAX)
    else:
        minimum, maximum = node.optional(1), node.optional(2)
        if isinstance(minimum, Computed) or isinstance(maximum, Computed):
            return _clip_between(node, minimum, maximum)
        low = -inf if minimum is None else node.scalar(minimum, "min")
        high = inf if maximum is None else node.scalar(maximum, "max")
    if low != low or high != high:
        raise node.error("a bound is NaN")
    return clamp(node, -inf if low <= -FLOAT_MAX else low, inf if high >= FLOAT_MAX else high)


def _clip_between(node: OnnxNode, minimum: Value | None, maximum: Value | None) -> Value:
    """Computed bounds: the larger of x and one bound, then the smaller of that and the other."""
    y = node.input(0)
    for kind, bound in ((ops.BinaryKind.MAX, minimum), (ops.BinaryKind.MIN, maximum)):
        if bound is not None:
            y = pairwise(node, kind, y, bound, kind.value)
    return y


def clamp(node: OnnxNode, low: float, high: float) -> Value:
    x = node.input(0)
    tensor = node.tensor(x)
    if tensor.quant is not None:  # ONNX clamps the stored value, our layer the real one
        if tensor.quant.axis is not None:
            raise node.unsupported("clamping a tensor quantised along an axis")
        scale, zero = tensor.quant.scale[0], tensor.quant.zero[0]
        low, high = scale * (low - zero), scale * (high - zero)
    elif tensor.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64):
        raise node.unsupported(f"clamping {tensor.dtype.value}")
    return node.layer(ops.Clamp(min(low, high), high), [x])


def selu(node: OnnxNode) -> Value:
    old = node.opset < 6
    alpha = node.real("alpha", 1.6732 if old else 1.67326319217681884765625)
    return activation(node, ops.Elu(alpha, node.real("gamma", 1.0507 if old else 1.05070102214813232421875)))


def gelu(node: OnnxNode) -> Value:
    approximate = node.text("approximate", "none")
    if approximate not in ("none", "tanh"):
        raise node.error(f"approximate '{approximate}' is neither 'none' nor 'tanh'")
    return activation(node, ops.Unary(ops.UnaryKind.GELU if approximate == "none" else ops.UnaryKind.GELU_TANH))


def compare(node: OnnxNode, kind: ops.CompareKind) -> Value:
    return compared(node, kind, node.input(0), _aligned(node, node.input(0), node.input(1)))


def compared(node: OnnxNode, kind: ops.CompareKind, a: Value, b: Value) -> Value:
    types = {node.tensor(value).dtype for value in (a, b)}
    if len(types) > 1 or any(node.tensor(value).quant is not None for value in (a, b)):
        raise node.unsupported(f"compares {node.tensor(a)} with {node.tensor(b)}")
    return node.layer(ops.Compare(kind), [a, b], dtype=DType.BOOL)


def negation(node: OnnxNode) -> Value:
    return compared(node, ops.CompareKind.EQUAL, node.input(0), node.constant("false", np.array(False)))


def where(node: OnnxNode) -> Value:
    return _selected(node, node.input(0), node.input(1), node.input(2))


def _selected(node: OnnxNode, condition: Value, a: Value, b: Value) -> Value:
    tensors = [node.tensor(value) for value in (a, b)]
    if tensors[0].dtype is not tensors[1].dtype or any(tensor.quant is not None for tensor in tensors):
        raise node.unsupported(f"chooses between {tensors[0]} and {tensors[1]}")
    return node.layer(ops.Select(), [condition, a, b], dtype=tensors[0].dtype)


def trilu(node: OnnxNode) -> Value:
    """The upper or lower triangle of the last two axes; zero elsewhere."""
    x, k = node.input(0), node.optional(1)
    shape = node.shape(x)
    if len(shape) < 2 or node.tensor(x).quant is not None or shape[-2] * shape[-1] > FOLD_LIMIT:
        raise node.unsupported(f"the triangle of {node.tensor(x)}")
    diagonal = 0 if k is None else int(node.scalar(k, "k"))
    is_upper = node.flag("upper", True)
    kept = np.tri(shape[-2], shape[-1], diagonal - is_upper, dtype=bool) != is_upper
    zero = np.zeros((), node.tensor(x).dtype.numpy)
    return _selected(node, node.constant("kept", kept), x, node.constant("zero", zero))


def prelu(node: OnnxNode) -> Value:
    x, slope = node.input(0), node.input(1)
    _require_real(node, x, slope)
    if node.opset < 7 and len(node.shape(slope)) == 1 and len(node.shape(x)) > 2:
        slope = node.reshaped(slope, (*node.shape(slope), *(1,) * (len(node.shape(x)) - 2)), "slope")
    if not node.tensor(x).dtype.is_float:
        raise node.unsupported(f"works on floats, not on {node.tensor(x).dtype.value}")
    if broadcast_shape([node.shape(x), node.shape(slope)]) != node.shape(x):
        raise node.error(f"slope {list(node.shape(slope))} does not fit {list(node.shape(x))}")
    return node.layer(ops.PRelu(), [x, slope])


def _aligned(node: OnnxNode, a: Value, b: Value) -> Value:
    """b in a shape that opset 7 would broadcast; earlier, attribute 'axis' placed its first axis in a."""
    if node.opset >= 7:
        return b
    x, y = node.shape(a), node.shape(b)
    axis = node.integer("axis", len(x) - len(y))
    if not node.flag("broadcast"):
        return b
    axis += len(x) if axis < 0 else 0
    if not 0 <= axis <= len(x) - len(y):
        try:
            broadcast_shape([x, y])  # as of opset 7, which some converters use in older files
        except ValueError:
            raise node.error(f"axis {axis} does not place {list(y)} in {list(x)}") from None
        return b
    return node.reshaped(b, (*y, *(1,) * (len(x) - len(y) - axis)), "aligned")


def binary(node: OnnxNode, kind: ops.BinaryKind) -> Value:
    return pairwise(node, kind, node.input(0), _aligned(node, node.input(0), node.input(1)))


def pairwise(node: OnnxNode, kind: ops.BinaryKind, a: Value, b: Value, tag: str = "") -> Value:
    _require_real(node, a, b)
    types = node.tensor(a).dtype, node.tensor(b).dtype
    if types[0] is not types[1]:
        raise node.unsupported(f"operands of different types, {types[0].value} and {types[1].value}")
    return node.layer(ops.Binary(kind), [a, b], tag)


def chain(node: OnnxNode, kind: ops.BinaryKind) -> Value:
    """n-ary Min, Max and Sum, as a chain of pairs."""
    result, *rest = node.all_inputs()
    if not rest:
        return result
    for i, value in enumerate(rest, 1):
        result = pairwise(node, kind, result, value, "" if i == len(rest) else str(i))
    return result


def power(node: OnnxNode) -> Value:
    """x ** y, where files give integral exponents as integers; squares, cubes and roots need no logarithms."""
    x, y = node.input(0), _aligned(node, node.input(0), node.input(1))
    tensor = node.tensor(x)
    if isinstance(y, Constant) and y.data.size == 1 and y.data.ndim <= len(tensor.shape) and tensor.dtype.is_float:
        match float(y.data.item()):
            case 2.0:
                return node.layer(ops.Unary(ops.UnaryKind.SQUARE), [x])
            case 3.0:
                square = node.layer(ops.Unary(ops.UnaryKind.SQUARE), [x], "square")
                return pairwise(node, ops.BinaryKind.MUL, square, x)
            case 0.5:
                return node.layer(ops.Unary(ops.UnaryKind.SQRT), [x])
    if node.tensor(x).dtype.is_float and not _is_float(node, y):
        y = _cast(node, y, onnx.TensorProto.FLOAT)
    return pairwise(node, ops.BinaryKind.POW, x, y)


def _is_float(node: OnnxNode, value: Value) -> bool:
    if isinstance(value, Constant):
        return np.issubdtype(value.data.dtype, np.floating)
    return node.tensor(value).dtype.is_float


def mod(node: OnnxNode) -> Value:
    """The remainder, with the sign of the dividend (fmod) or, for integers, of the divisor."""
    a, b = node.input(0), node.input(1)
    if node.tensor(a).dtype.is_float and not node.flag("fmod"):
        raise node.unsupported("floats with the divisor's sign; write x - y * floor(x / y)")
    quotient = pairwise(node, ops.BinaryKind.DIV, a, b, "quotient")
    if node.tensor(a).dtype.is_float:  # truncated towards zero, like integers
        sign, size = (node.layer(ops.Unary(kind), [quotient], kind.value) for kind in _SIGN_AND_SIZE)
        whole = node.layer(ops.Unary(ops.UnaryKind.FLOOR), [size], "whole")
        quotient = pairwise(node, ops.BinaryKind.MUL, sign, whole, "cut")
    left = pairwise(node, ops.BinaryKind.SUB, a, pairwise(node, ops.BinaryKind.MUL, quotient, b, "divided"), "left")
    if node.flag("fmod"):
        return left
    zero = node.constant("zero", np.zeros((), node.tensor(a).dtype.numpy))
    one, other = (node.layer(ops.Unary(ops.UnaryKind.SIGN), [x], f"sign{i}") for i, x in enumerate((left, b)))
    other_side = pairwise(
        node, ops.BinaryKind.MUL, one, other, "sides"
    )  # the product of the numbers themselves may overflow
    return _selected(
        node,
        node.layer(ops.Compare(ops.CompareKind.LESS), [other_side, zero], "is_other", dtype=DType.BOOL),
        pairwise(node, ops.BinaryKind.ADD, left, b, "turned"),
        left,
    )


_SIGN_AND_SIZE = (ops.UnaryKind.SIGN, ops.UnaryKind.ABS)


def hyperbolic(node: OnnxNode, kind: ops.BinaryKind) -> Value:
    """Half the sum, or the difference, of e^x and e^-x."""
    x = node.input(0)
    _require_real(node, x)
    there = node.layer(ops.Unary(ops.UnaryKind.EXP), [x], "up")
    back = node.layer(ops.Unary(ops.UnaryKind.EXP), [node.layer(ops.Unary(ops.UnaryKind.NEG), [x], "minus")], "down")
    return pairwise(node, ops.BinaryKind.MUL, pairwise(node, kind, there, back, "both"), node.number("half", 0.5))


def tangent(node: OnnxNode) -> Value:
    x = node.input(0)
    _require_real(node, x)
    sine, cosine = (node.layer(ops.Unary(ops.UnaryKind[name]), [x], name.lower()) for name in ("SIN", "COS"))
    return pairwise(node, ops.BinaryKind.DIV, sine, cosine)


def one_hot(node: OnnxNode) -> Value:
    """The on-value where a counter along a new axis equals the index (negative ones count from the end), the off-value
    elsewhere."""
    indices, depth = node.input(0), int(node.scalar(node.input(1), "depth"))
    off, on = node.array(node.input(2), "values").reshape(2)
    shape = node.shape(indices)
    axis = node.axis(node.integer("axis", -1), len(shape) + 1)
    if not 1 <= depth <= FOLD_LIMIT:
        raise node.error(f"the depth is {depth}")
    chosen = node.reshaped(indices, (*shape[:axis], 1, *shape[axis:]), "chosen")
    return hot(node, chosen, depth, axis, (node.constant("on", on), node.constant("off", off)))


def hot(node: OnnxNode, chosen: Value, depth: int, axis: int, values: tuple[Value, Value]) -> Value:
    """The on-value where the index along the axis is the chosen one, the off-value elsewhere."""
    is_chosen = is_index(node, chosen, depth, axis, node.tensor(chosen).dtype, from_end=True)
    return _selected(node, is_chosen, *values)


def hardmax(node: OnnxNode) -> Value:
    """1 at the first of the largest elements along the axis, 0 elsewhere."""
    x = node.input(0)
    if node.opset < 13:
        raise node.unsupported("before opset 13, it counts over several axes")
    axis = node.axis(node.integer("axis", -1), len(node.shape(x)))
    largest = node.layer(ops.ArgMax((axis,)), [x], "largest", dtype=DType.INT64)
    return hot(node, largest, node.shape(x)[axis], axis, (node.number("one", 1.0), node.number("zero", 0.0)))


def mean(node: OnnxNode) -> Value:
    count = len(node.all_inputs())
    total = chain(node, ops.BinaryKind.ADD)
    return pairwise(node, ops.BinaryKind.MUL, total, node.number("share", 1.0 / count), "mean") if count > 1 else total


def cast(node: OnnxNode) -> Value:
    """Unsupported element types are computed as float32; casts between those are dropped."""
    x = node.input(0)
    to = node.integer("to", 0) if node.opset >= 6 else _named_type(node)
    return _cast(node, x, to)


def cast_like(node: OnnxNode) -> Value:
    return _cast(node, node.input(0), np_dtype_to_tensor_dtype(node.tensor(node.input(1)).dtype.numpy))


def _named_type(node: OnnxNode) -> int:
    name = node.text("to", "")
    if name not in onnx.TensorProto.DataType.keys():  # noqa: SIM118 (an enum wrapper, not a dict)
        raise node.error(f"'{name}' is no element type")
    return int(onnx.TensorProto.DataType.Value(name))


def _cast(node: OnnxNode, x: Value, to: int) -> Value:
    dtype = dtype_of(to, "target of Cast")
    if isinstance(x, Constant) and (x.data.size <= FOLD_LIMIT or x.data.dtype == dtype.numpy):
        return Constant(x.name, _converted(x, dtype, to))
    tensor = node.tensor(x)
    if tensor.quant is not None:
        raise node.unsupported(f"casting the stored integers of the quantised tensor '{tensor.name}'")
    if to in WIDENED:
        note = f"{element_type_name(to).lower()} is computed as float32"
        if note not in node.context.builder.notes:
            node.context.builder.notes.append(note)
    return x if tensor.dtype is dtype else node.layer(ops.Cast(dtype), [x], dtype=dtype)


def _converted(x: Constant, dtype: DType, to: int) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    if x.data.dtype == dtype.numpy and to not in WIDENED:
        return x.data
    with np.errstate(invalid="ignore", over="ignore"):
        if to == onnx.TensorProto.FLOAT16:
            return x.data.astype(np.float16).astype(np.float32)
        return converted(x.data, dtype)
