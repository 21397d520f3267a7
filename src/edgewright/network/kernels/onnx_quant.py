"""Quantised layers with onnxruntime's arithmetic: integer sums, float32 scales, round half to even.

Products and global means are summed in integers; other layers run in float32 between the scales. That is what a QDQ
file says, and what onnxruntime computes on every machine without its optimisations. With them, it replaces sums,
products and averages by kernels that round ties differently, depending on the processor. If a file itself asks for such
kernels (`Arithmetic.QLINEAR`), their formulas are used, as on x86-64: the zero point is added before rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from .. import operators as ops
from ..network import Arithmetic
from ..operators.window import is_global
from ..region import Region
from ..tensor import Array, DType, Tensor
from .linear import matrix_product
from .operand import Kernel, Operand, Summing
from .rearrange import padded
from .reduce import sum_axes, terms
from .scales import centred, is_narrow, number, real, saturated, scale_of, stored, zero_of
from .table import KERNELS
from .windows import product_sums, tap_counts, taps, window_input, work_type


def compute_onnx(
    op: ops.Op, out: Region, operands: Sequence[Operand], result: Tensor, arithmetic: Arithmetic = Arithmetic.ONNX
) -> Array:
    """The region of the output, as onnxruntime's CPU kernels compute it."""
    activation: ops.Activation | None = getattr(op, "activation", None)
    if isinstance(activation, ops.Clamp):
        bare: ops.Op = replace(op, activation=None)  # type: ignore[arg-type]
        return clamped(activation, compute_onnx(bare, out, operands, result, arithmetic), result)
    tensors = [operand.tensor for operand in operands]
    if activation is None and has_integer_kernel(op, tensors, result, arithmetic):
        if isinstance(op, ops.AvgPool2d) and arithmetic is Arithmetic.QLINEAR:
            return _qlinear_average(op, out, operands, result)
        return QUANTISED[type(op)](op, out, operands, result)
    if activation is None and _only_moves(op, operands, result):
        return KERNELS[type(op)](op, out, operands, result)
    return _in_float(op, out, operands, result)


def has_integer_kernel(op: ops.Op, tensors: Sequence[Tensor], result: Tensor, arithmetic: Arithmetic) -> bool:
    """Whether the layer is computed on stored integers: there is a formula, and the tensors fit it."""
    if type(op) not in QUANTISED or any(tensor.dtype.is_float for tensor in tensors):
        return False
    is_qlinear = arithmetic is Arithmetic.QLINEAR
    match op:
        case ops.Conv2d() | ops.ConvTranspose2d() | ops.Dense() | ops.MatMul():
            return all(tensor.quant is not None for tensor in tensors[:2])
        case ops.Binary(kind):
            kernel = kind in (ops.BinaryKind.ADD, ops.BinaryKind.MUL)
            return is_qlinear and kernel and all(is_narrow(tensor) for tensor in (*tensors, result))
        case ops.Reduce(axes=axes, kind=kind):
            pooled = kind is ops.ReduceKind.MEAN and len(tensors[0].shape) == 4 and {a % 4 for a in axes} == {1, 2}
            return pooled and is_narrow(tensors[0]) and is_narrow(result)
        case ops.Clamp() | ops.Pad():
            return tensors[0].quant == result.quant and is_narrow(result)
        case _:
            return all(is_narrow(tensor) for tensor in (*tensors, result))


def _sums(
    op: ops.Conv2d | ops.ConvTranspose2d | ops.Dense, out: Region, operands: Sequence[Operand], result: Tensor
) -> Array:
    """onnxruntime has no kernel for transposed convolutions and works in float32; these sums differ at ties at most.

    Zero points of dense weights are subtracted from the sums, so that large weights are not copied.
    """
    x, w = replace(operands[0], data=centred(operands[0])), operands[1]
    if not isinstance(op, ops.Dense):
        narrow = x.tensor.dtype.bytes == 1  # 32 bits hold sums of eight-bit products, as in onnxruntime
        return product_sums(op, out, x, replace(w, data=centred(w)), result, np.int32 if narrow else np.int64)
    total = product_sums(op, out, x, w, result, np.int64)
    zero = zero_of(w.tensor, w.region).reshape(-1).astype(np.int64)
    return total - x.data.sum(axis=-1, keepdims=True, dtype=np.int64) * zero if zero.any() else total


def _finish_product(
    op: ops.Conv2d | ops.ConvTranspose2d | ops.Dense,
    out: Region,
    total: Array,
    x: Tensor,
    others: Sequence[Operand],
    result: Tensor,
) -> Array:
    w, *bias = others
    region = op.needs(out, [x.shape, *(other.shape for other in others)])[0]
    if bias:
        total += bias[0].data
    return _requantised(total, scale_of(x, region) * _line(w), out, result)


product = Summing(_sums, _finish_product)


def matmul(op: ops.MatMul, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    a, b = operands
    left, right = centred(a), centred(b)
    depth = left.shape[-2 if op.transpose_a else -1]
    work = work_type(left.reshape(-1, 1), right.reshape(-1, 1), np.int64, depth)
    total = matrix_product(op, left.astype(work), right.astype(work))
    return _requantised(total, scale_of(a.tensor, a.region) * _line(b), out, result)


def _line(w: Operand) -> Array:
    """The scales of weights, one for each output channel or one for all."""
    return scale_of(w.tensor, w.region).reshape(-1)


def _requantised(total: Array, scale: Array, out: Region, result: Tensor) -> Array:
    """Integer sums scaled to the output by one float32 multiplication (QLinearConv, QLinearMatMul, QGemm)."""
    steps = total.astype(np.float32)
    if result.quant is None:
        return steps * scale
    steps *= scale / scale_of(result, out)
    return saturated(steps, out, result)


def binary(op: ops.Binary, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """QLinearAdd and QLinearMul: the zero point is added before rounding."""
    a, b = (operand.data.astype(np.float32) for operand in operands)
    (sa, za), (sb, zb), (sc, zc) = (
        (scale_of(t, out), zero_of(t, out).astype(np.float32)) for t in (*(o.tensor for o in operands), result)
    )
    if op.kind is ops.BinaryKind.MUL:
        steps = (a - za) * (b - zb) * (sa * sb / sc) + zc
    else:
        ra, rb = sa / sc, sb / sc
        steps = _fma(a, ra, _fma(b, rb, zc - _fma(za, ra, zb * rb)))
    return _saturated_whole(steps, result)


def _fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once to float32: float64 holds the product exactly."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


def _saturated_whole(steps: Array, result: Tensor) -> Array:
    """Steps that already contain the zero point, rounded and saturated to the output's type."""
    info = np.iinfo(result.dtype.numpy)
    return np.clip(np.rint(steps), info.min, info.max).astype(result.dtype.numpy)


def avg_pool2d(op: ops.AvgPool2d, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """A float32 mean of real numbers, summed in AveragePool's order (see `sums_columns`).

    An average of the whole image counts as a global one.
    """
    if is_global(op, operands[0].shape):
        return mean(op, out, operands, result)
    return stored(_average(op, out, operands[0], sums_columns(op)), out, result)


def _average(op: ops.AvgPool2d, out: Region, x: Operand, by_column: bool) -> Array:
    """The mean of each window; column by column, or tap by tap."""
    image = window_input(op, out, replace(x, data=real(x)), 0.0)
    sums = np.zeros((op.kernel[1] if by_column else 1, *out.shape), np.float32)
    for _, kx, view in taps(op, op.kernel, image, out.shape[1:3]):
        sums[kx if by_column else 0] += view
    total, *others = sums
    for column in others:
        total += column
    return total / tap_counts(op, out, x.shape[1:3]).astype(np.float32)


def sums_columns(op: ops.AvgPool2d) -> bool:
    """Whether onnxruntime sums each column of a window first and then the columns; otherwise it goes tap by tap, row by
    row.

    The last bit of the mean depends on it, and so do ties between two steps.
    """
    return op.stride[1] <= 2


def _qlinear_average(op: ops.AvgPool2d, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """QLinearAveragePool: tap by tap; the zero point is added before rounding."""
    average = _average(op, out, operands[0], by_column=False)
    return _saturated_whole(average / scale_of(result, out) + zero_of(result, out).astype(np.float32), result)


def _sum_image(op: ops.Reduce | ops.AvgPool2d, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    if isinstance(op, ops.Reduce):
        return sum_axes(op, out, operands, result)
    return operands[0].data.sum(axis=(1, 2), keepdims=True, dtype=np.int64)


def _finish_mean(
    op: ops.Reduce | ops.AvgPool2d, out: Region, total: Array, x: Tensor, others: Sequence[Operand], result: Tensor
) -> Array:
    """QLinearGlobalAveragePool: an integer sum, scaled once. The zero point is subtracted at the end."""
    every, count = Region.whole(x.shape), terms(op, x) if isinstance(op, ops.Reduce) else x.shape[1] * x.shape[2]
    steps = (total - count * int(zero_of(x, every))).astype(np.float32)
    return saturated(steps * (scale_of(x, every) / (scale_of(result, out) * np.float32(count))), out, result)


mean = Summing(_sum_image, _finish_mean)  # of the whole image


def concat(op: ops.Concat, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """QLinearConcat: inputs whose scale differs from the output's are requantised."""
    parts = [x.data if x.tensor.quant == result.quant else stored(real(x), x.region, result) for x in operands]
    return np.concatenate(parts, axis=op.axis)


QUANTISED: Mapping[type, Kernel] = {
    ops.Conv2d: product,
    ops.ConvTranspose2d: product,
    ops.Dense: product,
    ops.MatMul: matmul,
    ops.Binary: binary,
    ops.AvgPool2d: avg_pool2d,
    ops.Reduce: mean,
    ops.Concat: concat,
    ops.Clamp: lambda op, out, operands, result: clamped(op, operands[0].data, result),
    ops.Pad: lambda op, out, operands, result: padded(op, out, operands[0], number(op.value, result)),
}


def clamped(activation: ops.Clamp, values: Array, result: Tensor) -> Array:
    """A clamp on stored values: rounding is monotonic, so the clamp may come before or after it."""
    if result.quant is None:
        return np.clip(values, np.float32(activation.low), np.float32(activation.high))
    return np.clip(values, number(activation.low, result), number(activation.high, result))


def _only_moves(op: ops.Op, operands: Sequence[Operand], result: Tensor) -> bool:
    """Whether stored integers pass through unchanged, or only their values matter."""
    match op:
        case ops.Cast():
            return True
        case ops.Reduce(kind=kind):
            moves = kind in (ops.ReduceKind.MAX, ops.ReduceKind.MIN)
        case ops.Resize(mode=mode):
            moves = mode is ops.ResizeMode.NEAREST
        case ops.Select() | ops.Concat():  # operands may have other scales
            moves = False
        case _:
            moves = op.moves
    return op.order_only or (moves and operands[0].tensor.quant == result.quant)


def _in_float(op: ops.Op, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """Dequantised, computed in float32, quantised again."""
    reals = [_as_real(i, operands) for i in range(len(operands))]
    target = replace(result, dtype=DType.FLOAT32, quant=None) if result.quant else result
    return stored(KERNELS[type(op)](op, out, reals, target), out, result)


def _as_real(index: int, operands: Sequence[Operand]) -> Operand:
    """An operand as real numbers; a bias without its own scale has the scale of the products."""
    x = operands[index]
    if x.tensor.quant is not None:
        return replace(x, data=real(x), tensor=replace(x.tensor, dtype=DType.FLOAT32, quant=None))
    if index == 2 and x.tensor.dtype is DType.INT32:
        scales = [scale_of(o.tensor, o.region).reshape(-1) for o in operands[:2]]
        return replace(x, data=x.data.astype(np.float32) * scales[0] * scales[1])
    return x
