"""Importers of convolutions and pools: ONNX has NCHW, we have NHWC, so each is wrapped in transposes."""

from __future__ import annotations

from dataclasses import dataclass

from ..operators import AvgPool2d, Conv2d, ConvTranspose2d, MaxPool2d, Pads, Pair, Reduce, ReduceKind
from ..operators.window import same_padding, split_pads
from ..region import Shape
from ..tensor import Array, DType, Quant
from .context import Constant, Dequantized, Value
from .node import NCHW, NHWC, OnnxNode


def image_in(node: OnnxNode, x: Value) -> Value:
    """x (N, C, H, W) or (N, C, L) as an image (N, H, W, C); a line becomes an image of height 1."""
    shape = node.shape(x)
    if len(shape) == 3:
        x = node.reshaped(x, (shape[0], shape[1], 1, shape[2]), "2d")
    elif len(shape) != 4:
        raise node.unsupported(f"only 1-D and 2-D images are supported, not a tensor of shape {list(shape)}")
    return node.transposed(x, NHWC, "nhwc")


def image_out(node: OnnxNode, y: Value, rank: int) -> Value:
    y = node.transposed(y, NCHW, "nchw")
    if rank == 3:
        n, c, _, length = node.shape(y)
        y = node.reshaped(y, (n, c, length), "1d")
    return y


@dataclass(frozen=True, slots=True)
class WindowAttributes:
    """Attributes that convolutions and pools share, for two axes."""

    kernel: Pair
    stride: Pair
    dilation: Pair
    pads: Pads
    auto_pad: str


def _pair(node: OnnxNode, name: str, rank: int, default: int | None = 1) -> Pair | None:
    """A per-axis attribute for height and width; a 1-D image has height 1."""
    values = node.integers(name)
    if not values:
        return None if default is None else (default, default)
    if len(values) != rank - 2:
        raise node.error(f"attribute '{name}' has {len(values)} entries for {rank - 2} axes")
    least = 0 if name == "output_padding" else 1
    if min(values) < least or max(values) > 2**31:
        raise node.error(f"attribute '{name}' is {list(values)}; each entry must be at least {least}")
    return (least, values[0]) if rank == 3 else (values[0], values[1])


def read_window(node: OnnxNode, rank: int, kernel: Pair | None = None) -> WindowAttributes:
    """The window of a node whose image has this rank in the file; `kernel` is that of the weights, if any."""
    stated = _pair(node, "kernel_shape", rank, None)
    if kernel is not None and stated is not None and stated != kernel:
        raise node.error(f"kernel_shape {stated} differs from that of the weights, {kernel}")
    kernel = kernel or stated
    if kernel is None:
        raise node.error("attribute 'kernel_shape' is missing")
    pads = node.integers("pads") or (0,) * (2 * (rank - 2))
    if len(pads) != 2 * (rank - 2) or max(map(abs, pads), default=0) > 2**31:
        raise node.error(f"attribute 'pads' is {list(pads)} for {rank - 2} axes")
    if min(pads) < 0:
        raise node.error(f"negative pads {list(pads)}; ONNX allows them in Pad only")
    auto_pad = node.text("auto_pad", "NOTSET") or "NOTSET"
    if auto_pad not in ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"):
        raise node.error(f"auto_pad '{auto_pad}' is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID")
    return WindowAttributes(
        kernel,
        _pair(node, "strides", rank) or (1, 1),
        _pair(node, "dilations", rank) or (1, 1),
        (0, pads[0], 0, pads[1]) if rank == 3 else (pads[0], pads[1], pads[2], pads[3]),
        auto_pad,
    )


def resolved_pads(window: WindowAttributes, size: Pair, least: int = 0) -> Pads:
    """The pads, with auto_pad resolved for an image of this size: SAME gives ceil(size / stride) windows.

    If windows leave gaps, that takes negative pads; pools crop then, convolutions do not (onnxruntime).
    """
    if window.auto_pad == "NOTSET":
        return window.pads
    if window.auto_pad == "VALID":
        return (0, 0, 0, 0)
    axes = zip(size, window.kernel, window.stride, window.dilation, strict=True)
    return split_pads([max(same_padding(*axis), least) for axis in axes], window.auto_pad == "SAME_UPPER")


def conv(node: OnnxNode) -> Value:
    return convolution(node, node.input(0), image_in(node, node.input(1)), node.optional(2))


def convolution(
    node: OnnxNode,
    x: Value,
    weights: Value,
    b: Value | None,
    dtype: DType | None = None,
    quant: Quant | None = None,
) -> Value:
    """Conv2d between transposes; its weights are already OHWI."""
    rank = len(node.shape(x))
    image = image_in(node, x)
    op = conv_operator(node, rank, node.shape(image), node.shape(weights))
    y = node.layer(op, [image, weights] if b is None else [image, weights, b], dtype=dtype, quant=quant)
    return image_out(node, y, rank)


def conv_operator(node: OnnxNode, rank: int, image: Shape, weights: Shape) -> Conv2d:
    """The operator of a node, for an image (NHWC) and weights (OHWI) of these shapes."""
    window = read_window(node, rank, (weights[1], weights[2]))
    return Conv2d(window.stride, window.dilation, resolved_pads(window, (image[1], image[2])), _groups(node))


def _groups(node: OnnxNode) -> int:
    groups = node.integer("group", 1)
    if groups < 1:
        raise node.error(f"attribute 'group' is {groups}")
    return groups


def conv_transpose(node: OnnxNode) -> Value:
    x, b = node.input(0), node.optional(2)
    rank = len(node.shape(x))
    image = image_in(node, x)
    groups = _groups(node)
    weights = _transpose_weights(node, node.input(1), groups)
    _, kh, kw, _ = node.shape(weights)
    _, h, wd, _ = node.shape(image)
    window = read_window(node, rank, (kh, kw))
    extra = _pair(node, "output_padding", rank, 0) or (0, 0)
    pads, extra = _output_pads(node, window, (h, wd), extra, rank)
    op = ConvTranspose2d(window.stride, window.dilation, pads, extra, groups)
    y = node.layer(op, [image, weights] if b is None else [image, weights, b])
    return image_out(node, y, rank)


def _output_pads(node: OnnxNode, window: WindowAttributes, size: Pair, extra: Pair, rank: int) -> tuple[Pads, Pair]:
    """The cropping and the extra rows of ConvTranspose: stated, or computed from the requested output shape."""
    stated = _pair(node, "output_shape", rank, None)
    if stated is None and not window.auto_pad.startswith("SAME"):
        return ((0, 0, 0, 0) if window.auto_pad == "VALID" else window.pads), extra
    wanted = stated or (size[0] * window.stride[0], size[1] * window.stride[1])
    full = [
        (size[i] - 1) * window.stride[i] + (window.kernel[i] - 1) * window.dilation[i] + 1 + extra[i] for i in range(2)
    ]
    totals = [max(full[i] - wanted[i], 0) for i in range(2)]
    # A stated output shape is filled up with zeros; onnxruntime lets SAME fall short of it.
    beyond = [extra[i] + (max(wanted[i] - full[i], 0) if stated else 0) for i in range(2)]
    return split_pads(totals, window.auto_pad == "SAME_UPPER"), (beyond[0], beyond[1])


def _transpose_weights(node: OnnxNode, w: Value, groups: int) -> Value:
    """Weights (C, O / groups, kh, kw) as (O, kh, kw, C / groups)."""
    shape = node.shape(w)
    if len(shape) == 3:
        return _transpose_weights(node, node.reshaped(w, (*shape[:2], 1, shape[2]), "w2d"), groups)
    if len(shape) != 4:
        raise node.unsupported(f"only 1-D and 2-D images are supported, not weights {list(shape)}")
    if groups == 1:
        return node.transposed(w, (1, 2, 3, 0), "w")
    c, o, kh, kw = shape
    if c % groups:
        raise node.error(f"{c} input channels do not divide into {groups} groups")

    def regrouped(data: Array) -> Array:
        split = data.reshape(groups, c // groups, o, kh, kw).transpose(0, 2, 3, 4, 1)
        return split.reshape(groups * o, kh, kw, c // groups)

    match w:
        case Constant(name, data):
            return node.context.derived(w, ("groups", groups), lambda: Constant(name, regrouped(data)))
        case Dequantized(name, data, quant):
            if quant.axis not in (None, 1):
                raise node.unsupported(f"weights quantised along axis {quant.axis}")
            repeats = 1 if quant.axis is None else groups
            axis = None if quant.axis is None else 0
            each = Quant(quant.scale * repeats, quant.zero * repeats, axis)
            return node.context.derived(w, ("groups", groups), lambda: Dequantized(name, regrouped(data), each))
        case _:
            raise node.unsupported("computed weights in groups are not supported")


def _pool(node: OnnxNode, x: Value) -> tuple[Value, WindowAttributes, Pads, Pair]:
    """The image of a pool, its window, its pads, and the part of them that ceil_mode added below and to the right."""
    image = image_in(node, x)
    window = read_window(node, len(node.shape(x)))
    _, h, w, _ = node.shape(image)
    size = (h, w)
    pads = resolved_pads(window, size, least=-(2**31))
    if not node.flag("ceil_mode"):
        return image, window, pads, (0, 0)
    added = [0, 0]
    for i in range(2):
        reach = (window.kernel[i] - 1) * window.dilation[i] + 1
        rest = size[i] + pads[i] + pads[2 + i] - reach
        count = -(-rest // window.stride[i]) + 1
        if (count - 1) * window.stride[i] >= size[i] + pads[i]:  # a window must start inside the image
            count -= 1
        added[i] = max((count - 1) * window.stride[i] - rest, 0)
    pads = (pads[0], pads[1], pads[2] + added[0], pads[3] + added[1])
    return image, window, pads, (added[0], added[1])


def max_pool(node: OnnxNode) -> Value:
    x = node.input(0)
    image, window, pads, _ = _pool(node, x)
    y = node.layer(MaxPool2d(window.kernel, window.stride, window.dilation, pads), [image])
    return image_out(node, y, len(node.shape(x)))


def averaging(node: OnnxNode, x: Value, dtype: DType | None = None, quant: Quant | None = None) -> Value:
    image, window, pads, added = _pool(node, x)
    op = AvgPool2d(
        window.kernel,
        window.stride,
        window.dilation,
        pads,
        count_pads=node.flag("count_include_pad"),
        uncounted=added,
    )
    y = node.layer(op, [image], dtype=dtype, quant=quant)
    return image_out(node, y, len(node.shape(x)))


def global_pool(node: OnnxNode, kind: ReduceKind) -> Value:
    return node.layer(Reduce(spatial_axes(node, node.input(0)), True, kind), [node.input(0)])


def spatial_axes(node: OnnxNode, x: Value) -> tuple[int, ...]:
    rank = len(node.shape(x))
    if rank < 3:
        raise node.error(f"expected an image, got a tensor of rank {rank}")
    return tuple(range(2, rank))
