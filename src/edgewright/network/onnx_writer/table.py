"""The table of functions that write operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...errors import Unsupported
from .. import operators as ops
from . import dynamic, elementwise, rearrange, windows
from .elementwise import activate
from .graph import element_type
from .node import NodeWriter

NCHW = (0, 3, 1, 2)
IMAGES = (
    ops.AvgPool2d, ops.BatchNorm, ops.Conv2d, ops.ConvTranspose2d, ops.DepthToSpace, ops.Lrn, ops.MaxPool2d,
    ops.Resize, ops.SpaceToDepth,
)  # fmt: skip


def _gather(node: NodeWriter, op: ops.Gather | ops.GatherElements) -> str:
    return node.add(type(op).__name__, [node.input(), node.graph.value(node.layer.inputs[1])], axis=op.axis)


def _refused(node: NodeWriter, op: ops.Custom) -> str:
    raise Unsupported(f"layer '{node.layer.name}' is a custom operator ({op.name}), which ONNX files cannot hold")


WRITERS: Mapping[type, Callable[..., str]] = {
    # windows and products
    ops.Conv2d: windows.conv,
    ops.ConvTranspose2d: windows.conv_transpose,
    ops.MaxPool2d: windows.max_pool,
    ops.AvgPool2d: windows.avg_pool,
    ops.Dense: windows.dense,
    ops.MatMul: windows.matmul,
    ops.DynamicProduct: dynamic.dynamic_product,
    ops.PartialSum: windows.sums,
    ops.FinishSums: windows.sums,
    # element by element
    **dict.fromkeys(ops.ACTIVATIONS, lambda node, op: activate(node, op, node.input())),
    ops.PRelu: lambda node, _: node.add("PRelu", node.inputs()),
    ops.Binary: elementwise.binary,
    ops.BatchNorm: elementwise.batch_norm,
    ops.Cast: lambda node, op: node.add("Cast", [node.input()], to=element_type(op.dtype)),
    ops.Compare: elementwise.compare,
    ops.Select: lambda node, _: node.add("Where", node.inputs()),
    ops.LstmStep: elementwise.lstm_step,
    # Operands are passed as real numbers, and results stored, for every layer.
    ops.Quantize: lambda node, _: node.input(),
    ops.Dequantize: lambda node, _: node.input(),
    ops.DynamicRange: dynamic.dynamic_range,
    ops.DynamicQuantize: dynamic.dynamic_quantize,
    # along an axis
    ops.Softmax: rearrange.softmax,
    ops.LogSoftmax: lambda node, op: node.add("LogSoftmax", [node.input()], axis=op.axis),
    ops.L2Normalize: rearrange.l2_normalize,
    ops.Lrn: rearrange.lrn,
    ops.Reduce: rearrange.reduce,
    ops.ArgMax: rearrange.arg_max,
    ops.TopK: rearrange.top_k,
    ops.NonMaxSuppression: rearrange.non_max_suppression,
    # moving elements
    ops.Reshape: lambda node, op: node.add("Reshape", [node.input(), node.integers(op.shape, "shape")]),
    ops.Transpose: lambda node, op: node.add("Transpose", [node.input()], perm=op.perm),
    ops.Concat: lambda node, op: node.add("Concat", node.inputs(), axis=op.axis),
    ops.Slice: rearrange.slice_,
    ops.Pad: rearrange.pad,
    ops.Expand: lambda node, op: node.add("Expand", [node.input(), node.integers(op.shape, "shape")]),
    ops.Tile: lambda node, op: node.add("Tile", [node.input(), node.integers(op.repeats, "repeats")]),
    ops.SpaceToDepth: lambda node, op: node.add("SpaceToDepth", [node.input()], blocksize=op.block),
    ops.DepthToSpace: lambda node, op: node.add(
        "DepthToSpace", [node.input()], blocksize=op.block, mode="CRD" if op.channel_major else "DCR"
    ),
    ops.Custom: _refused,
    ops.Gather: _gather,
    ops.GatherElements: _gather,
    ops.Resize: rearrange.resize,
}
