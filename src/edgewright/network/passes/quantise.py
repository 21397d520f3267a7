"""Converts ONNX's QDQ form to quantised layers: float layers between Dequantize and Quantize compute on stored values.

This follows onnxruntime's fusion, so that the numbers equal those of its integer kernels; a layer that it keeps in
float gives the same numbers either way, since the kernel then computes in float itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import operators as ops
from ..network import Arithmetic, Layer, Network
from ..tensor import Array, Quant, Tensor
from .affine import LINEAR
from .draft import Draft

# Layers that compute and may do so on stored values.
COMPUTING = (
    *LINEAR, *ops.ACTIVATIONS, ops.AvgPool2d, ops.Binary, ops.Concat, ops.L2Normalize,
    ops.LogSoftmax, ops.MatMul, ops.PRelu, ops.Reduce, ops.Resize, ops.Softmax,
)  # fmt: skip
CLAMPING = (*LINEAR, ops.AvgPool2d, ops.Binary)  # those that can absorb a Clamp


def quantise_layers(network: Network) -> Network:
    """The network with int8 tensors between its layers where the file says Dequantize, layer, Quantize.

    TFLite files are explicit about this and mean float where they say float, so they are left alone.
    """
    if network.arithmetic is Arithmetic.TFLITE:
        return network
    draft = Draft(network)
    for layer in draft.walk():
        if _moves_exactly(layer.op):
            _move_below(draft, layer)
        elif layer.op.order_only and (stored := _stored(draft, layer.inputs[0])) is not None:
            draft.rewire(layer, layer.inputs[0], stored.name)
        elif isinstance(layer.op, ops.Quantize):
            _fuse(draft, layer)
    return draft.finish()


def _stored(draft: Draft, tensor: str) -> Tensor | None:
    """The stored tensor that a Dequantize converted to this one."""
    unpack = draft.producer(tensor)
    if unpack is None or not isinstance(unpack.op, ops.Dequantize):
        return None
    stored = draft.tensors[unpack.inputs[0]]
    return stored if stored.quant is not None else None


def _move_below(draft: Draft, layer: Layer) -> None:
    """Swaps Dequantize with a following move, so that stored elements are moved."""
    count = 1 if isinstance(layer.op, ops.Gather | ops.GatherElements) else len(layer.inputs)
    tensors = [_stored(draft, name) for name in layer.inputs[:count]]
    stored = [tensor for tensor in tensors if tensor is not None]
    if len(stored) != count or stored[0].quant is None or stored[0].quant.is_per_channel:
        return
    first = stored[0]
    if any(t.quant != first.quant or t.dtype is not first.dtype for t in stored):
        return
    inputs = (*(tensor.name for tensor in stored), *layer.inputs[count:])
    like = replace(draft.tensors[layer.output], dtype=first.dtype, quant=first.quant)
    draft.drop(layer.output)
    output = draft.add_tensor(like, f"{layer.output}_stored")
    draft.put(replace(layer, inputs=inputs, output=output))
    draft.put(Layer(draft.layer_name(f"{layer.name}_real"), ops.Dequantize(), (output,), layer.output))


def _moves_exactly(op: ops.Op) -> bool:
    """Whether the layer commutes with Dequantize."""
    match op:
        case ops.Pad(mode=mode, value=value):
            return value == 0 or mode is not ops.PadMode.CONSTANT
        case ops.Resize(mode=mode):
            return mode is ops.ResizeMode.NEAREST
        case ops.MaxPool2d(activation=activation):
            return activation is None
    return op.moves


def _fuse(draft: Draft, pack: Layer) -> None:
    """Lets the layer before a Quantize, with or without a Clamp between, write the stored values itself."""
    result = draft.tensors[pack.output]
    real = pack.inputs[0]
    layer = draft.producer(real)
    if layer is None or not draft.is_private(real) or result.quant is None or result.quant.is_per_channel:
        return
    chain = [layer]
    if isinstance(layer.op, ops.Clamp) and draft.is_private(layer.inputs[0]):
        before = draft.producer(layer.inputs[0])
        if before is not None and isinstance(before.op, CLAMPING) and before.op.activation is None:
            host = replace(before, op=replace(before.op, activation=layer.op))
            if (inputs := _stored_inputs(draft, host)) is not None:
                chain, layer = [layer, before], host
    if len(chain) == 1:
        inputs = _stored_inputs(draft, layer)
    if inputs is None:
        return
    for gone in (pack, *chain):
        draft.drop(gone.output)
    draft.put(Layer(layer.name, layer.op, inputs, pack.output))


def _stored_inputs(draft: Draft, layer: Layer) -> tuple[str, ...] | None:
    """The layer's operands as stored; None if one of them is real, or the layer cannot compute on them."""
    if not isinstance(layer.op, COMPUTING):
        return None
    if not isinstance(getattr(layer.op, "activation", None), ops.Clamp | None):
        return None
    count = 2 if isinstance(layer.op, LINEAR) else len(layer.inputs)
    tensors = [_stored(draft, name) for name in layer.inputs[:count]]
    stored = [tensor for tensor in tensors if tensor is not None and tensor.quant is not None]
    if len(stored) != count:
        return None
    names = tuple(tensor.name for tensor in stored)
    if not isinstance(layer.op, LINEAR):
        per_tensor = all(tensor.quant and not tensor.quant.is_per_channel for tensor in stored)
        return names if per_tensor else None
    x, w = stored
    assert x.quant is not None
    assert w.quant is not None
    if x.quant.is_per_channel or (w.quant.is_per_channel and w.quant.axis != 0) or w.name not in draft.constants:
        return None
    if len(layer.inputs) == 2:
        return names
    bias = _stored_bias(draft, layer.inputs[2], x.quant, w.quant)
    return None if bias is None else (*names, bias)


def _stored_bias(draft: Draft, name: str, x: Quant, w: Quant) -> str | None:
    """The bias in steps of the products, as int32 accumulators need it; None if it is computed.

    If steps are too small for float32, the layer stays in real numbers.
    """
    scale = np.float32(x.scale[0]) * np.array(w.scale, np.float32)
    if not scale.all():
        return None
    quant = Quant(tuple(map(float, scale)), (0,) * len(scale), 0 if len(scale) > 1 else None)
    stored = _stored(draft, name)
    if stored is not None:
        if stored.name not in draft.constants or stored.quant is None:
            return None
        value, given = draft.constants[stored.name], stored.quant
        if stored.dtype.value == "int32" and not any(given.zero):
            own = np.array(given.scale, np.float32)
            if own.shape in ((1,), scale.shape) and np.allclose(own, scale, rtol=1e-5, atol=0):
                return draft.add_constant(f"{stored.name}_bias", value, quant)
        real: Array = (value.astype(np.float64) - np.array(given.zero)) * np.array(given.scale)
    elif name in draft.constants:
        real = draft.constants[name].astype(np.float64)
    else:
        return None
    steps = np.rint(real / scale.astype(np.float64))
    info = np.iinfo(np.int32)
    return draft.add_constant(f"{name}_stored", np.clip(steps, info.min, info.max).astype(np.int32), quant)
