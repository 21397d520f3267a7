"""From features to weights (S 5.4.1): the layer from which weights instead of features are divided over devices.

A layer divided by features keeps all its weights on each device and a share of its inputs and outputs; one divided by
weights keeps a share of the weights and all inputs and outputs. Halos are left out, as in S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...errors import InputError
from .layers import PaperLayer


@dataclass(frozen=True)
class SwitchPoint:
    """The index of the first layer divided by weights, and what one device stores, in values."""

    first: int  # as many as there are layers: all are divided by features
    footprint: Fraction

    def number(self, layers: Sequence[PaperLayer]) -> int | None:
        """The number of that layer, as S prints it; None if there is none."""
        return layers[self.first].number if self.first < len(layers) else None


def switched_footprint(layers: Sequence[PaperLayer], first: int, devices: int) -> Fraction:
    """Values that one device stores: eq. 5.12 for layers divided by weights from index `first` on."""
    if devices < 1:
        raise InputError(f"cannot divide layers over {devices} devices; give 1 or more")
    if not 0 <= first <= len(layers):
        raise InputError(f"cannot switch at layer {first} of {len(layers)}; give 0 to {len(layers)}")
    by_features, by_weights = layers[:first], layers[first:]
    pairs = [Fraction(layer.features, devices) for layer in by_features]
    pairs += [Fraction(layer.features) for layer in by_weights]
    weights = sum(layer.weights for layer in by_features) + Fraction(
        sum(layer.weights for layer in by_weights), devices
    )
    return max(pairs, default=Fraction(0)) + weights


def best_switch(layers: Sequence[PaperLayer], devices: int) -> SwitchPoint:
    """The switch with the least footprint: the optimum of S's integer program (5.12 to 5.15), which has few choices."""
    tried = [SwitchPoint(first, switched_footprint(layers, first, devices)) for first in range(len(layers) + 1)]
    return min(tried, key=lambda one: (one.footprint, one.first))


def whole_footprint(layers: Sequence[PaperLayer]) -> int:
    """Values that a single device stores: all weights, and the largest inputs and outputs of a layer."""
    return sum(layer.weights for layer in layers) + max((layer.features for layer in layers), default=0)


def sequential_footprint(layers: Sequence[PaperLayer]) -> int:
    """Values that the fullest device stores where no device has more than one layer: S's sequential mapping."""
    return max((layer.values for layer in layers), default=0)
