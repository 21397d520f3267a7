"""The operators in torch: each layer becomes a function of its inputs, built once, on tensors in our layout.

Images are passed to torch as channels-first views, which in memory are torch's `channels_last`: nothing is moved. What
depends on shapes alone (indices, counts) is put on the device when the function is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...network import Array, DType, Layer, Network, Region, Shape
from ...network import operators as ops
from ...network.kernels.operand import Operand
from ...network.kernels.resize import nearest, neighbours
from ...network.kernels.windows import tap_counts
from ...network.operators.rearrange import mirrored
from ...network.tensor import Tensor

TorchFunction = Callable[..., Any]  # of the layer's inputs, including constants


@dataclass(frozen=True)
class TorchSite:
    """A layer and its context, from which its function is built."""

    torch: Any  # the module
    device: str
    op: Any
    inputs: tuple[Tensor, ...]
    result: Tensor

    @property
    def functional(self) -> Any:
        return self.torch.nn.functional

    @property
    def shape(self) -> Shape:
        """The shape of the first input."""
        return self.inputs[0].shape

    def tensor(self, value: Array) -> Any:
        """The array on the device."""
        return self.torch.from_numpy(np.ascontiguousarray(value)).to(self.device)


def torch_refusal(network: Network, layer: Layer) -> str | None:
    """A sentence on why torch cannot execute a layer; None if it can."""
    kind = type(layer.op).__name__
    if type(layer.op) not in _MAKERS:
        return f"layer '{layer.name}' is a {kind}, which the torch executor lacks; let another executor have it"
    for name in (*layer.inputs, layer.output):
        if (dtype := network.tensors[name].dtype) is not DType.FLOAT32:
            return (
                f"layer '{layer.name}' ({kind}) has '{name}' as {dtype.value}, and the torch executor computes in "
                "float32 alone; let another executor have it"
            )
    return None


def torch_function(torch: Any, device: str, network: Network, layer: Layer) -> TorchFunction:
    """The layer as a function of torch tensors, including its folded activation."""
    inputs = tuple(network.tensors[name] for name in layer.inputs)
    site = TorchSite(torch, device, layer.op, inputs, network.tensors[layer.output])
    function = _MAKERS[type(layer.op)](site)
    folded: ops.Activation | None = getattr(layer.op, "activation", None)
    if folded is None:
        return function
    activation = _activated(torch, folded)
    return lambda *inputs: activation(function(*inputs))


def _first(x: Any) -> Any:
    """An image with channels first."""
    return x.permute(0, 3, 1, 2)


def _last(x: Any) -> Any:
    """An image with channels last."""
    return x.permute(0, 2, 3, 1)


def _padding(site: TorchSite, value: float, most: tuple[int, int] | None) -> tuple[TorchFunction, tuple[int, int]]:
    """Explicit padding of an image, and the rest left to torch's own padding, which is symmetric and limited."""
    top, left, bottom, right = site.op.pads
    is_alike = (top, left) == (bottom, right) and min(top, left) >= 0
    if is_alike and (most is None or (top <= most[0] and left <= most[1])):
        return lambda image: image, (top, left)
    sides = (left, right, top, bottom)
    return lambda image: site.functional.pad(image, sides, value=value), (0, 0)


def _conv2d(site: TorchSite) -> TorchFunction:
    op, (pad, inner) = site.op, _padding(site, 0.0, None)

    def run(x: Any, w: Any, b: Any = None) -> Any:
        image, weights = pad(_first(x)), _first(w)
        return _last(site.functional.conv2d(image, weights, b, op.stride, inner, op.dilation, op.groups))

    return run


def _conv_transpose2d(site: TorchSite) -> TorchFunction:
    op = site.op
    (top, left, bottom, right), (rows, columns) = op.pads, op.extra
    sides = (-left, columns - right, -top, rows - bottom)

    def run(x: Any, w: Any, b: Any = None) -> Any:
        outputs, kh, kw, depth = w.shape
        grouped = w.reshape(op.groups, outputs // op.groups, kh, kw, depth).permute(0, 4, 1, 2, 3)
        weights = grouped.reshape(op.groups * depth, outputs // op.groups, kh, kw)
        image = _first(x)
        full = site.functional.conv_transpose2d(image, weights, None, op.stride, groups=op.groups, dilation=op.dilation)
        y = _last(site.functional.pad(full, sides))
        return y if b is None else y + b

    return run


def _dense(site: TorchSite) -> TorchFunction:
    return lambda x, w, b=None: site.functional.linear(x, w.reshape(w.shape[0], -1), b)


def _matmul(site: TorchSite) -> TorchFunction:
    op = site.op

    def run(a: Any, b: Any) -> Any:
        return site.torch.matmul(
            a.transpose(-1, -2) if op.transpose_a else a, b.transpose(-1, -2) if op.transpose_b else b
        )

    return run


def _max_pool2d(site: TorchSite) -> TorchFunction:
    op = site.op
    pad, inner = _padding(site, -np.inf, (op.kernel[0] // 2, op.kernel[1] // 2))
    pool = site.functional.max_pool2d
    return lambda x: _last(pool(pad(_first(x)), op.kernel, op.stride, inner, op.dilation))


def _avg_pool2d(site: TorchSite) -> TorchFunction:
    """Sums of windows divided by the number of taps that count."""
    op, functional = site.op, site.functional
    top, left, bottom, right = op.pads
    counts = site.tensor(tap_counts(op, Region.whole(site.result.shape), site.shape[1:3]).astype(np.float32))
    channels = site.shape[3]
    ones = site.tensor(np.ones((channels, 1, *op.kernel), np.float32)) if op.dilation != (1, 1) else None

    def run(x: Any) -> Any:
        image = functional.pad(_first(x), (left, right, top, bottom)) if any(op.pads) else _first(x)
        if ones is None:
            sums = functional.avg_pool2d(image, op.kernel, op.stride, divisor_override=1)
        else:
            sums = functional.conv2d(image, ones, None, op.stride, 0, op.dilation, channels)
        return _last(sums) / counts

    return run


def _activated(torch: Any, op: ops.Activation) -> TorchFunction:
    functional = torch.nn.functional
    match op:
        case ops.Clamp(low, high):
            return lambda x: torch.clamp(x, low, high)
        case ops.LeakyRelu(alpha):
            return lambda x: functional.leaky_relu(x, alpha)
        case ops.Elu(alpha, gamma):
            return lambda x: gamma * functional.elu(x, alpha)
        case ops.HardSigmoid(alpha, beta):
            return lambda x: torch.clamp(x * alpha + beta, 0.0, 1.0)
        case ops.Unary(ops.UnaryKind.GELU_TANH):
            return lambda x: functional.gelu(x, approximate="tanh")
        case ops.Unary(ops.UnaryKind.HARD_SWISH):
            return functional.hardswish
        case ops.Unary(kind):
            return getattr(torch, kind.value, None) or getattr(functional, kind.value)


def _binary(site: TorchSite) -> TorchFunction:
    names = {ops.BinaryKind.MIN: "minimum", ops.BinaryKind.MAX: "maximum"}
    if site.op.kind is ops.BinaryKind.SQUARED_DIFFERENCE:
        return lambda a, b: site.torch.square(a - b)
    function: TorchFunction = getattr(site.torch, names.get(site.op.kind, site.op.kind.value))
    return function


def _lrn(site: TorchSite) -> TorchFunction:
    op, pads = site.op, ((site.op.size - 1) // 2, site.op.size // 2)

    def run(x: Any) -> Any:
        total = site.functional.pad(x * x, pads).unfold(-1, op.size, 1).sum(-1)
        return x / (op.bias + op.alpha / op.size * total) ** op.beta

    return run


def _l2_normalize(site: TorchSite) -> TorchFunction:
    op = site.op
    return lambda x: x / site.torch.clamp(x.square().sum(op.axis, True).sqrt(), min=op.epsilon)


def _reduce(site: TorchSite) -> TorchFunction:
    op, kind = site.op, site.op.kind

    def run(x: Any) -> Any:
        if kind is ops.ReduceKind.L1:
            x = x.abs()
        if kind in (ops.ReduceKind.L2, ops.ReduceKind.SUM_SQUARE):
            x = x.square()
        if not op.axes:  # torch would reduce all
            return x.sqrt() if kind is ops.ReduceKind.L2 else x
        match kind:
            case ops.ReduceKind.MEAN:
                return x.mean(op.axes, op.keep)
            case ops.ReduceKind.MAX:
                return x.amax(op.axes, op.keep)
            case ops.ReduceKind.MIN:
                return x.amin(op.axes, op.keep)
            case ops.ReduceKind.PROD:
                for axis in op.axes:
                    x = x.prod(axis, True)
                return x.reshape(site.result.shape)
            case _:
                total = x.sum(op.axes, op.keep)
                return total.sqrt() if kind is ops.ReduceKind.L2 else total

    return run


def _slice(site: TorchSite) -> TorchFunction:
    """Torch has no negative steps: the range is sliced forwards and flipped."""
    op = site.op
    ways = list(zip(op.starts, op.sizes, op.steps, strict=True))
    cuts = tuple(
        slice(start, start + (size - 1) * step + 1, step)
        if step > 0
        else slice(start + (size - 1) * step, start + 1, -step)
        for start, size, step in ways
    )
    turned = [axis for axis, (_, _, step) in enumerate(ways) if step < 0]
    return lambda x: x[cuts].flip(turned) if turned else x[cuts]


def _pad(site: TorchSite) -> TorchFunction:
    op = site.op
    sides = [side for pair in reversed(list(zip(op.before, op.after, strict=True))) for side in pair]
    if op.mode is ops.PadMode.CONSTANT:
        return lambda x: site.functional.pad(x, sides, value=op.value)
    places = {
        axis: site.tensor(mirrored(op.mode, np.arange(size), site.shape[axis], op.before[axis], op.after[axis]))
        for axis, size in enumerate(site.result.shape)
        if op.before[axis] or op.after[axis]
    }

    def run(x: Any) -> Any:
        for axis, index in places.items():
            x = x.index_select(axis, index)
        return x

    return run


def _space_to_depth(site: TorchSite) -> TorchFunction:
    (n, rows, columns, _), k = site.result.shape, site.op.block
    return lambda x: x.reshape(n, rows, k, columns, k, -1).permute(0, 1, 3, 2, 4, 5).reshape(site.result.shape)


def _depth_to_space(site: TorchSite) -> TorchFunction:
    (n, rows, columns, _), k = site.shape, site.op.block
    split, order = ((-1, k, k), (0, 1, 4, 2, 5, 3)) if site.op.channel_major else ((k, k, -1), (0, 1, 3, 2, 4, 5))
    return lambda x: x.reshape(n, rows, columns, *split).permute(order).reshape(site.result.shape)


def _resize(site: TorchSite) -> TorchFunction:
    """By the indices and weights of the numpy kernels, computed once."""
    op, out = site.op, Region.whole(site.result.shape)
    n, rows, columns, channels = site.shape
    if op.mode is ops.ResizeMode.NEAREST:
        pixels = np.arange(rows * columns).reshape(1, rows, columns, 1)
        image = Operand(pixels, Region.whole(pixels.shape), site.inputs[0])
        shown = site.tensor(nearest(op, out, image).reshape(-1))
        return lambda x: x.reshape(n, -1, channels).index_select(1, shown).reshape(site.result.shape)
    whole = Operand(np.empty(0), Region.whole(site.shape), site.inputs[0])
    down, across = (
        [
            (site.tensor(index), site.tensor(weight.astype(np.float32)))
            for index, weight in neighbours(op, i, out, whole)
        ]
        for i in range(2)
    )

    def run(x: Any) -> Any:
        lines = sum(x.index_select(1, index) * weight[:, None, None] for index, weight in down)
        return sum(lines.index_select(2, index) * weight[:, None] for index, weight in across)

    return run


_MAKERS: Mapping[type, Callable[[TorchSite], TorchFunction]] = {
    ops.Conv2d: _conv2d,
    ops.ConvTranspose2d: _conv_transpose2d,
    ops.Dense: _dense,
    ops.MatMul: _matmul,
    ops.MaxPool2d: _max_pool2d,
    ops.AvgPool2d: _avg_pool2d,
    **dict.fromkeys(ops.ACTIVATIONS, lambda site: _activated(site.torch, site.op)),
    ops.PRelu: lambda site: lambda x, slope: site.torch.where(x >= 0, x, x * slope),
    ops.Binary: _binary,
    ops.BatchNorm: lambda site: lambda x, scale, shift: site.torch.addcmul(shift, x, scale),
    ops.Softmax: lambda site: lambda x: site.torch.softmax(x * site.op.beta, site.op.axis),
    ops.LogSoftmax: lambda site: lambda x: site.torch.log_softmax(x, site.op.axis),
    ops.L2Normalize: _l2_normalize,
    ops.Lrn: _lrn,
    ops.Reduce: _reduce,
    ops.Reshape: lambda site: lambda x: x.reshape(site.op.shape),
    ops.Transpose: lambda site: lambda x: x.permute(site.op.perm),
    ops.Concat: lambda site: lambda *parts: site.torch.cat(parts, site.op.axis),
    ops.Slice: _slice,
    ops.Pad: _pad,
    ops.Expand: lambda site: lambda x: x.expand(site.result.shape),
    ops.Tile: lambda site: lambda x: x.repeat(site.op.repeats),
    ops.SpaceToDepth: _space_to_depth,
    ops.DepthToSpace: _depth_to_space,
    ops.Resize: _resize,
}
TORCH_OPERATORS = frozenset(_MAKERS)
