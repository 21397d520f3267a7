"""Which channels of a network belong together: those that layers add or multiply are removed together or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ..network import Layer, Network, Tensor
from ..network import operators as ops

# Operators that keep the channels of their inputs.
PASSING = (*ops.ACTIVATIONS, ops.MaxPool2d, ops.AvgPool2d, ops.Resize, ops.Binary, ops.BatchNorm, ops.PRelu)


@dataclass(frozen=True)
class ChannelGroups:
    """The group of each tensor: its last axis holds the channels of that group, perhaps several times."""

    roots: Mapping[str, str]  # of each tensor: the tensor that names its group
    channels: Mapping[str, int]  # of each group
    fixed: frozenset[str]  # groups that must stay as they are

    def of(self, tensor: str) -> str:
        return self.roots[tensor]


def channel_groups(network: Network) -> ChannelGroups:
    """The groups of a network."""
    return _GroupDraft(network).result()


def has_channelwise_weights(layer: Layer, network: Network) -> bool:
    """Whether the layer has one filter for each channel of its input."""
    op = layer.op
    if not isinstance(op, ops.Conv2d):
        return False
    channels = network.tensors[layer.inputs[0]].shape[-1]
    return op.groups > 1 and op.groups == channels == network.tensors[layer.output].shape[-1]


class _GroupDraft:
    """Union-find over the tensors that are not constants."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.parent = {name: name for name in network.tensors if name not in network.constants}
        self.fixed: set[str] = {*network.inputs, *network.outputs}
        for layer in network.layers:
            self._layer(layer)

    def result(self) -> ChannelGroups:
        roots = {name: self._root(name) for name in self.parent}
        channels: dict[str, int] = {}
        for name, root in roots.items():
            channels[root] = min(channels.get(root, 1 << 62), self._last(name))
        fixed = {roots[name] for name in self.fixed}
        uneven = {root for name, root in roots.items() if self._last(name) % channels[root]}
        return ChannelGroups(roots, channels, frozenset(fixed | uneven))

    def _root(self, name: str) -> str:
        while self.parent[name] != name:
            name = self.parent[name]
        return name

    def _last(self, name: str) -> int:
        shape = self.network.tensors[name].shape
        return shape[-1] if shape else 1

    def _join(self, *names: str) -> None:
        roots = sorted({self._root(name) for name in names})
        for root in roots[1:]:
            self.parent[root] = roots[0]

    def _layer(self, layer: Layer) -> None:
        network = self.network
        values = [name for name in layer.inputs if name not in network.constants]
        match layer.op:
            case ops.Conv2d(groups=1) | ops.Dense() if len(values) == 1 and self._owns(layer):
                return  # new channels
            case ops.Conv2d() if len(values) == 1 and has_channelwise_weights(layer, network) and self._owns(layer):
                self._join(*values, layer.output)
            case ops.Reduce(axes=axes) if self._is_spatial(values[0], axes):
                self._join(*values, layer.output)
            case ops.Pad() if self._last(values[0]) == self._last(layer.output):
                self._join(*values, layer.output)
            case ops.Reshape() if self._is_flattening(values[0], layer.output):
                self._join(*values, layer.output)
            case op if isinstance(op, PASSING) and self._is_passing(layer, values):
                self._join(*values, layer.output)
            case _:
                self.fixed.update((*values, layer.output))

    def _owns(self, layer: Layer) -> bool:
        """Whether the layer's weights are constants that no other layer reads."""
        weights = layer.inputs[1:]
        readers = [other for other in self.network.layers if set(weights) & set(other.inputs)]
        return all(name in self.network.constants for name in weights) and len(readers) == 1

    def _is_spatial(self, source: str, axes: tuple[int, ...]) -> bool:
        """Whether a mean leaves the axis of channels as it is."""
        rank = len(self.network.tensors[source].shape)
        return all(axis % rank != rank - 1 for axis in axes)

    def _is_flattening(self, source: str, output: str) -> bool:
        """Whether a reshape flattens pixels and keeps the channels of each together."""
        before, after = (self.network.tensors[name].shape for name in (source, output))
        return bool(before and after) and after[-1] % before[-1] == 0 and prod(before[:1]) == prod(after[:1])

    def _is_passing(self, layer: Layer, values: list[str]) -> bool:
        """Whether all operands have the same channels, or one value for all of them."""
        channels = self._last(layer.output)
        others = [self.network.tensors[name] for name in layer.inputs if name in self.network.constants]
        return all(self._last(name) == channels for name in values) and all(
            _last_of(tensor) in (1, channels) for tensor in others
        )


def _last_of(tensor: Tensor) -> int:
    return tensor.shape[-1] if tensor.shape else 1


def producers(network: Network, groups: ChannelGroups, group: str) -> Iterator[Layer]:
    """The layers whose filters make the channels of a group."""
    for layer in network.layers:
        if isinstance(layer.op, ops.Conv2d | ops.Dense) and groups.of(layer.output) == group:
            yield layer
