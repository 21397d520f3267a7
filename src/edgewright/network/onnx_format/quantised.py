"""Importers of quantised operators: QuantizeLinear, DequantizeLinear and the QLinear family.

ONNX passes scales and zero points as inputs; here they belong to the tensors. Passes join Dequantize, a layer and
Quantize to one quantised layer.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx

from .. import operators as ops
from ..network import Arithmetic
from ..operators.base import broadcast_shape
from ..tensor import Array, DType, Quant
from .context import Computed, Constant, Dequantized, Value, plain_dtype
from .elementwise import pairwise
from .node import FOLD_LIMIT, NCHW, OnnxNode
from .tensors import dtype_of
from .windows import averaging, conv_operator, convolution, image_in, image_out, spatial_axes

_STORED = (DType.INT8, DType.UINT8, DType.INT16, DType.INT32)


def _signed(data: Array) -> Array:
    """uint16 as int16 with a shifted zero point, which represents the same real numbers; others unchanged."""
    return (data.astype(np.int32) - 32768).astype(np.int16) if data.dtype == np.uint16 else data


def _zero_dtype(node: OnnxNode, zero: Value) -> DType:
    return plain_dtype(_signed(node.array(zero, "zero point")), "zero point")


def read_quant(node: OnnxNode, scale: Value, zero: Value | None, axis: int | None = None) -> Quant:
    """Scale and zero point; along `axis` if there are several."""
    scales = node.array(scale, "scale")
    zeros = np.zeros(scales.shape, np.int8) if zero is None else _signed(node.array(zero, "zero point"))
    if not np.issubdtype(scales.dtype, np.floating) or not np.issubdtype(zeros.dtype, np.integer):
        raise node.unsupported(f"scale {scales.dtype.name} with zero point {zeros.dtype.name}")
    if scales.size == 0 or scales.size != zeros.size or scales.ndim > 1:
        raise node.error(f"scale {list(scales.shape)} does not fit zero point {list(zeros.shape)}")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise node.error("a scale is not a positive number")
    values = tuple(float(s) for s in scales.reshape(-1)), tuple(int(z) for z in zeros.reshape(-1))
    return Quant(*values, axis if len(values[0]) > 1 else None)


def _axis_quant(node: OnnxNode, shape: tuple[int, ...]) -> Quant:
    """The parameters of QuantizeLinear and DequantizeLinear, checked against the tensor."""
    if node.integer("block_size", 0):
        raise node.unsupported("blocks of scales are not supported")
    scale, axis = node.input(1), node.integer("axis", 1)
    if prod(node.shape(scale)) == 1:
        return read_quant(node, scale, node.optional(2))
    axis = node.axis(axis, len(shape))
    quant = read_quant(node, scale, node.optional(2), axis)
    if len(quant.scale) != shape[axis]:
        raise node.error(f"{len(quant.scale)} scales for {shape[axis]} elements of axis {axis}")
    return quant


def quantize_linear(node: OnnxNode) -> Value:
    x, zero = node.input(0), node.optional(2)
    quant = _axis_quant(node, node.shape(x))
    dtype = DType.UINT8 if zero is None else _zero_dtype(node, zero)
    stated = node.integer("output_dtype", 0)
    if stated and zero is None:
        if stated == onnx.TensorProto.UINT16:
            dtype, quant = DType.INT16, Quant(quant.scale, (-32768,) * len(quant.scale), quant.axis)
        else:
            dtype = dtype_of(stated, "output")
    if dtype not in (DType.INT8, DType.UINT8, DType.INT16):
        raise node.unsupported(f"quantising to {dtype.value}")
    if node.tensor(x).dtype is not DType.FLOAT32:
        raise node.unsupported(f"quantising {node.tensor(x).dtype.value}")
    if isinstance(x, Constant) and x.data.size <= 16 * FOLD_LIMIT:
        return Constant(node.outputs[0], quantized(x.data, quant, dtype))
    y = node.layer(ops.Quantize(), [x], dtype=dtype, quant=quant)
    if dtype is DType.INT16 and (stated == onnx.TensorProto.UINT16 or _is_uint16(node, zero)):
        node.context.shifted.add(y.tensor)
    return y


def _is_uint16(node: OnnxNode, zero: Value | None) -> bool:
    return zero is not None and node.array(zero, "zero point").dtype == np.uint16


def quantized(data: Array, quant: Quant, dtype: DType) -> Array:
    """Stored values, as ONNX's QuantizeLinear rounds: x / scale in float32, half to even, saturated."""
    info, (scale, zero) = np.iinfo(dtype.numpy), quant.along(data.ndim)
    shifted = np.rint(data / scale) + zero.astype(np.float32)
    return np.clip(shifted, info.min, info.max).astype(dtype.numpy).reshape(data.shape)


def dequantize_linear(node: OnnxNode) -> Value:
    x = node.input(0)
    quant = _axis_quant(node, node.shape(x))
    if dtype_of(node.integer("output_dtype", 0) or 1, "output") is not DType.FLOAT32:
        raise node.unsupported("dequantising to other types than float")
    if isinstance(x, Constant) and x.data.dtype == np.uint16:
        if node.optional(2) is None:
            quant = Quant(quant.scale, (-32768,) * len(quant.scale), quant.axis)
        x = Constant(x.name, _signed(x.data))
    dtype = plain_dtype(x.data, x.name) if isinstance(x, Constant) else node.tensor(x).dtype
    if dtype not in _STORED:
        raise node.unsupported(f"dequantising {dtype.value}")
    match x:
        case Constant(name, data):
            return Dequantized(name, data, quant)
        case Computed() if node.context.assume_quant(x, quant):
            return node.layer(ops.Dequantize(), [x], dtype=DType.FLOAT32)
        case _:  # stored with other parameters: computed in real numbers, step by step
            return _in_steps(node, x, quant)


def _in_steps(node: OnnxNode, x: Value, quant: Quant) -> Value:
    if node.tensor(x).quant is not None or quant.axis is not None:
        raise node.unsupported("dequantises with other parameters than the tensor was quantised with")
    y = node.layer(ops.Cast(DType.FLOAT32), [x], "cast", dtype=DType.FLOAT32)
    y = node.layer(ops.Binary(ops.BinaryKind.SUB), [y, node.number("zero", quant.zero[0])], "centred")
    return node.layer(ops.Binary(ops.BinaryKind.MUL), [y, node.number("scale", quant.scale[0])])


def _stored(node: OnnxNode, index: int, axis: int | None = None) -> Value:
    """Inputs index, index + 1 and index + 2 (values, scale, zero point) as one quantised operand."""
    return as_quantised(
        node, node.input(index), read_quant(node, node.input(index + 1), node.optional(index + 2), axis)
    )


def as_quantised(node: OnnxNode, x: Value, quant: Quant) -> Value:
    """The value as a tensor with this quantisation; an error if it already has another."""
    if quant.axis is not None and node.shape(x)[quant.axis] != len(quant.scale):
        raise node.error(f"{len(quant.scale)} scales do not fit a tensor of shape {list(node.shape(x))}")
    match x:
        case Constant(name, data):
            plain_dtype(data, name)
            key = (id(x), quant.scale, quant.zero, quant.axis)
            return Computed(node.context.constant(name, data, quant, key, x))
        case Computed() if node.tensor(x).dtype in _STORED and node.context.assume_quant(x, quant):
            return x
        case _:
            raise node.unsupported("reads a tensor with other scales than it was written with")


def _result(node: OnnxNode, scale: int, zero: int) -> tuple[DType, Quant]:
    """Element type and quantisation of the output, from the inputs that state them."""
    value = node.optional(zero)
    dtype = DType.UINT8 if value is None else plain_dtype(node.array(value, "zero point"), "zero point")
    if dtype not in (DType.INT8, DType.UINT8, DType.INT16):
        raise node.unsupported(f"quantised output of type {dtype.value}")
    return dtype, read_quant(node, node.input(scale), value)


def _bias(node: OnnxNode, value: Value | None, x: Quant, w: Quant, outputs: int) -> Value | None:
    """The int32 bias, with the scale of the products."""
    if value is None:
        return None
    if not isinstance(value, Constant) or value.data.dtype != np.int32 or value.data.size != outputs:
        raise node.unsupported(f"the bias must be {outputs} constant int32")
    scales = np.float32(x.scale[0]) * np.array(w.scale, np.float32)
    quant = Quant(tuple(float(s) for s in scales), (0,) * len(scales), 0 if len(scales) > 1 else None)
    return as_quantised(node, node.reshaped(value, (outputs,), "bias"), quant)


def _quant(node: OnnxNode, x: Value) -> Quant:
    quant = node.tensor(x).quant
    assert quant is not None
    return quant


def qlinear_conv(node: OnnxNode) -> Value:
    x = _stored(node, 0)
    w, scale, zero = node.input(3), node.input(4), node.input(5)
    if not isinstance(w, Constant):
        raise node.unsupported("weights must be constant")
    quant = _weight_quant(node, scale, zero, 0)
    dtype, result = _result(node, 6, 7)
    weights = as_quantised(node, image_in(node, w), quant)
    bias = _bias(node, node.optional(8), _quant(node, x), quant, w.data.shape[0])
    return convolution(node, x, weights, bias, dtype, result)


def _weight_quant(node: OnnxNode, scale: Value, zero: Value | None, axis: int) -> Quant:
    """The quantisation of weights; one zero point may apply to several scales."""
    count = prod(node.shape(scale))
    if zero is not None and count > 1 and prod(node.shape(zero)) == 1:
        data = node.array(zero, "zero point")
        zero = Constant("zero", np.broadcast_to(data.reshape(-1), (count,)))
    return read_quant(node, scale, zero, axis)


def _product(
    node: OnnxNode, a: Value, b: int, bias: int | None, transposed: bool, result: tuple[DType, Quant]
) -> Value:
    """A quantised matrix product: Dense for constant weights."""
    w = node.input(b)
    if not isinstance(w, Constant) or w.data.ndim != 2:
        right = _stored(node, b)
        if bias is not None and node.optional(bias) is not None:
            raise node.unsupported("a bias needs constant weights")
        return node.layer(ops.MatMul(transpose_b=transposed), [a, right], dtype=result[0], quant=result[1])
    quant = _weight_quant(node, node.input(b + 1), node.optional(b + 2), 0 if transposed else 1)
    if not transposed:
        w = node.transposed(w, (1, 0), "w")
        quant = quant.transposed((1, 0))
    weights = as_quantised(node, w, quant)
    b_value = None if bias is None else _bias(node, node.optional(bias), _quant(node, a), quant, node.shape(w)[0])
    inputs = [a, weights] if b_value is None else [a, weights, b_value]
    return node.layer(ops.Dense(), inputs, dtype=result[0], quant=result[1])


def qlinear_matmul(node: OnnxNode) -> Value:
    if min(len(node.shape(node.input(0))), len(node.shape(node.input(3)))) < 2:
        raise node.unsupported("vectors are not supported")
    return _product(node, _stored(node, 0), 3, None, False, _result(node, 6, 7))


def qgemm(node: OnnxNode) -> Value:
    """Inputs A, B and C with scales; without an output scale the result would be real."""
    if node.real("alpha", 1.0) != 1.0 or node.optional(7) is None:
        raise node.unsupported("alpha other than 1 or a real output")
    a = _stored(node, 0)
    if node.flag("transA"):
        a = node.transposed(a, (1, 0), "a")
    return _product(node, a, 3, 6, node.flag("transB"), _result(node, 7, 8))


def qlinear_binary(node: OnnxNode, kind: ops.BinaryKind) -> Value:
    node.context.builder.arithmetic = Arithmetic.QLINEAR
    a, b = _stored(node, 0), _stored(node, 3)
    dtype, quant = _result(node, 6, 7)
    broadcast_shape([node.shape(a), node.shape(b)])
    return node.layer(ops.Binary(kind), [a, b], dtype=dtype, quant=quant)


def single(node: OnnxNode, op: ops.Op) -> Value:
    """A layer of one operand; the scales and zero points of operand and result are inputs of the node."""
    dtype, quant = _result(node, 3, 4)
    return node.layer(op, [_stored(node, 0)], dtype=dtype, quant=quant)


def qlinear_leaky_relu(node: OnnxNode) -> Value:
    return single(node, ops.LeakyRelu(node.real("alpha", 0.01)))


def qlinear_softmax(node: OnnxNode) -> Value:
    shape = node.shape(node.input(0))
    flatten = node.integer("opset", 13) < 13
    axis = node.axis(node.integer("axis", -1), len(shape))
    if flatten and prod(shape[axis + 1 :]) > 1:
        raise node.unsupported("flattening several axes")
    return single(node, ops.Softmax(axis))


def qlinear_global_average_pool(node: OnnxNode) -> Value:
    x = node.input(0)
    last = node.flag("channels_last")
    axes = tuple(axis - 1 for axis in spatial_axes(node, x)) if last else spatial_axes(node, x)
    return single(node, ops.Reduce(axes, True, ops.ReduceKind.MEAN))


def qlinear_average_pool(node: OnnxNode) -> Value:
    if node.flag("channels_last"):
        raise node.unsupported("channels_last is not supported")
    node.context.builder.arithmetic = Arithmetic.QLINEAR
    dtype, quant = _result(node, 3, 4)
    return averaging(node, _stored(node, 0), dtype, quant)


def qlinear_concat(node: OnnxNode) -> Value:
    """Inputs: scale and zero point of the output, then value, scale and zero point of each part."""
    if len(node.inputs) < 5 or (len(node.inputs) - 2) % 3:
        raise node.error(f"has {len(node.inputs)} inputs; expected 2 and then 3 for each part")
    parts = [_stored(node, i) for i in range(2, len(node.inputs), 3)]
    dtype, quant = _result(node, 0, 1)
    axis = node.axis(node.integer("axis", 1), len(node.shape(parts[0])))
    return node.layer(ops.Concat(axis), parts, dtype=dtype, quant=quant)


def dynamic_quantize_linear(node: OnnxNode) -> tuple[Value, ...]:
    """The stored values (as int8, and as the file's uint8, which products do not need), their scale and zero point."""
    x = node.input(0)
    if node.tensor(x).dtype is not DType.FLOAT32 or node.tensor(x).quant is not None or len(node.shape(x)) < 2:
        raise node.unsupported(f"quantising {node.tensor(x)}")
    is_image = len(node.shape(x)) == 4
    held = image_in(node, x) if is_image else x
    flat = node.reshaped(held, (1, prod(node.shape(held))), "flat")
    span = node.layer(ops.DynamicRange(1, True, True), [flat], "range", dtype=DType.FLOAT32)
    items = node.shape(held)[0]
    spread = span if items == 1 else node.layer(ops.Expand((items, 3)), [span], "spread")
    small = node.layer(ops.DynamicQuantize(True, True), [held, spread], "stored", dtype=DType.INT8)
    whole = node.layer(ops.Cast(DType.INT32), [small], "whole", dtype=DType.INT32)
    moved = pairwise(node, ops.BinaryKind.ADD, whole, node.constant("middle", np.array(128, np.int32)), "moved")
    y: Value = node.layer(ops.Cast(DType.UINT8), [moved], "unsigned", dtype=DType.UINT8)
    scale, zero = (node.layer(ops.Slice((0, i), (1, 1), (1, 1)), [span], tag) for i, tag in ((0, "scale"), (2, "zero")))
    lifted = pairwise(node, ops.BinaryKind.ADD, zero, node.number("half", 128.0), "lifted")
    byte = node.layer(ops.Cast(DType.UINT8), [lifted], "byte", dtype=DType.UINT8)
    ends = (node.layer(ops.Reshape(()), [value], tag) for value, tag in ((scale, "y_scale"), (byte, "y_zero")))
    return (image_out(node, y, 4) if is_image else y, *ends)


def conv_integer(node: OnnxNode) -> Value:
    x, span = _as_stored(node)
    rank = len(node.shape(node.input(0)))
    w, taken = _integer_weights(node)
    if rank == 3:  # a line is an image with one row
        x, w = image_in(node, x), w[:, :, None]
    if w.ndim != 4:
        raise node.unsupported(f"an image of rank {rank}")
    weights = w.transpose(0, 2, 3, 1)
    op = conv_operator(node, rank, node.shape(x), weights.shape)
    unit = span if node.shape(x)[0] == 1 else node.layer(ops.Expand((node.shape(x)[0], 3)), [span], "items")
    return image_out(node, _integer_sums(node, op, x, weights, taken, unit), rank)


def matmul_integer(node: OnnxNode) -> Value:
    x, span = _as_stored(node)
    if node.shape(x) != node.shape(node.input(0)):  # treated as an image
        x = node.transposed(x, NCHW, "rows")
    w, taken = _integer_weights(node)
    if w.ndim != 2:
        raise node.unsupported("weights that are no matrix")
    lead = node.shape(x)[:-1]
    rows = node.reshaped(span, (*(1 for _ in lead), 3), "rows_range")
    unit = rows if prod(lead) == 1 else node.layer(ops.Expand((*lead, 3)), [rows], "items")
    return _integer_sums(node, ops.Dense(), x, w.T, taken, unit)


def _as_stored(node: OnnxNode) -> tuple[Value, Value]:
    """The int8 tensor of a DynamicQuantizeLinear, and its range with scale 1."""
    producers = {layer.output: layer for layer in node.context.builder.layers}
    value = node.input(0)
    name = value.tensor if isinstance(value, Computed) else ""
    image = (ops.Transpose(NCHW),) if len(node.shape(value)) == 4 else ()
    # Back through the layers that make the file's uint8 of it only.
    for op in (*image, ops.Cast(DType.UINT8), ops.Binary(ops.BinaryKind.ADD), ops.Cast(DType.INT32)):
        name = producers[name].inputs[0] if name in producers and producers[name].op == op else ""
    if name not in producers or not isinstance(producers[name].op, ops.DynamicQuantize):
        raise node.unsupported("what it multiplies comes from no DynamicQuantizeLinear")
    span = producers[name].inputs[1]
    if isinstance(producers[span].op, ops.Expand):
        span = producers[span].inputs[0]
    kept, one = (
        node.constant(tag, np.array(row, np.float32)) for tag, row in (("kept", (0, 1, 1)), ("one", (1, 0, 0)))
    )
    zeroed = pairwise(node, ops.BinaryKind.MUL, Computed(span), kept, "zeroed")
    return Computed(name), pairwise(node, ops.BinaryKind.ADD, zeroed, one, "unit")


def _integer_weights(node: OnnxNode) -> tuple[Array, int]:
    """The weights as int8, and what remains to be subtracted from each of them."""
    w, zero = node.input(1), node.optional(3)
    if not isinstance(w, Constant) or w.data.dtype not in (np.int8, np.uint8):
        raise node.unsupported("weights must be constant, of eight bits")
    zeros = {0} if zero is None else {int(z) for z in node.array(zero, "zero point").reshape(-1)}
    if len(zeros) > 1:
        raise node.unsupported("weights with several zero points")
    (taken,) = zeros
    wide = w.data.astype(np.int16)
    if wide.min(initial=0) - taken < -128 or wide.max(initial=0) - taken > 127:
        return (wide - 128).astype(np.int8), taken - 128
    return (wide - taken).astype(np.int8), 0


def _integer_sums(
    node: OnnxNode, product: ops.Conv2d | ops.Dense, x: Value, weights: Array, taken: int, unit: Value
) -> Value:
    """The integer sums as float32, to which they are cast: the sums of a product with scales 1.

    A value to subtract from all weights is subtracted from the sums instead, times the sum of the inputs.
    """

    def sums(data: Array, tag: str) -> Value:
        ends = np.ones(len(data), np.float32), np.zeros(len(data), np.float32)
        given = [node.constant(f"{tag}/{kind}", part) for kind, part in zip("wsb", (data, *ends), strict=True)]
        op = ops.DynamicProduct(product, asymmetric=True)
        return node.layer(op, [x, *given, unit], tag, dtype=DType.FLOAT32)

    y = sums(np.ascontiguousarray(weights), "sums")
    if not taken:
        return y
    is_grouped = isinstance(product, ops.Conv2d) and product.groups > 1
    inputs = sums(np.ones_like(weights if is_grouped else weights[:1]), "inputs")
    scaled = pairwise(node, ops.BinaryKind.MUL, inputs, node.number("taken", taken), "off")
    return pairwise(node, ops.BinaryKind.SUB, y, scaled, "rest")
