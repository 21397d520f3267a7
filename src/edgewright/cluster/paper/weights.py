"""Weights over several devices (S 5.3.4, 5.4.2): fan-out, fan-in and fused pairs, and the least that must be sent.

Communication is counted in values, over all devices. Fractions keep it exact: a share K/N need not be whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import pairwise

from ...errors import InputError
from .layers import PaperLayer, follows


class WeightScheme(Enum):
    """How the weights of one layer are divided over all devices (S 5.4.2)."""

    FAN_OUT = "fan-out"  # o: each device computes a part of the outputs from all inputs
    FAN_IN = "fan-in"  # i: each device adds up a part of the inputs, for all outputs
    PAIR_FIRST = "pair, first"  # f: the outputs stay where they are computed
    PAIR_SECOND = "pair, second"  # s: and are the inputs of a fan-in


_READS_EVERYWHERE = (WeightScheme.FAN_OUT, WeightScheme.PAIR_FIRST)


@dataclass(frozen=True)
class WeightPartition:
    """Schemes of layers, and the values that they send between devices for one frame."""

    schemes: tuple[WeightScheme, ...]
    communication: Fraction


@dataclass(frozen=True)
class Pipelined:
    """Consecutive layers on each device (S 5.3.2): values of weights per device, and what one frame costs."""

    weights: tuple[int, ...]  # F
    macs: int  # T
    communication: int  # C


def weights_per_device(layers: Sequence[PaperLayer], devices: int) -> Fraction:
    """F of eqs 5.5 and 5.10: the same for all schemes."""
    return Fraction(sum(layer.weights for layer in layers), _checked(devices))


def macs_per_device(layers: Sequence[PaperLayer], devices: int) -> Fraction:
    """T of eqs 5.6 and 5.10: the same for all schemes."""
    return Fraction(sum(layer.macs for layer in layers), _checked(devices))


def pipelined(layers: Sequence[PaperLayer], cuts: Sequence[int]) -> Pipelined:
    """Layers cut into one part per device, each cut before the layer at that index (S 5.3.2)."""
    ends = [0, *cuts, len(layers)]
    if any(a >= b for a, b in pairwise(ends)):
        raise InputError(
            f"cuts {list(cuts)} do not divide {len(layers)} layers; give rising indices between 1 and the last"
        )
    parts = [layers[a:b] for a, b in pairwise(ends)]
    return Pipelined(
        tuple(sum(layer.weights for layer in part) for part in parts),
        sum(layer.macs for layer in layers),
        sum(layers[cut].inputs for cut in cuts),
    )


def communication(layers: Sequence[PaperLayer], schemes: Sequence[WeightScheme], devices: int) -> Fraction:
    """C of eq. 5.16: all values that are sent for one frame, by eqs 5.8, 5.9, 5.11 and 5.20."""
    others = _checked(devices) - 1
    total = Fraction(0)
    for at, (layer, scheme) in enumerate(zip(layers, schemes, strict=True)):
        reuses = is_reused(layers, schemes, at - 1)
        if scheme in _READS_EVERYWHERE and not reuses:
            total += layer.inputs * others
        if scheme is WeightScheme.FAN_OUT:
            total += layer.outputs * others * (1 if is_reused(layers, schemes, at) else Fraction(1, devices))
        if scheme is WeightScheme.FAN_IN:
            total += layer.inputs * Fraction(others, devices)
        if scheme in (WeightScheme.FAN_IN, WeightScheme.PAIR_SECOND):
            total += layer.outputs * others
    return total


def is_reused(layers: Sequence[PaperLayer], schemes: Sequence[WeightScheme], at: int) -> bool:
    """r of eq. 5.20: whether the outputs of a layer go to all devices, since the next one reads them there."""
    if not 0 <= at < len(layers) - 1 or not follows(layers[at + 1], layers[at]):
        return False
    return schemes[at] is WeightScheme.FAN_OUT and schemes[at + 1] in _READS_EVERYWHERE


def fan_out_only(layers: Sequence[PaperLayer], devices: int) -> WeightPartition:
    """Fan-out on every layer: what S compares with."""
    schemes = (WeightScheme.FAN_OUT,) * len(layers)
    return WeightPartition(schemes, communication(layers, schemes, devices))


class _At(Enum):
    """Where the outputs of a layer are when the next one begins."""

    SOURCE = "source"  # on the device that began
    EVERYWHERE = "everywhere"
    DIVIDED = "divided"  # each device has those that it computed


_Partial = tuple[Fraction, tuple[WeightScheme, ...]]


def optimised_weights(layers: Sequence[PaperLayer], devices: int) -> WeightPartition:
    """The schemes that send the least: the optimum of S's integer program (5.17 to 5.21), proven.

    A layer's cost depends on where its inputs are and where its outputs go, so that the program is a shortest path.
    """
    _checked(devices)
    best: dict[_At, _Partial] = {_At.SOURCE: (Fraction(0), ())}
    for at, layer in enumerate(layers):
        if at and not follows(layer, layers[at - 1]):
            best = {_At.SOURCE: best[_At.SOURCE]}
        best = _extended(best, layer, devices)
    cost, schemes = best[_At.SOURCE]
    return WeightPartition(schemes, cost)


def _extended(best: Mapping[_At, _Partial], layer: PaperLayer, devices: int) -> dict[_At, _Partial]:
    """The cheapest ways to each place of this layer's outputs."""
    others = devices - 1
    inputs, outputs = layer.inputs * others, layer.outputs * others
    moves = [
        (_At.SOURCE, WeightScheme.FAN_OUT, inputs + Fraction(outputs, devices), _At.SOURCE),
        (_At.SOURCE, WeightScheme.FAN_OUT, Fraction(inputs + outputs), _At.EVERYWHERE),
        (_At.EVERYWHERE, WeightScheme.FAN_OUT, Fraction(outputs, devices), _At.SOURCE),
        (_At.EVERYWHERE, WeightScheme.FAN_OUT, Fraction(outputs), _At.EVERYWHERE),
        (_At.SOURCE, WeightScheme.FAN_IN, Fraction(inputs, devices) + outputs, _At.SOURCE),
        (_At.SOURCE, WeightScheme.PAIR_FIRST, Fraction(inputs), _At.DIVIDED),
        (_At.EVERYWHERE, WeightScheme.PAIR_FIRST, Fraction(0), _At.DIVIDED),
        (_At.DIVIDED, WeightScheme.PAIR_SECOND, Fraction(outputs), _At.SOURCE),
    ]
    found: dict[_At, _Partial] = {}
    for before, scheme, cost, after in moves:
        if before in best:
            total = best[before][0] + cost
            if after not in found or total < found[after][0]:
                found[after] = total, (*best[before][1], scheme)
    return found


def _checked(devices: int) -> int:
    if devices < 1:
        raise InputError(f"cannot divide layers over {devices} devices; give 1 or more")
    return devices
