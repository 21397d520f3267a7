"""Folds padding layers into the windows that read them, so that padded images are never stored."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TypeVar

import numpy as np

from ..network import Layer, Network
from ..operators import AvgPool2d, Clamp, Conv2d, MaxPool2d, Op, Pad, PadMode, Pads
from .draft import Draft

W = TypeVar("W", Conv2d, AvgPool2d, MaxPool2d)


def fold_padding(network: Network) -> Network:
    """Folds Pad by zeros into the pads of each window layer that reads it, if no number changes.

    Convolutions pad with zeros (stored: the zero point). MaxPool2d ignores padding, so there the pixels must be known
    to be at least the padding value.
    """
    draft = Draft(network)
    for layer in draft.walk():
        if not isinstance(layer.op, Pad) or not _is_spatial(draft, layer):
            continue
        (_, top, left, _), (_, bottom, right, _) = layer.op.before, layer.op.after
        for reader in draft.readers(layer.output):
            if layer.output in reader.inputs[1:]:
                continue
            op = _padded(draft, layer, reader, (top, left, bottom, right))
            if op is not None:
                draft.layers[reader.output] = replace(reader, op=op)
                draft.rewire(draft.layers[reader.output], layer.output, layer.inputs[0])
    return draft.finish()


def _is_spatial(draft: Draft, layer: Layer) -> bool:
    op, x, y = layer.op, draft.tensors[layer.inputs[0]], draft.tensors[layer.output]
    assert isinstance(op, Pad)
    rows_only = len(x.shape) == 4 and not any((op.before[0], op.before[3], op.after[0], op.after[3]))
    return rows_only and op.mode is PadMode.CONSTANT and x.quant == y.quant and x.dtype is y.dtype


def _padded(draft: Draft, pad: Layer, reader: Layer, pads: Pads) -> Op | None:
    """The reader with the pads folded in; None if its numbers would change."""
    assert isinstance(pad.op, Pad)
    op, value = reader.op, pad.op.value
    match op:
        case Conv2d() if value == 0:
            return _with_pads(op, pads)
        case AvgPool2d() if value == 0 and op.uncounted == (0, 0):
            # Padded zeros counted as pixels. Stored averages stay, since their rounding depends on the file format.
            counted = op.count_pads or not any(op.pads)
            if counted and draft.is_float(pad.output):
                return _with_pads(replace(op, count_pads=True), pads)
        case MaxPool2d() if op.dilation == (1, 1) and _is_never_maximum(draft, pad.inputs[0], value):
            merged = _with_pads(op, pads)
            kernel = (*op.kernel, *op.kernel)
            if merged is not None and all(p < k for p, k in zip(merged.pads, kernel, strict=True)):
                return merged  # every window still contains a pixel
    return None


def _with_pads(op: W, pads: Pads) -> W | None:
    """Pads on top of pads; None if the image was cropped first, since the window's own pads come after that."""
    if any(outer < 0 < own for outer, own in zip(pads, op.pads, strict=True)):
        return None
    top, left, bottom, right = (outer + own for outer, own in zip(pads, op.pads, strict=True))
    return replace(op, pads=(top, left, bottom, right))


def _is_never_maximum(draft: Draft, image: str, value: float) -> bool:
    """Whether no pixel is less than the padding value."""
    tensor, maker = draft.tensors[image], draft.producer(image)
    if value == -inf:
        return True
    if tensor.quant is not None and not tensor.quant.is_per_channel and not tensor.dtype.is_float:
        least = (int(np.iinfo(tensor.dtype.numpy).min) - tensor.quant.zero[0]) * tensor.quant.scale[0]
        if value <= least:
            return True
    activation = maker and (maker.op if isinstance(maker.op, Clamp) else getattr(maker.op, "activation", None))
    return isinstance(activation, Clamp) and value <= activation.low
