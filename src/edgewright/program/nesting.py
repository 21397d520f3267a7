"""Networks that are slices of a larger one: layers whose weights are the first channels of a larger layer's weights.

Nothing is declared: the values say it. So a network may be narrowed in some layers, in depth, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from ..network import Array, Layer, Network
from ..network.operators import Conv2d, Dense
from .weights import WeightDigests


@dataclass(frozen=True)
class WholeLayer:
    """A layer of which others are slices."""

    network: Network
    layer: Layer

    @property
    def weights(self) -> Array:
        return self.network.constants[self.layer.inputs[1]]


@dataclass(frozen=True)
class Nesting:
    """For weights that are a slice of larger ones, the layer that has these."""

    wholes: Mapping[str, WholeLayer]  # by digest of the slice
    blocks: Mapping[str, int]  # by digest: of the wholes as well

    def whole(self, weights: Array) -> WholeLayer | None:
        return self.wholes.get(WeightDigests().of(weights))

    def block(self, weights: Array) -> int:
        """How many input channels all slices of these weights, or of their whole, are multiples of."""
        return self.blocks.get(WeightDigests().of(weights), weights.shape[-1])


def nesting_of(networks: Sequence[Network]) -> Nesting | None:
    """The layers of these networks that are slices of others, each with the largest of those; None without any."""
    digests = WeightDigests()
    layers = sorted(_products(networks), key=lambda one: -one.weights.size)
    larger: dict[tuple[object, ...], list[WholeLayer]] = {}
    wholes: dict[str, WholeLayer] = {}
    depths: dict[str, list[int]] = {}  # of the slices of a whole, by its digest
    for one in layers:
        weights = one.weights
        others = larger.setdefault((type(one.layer.op), weights.dtype, weights.shape[1:-1]), [])
        whole = next((other for other in others if is_slice(weights, other.weights)), None)
        if whole is None:
            others.append(one)
        elif whole.weights.shape != weights.shape:
            wholes[digests.of(weights)] = whole
            depths.setdefault(digests.of(whole.weights), [whole.weights.shape[-1]]).append(weights.shape[-1])
    blocks = {whole: gcd(*counts) for whole, counts in depths.items()}
    blocks |= {part: blocks[digests.of(whole.weights)] for part, whole in wholes.items()}
    return Nesting(wholes, blocks) if wholes else None


def _products(networks: Sequence[Network]) -> Iterator[WholeLayer]:
    """The layers that multiply by constants."""
    for network in networks:
        for layer in network.layers:
            if isinstance(layer.op, Conv2d | Dense) and layer.inputs[1] in network.constants:
                yield WholeLayer(network, layer)


def blocked(weights: Array, block: int) -> Array:
    """Weights (O, kh, kw, I) as (O, blocks, kh, kw, block): those of the first input channels come first."""
    outputs, rows, columns, _ = weights.shape
    return np.moveaxis(weights.reshape(outputs, rows, columns, -1, block), 3, 1)


def is_slice(weights: Array, larger: Array) -> bool:
    """Whether these weights are those of the first outputs for the first inputs."""
    outputs, inputs = weights.shape[0], weights.shape[-1]
    if outputs > larger.shape[0] or inputs > larger.shape[-1]:
        return False
    return np.array_equal(weights, larger[:outputs, ..., :inputs])
