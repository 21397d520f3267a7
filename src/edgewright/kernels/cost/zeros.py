"""How many of a tensor's numbers are likely zero, by the weights of the layers before it.

Products with zero take few of the instructions of others where there is no floating point, and trained layers differ:
biases leave some channels nearly always below zero, where a ReLU cuts them off. Channels are taken to be normal and
numbers to be independent, inputs with mean 0 and variance 1; then means and variances follow from layer to layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import erf, pi, prod, sqrt
from statistics import NormalDist

import numpy as np

from ...network import Array, Layer, Network
from ...network.operators import (
    AvgPool2d,
    Binary,
    BinaryKind,
    Clamp,
    Concat,
    Conv2d,
    Dense,
    MaxPool2d,
    Pad,
    Reduce,
    ReduceKind,
    Reshape,
    Slice,
    Transpose,
)

_erf = np.vectorize(erf, otypes=[float])


@dataclass(frozen=True, slots=True)
class Moments:
    """What a tensor's numbers are like, for each channel or for all alike."""

    mean: Array
    variance: Array
    zeros: Array  # share of numbers that are zero

    def of_channels(self, count: int) -> Moments:
        """The same for so many channels, of which others are as many again; else for the average of all."""
        if count % len(self.mean) == 0:
            return Moments(*(np.resize(each, count) for each in (self.mean, self.variance, self.zeros)))
        mean, spread = self.mean.mean(), self.mean.var()
        return Moments(*(np.full(count, v) for v in (mean, self.variance.mean() + spread, self.zeros.mean())))


UNKNOWN = Moments(np.zeros(1), np.ones(1), np.zeros(1))


def shares_of_zeros(network: Network) -> Mapping[str, float]:
    """For each tensor that is computed from real numbers."""
    found: dict[str, Moments] = {}
    for layer in network.layers:
        if network.tensors[layer.output].dtype.is_float:
            moments = _computed(network, layer, [found.get(name, UNKNOWN) for name in layer.inputs])
            activation = getattr(layer.op, "activation", None)
            found[layer.output] = _clamped(moments, activation) if isinstance(activation, Clamp) else moments
    return {name: float(moments.zeros.mean()) for name, moments in found.items()}


def _computed(network: Network, layer: Layer, inputs: list[Moments]) -> Moments:
    """What a layer makes of its inputs, before its activation."""
    op, shape = layer.op, network.tensors[layer.inputs[0]].shape
    x = inputs[0].of_channels(shape[-1]) if shape else UNKNOWN
    match op:
        case Conv2d() | Dense() if layer.inputs[1] in network.constants:
            return _products(network, layer, x, op.groups if isinstance(op, Conv2d) else 1)
        case Clamp():
            return _clamped(x, op)
        case Binary(kind=BinaryKind.ADD) if not set(layer.inputs) & set(network.constants):
            a, b = (each.of_channels(network.tensors[layer.output].shape[-1]) for each in inputs)
            return Moments(a.mean + b.mean, a.variance + b.variance, a.zeros * b.zeros)
        case MaxPool2d(kernel=kernel):
            taps = _alone(prod(kernel))
            above = NormalDist().inv_cdf((taps - 0.375) / (taps + 0.25))  # what the largest of so many is like (Blom)
            mean = x.mean + max(0.0, above) * np.sqrt(x.variance)
            return Moments(mean, x.variance / sqrt(taps), x.zeros**taps)
        case AvgPool2d(kernel=kernel):
            return _averaged(x, prod(kernel))
        case Reduce(kind=ReduceKind.MEAN, axes=along):
            return _averaged(x, prod(shape[axis] for axis in along))
        case Reshape() | Slice() | Transpose() | Pad():
            return x if network.tensors[layer.output].shape[-1:] == shape[-1:] else inputs[0]
        case Concat(axis=axis):
            sizes = [network.tensors[name].shape[-1] for name in layer.inputs]
            parts = [each.of_channels(size) for each, size in zip(inputs, sizes, strict=True)]
            if axis % len(shape) == len(shape) - 1:
                return Moments(*(np.concatenate(each) for each in zip(*map(_fields, parts), strict=True)))
            return x
    return UNKNOWN


def _fields(moments: Moments) -> tuple[Array, Array, Array]:
    return moments.mean, moments.variance, moments.zeros


def _averaged(x: Moments, taps: int) -> Moments:
    return Moments(x.mean, x.variance / taps, x.zeros ** _alone(taps))


def _alone(taps: int) -> float:
    """As how many independent numbers those of a window count: neighbours are alike."""
    return float(taps**0.75)


def _products(network: Network, layer: Layer, x: Moments, groups: int) -> Moments:
    """Sums of products: each channel's mean and variance by its own weights."""
    weights, depth = network.constants[layer.inputs[1]], len(x.mean) // groups
    weights = np.asarray(weights, np.float32).reshape(len(weights), -1, depth)
    of_group = np.arange(len(weights)) // max(1, len(weights) // groups)
    means, variances = (each.reshape(groups, depth)[of_group] for each in (x.mean, x.variance))
    mean = (np.einsum("okd->od", weights) * means).sum(1)
    variance = (np.einsum("okd,okd->od", weights, weights) * variances).sum(1)
    if len(layer.inputs) > 2 and layer.inputs[2] in network.constants:
        mean = mean + network.constants[layer.inputs[2]]
    return Moments(mean, variance, np.zeros(len(mean)))


def _clamped(x: Moments, clamp: Clamp) -> Moments:
    """A normal number that a ReLU cuts off at zero; other limits change little."""
    if clamp.low != 0:
        return x
    spread = np.sqrt(np.maximum(x.variance, 1e-12))
    at = x.mean / spread
    below, density = 0.5 - 0.5 * _erf(at / sqrt(2)), np.exp(-at * at / 2) / sqrt(2 * pi)
    mean = x.mean * (1 - below) + spread * density
    square = (x.mean**2 + x.variance) * (1 - below) + x.mean * spread * density
    return Moments(mean, np.maximum(square - mean * mean, 0.0), np.maximum(below, x.zeros))
