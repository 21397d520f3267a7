"""Folds per-channel scale and shift (batch normalisation, bias) and activations into the layer before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import operators as ops
from ..network import Layer, Network
from ..tensor import Array
from .draft import Draft, is_same_storage

LINEAR = (ops.Conv2d, ops.ConvTranspose2d, ops.Dense)

MOST_CHANNELS = 1 << 20


@dataclass(frozen=True, slots=True)
class Affine:
    """x * scale + shift for each channel; None stands for 1 and 0."""

    x: str
    scale: Array | None
    shift: Array | None


def fold_affine(network: Network) -> Network:
    """Folds BatchNorm, and Mul or Add by per-channel constants, into the weights and bias of the layer before.

    Only for real numbers, and only if that layer has no other reader. A chain without such a layer before it becomes
    one BatchNorm.
    """
    draft = Draft(network)
    for layer in draft.walk():
        affine = _affine(draft, layer)
        before = draft.producer(affine.x) if affine else None
        if affine is None or before is None or not draft.is_private(affine.x):
            continue
        if getattr(before.op, "activation", None) is not None:
            continue
        if isinstance(before.op, LINEAR):
            _into_weights(draft, before, layer, affine)
        elif (first := _affine(draft, before)) is not None:
            _into_norm(draft, first, before, layer, affine)
    return draft.finish()


def _affine(draft: Draft, layer: Layer) -> Affine | None:
    """The layer as scale and shift of its only computed input, if it has that form."""
    if not draft.is_float(layer.output) or draft.tensors[layer.output].shape == ():
        return None
    if isinstance(layer.op, ops.BatchNorm):
        x, scale, shift = layer.inputs
        if scale in draft.constants and shift in draft.constants and x not in draft.constants:
            return Affine(x, draft.constants[scale], draft.constants[shift])
        return None
    if not isinstance(layer.op, ops.Binary):
        return None
    a, b = layer.inputs
    left, right = _per_channel(draft, a, layer.output), _per_channel(draft, b, layer.output)
    if (left is None) == (right is None):
        return None
    x, number = (a, right) if left is None else (b, left)
    assert number is not None
    match layer.op.kind:
        case ops.BinaryKind.ADD:
            return Affine(x, None, number)
        case ops.BinaryKind.MUL:
            return Affine(x, number, None)
        case ops.BinaryKind.SUB:
            return Affine(x, None, -number) if left is None else Affine(x, np.full_like(number, -1), number)
        case ops.BinaryKind.DIV if left is None and np.all(number != 0):
            return Affine(x, 1 / number, None)
    return None


def _per_channel(draft: Draft, name: str, output: str) -> Array | None:
    """The constant as one value per channel; None if it is computed or varies over positions.

    An implausible number of channels means a broken file.
    """
    shape = draft.tensors[output].shape
    if shape and shape[-1] > MOST_CHANNELS:
        return None
    if name not in draft.constants or draft.tensors[name].dtype != draft.tensors[output].dtype:
        return None
    value = draft.constants[name]
    along_last = value.size == 1 or value.shape[-1] == value.size == shape[-1]
    if value.ndim > len(shape) or not along_last:
        return None
    return np.broadcast_to(value.reshape(-1), (shape[-1],))


def _into_weights(draft: Draft, before: Layer, layer: Layer, affine: Affine) -> None:
    weights = before.inputs[1]
    if weights not in draft.constants or any(name not in draft.constants for name in before.inputs[2:]):
        return
    if not draft.is_float(weights) or draft.tensors[before.output].shape != draft.tensors[layer.output].shape:
        return
    value = draft.constants[weights]
    bias = draft.constants[before.inputs[2]] if len(before.inputs) > 2 else None
    if affine.scale is not None:
        value = value * affine.scale.reshape(-1, *[1] * (value.ndim - 1))
        bias = None if bias is None else bias * affine.scale
        weights = draft.add_constant(f"{weights}_scaled", value.astype(np.float32, copy=False))
    if affine.shift is not None:
        bias = affine.shift if bias is None else bias + affine.shift
    inputs = [before.inputs[0], weights]
    if bias is not None:
        inputs.append(draft.add_constant(f"{before.name}_bias", np.asarray(bias, np.float32)))
    assert isinstance(before.op, LINEAR)
    op = replace(before.op, activation=getattr(layer.op, "activation", None))
    draft.absorb(before, layer, op, inputs)


def _into_norm(draft: Draft, first: Affine, before: Layer, layer: Layer, then: Affine) -> None:
    channels = draft.tensors[layer.output].shape[-1]
    one, zero = np.ones(channels, np.float32), np.zeros(channels, np.float32)
    if draft.tensors[first.x].shape != draft.tensors[layer.output].shape:
        return
    scales = [one if a.scale is None else a.scale for a in (first, then)]
    shifts = [zero if a.shift is None else a.shift for a in (first, then)]
    scale = draft.add_constant(f"{before.name}_scale", np.asarray(scales[0] * scales[1], np.float32))
    shift = np.asarray(shifts[0] * scales[1] + shifts[1], np.float32)
    inputs = [first.x, scale, draft.add_constant(f"{before.name}_shift", shift)]
    activation = getattr(layer.op, "activation", None)
    draft.absorb(before, layer, ops.BatchNorm(activation), inputs)


def fuse_activations(network: Network) -> Network:
    """Merges an activation into the layer before, if that layer has no other reader and no activation yet.

    Stored values allow only clamps, and only with the same scale: clamping and rounding commute, since rounding is
    monotonic.
    """
    draft = Draft(network)
    for layer in draft.walk():
        before = draft.producer(layer.inputs[0])
        if before is None or not isinstance(layer.op, ops.ACTIVATIONS) or not draft.is_private(before.output):
            continue
        host: Any = before.op
        if not hasattr(host, "activation") or host.activation is not None:
            continue
        x, y = draft.tensors[before.output], draft.tensors[layer.output]
        is_real = x.dtype.is_float and y.dtype.is_float
        if is_real or (isinstance(layer.op, ops.Clamp) and is_same_storage(x, y)):
            draft.absorb(before, layer, replace(host, activation=layer.op))
    return draft.finish()
