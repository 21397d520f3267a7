"""Describes shapes, quantisation and operators in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from . import operators as ops
from .region import Shape
from .tensor import Tensor


def shape(sizes: Shape) -> str:
    return "×".join(map(str, sizes)) or "scalar"


def quantisation(tensor: Tensor) -> str:
    if tensor.quant is None:
        return ""
    if tensor.quant.is_per_channel:
        return f"{len(tensor.quant.scale)} scales along axis {tensor.quant.axis}"
    return f"{tensor.quant.scale[0]:.6g}, zero {tensor.quant.zero[0]}"


def operator(op: ops.Op, shapes: Sequence[Shape]) -> str:
    """The operator in a few words: "Conv2d 3×3 s2 → 16, ReLU"; `shapes` are those of the layer's inputs."""
    words = _operator(op, shapes)
    activation = getattr(op, "activation", None)
    return words if activation is None else f"{words}, {_activation(activation)}"


def _operator(op: ops.Op, shapes: Sequence[Shape]) -> str:
    name = type(op).__name__
    match op:
        case ops.Conv2d() | ops.ConvTranspose2d():
            out, kh, kw, depth = shapes[1]
            depthwise = op.groups > 1 and depth == 1
            kind = f"{name} depthwise" if depthwise else name
            groups = f" g{op.groups}" if op.groups > 1 and not depthwise else ""
            return f"{kind} {_window((kh, kw), op.stride, op.dilation)}{groups} → {out}"
        case ops.MaxPool2d() | ops.AvgPool2d():
            return f"{name} {_window(op.kernel, op.stride, op.dilation)}"
        case ops.Dense():
            return f"Dense {shapes[0][-1]} → {shapes[1][0]}"
        case ops.DynamicProduct(product=product):
            return f"dynamic {operator(product, shapes)}"
        case ops.DynamicQuantize() | ops.DynamicRange():
            return "dynamic quantise" if isinstance(op, ops.DynamicQuantize) else "dynamic range"
        case ops.PartialSum(product=product):
            return f"partial sums of {_operator(product, shapes)}"
        case ops.FinishSums(product=product):
            return f"{type(product).__name__} from {len(shapes) - op.biased} partial sums"
        case ops.MatMul():
            flags = "".join(" Aᵀ" * op.transpose_a + " Bᵀ" * op.transpose_b)
            return f"MatMul {shape(shapes[0])} · {shape(shapes[1])}{flags}"
        case ops.Clamp() | ops.Unary():
            return _activation(op)
        case ops.Binary():
            return op.kind.value.replace("_", " ").capitalize()
        case ops.Cast():
            return f"Cast to {op.dtype.value}"
        case ops.Reduce():
            return f"Reduce {op.kind.value} over axes {', '.join(map(str, op.axes))}"
        case ops.ArgMax():
            return f"{'ArgMin' if op.least else 'ArgMax'} axis {op.axes[0]}"
        case ops.TopK():
            return f"{'Least' if op.least else 'Top'} {op.count} along axis {op.axis}"
        case ops.Concat() | ops.Gather() | ops.GatherElements() | ops.Softmax() | ops.LogSoftmax() | ops.L2Normalize():
            return f"{name} axis {op.axis}"
        case ops.Lrn():
            return f"Lrn over {op.size} channels"
        case ops.Resize():
            return f"Resize {op.mode.value} to {op.size[0]}×{op.size[1]}"
        case ops.Slice():
            return f"Slice [{', '.join(_cut(*axis) for axis in zip(op.starts, op.sizes, op.steps, strict=True))}]"
        case ops.Pad():
            return f"Pad {op.mode.value} {list(op.before)}, {list(op.after)}"
        case ops.Transpose():
            return f"Transpose {', '.join(map(str, op.perm))}"
        case ops.SpaceToDepth() | ops.DepthToSpace():
            return f"{name} {op.block}×{op.block}"
        case ops.Custom():
            return f"Custom {op.name}"
        case _:  # the name and the output's shape beside it say everything
            return name


def _activation(op: ops.Activation) -> str:
    match op:
        case ops.Clamp(low=0.0, high=high) if high == inf:
            return "ReLU"
        case ops.Clamp(low=0.0, high=6.0):
            return "ReLU6"
        case ops.Clamp():
            return f"Clamp {op.low:g}..{op.high:g}"
        case ops.Unary():
            return op.kind.value.replace("_", " ").capitalize()
        case _:
            return type(op).__name__


def _window(kernel: ops.Pair, stride: ops.Pair, dilation: ops.Pair) -> str:
    words = f"{kernel[0]}×{kernel[1]}"
    for letter, pair in (("s", stride), ("d", dilation)):
        if pair != (1, 1):
            words += f" {letter}{pair[0]}" if pair[0] == pair[1] else f" {letter}{pair[0]}×{pair[1]}"
    return words


def _cut(start: int, length: int, step: int) -> str:
    """One axis of a slice in numpy notation; a backward slice may end before index 0, which numpy omits."""
    stop = start + length * step
    return f"{start}:{'' if stop < 0 else stop}" + (f":{step}" if step != 1 else "")
