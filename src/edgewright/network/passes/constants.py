"""Evaluates layers that read constants only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..kernels import compute_whole
from ..network import Layer, Network
from ..operators import Dequantize, Expand, Op, Reshape, Slice, Transpose
from ..region import Region
from ..tensor import Array, Quant
from .draft import Draft

LIMIT = 1 << 24  # elements; larger results are not stored


def fold_constants(network: Network) -> Network:
    """Replaces layers that read constants only by constants; moved data stays a view of the file.

    Stored weights stay stored: Dequantize of a constant waits for `quantise_layers`, and moves of its output are
    applied to the stored values instead.
    """
    draft = Draft(network)
    for layer in draft.walk():
        if isinstance(layer.op, Dequantize):
            continue
        if all(name in draft.constants for name in layer.inputs):
            _fold(draft, layer)
        elif isinstance(layer.op, Transpose | Reshape):
            _move_stored(draft, layer)
    return draft.finish()


def fold_dequantised(network: Network) -> Network:
    """Converts stored weights that no quantised layer took to real ones, as their readers compute in float."""
    draft = Draft(network)
    for layer in draft.walk():
        if all(name in draft.constants for name in layer.inputs):
            _fold(draft, layer)
    return draft.finish()


def _fold(draft: Draft, layer: Layer) -> None:
    """The layer's output as a constant, unless it is huge; stored weights are always converted."""
    tensor = draft.tensors[layer.output]
    values = [draft.constants[name] for name in layer.inputs]
    value = moved(layer.op, values[0])
    if value is None:
        whole, tensors = Region.whole(tensor.shape), [draft.tensors[name] for name in layer.inputs]
        needs = layer.op.needs(whole, [t.shape for t in tensors])
        is_stored = isinstance(layer.op, Dequantize) and 0 not in values[0].strides
        if max(region.size for region in (whole, *needs)) > LIMIT and not is_stored:
            return
        value = compute_whole(layer.op, values, tensors, tensor, draft.network.arithmetic)
    draft.drop(layer.output)
    draft.constants[layer.output] = value


def moved(op: Op, value: Array) -> Array | None:
    """The constant after an operator that only moves data, as a view if numpy allows it; None for other operators."""
    match op:
        case Transpose(perm):
            return value.transpose(perm)
        case Reshape(shape):
            return value.reshape(shape)
        case Expand(shape):
            return np.broadcast_to(value, np.broadcast_shapes(value.shape, shape))
        case Slice(starts, sizes, steps):
            ends = [a + n * s for a, n, s in zip(starts, sizes, steps, strict=True)]
            cut = zip(starts, ends, steps, strict=True)
            return value[tuple(slice(a, b if b >= 0 else None, s) for a, b, s in cut)]
    return None


def _move_stored(draft: Draft, layer: Layer) -> None:
    """Moves Transpose or Reshape of a dequantised constant before the Dequantize, where it is free."""
    unpack = draft.producer(layer.inputs[0])
    if unpack is None or not isinstance(unpack.op, Dequantize) or unpack.inputs[0] not in draft.constants:
        return
    stored = draft.tensors[unpack.inputs[0]]
    quant = _moved_quant(stored.quant, layer.op, stored.shape)
    value = moved(layer.op, draft.constants[stored.name])
    if quant is None or value is None:
        return
    name = draft.add_constant(f"{stored.name}_moved", value, quant)
    draft.put(replace(layer, op=Dequantize(), inputs=(name,)))


def _moved_quant(quant: Quant | None, op: Op, shape: tuple[int, ...]) -> Quant | None:
    if quant is None or quant.axis is None or not quant.is_per_channel:
        return quant
    match op:
        case Transpose(perm):
            return replace(quant, axis=perm.index(quant.axis % len(shape)))
        case Reshape(to):
            axis = quant.axis % len(shape)
            before = np.prod(shape[:axis], dtype=np.int64)
            places = [i for i in range(len(to)) if np.prod(to[:i], dtype=np.int64) == before]
            return next((replace(quant, axis=i) for i in places if to[i] == shape[axis]), None)
    return None
