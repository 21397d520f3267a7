"""Activations fused into the layer before them: applied on the way out, they need no tensor of their own."""

from __future__ import annotations

from dataclasses import replace

from ..network import Network
from ..operators import (
    ACTIVATIONS,
    AvgPool2d,
    BatchNorm,
    Binary,
    Clamp,
    Conv2d,
    ConvTranspose2d,
    Dense,
    MaxPool2d,
)
from ..tensor import Tensor
from .draft import Draft

HOSTS = (AvgPool2d, BatchNorm, Binary, Conv2d, ConvTranspose2d, Dense, MaxPool2d)


def fuse_activations(network: Network) -> Network:
    """A layer then an activation becomes one layer, when nothing else reads the first and it has none yet.

    Stored values are clamped only, and only to the same scale: cutting off rounded values or rounding those cut
    off is then the same, since rounding keeps order.
    """
    draft = Draft(network)
    for layer in draft.walk():
        before = draft.producer(layer.inputs[0])
        if before is None or not isinstance(layer.op, ACTIVATIONS) or not isinstance(before.op, HOSTS):
            continue
        if before.op.activation is not None or not draft.is_private(before.output):
            continue
        x, y = draft.tensors[before.output], draft.tensors[layer.output]
        if _is_real(x, y) or (isinstance(layer.op, Clamp) and _is_same_storage(x, y)):
            draft.absorb(before, layer, replace(before.op, activation=layer.op))
    return draft.finish()


def _is_real(x: Tensor, y: Tensor) -> bool:
    return x.dtype.is_float and y.dtype.is_float


def _is_same_storage(x: Tensor, y: Tensor) -> bool:
    return x.quant is not None and x.quant == y.quant and x.dtype is y.dtype
