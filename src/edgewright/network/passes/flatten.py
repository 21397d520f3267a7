"""Flattening an image before a dense layer: reorders the weights instead of the image."""

from __future__ import annotations

from dataclasses import replace

from .. import operators as ops
from ..network import Layer, Network, Origin
from ..region import Perm, inverse, pick
from .draft import Draft


def fold_flatten(network: Network) -> Network:
    """Replaces Transpose, Reshape to (N, K), Dense by Reshape, Dense with weights that are a reordered view.

    Dense takes weights of several axes, so nothing is copied: (O, C, H, W) is viewed as (O, H, W, C).
    """
    draft = Draft(network)
    origins = dict(network.origins)
    for layer in draft.walk():
        turn = draft.producer(layer.inputs[0])
        if not isinstance(layer.op, ops.Reshape) or turn is None or not isinstance(turn.op, ops.Transpose):
            continue
        perm, image = turn.op.perm, draft.tensors[turn.output].shape
        if perm[0] != 0 or layer.op.shape != (image[0], draft.tensors[turn.output].size // image[0]):
            continue
        between, dense = _dense_readers(draft, layer.output)
        if not dense or not all(_can_reorder(draft, reader) for reader in dense):
            continue
        draft.rewire(layer, turn.output, turn.inputs[0])
        for reader in dense:
            _reorder_weights(draft, reader, perm, image[1:])
        for name in origins.keys() & between:
            origins[name] = Origin(origins[name].tensor, inverse(perm), image)
    done = draft.finish()
    return replace(done, origins={name: origins[name] for name in done.origins})


def _dense_readers(draft: Draft, tensor: str) -> tuple[set[str], list[Layer]]:
    """The dense layers that read the tensor, after the tensors that lead to them; none if there are other readers."""
    nothing: tuple[set[str], list[Layer]] = (set(), [])
    between: set[str] = set()
    dense: list[Layer] = []
    stack = [tensor]
    while stack:
        name = stack.pop()
        between.add(name)
        if name in draft.outputs or not draft.readers(name):
            return nothing
        for reader in draft.readers(name):
            if isinstance(reader.op, ops.Dense) and name not in reader.inputs[1:]:
                dense.append(reader)
            elif isinstance(reader.op, ops.Elementwise) and reader.op.operands == 1:
                quant = draft.tensors[reader.output].quant
                if quant is not None and quant.is_per_channel:
                    return nothing
                stack.append(reader.output)
            else:
                return nothing
    return between, dense


def _weights(draft: Draft, dense: Layer) -> str | None:
    """The constant of a dense layer's weights, stored or real."""
    name = dense.inputs[1]
    unpack = draft.producer(name)
    if unpack is not None and isinstance(unpack.op, ops.Dequantize):
        name = unpack.inputs[0]
    return name if name in draft.constants else None


def _can_reorder(draft: Draft, dense: Layer) -> bool:
    name = _weights(draft, dense)
    if name is None:
        return False
    tensor = draft.tensors[name]
    quant = tensor.quant
    return len(tensor.shape) == 2 and (quant is None or not quant.is_per_channel or quant.axis == 0)


def _reorder_weights(draft: Draft, dense: Layer, perm: Perm, image: tuple[int, ...]) -> None:
    name = _weights(draft, dense)
    assert name is not None
    tensor, value = draft.tensors[name], draft.constants[name]
    # The file's image is ours transposed by perm; the weights use the inverse, after their own first axis.
    back = inverse(perm)
    view = value.reshape(value.shape[0], *image).transpose(back)
    fresh = draft.add_constant(f"{name}_{'x'.join(map(str, pick((value.shape[0], *image), back)))}", view, tensor.quant)
    if dense.inputs[1] == name:
        draft.rewire(dense, name, fresh)
        return
    real = replace(draft.tensors[dense.inputs[1]], shape=tuple(view.shape))
    draft.rewire(dense, dense.inputs[1], draft.add_layer(ops.Dequantize(), [fresh], real, f"{fresh}_real"))
