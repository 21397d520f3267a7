"""Networks that are slices of a larger one: layers whose weights are the first channels of a larger layer's weights.

Nothing is declared: weights are compared. So scenarios may be narrowed in some layers only, or in depth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..network import Array, Layer, Network
from ..network.operators import Conv2d, Dense
from .weights import WeightDigests

SPLIT = 4  # input channels that kernels read at a time


@dataclass(frozen=True)
class WholeLayer:
    """A layer that others are slices of."""

    network: Network
    layer: Layer

    @property
    def weights(self) -> Array:
        return self.network.constants[self.layer.inputs[1]]


@dataclass(frozen=True)
class Nesting:
    """For weights that are a slice of larger ones, the layer that has the larger ones."""

    wholes: Mapping[str, WholeLayer]  # by digest of the slice
    split: frozenset[str]  # by digest: slices that windows must be split for, and their wholes (see `split_channels`)

    def whole(self, weights: Array) -> WholeLayer | None:
        return self.wholes.get(WeightDigests().of(weights))

    def is_split(self, weights: Array) -> bool:
        """Whether four channels of all taps of a window come before the next four."""
        return WeightDigests().of(weights) in self.split


def nesting_of(networks: Sequence[Network]) -> Nesting | None:
    """The layers of these networks that are slices of others, each with the largest of them; None if there are none."""
    digests = WeightDigests()
    layers = sorted(_products(networks), key=lambda one: -one.weights.size)
    larger: dict[tuple[object, ...], list[WholeLayer]] = {}
    wholes: dict[str, WholeLayer] = {}
    families: dict[str, dict[str, Array]] = {}  # a whole and its slices, by digests
    for one in layers:
        weights = one.weights
        others = larger.setdefault((type(one.layer.op), weights.dtype, weights.shape[1:-1]), [])
        whole = next((other for other in others if is_slice(weights, other.weights)), None)
        if whole is None:
            others.append(one)
        elif whole.weights.shape != weights.shape:
            of_all = digests.of(whole.weights)
            families.setdefault(of_all, {of_all: whole.weights})[digests.of(weights)] = weights
            wholes[digests.of(weights)] = whole
    split = frozenset(one for family in families.values() if _needs_split(family.values()) for one in family)
    return Nesting(wholes, split) if wholes else None


def _needs_split(family: Collection[Array]) -> bool:
    """Whether these windows of several taps have different numbers of input channels, all of them whole fours."""
    depths = {weights.shape[-1] for weights in family}
    has_taps = any(prod(weights.shape[1:-1]) > 1 for weights in family)
    return has_taps and len(depths) > 1 and not any(depth % SPLIT for depth in depths)


def _products(networks: Sequence[Network]) -> Iterator[WholeLayer]:
    """The layers that multiply by constants."""
    for network in networks:
        for layer in network.layers:
            if isinstance(layer.op, Conv2d | Dense) and layer.inputs[1] in network.constants:
                yield WholeLayer(network, layer)


def split_channels(weights: Array) -> Array:
    """Weights (O, kh, kw, I) as (O, I / 4, kh, kw, 4): those of a slice's input channels come first."""
    outputs, rows, columns, _ = weights.shape
    return np.moveaxis(weights.reshape(outputs, rows, columns, -1, SPLIT), 3, 1)


def is_slice(weights: Array, larger: Array) -> bool:
    """Whether these weights are those of the first outputs for the first inputs."""
    outputs, inputs = weights.shape[0], weights.shape[-1]
    if outputs > larger.shape[0] or inputs > larger.shape[-1]:
        return False
    part = larger[:outputs, ..., :inputs]
    return np.array_equal(weights[:1], part[:1]) and np.array_equal(weights, part)  # most differ at once
