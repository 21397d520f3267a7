"""The table of kernels for real numbers and plain integers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .. import operators as ops
from . import dynamic, linear, rearrange, recurrent, reduce, resize
from .activations import activate
from .custom import custom
from .elementwise import COMPARE, binary, converted, of_floats, select
from .linear import max_windows
from .operand import Kernel, of_values
from .reduce import along
from .scales import real, stored

KERNELS: Mapping[type[ops.Operator], Kernel] = {
    # windows and products
    ops.Conv2d: linear.product,
    ops.ConvTranspose2d: linear.product,
    ops.Dense: linear.product,
    ops.MatMul: of_floats(linear.matrix_product),
    ops.DynamicProduct: dynamic.dynamic_product,
    ops.MaxPool2d: lambda op, out, operands, result: activate(op.activation, max_windows(op, out, operands[0])),
    ops.AvgPool2d: linear.avg_pool2d,
    # element by element
    **dict.fromkeys(ops.ACTIVATIONS, of_floats(activate)),
    ops.PRelu: of_floats(lambda op, x, slope: np.where(x >= 0, x, x * slope)),
    ops.Binary: of_floats(binary),
    ops.BatchNorm: of_floats(lambda op, x, scale, shift: activate(op.activation, x * scale + shift)),
    ops.Cast: of_values(lambda op, x: converted(x, op.dtype)),
    ops.Compare: of_values(lambda op, a, b: COMPARE[op.kind](a, b)),
    ops.Select: of_values(select),
    ops.LstmStep: recurrent.lstm_step,
    ops.Quantize: lambda op, out, operands, result: stored(real(operands[0]), out, result),
    ops.Dequantize: lambda op, out, operands, result: real(operands[0]),
    ops.DynamicRange: dynamic.dynamic_range,
    ops.DynamicQuantize: dynamic.dynamic_quantize,
    # along an axis
    ops.Softmax: along(reduce.softmax),
    ops.LogSoftmax: along(reduce.log_softmax),
    ops.L2Normalize: along(reduce.l2_normalize),
    ops.Lrn: reduce.lrn,
    ops.Reduce: reduce.reduce,
    ops.ArgMax: of_values(reduce.arg_max),
    ops.TopK: along(reduce.top_k),
    ops.NonMaxSuppression: reduce.non_max_suppression,
    # moving elements
    ops.Reshape: rearrange.reshape,
    ops.Transpose: of_values(lambda op, x: x.transpose(op.perm)),
    ops.Concat: of_values(lambda op, *parts: np.concatenate(parts, axis=op.axis)),
    # The operand spans from one end to the other, so every step, including negative ones, starts right.
    ops.Slice: of_values(lambda op, x: x[tuple(slice(None, None, step) for step in op.steps)]),
    ops.Pad: lambda op, out, operands, result: rearrange.padded(op, out, operands[0], op.value),
    ops.Expand: lambda op, out, operands, result: np.broadcast_to(operands[0].data, out.shape),
    ops.Tile: rearrange.tile,
    ops.SpaceToDepth: rearrange.space_to_depth,
    ops.DepthToSpace: rearrange.depth_to_space,
    ops.Gather: rearrange.gather,
    ops.GatherElements: rearrange.gather_elements,
    ops.Custom: custom,
    ops.Resize: resize.resize,
}
