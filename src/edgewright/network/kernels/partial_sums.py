"""Partial sums of a layer, and the final computation on complete sums: the two halves that whole layers run, too.

The running sums of an output element start at zero and hold, before bias, scale and activation:

- real numbers: float32 sums of x * w, or of x for sums, means and averages (which divide at the end);
- quantised convolutions and dense layers: int32 sums of (x - zero of x) * (w - zero of w), *centred*; a tap that
  falls on the padding adds nothing. C may add x * (w - zero of w) instead if no tap of the layer meets padding,
  and subtract zero of x * (sum of the centred weights) at the end, or fold it into the bias;
- quantised sums, means and averages: int32 sums of x as stored, *raw*. The end subtracts count * zero of x (a sum or
  a mean; TFLite's average of a pool keeps the zero point, which input and output share).

Integer sums are exact, so every split gives the bytes of the whole layer; sums of real numbers may differ from it in
rounding. Layers whose whole computation does not add integers have no partial sums (`can_sum_partially`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np

from ..network import Arithmetic
from ..operators import AvgPool2d, Clamp, Conv2d, Dense, FinishSums, Op, PartialSum, Reduce
from ..operators.partial_sums import reduction_axes
from ..region import Region
from ..tensor import Array, DType, Quant, Tensor
from . import linear, onnx_quant, reduce, tflite_images, tflite_lines, tflite_products
from .onnx_quant import clamped, has_integer_kernel
from .operand import Operand, Summing
from .scales import is_narrow

_REAL: Mapping[type, Summing] = {
    Conv2d: linear.product, Dense: linear.product, Reduce: reduce.sum_or_mean, AvgPool2d: linear.avg_pool2d,
}  # fmt: skip
_TFLITE: Mapping[type, Summing] = {
    Conv2d: tflite_products.convolution, Dense: tflite_products.dense,
    Reduce: tflite_lines.sum_or_mean, AvgPool2d: tflite_images.avg_pool2d,
}  # fmt: skip
_ONNX: Mapping[type, Summing] = {
    Conv2d: onnx_quant.product, Dense: onnx_quant.product, Reduce: onnx_quant.mean, AvgPool2d: onnx_quant.mean,
}  # fmt: skip
_RANGES = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}
_MOST = (1 << 31) - 1


def can_sum_partially(op: Op, tensors: Sequence[Tensor], result: Tensor, arithmetic: Arithmetic) -> bool:
    """Whether partial sums give the layer's output: exactly, except for real numbers."""
    axes = reduction_axes(op, [tensor.shape for tensor in tensors])
    if not axes or _kernel(op, tensors, result, arithmetic) is None:
        return False
    return result.dtype is DType.FLOAT32 or _largest_sum(axes, tensors) <= _MOST


def add_partial_sum(op: Op, out: Region, operands: Sequence[Operand], result: Tensor, arithmetic: Arithmetic) -> Array:
    """The contribution of a range of the input to the sums of region `out`: int32, or float32 for real numbers."""
    kernel = _kernel(op, [operand.tensor for operand in operands], result, arithmetic)
    assert kernel is not None, f"{op} has no sums"
    dtype = np.float32 if result.dtype is DType.FLOAT32 else np.int32
    if out.is_empty or operands[0].region.is_empty:
        return np.zeros(out.shape, dtype)
    return kernel.sums(op, out, operands, result).astype(dtype)


def finish_partial_sums(
    op: Op,
    sums: Array,
    tensors: Sequence[Tensor],
    constants: Sequence[Array | None],
    result: Tensor,
    arithmetic: Arithmetic,
) -> Array:
    """The whole output from its complete sums."""
    kernel = _kernel(op, tensors, result, arithmetic)
    assert kernel is not None, f"{op} has no sums"
    others = []
    for tensor, value in zip(tensors[1:], constants[1:], strict=True):
        assert value is not None, f"{tensor.name} is no constant"
        others.append(Operand(value, Region.whole(tensor.shape), tensor))
    total = sums.astype(
        np.float32 if result.dtype is DType.FLOAT32 else np.int64
    )  # a copy, because kernels overwrite it
    values = kernel.finish(op, Region.whole(result.shape), total, tensors[0], others, result)
    activation = getattr(op, "activation", None)
    if arithmetic is not Arithmetic.TFLITE and result.quant is not None and activation is not None:
        values = clamped(activation, values, result)
    return np.asarray(values).astype(result.dtype.numpy, copy=False)


def _kernel(op: Op, tensors: Sequence[Tensor], result: Tensor, arithmetic: Arithmetic) -> Summing | None:
    """The two halves of the kernel that computes the layer; None if it does not add 32-bit numbers."""
    if result.dtype is DType.FLOAT32:
        return _REAL.get(type(op)) if all(tensor.dtype is DType.FLOAT32 for tensor in tensors) else None
    if not is_narrow(tensors[0]) or not is_narrow(result) or any(w.dtype not in _RANGES for w in tensors[1:2]):
        return None
    if arithmetic is Arithmetic.TFLITE:
        return _TFLITE.get(type(op))
    if isinstance(op, AvgPool2d) and arithmetic is Arithmetic.QLINEAR:
        return None  # float32 averages, tap by tap: no integer sum gives the last bit
    is_exact = isinstance(getattr(op, "activation", None), Clamp | None)
    return _ONNX.get(type(op)) if is_exact and has_integer_kernel(op, tensors, result, arithmetic) else None


def integer_sums(op: Op, arithmetic: Arithmetic) -> Summing:
    """The two halves of an operator's integer kernel, if `can_sum_partially` holds."""
    return (_TFLITE if arithmetic is Arithmetic.TFLITE else _ONNX)[type(op)]


def _largest_sum(axes: Iterable[int], tensors: Sequence[Tensor]) -> int:
    """An upper bound on the absolute value of every partial sum, for any values and weights."""
    x, *others = tensors
    if others:
        return prod(others[0].shape[1:]) * _reach(x) * _reach(others[0])
    return prod(x.shape[axis] for axis in axes) * _reach(x)


def _reach(tensor: Tensor) -> int:
    """The largest difference between a stored number and its zero point."""
    least, most = _RANGES[tensor.dtype]
    zeros = tensor.quant.zero if tensor.quant else (0,)
    return max(most - min(zeros), max(zeros) - least)


def partial_sum(
    op: PartialSum, out: Region, operands: Sequence[Operand], result: Tensor, arithmetic: Arithmetic
) -> Array:
    """The contribution of the operands to the sums of `out`."""
    return integer_sums(op.product, arithmetic).sums(op.product, out, operands, result).astype(np.int32)


def finish_sums(
    op: FinishSums, out: Region, operands: Sequence[Operand], result: Tensor, arithmetic: Arithmetic
) -> Array:
    """The region of the layer's output, from sums that are complete once added."""
    sums, bias = (operands[:-1], operands[-1:]) if op.biased else (operands, ())
    total = np.zeros(out.shape, np.int64)
    for part in sums:
        total += part.data
    x = Tensor("x", op.shapes[0], op.dtype, Quant.of(op.scale, op.zero))
    others = [*_weights(op, out), *bias]
    values = integer_sums(op.product, arithmetic).finish(op.product, out, total, x, others, result)
    activation = getattr(op.product, "activation", None)
    if arithmetic is not Arithmetic.TFLITE and activation is not None:
        values = clamped(activation, values, result)
    return np.asarray(values)


def _weights(op: FinishSums, out: Region) -> list[Operand]:
    """The weights of the sums; only their scales are used, and their values are not available."""
    if not op.weight_scales:
        return []
    count = len(op.weight_scales)
    tensor = Tensor("w", op.shapes[1], DType.INT8, Quant(op.weight_scales, (0,) * count, 0))
    region = Region.whole(tensor.shape).with_axis(0, out.bounds[-1])
    return [Operand(np.broadcast_to(np.int8(0), region.shape), region, tensor)]
