"""Importers for convolutions, pooling and fully connected layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import tflite

from ...errors import Unsupported
from .. import operators as ops
from ..kernels.scales import dequantized
from ..operators.window import same_padding, split_pads
from ..region import Shape
from ..tensor import DType, Quant
from .import_state import LayerImport

# Valid combinations of element types: x and output, weights, bias.
_TYPES = {
    (DType.FLOAT32, DType.FLOAT32): (DType.FLOAT32,),
    (DType.INT8, DType.INT8): (DType.INT32,),
    (DType.UINT8, DType.UINT8): (DType.INT32,),
    (DType.INT16, DType.INT8): (DType.INT64, DType.INT32),
}


@dataclass(frozen=True, slots=True)
class _Spread:
    """How SPACE_TO_BATCH distributed an image over the batch: every block-th pixel to the same image."""

    block: ops.Pair
    margins: ops.Pads  # added around the image, minus what is cropped from the result


@dataclass(frozen=True, slots=True)
class _Weights:
    """The constants of a product, and the scales of weights that stay stored beside real activations."""

    names: list[str]
    scales: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stored:
    """How a kernel stores real activations when weights are stored (see `DynamicProduct`)."""

    asymmetric: bool
    in_turn: bool = False


def conv(layer: LayerImport, spread: _Spread | None = None) -> None:
    weights = _weights(layer, "conv", axis=0)
    shape, depth = layer.state.builder.shape(weights.names[0]), _image(layer)[3]
    if depth % shape[3]:
        raise layer.error(f"{depth} channels do not divide into groups of {shape[3]}")
    # LiteRT distinguishes channels only if their scales differ, or if there are groups.
    is_told = len(set(weights.scales)) > 1 or depth != shape[3]
    stored = _Stored(asymmetric=is_told, in_turn=is_told)
    _emit_conv(layer, layer.options(tflite.Conv2DOptions), weights, depth // shape[3], spread, stored)


def depthwise_conv(layer: LayerImport, spread: _Spread | None = None) -> None:
    """Weights (1, kh, kw, O) become (O, kh, kw, 1), a view; O may be a multiple of the channels."""
    weights = _weights(layer, "depthwise", axis=3)
    stored = _Stored(asymmetric=True)
    _emit_conv(layer, layer.options(tflite.DepthwiseConv2DOptions), weights, _image(layer)[3], spread, stored)


def _emit_conv(
    layer: LayerImport, options: Any, weights: _Weights, groups: int, spread: _Spread | None, stored: _Stored
) -> None:
    _, kh, kw, _ = layer.state.builder.shape(weights.names[0])
    image = _image(layer)
    stride = _positive(layer, (options.StrideH(), options.StrideW()), "stride")
    dilation = _positive(layer, (options.DilationHFactor(), options.DilationWFactor()), "dilation")
    if spread is None:
        pads = _pads(options.Padding(), (image[1], image[2]), (kh, kw), stride, dilation)
    else:
        # A pad of one pixel in the distributed image is a block of pixels in the image itself. With a stride of 1 it
        # does not depend on the image's size.
        dilation = spread.block
        inner = _pads(options.Padding(), (kh, kw), (kh, kw), stride, (1, 1))
        own = [inner[i] * spread.block[i % 2] + spread.margins[i] for i in range(4)]
        pads = (own[0], own[1], own[2], own[3])
    activation = layer.fused(options.FusedActivationFunction())
    _emit_product(layer, ops.Conv2d(stride, dilation, pads, groups, activation), layer.input(), weights, stored)


def _emit_product(
    layer: LayerImport,
    op: ops.Conv2d | ops.ConvTranspose2d | ops.Dense,
    x: str,
    weights: _Weights,
    stored: _Stored,
) -> None:
    """Adds the layer; if weights are stored and x is real, x is stored first, as in LiteRT's hybrid kernels."""
    state = layer.state
    if not weights.scales:
        layer.emit(op, [x, *weights.names])
        return
    shape = state.builder.shape(x)
    lead = len(shape) - 1 if isinstance(op, ops.Dense) else 1
    key = (x, lead, stored.asymmetric)
    if key not in state.dynamic:
        span = layer.inner(ops.DynamicRange(lead, stored.asymmetric), [x], "range", DType.FLOAT32)
        small = layer.inner(ops.DynamicQuantize(stored.asymmetric), [x, span], "stored", DType.INT8)
        state.dynamic[key] = (small, span)
    small, span = state.dynamic[key]
    w, *bias = weights.names
    channels = state.builder.shape(w)[0]
    scales = np.broadcast_to(np.array(weights.scales, np.float32), (channels,))
    scale = layer.constant("scale", np.ascontiguousarray(scales))
    added = bias[0] if bias else layer.constant("bias", np.zeros(channels, np.float32))
    layer.emit(ops.DynamicProduct(op, stored.asymmetric, stored.in_turn), [small, w, scale, added, span])


def space_to_batch(layer: LayerImport) -> None:
    """Reads TensorFlow's form of a dilated convolution as one, at its BATCH_TO_SPACE_ND; otherwise moves pixels."""
    state = layer.state
    block, pads = _blocks(layer, "paddings", layer.shape())
    middle = state.sole_reader(layer.outputs[0])
    last = None if middle is None or len(block) != 2 else _end_of_dilation(layer, middle)
    if middle is not None and last is not None:
        state.done.add(middle)
        state.spread[last] = (layer.number, middle)
        return
    count, shape = len(block), layer.shape()
    rest, padded = shape[1 + count :], [shape[1 + i] + sum(pads[2 * i : 2 * i + 2]) for i in range(count)]
    if any(size % by for size, by in zip(padded, block, strict=True)):
        raise layer.error(f"{shape} with pads {pads} does not divide into blocks of {block}")
    wide = ops.Pad((0, *pads[::2], *(0 for _ in rest)), (0, *pads[1::2], *(0 for _ in rest)))
    x = layer.inner(wide, [layer.input()], "padded")
    sizes = [size // by for size, by in zip(padded, block, strict=True)]
    parts = [number for pair in zip(sizes, block, strict=True) for number in pair]
    x = layer.inner(ops.Reshape((shape[0], *parts, *rest)), [x], "blocks")
    inside, outside = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
    order = (*inside, 0, *outside, *range(2 * count + 1, 2 * count + 1 + len(rest)))
    x = layer.inner(ops.Transpose(order), [x], "dealt")
    layer.move(ops.Reshape((shape[0] * prod(block), *sizes, *rest)), [x])


def batch_to_space(layer: LayerImport) -> None:
    state = layer.state
    if layer.number in state.spread:
        first, middle = state.spread[layer.number]
        source = LayerImport(state, first)
        block, crops = _blocks(layer, "crops", source.shape())
        before = source.integers(2, "paddings")
        top, bottom, left, right = (before[i] - crops[i] for i in range(4))
        inner = state.file.operators[middle]
        dilated = replace(inner, inputs=(source.index(0), *inner.inputs[1:]), outputs=layer.outputs)
        read = conv if inner.kind == "CONV_2D" else depthwise_conv
        read(LayerImport(state, middle, dilated), _Spread((block[0], block[1]), (top, left, bottom, right)))
        return
    block, crops = _blocks(layer, "crops", layer.shape())
    count, shape = len(block), layer.shape()
    batch, rest = shape[0] // prod(block), shape[1 + count :]
    if shape[0] % prod(block):
        raise layer.error(f"a batch of {shape[0]} does not divide into blocks of {block}")
    x = layer.inner(ops.Reshape((*block, batch, *shape[1:])), [layer.input()], "blocks")
    pairs = [axis for i in range(count) for axis in (count + 1 + i, i)]
    order = (count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(rest)))
    x = layer.inner(ops.Transpose(order), [x], "joined")
    sizes = [size * by for size, by in zip(shape[1:], block, strict=False)]
    x = layer.inner(ops.Reshape((batch, *sizes, *rest)), [x], "whole")
    less = [size - sum(crops[2 * i : 2 * i + 2]) for i, size in enumerate(sizes)]
    starts = (0, *crops[::2], *(0 for _ in rest))
    layer.move(ops.Slice(starts, (batch, *less, *rest), (1,) * len(shape)), [x])


def _blocks(layer: LayerImport, margins: str, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The block along each axis after the first, and the padding or cropping before and after it."""
    block, around = layer.integers(1, "block"), layer.integers(2, margins)
    fits = 0 < len(block) < len(shape) and len(around) == 2 * len(block)
    if not fits or min(block) < 1 or min(around) < 0:
        raise layer.error(f"blocks of {block}, {margins} {around} in {shape}")
    return block, around


def _end_of_dilation(layer: LayerImport, middle: int) -> int | None:
    """The BATCH_TO_SPACE_ND after a convolution that makes the pair equal to a dilated one.

    Not with strides, nor with dynamic quantisation of activations: then each image has its own scale.
    """
    state, file = layer.state, layer.state.file
    operator = file.operators[middle]
    schema = {"CONV_2D": tflite.Conv2DOptions, "DEPTHWISE_CONV_2D": tflite.DepthwiseConv2DOptions}.get(operator.kind)
    if schema is None or operator.inputs[0] != layer.outputs[0] or len(operator.outputs) != 1:
        return None
    options, last = operator.options(schema), state.sole_reader(operator.outputs[0])
    factors = options.StrideH(), options.StrideW(), options.DilationHFactor(), options.DilationWFactor()
    is_stored = layer.tensor().quant is None and file.tensors[operator.inputs[1]].known_dtype is DType.INT8
    if last is None or file.operators[last].kind != "BATCH_TO_SPACE_ND" or factors != (1, 1, 1, 1) or is_stored:
        return None
    same = LayerImport(state, last).integers(1, "block") == layer.integers(1, "block")
    return last if same else None


def transpose_conv(layer: LayerImport) -> None:
    """Inputs of the file: output shape, weights, x, bias. The output shape determines the cropping."""
    options = layer.options(tflite.TransposeConvOptions)
    size = layer.integers(0, "output shape")
    weights = _weights(layer, "conv", axis=0, x=2, bias=3)
    w, x = layer.state.builder.shape(weights.names[0]), _image(layer, 2)
    if len(size) != 4:
        raise layer.error(f"the output shape {size} is no image")
    stride = _positive(layer, (options.StrideH(), options.StrideW()), "stride")
    image = _positive(layer, (size[1], size[2]), "output size")
    first = _pads(options.Padding(), image, (w[1], w[2]), stride, (1, 1))
    rest = [(x[1 + i] - 1) * stride[i] + w[1 + i] - first[i] - image[i] for i in range(2)]
    pads = (first[0], first[1], max(0, rest[0]), max(0, rest[1]))
    extra = (max(0, -rest[0]), max(0, -rest[1]))
    op = ops.ConvTranspose2d(stride, (1, 1), pads, extra, 1, layer.fused(options.FusedActivationFunction()))
    _emit_product(layer, op, layer.input(2), weights, _Stored(asymmetric=True, in_turn=True))


def fully_connected(layer: LayerImport) -> None:
    options = layer.options(tflite.FullyConnectedOptions)
    if options.WeightsFormat() != 0:
        raise Unsupported("the weights are shuffled")
    weights = _weights(layer, "dense", axis=0, rank=2)
    depth = layer.state.builder.shape(weights.names[0])[1]
    x, shape = layer.input(), layer.shape()
    if not options.KeepNumDims() and (len(shape) != 2 or shape[1] != depth):
        if prod(shape) % depth:
            raise layer.error(f"{shape} cannot be multiplied with {depth} weights a row")
        x = layer.inner(ops.Reshape((prod(shape) // depth, depth)), [x], "flat")
    op = ops.Dense(layer.fused(options.FusedActivationFunction()))
    _emit_product(layer, op, x, weights, _Stored(asymmetric=bool(options.AsymmetricQuantizeInputs())))


def batch_matmul(layer: LayerImport) -> None:
    options = layer.options(tflite.BatchMatMulOptions)
    layer.same_type(0, 1)
    layer.emit(ops.MatMul(bool(options.AdjX()), bool(options.AdjY())), [layer.input(0), layer.input(1)])


def pool(layer: LayerImport, kind: type[ops.AvgPool2d | ops.MaxPool2d]) -> None:
    options = layer.options(tflite.Pool2DOptions)
    layer.same_type(0)
    kernel = _positive(layer, (options.FilterHeight(), options.FilterWidth()), "window")
    stride = _positive(layer, (options.StrideH(), options.StrideW()), "stride")
    _, height, width, _ = _image(layer)
    pads = _pads(options.Padding(), (height, width), kernel, stride, (1, 1))
    activation = layer.fused(options.FusedActivationFunction())
    layer.emit(kind(kernel, stride, (1, 1), pads, activation), [layer.input()])


def _image(layer: LayerImport, position: int = 0) -> tuple[int, ...]:
    shape = layer.shape(position)
    if len(shape) != 4:
        raise layer.error(f"wants an image (NHWC), but reads the shape {shape}")
    return shape


def _positive(layer: LayerImport, pair: ops.Pair, what: str) -> ops.Pair:
    if min(pair) < 1:
        raise layer.error(f"the {what} is {pair}")
    return pair


def _pads(padding: int, image: ops.Pair, kernel: ops.Pair, stride: ops.Pair, dilation: ops.Pair) -> ops.Pads:
    """TensorFlow's SAME: ceil(size / stride) windows; missing rows are split evenly, the odd one at the end."""
    if padding != tflite.Padding.SAME:
        return (0, 0, 0, 0)
    axes = zip(image, kernel, stride, dilation, strict=True)
    return split_pads([max(same_padding(*axis), 0) for axis in axes])


def _weights(layer: LayerImport, how: str, axis: int, x: int = 0, bias: int = 2, rank: int = 4) -> _Weights:
    """Weights (output channels first; along `axis` in the file) and the bias, after a check of their types.

    int8 weights of a float layer stay stored, without their scales; uint8 ones are dequantised.
    """
    w, stored = layer.value(1, "weights"), layer.tensor(1)
    if w.ndim != rank or 0 in w.shape:
        raise layer.error(f"weights of shape {w.shape}, expected rank {rank}")
    source, result, quant = layer.tensor(x), layer.result(), stored.quant
    scales: tuple[float, ...] = ()
    if source.dtype is DType.FLOAT32 and quant is not None and stored.dtype is DType.INT8:
        if any(quant.zero):
            raise Unsupported("weights with a zero point meet real numbers")
        if quant.is_per_channel and quant.axis != axis:
            raise Unsupported(f"the weights are quantised along axis {quant.axis}")
        scales, quant = quant.scale, None
    elif source.dtype is DType.FLOAT32 and quant is not None and stored.dtype is DType.UINT8:
        w, quant = dequantized(w, quant), None
    allowed = _TYPES.get((source.dtype, DType.FLOAT32 if scales else DType(w.dtype.name)))
    if allowed is None or result.dtype is not source.dtype:
        raise Unsupported(f"{source.dtype.value} times {stored.dtype.value} gives {result.dtype.value}")
    if source.dtype is not DType.FLOAT32 and None in (source.quant, quant, result.quant):
        raise layer.error("integers without a scale")
    if quant is not None and quant.is_per_channel:
        if quant.axis != axis:
            raise Unsupported(f"the weights are quantised along axis {quant.axis}")
        quant = Quant(quant.scale, quant.zero, 0)
    if axis == 3:
        if w.shape[0] != 1:
            raise layer.error(f"depthwise weights have the shape {w.shape}")
        w = w.transpose(3, 1, 2, 0)
    constants = [layer.state.derived(layer.index(1), how, w, quant)]
    if layer.has(bias):
        value = layer.value(bias, "bias")
        if DType(value.dtype.name) not in allowed:
            raise Unsupported(f"the bias is {value.dtype}")
        constants.append(layer.state.derived(layer.index(bias), "bias", value.reshape(-1), layer.tensor(bias).quant))
    return _Weights(constants, scales)
