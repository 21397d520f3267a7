"""The units that a network is divided by: a layer with weights, and the layers without any that go with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..network import Layer, Network, Region
from ..network.operators import Reshape, Transpose
from ..network.operators.partial_sums import reduction_axes


@dataclass(frozen=True, slots=True)
class LayerUnit:
    """Consecutive layers that are always divided alike."""

    layers: tuple[str, ...]
    work: int  # multiply-accumulates; elements, of layers that have none
    can_be_summed: bool  # its first layer can add up shares of the channels that it reads


def units_of(network: Network) -> tuple[LayerUnit, ...]:
    """The units in the network's order: each begins where the last one can take no more layers in."""
    return tuple(_unit(network, layers) for layers in _groups(network))


def work_of(network: Network, layer: Layer) -> int:
    """What a layer costs a device: its multiply-accumulates, or else the elements that it writes."""
    output = network.tensors[layer.output]
    return layer.op.macs(Region.whole(output.shape), network.shapes(layer)) or output.size


def _groups(network: Network) -> Iterator[list[Layer]]:
    group: list[Layer] = []
    has_weights = False
    for layer in network.layers:
        is_heavy = _has_weights(network, layer)
        if group and has_weights and (is_heavy or not _follows(network, group[-1], layer)):
            yield group
            group, has_weights = [], False
        group.append(layer)
        has_weights |= is_heavy
    if group:
        yield group


def _has_weights(network: Network, layer: Layer) -> bool:
    """Whether it has a matrix of weights; a bias or a slope for each channel is none."""
    return any(name in network.constants and len(network.tensors[name].shape) > 1 for name in layer.inputs)


def _follows(network: Network, before: Layer, layer: Layer) -> bool:
    """Whether a layer reads the output of the one before, is the only one that does, and keeps its axes.

    What is flattened no longer has channels to divide by.
    """
    return network.sole_reader(before.output) is layer and not isinstance(layer.op, Reshape | Transpose)


def _unit(network: Network, layers: list[Layer]) -> LayerUnit:
    first = layers[0]
    shapes = network.shapes(first)
    sums = len(shapes[0]) - 1 in reduction_axes(first.op, shapes)
    return LayerUnit(tuple(each.name for each in layers), sum(work_of(network, each) for each in layers), sums)
