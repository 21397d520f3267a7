"""The time of each phase of each actor of a CNN: measured times distributed over the phases, or counted work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf

from ...errors import ModelError
from ...network import Network
from ...program.steps import row_count
from ..graph import Time
from .counts import input_actors, output_actors
from .rows import part_region, parts

Given = Mapping[str, int | float | Fraction]  # times of layers, all in one unit
RESOLUTION = 10**9  # floats are rounded to this fraction of a unit, so that exact sums stay short


def durations(
    network: Network, phases: Mapping[str, int], times: Given | None = None
) -> Mapping[str, tuple[Time, ...]]:
    """Times of the phases of every actor: its work, or its share of the layer's given time.

    Inputs and outputs take none unless `times` names them.
    """
    work = {
        **_moved(network, phases),
        **{layer: _work(network, layer, phases[layer]) for layer in network.by_name},
    }
    if times is None:
        return work
    return {name: _spread(_time_of(network, name, times), weights) for name, weights in work.items()}


def layer_work(network: Network, layer: str) -> int:
    """MACs of a layer, or the elements it writes if it multiplies nothing."""
    return _work(network, layer, 1)[0]


def layer_time(network: Network, layer: str, times: Given | None) -> Time:
    """The time of a whole layer: given, or its work."""
    return layer_work(network, layer) if times is None else _time_of(network, layer, times)


def _work(network: Network, name: str, count: int) -> tuple[int, ...]:
    layer = network.by_name[name]
    shape, shapes = network.tensors[layer.output].shape, network.shapes(layer)
    regions = [part_region(shape, part) for part in parts(row_count(shape), count)]
    macs = tuple(layer.op.macs(region, shapes) for region in regions)
    return macs if any(macs) else tuple(region.size for region in regions)


def _moved(network: Network, phases: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Elements that inputs and outputs transfer in each phase."""
    times = {}
    for tensor, name in (*input_actors(network).items(), *output_actors(network).items()):
        shape = network.tensors[tensor].shape
        times[name] = tuple(part_region(shape, part).size for part in parts(row_count(shape), phases[name]))
    return times


def _time_of(network: Network, name: str, times: Given) -> Time:
    if name not in times:
        if name in network.by_name:
            raise ModelError(f"no time is given for layer '{name}'; give one for every layer, or none at all")
        return 0
    time = times[name]
    if not 0 <= time < inf:
        raise ModelError(f"layer '{name}' cannot take a time of {time}")
    return exact_time(time)


def exact_time(time: float | Fraction) -> Time:
    """The time as a number with exact arithmetic."""
    return Fraction(round(time * RESOLUTION), RESOLUTION) if isinstance(time, float) else time


def _spread(time: Time, weights: Sequence[int]) -> tuple[Time, ...]:
    total = sum(weights) or 1
    shares = [Fraction(time) * weight / total for weight in weights]
    return tuple(int(share) if share.denominator == 1 else share for share in shares)
