"""Steps cut to a part: of their output, or of the input that they sum up share by share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..network import DType, Interval, Layer, Network
from ..network.kernels import can_share
from ..network.operators.shares import share_axes
from .steps import Step

SUM_BYTES = 4


def summed_axes(network: Network, layer: Layer) -> Collection[int]:
    """The axes of the layer's first input over which running sums can be kept: of 32 bits, and exact for integers."""
    tensors = [network.tensors[name] for name in layer.inputs]
    is_fixed = [name in network.constants for name in layer.inputs]
    if is_fixed[0] or not all(is_fixed[1:]):
        return ()
    if not can_share(layer.op, tensors, network.tensors[layer.output], network.arithmetic):
        return ()
    return share_axes(layer.op, network.shapes(layer)).keys()


def sums_bytes(network: Network, layer: Layer) -> int:
    """Bytes of a buffer for the layer's running sums; none for real numbers, which are summed up in the output."""
    y = network.tensors[layer.output]
    return 0 if y.dtype is DType.FLOAT32 else y.bytes // y.dtype.bytes * SUM_BYTES


def sums_name(layer: str) -> str:
    """The name of that buffer."""
    return f"{layer}:sums"


def restricted(network: Network, step: Step, axis: int, part: Interval) -> Step:
    """The step for a part along an axis: of the input where it sums over that axis, else of the output."""
    layer = network.by_name[step.layer]
    if step.share is not None:
        along = axis % len(step.share.bounds)
        if along in summed_axes(network, layer):
            return replace(step, share=step.share.with_axis(along, part))
    return replace(step, region=step.region.with_axis(axis % len(step.region.bounds), part))
