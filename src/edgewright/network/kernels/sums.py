"""Sums that cross from one part of a network to another: taken here, added up and requantised there.

Both are halves of the kernel that computes the whole layer (`shares`), so that what comes out is the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..network import Arithmetic
from ..operators import FinishSums, PartialSum
from ..region import Region
from ..tensor import Array, DType, Quant, Tensor
from .onnx_quant import clamped
from .operand import Operand
from .shares import integer_sums


def partial_sum(
    op: PartialSum, out: Region, operands: Sequence[Operand], result: Tensor, arithmetic: Arithmetic
) -> Array:
    """What the operands contribute to the sums of `out`."""
    return integer_sums(op.product, arithmetic).sums(op.product, out, operands, result).astype(np.int32)


def finish_sums(
    op: FinishSums, out: Region, operands: Sequence[Operand], result: Tensor, arithmetic: Arithmetic
) -> Array:
    """The region of the layer's output, from sums that are complete when added up."""
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
    """The weights that sums were taken with: of them only scales are asked for, and no values are at hand."""
    if not op.weight_scales:
        return []
    count = len(op.weight_scales)
    tensor = Tensor("w", op.shapes[1], DType.INT8, Quant(op.weight_scales, (0,) * count, 0))
    region = Region.whole(tensor.shape).with_axis(0, out.bounds[-1])
    return [Operand(np.broadcast_to(np.int8(0), region.shape), region, tensor)]
