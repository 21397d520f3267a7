"""Bytes that no plan can do without."""

from __future__ import annotations

from ..network import Layer, Network
from ..network.operators import Concat, Reshape, Slice
from ..program import rows_needed
from ..program.legal import can_stream, can_sum
from .layout.problem import align_up
from .problems import Techniques


def phased_bound(network: Network, techniques: Techniques, alignment: int) -> int:
    """Bytes that no plan by rows can do without: what lies outside whole, and the least any one layer needs to run."""
    outside = techniques.outside
    touched = (layer for layer in network.layers if not outside & {*layer.inputs, layer.output})
    layers = (_least(network, layer) for layer in touched)
    return max(least_bound(network, techniques, alignment), *layers, 0)


def least_bound(network: Network, techniques: Techniques, alignment: int) -> int:
    """Bytes that no plan at all can do without: all inputs are there at the beginning, all outputs at the end."""
    elsewhere = {*dict(techniques.pulled), *network.constants, *techniques.outside}
    given, wanted = (
        sum(align_up(network.tensors[name].bytes, alignment) for name in names if name not in elsewhere)
        for names in (network.inputs, network.outputs)
    )
    return max(given, wanted)


def _least(network: Network, layer: Layer) -> int:
    """Bytes that lie in memory at some moment while the layer runs, whole or row by row."""
    out = network.tensors[layer.output]
    reads = [network.tensors[name] for name in network.activations(layer)]
    whole = max((tensor.bytes for tensor in (out, *reads)), default=0)
    if isinstance(layer.op, Concat | Slice | Reshape) or can_sum(network, layer):
        return 0  # free, perhaps, or only sums
    if not can_stream(network, layer, ()):
        return whole
    rows = 0
    for tensor in reads:
        needed = rows_needed(network, layer, tensor.name) or ()
        most = max((b - a for a, b in needed), default=0)
        if most > 1:  # a single row may be handed on in pieces
            rows += most * (tensor.bytes // tensor.shape[1])
    return min(whole, rows)
