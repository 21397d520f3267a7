"""Drops layers that change nothing, and merges chains of layers."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from .. import operators as ops
from ..network import Layer, Network
from ..region import Shape
from .draft import Draft, is_same_storage


def drop_dead(network: Network) -> Network:
    """The network without layers that lead to no output."""
    return Draft(network).finish()


def drop_identities(network: Network) -> Network:
    """The network without layers that return their input, and without Dequantize then Quantize with the same
    parameters.

    These give every stored integer back: the error of the two roundings is below half a step for the 16 bits that a
    stored value may have.
    """
    draft = Draft(network)
    for layer in draft.walk():
        if _is_identity(draft, layer):
            draft.bypass(layer.output, layer.inputs[0])
        elif isinstance(layer.op, ops.Quantize):
            before = draft.producer(layer.inputs[0])
            if before is None or not isinstance(before.op, ops.Dequantize):
                continue
            stored = before.inputs[0]
            if is_same_storage(draft.tensors[stored], draft.tensors[layer.output]):
                draft.bypass(layer.output, stored)
    return draft.finish()


def merge_reshapes(network: Network) -> Network:
    """Merges Reshapes of Reshapes, Transposes that only move axes of size 1, and chains of Transposes."""
    draft = Draft(network)
    for layer in draft.walk():
        x, y = draft.tensors[layer.inputs[0]], draft.tensors[layer.output]
        if isinstance(layer.op, ops.Transpose) and moves_only_ones(layer.op.perm, x.shape):
            layer = replace(layer, op=ops.Reshape(y.shape))
            draft.layers[layer.output] = layer
        before = draft.producer(layer.inputs[0])
        if before is None:
            continue
        match before.op, layer.op:
            case ops.Reshape(), ops.Reshape():
                draft.rewire(layer, layer.inputs[0], before.inputs[0])
            case ops.Transpose(first), ops.Transpose(second):
                merged = replace(layer, op=ops.Transpose(tuple(first[i] for i in second)))
                draft.layers[layer.output] = merged
                draft.rewire(merged, merged.inputs[0], before.inputs[0])
    return drop_identities(draft.finish())


def moves_only_ones(perm: tuple[int, ...], shape: Shape) -> bool:
    """Whether the transposition leaves the elements in their order in memory."""
    moved = [axis for axis in perm if shape[axis] > 1]
    return moved == sorted(moved)


def _is_identity(draft: Draft, layer: Layer) -> bool:
    x, y = draft.tensors[layer.inputs[0]], draft.tensors[layer.output]
    if x.shape != y.shape or x.dtype is not y.dtype or x.quant != y.quant:
        return False
    match layer.op:
        case ops.Reshape() | ops.Expand() | ops.Cast() | ops.Tile() | ops.Quantize():
            return True
        case ops.Transpose(perm):
            return moves_only_ones(perm, x.shape)
        case ops.Slice(steps=steps):
            return all(step > 0 or size == 1 for step, size in zip(steps, x.shape, strict=True))
        case ops.Pad(before, after):
            return not any(before) and not any(after)
        case ops.Clamp(low, high):
            return low == -inf and high == inf
        case ops.Concat():
            return len(layer.inputs) == 1
    return False
