"""A trained network with fewer channels: the filters with the smallest weights are removed (Li et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..errors import Unsupported
from ..network import Array, Layer, Network, Tensor
from ..network import operators as ops
from .channels import ChannelGroups, channel_groups, has_channelwise_weights, producers

Indices = npt.NDArray[np.intp]
Kept = Mapping[str, Indices]  # of each group that shrinks: the channels that stay, in order
Chosen = Callable[[str], Indices | None]  # which entries of a tensor's last axis stay; None for all


def shrink(network: Network, share: float, step: int = 1, full: Network | None = None) -> Network:
    """The network with this share of the channels that each layer has in `full`, in multiples of `step`.

    `full` is the network itself, unless it was made narrower before. Inputs, outputs and channels that operators mix
    stay. An error where no layer can have fewer.
    """
    groups, counts = channel_groups(network), channel_groups(full or network).channels
    kept = {
        group: _strongest(network, groups, group, min(channels, _fewer(counts[group], share, step)))
        for group, channels in groups.channels.items()
        if group not in groups.fixed and any(producers(network, groups, group))
    }
    if not kept:
        raise Unsupported(
            f"'{network.name}' cannot be made narrower: operators mix the channels of all its layers; leave [shrink] "
            "out"
        )
    return _without(network, groups, kept)


def _fewer(channels: int, share: float, step: int) -> int:
    return min(channels, max(step, step * round(channels * share / step)))


def _strongest(network: Network, groups: ChannelGroups, group: str, count: int) -> Indices:
    """The `count` channels whose filters have the largest weights, summed over the layers that produce them."""
    strength = np.zeros(groups.channels[group])
    for layer in producers(network, groups, group):
        weights = np.abs(network.constants[layer.inputs[1]].astype(np.float64))
        sums = weights.reshape(len(weights), -1).sum(axis=1)
        strength += (sums / (sums.mean() or 1.0)).reshape(-1, len(strength)).sum(axis=0)
    order = np.argsort(-strength, kind="stable")
    return np.sort(order[:count])


def _without(network: Network, groups: ChannelGroups, kept: Kept) -> Network:
    """The network with the kept channels alone."""
    constants, tensors = dict(network.constants), dict(network.tensors)

    def indices(tensor: str) -> Indices | None:
        group = groups.of(tensor)
        if group not in kept:
            return None
        channels = groups.channels[group]
        repeats = np.arange(network.tensors[tensor].shape[-1] // channels) * channels
        return (repeats[:, None] + kept[group][None, :]).reshape(-1)

    for name in groups.roots:
        if (chosen := indices(name)) is not None:
            tensors[name] = _shaped(tensors[name], (*tensors[name].shape[:-1], len(chosen)))
    layers = []
    for layer in network.layers:
        for name, values in _weights_without(network, layer, indices).items():
            constants[name] = values
            tensors[name] = _shaped(tensors[name], values.shape)
        layers.append(_with_counts(layer, tensors, indices))
    return replace(network, layers=tuple(layers), tensors=tensors, constants=constants, origins={})


def _shaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return replace(tensor, shape=shape)


def _weights_without(network: Network, layer: Layer, indices: Chosen) -> dict[str, Array]:
    """The layer's constants, cut to the kept channels, by name."""
    constants = [name for name in layer.inputs if name in network.constants]
    output = indices(layer.output)
    found: dict[str, Array] = {}
    for name in constants:
        values = network.constants[name]
        if isinstance(layer.op, ops.Conv2d | ops.Dense):
            if output is not None:
                values = values[output]  # filters come first, in weights and bias
            source = indices(layer.inputs[0])
            if name == layer.inputs[1] and source is not None and not has_channelwise_weights(layer, network):
                values = _of_inputs(values, source)
        elif output is not None and values.ndim and values.shape[-1] > 1:
            values = values[..., output]
        if values is not network.constants[name]:
            found[name] = np.ascontiguousarray(values)
    return found


def _of_inputs(weights: Array, chosen: Indices) -> Array:
    """The weights for these inputs. A dense layer may read a flattened image."""
    if weights.shape[-1] > chosen.max():
        return weights[..., chosen]
    return weights.reshape(len(weights), -1)[:, chosen]


def _with_counts(layer: Layer, tensors: Mapping[str, Tensor], indices: Chosen) -> Layer:
    """The layer with new numbers of channels, if its operator has any."""
    if indices(layer.output) is None:
        return layer
    match layer.op:
        case ops.Conv2d(groups=groups) if groups > 1:
            return replace(layer, op=replace(layer.op, groups=tensors[layer.output].shape[-1]))
        case ops.Reshape():
            return replace(layer, op=replace(layer.op, shape=tensors[layer.output].shape))
    return layer
