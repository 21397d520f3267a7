"""What each part of a segment computes, reads and keeps, before it is cut out: regions, weights and work.

Found with the same two functions as the parts themselves (`network.parts.demanded`), so that it is what they come to.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from ..errors import ModelError, Unsupported
from ..network import DType, Layer, Network, Region
from ..network.operators.partial_sums import partial_macs
from ..network.partial import PartialSums, checked_share, mean_divisor
from ..network.parts import PartDemand, demanded, given_outside
from .devices import Cluster
from .division import ROW_AXIS, DivisionSegment, SegmentSplit, channel_regions, row_regions, tile_regions
from .units import LayerUnit, units_of

SUM_BYTES = 4
TensorKey = tuple[str, Region | None]  # a tensor; with the share that partial sums are over


@dataclass(frozen=True)
class PartSketch:
    """A part of a segment: what `PartRequest` needs, and what it costs."""

    device: str
    layers: tuple[str, ...]
    outputs: Mapping[str, Region | PartialSums]
    reads: Mapping[TensorKey, Region]
    weights_bytes: int
    work: float
    inner_bytes: int  # estimate of what it needs beside inputs and outputs, when its layers run row by row
    finished: Mapping[str, Sequence[Region]] = field(default_factory=dict)

    @property
    def gives(self) -> Mapping[TensorKey, Region]:
        return {
            (name, what.share if isinstance(what, PartialSums) else None): (
                what.region if isinstance(what, PartialSums) else what
            )
            for name, what in self.outputs.items()
        }


SegmentSketch = tuple[tuple[PartSketch, ...], ...]  # one or two rounds: sums, and who finishes them


class Sketcher:
    """Sketches segments of one network on one cluster, each once."""

    def __init__(self, network: Network, cluster: Cluster) -> None:
        self.network, self.cluster = network, cluster
        self.channel_shares: Mapping[str, float] = {device.name: device.macs_per_second for device in cluster.devices}
        self.units: tuple[LayerUnit, ...] = units_of(network)
        self._known: dict[DivisionSegment, SegmentSketch | None] = {}
        self._parts: dict[Hashable, PartSketch] = {}  # on any device

    def with_shares(self, shares: Mapping[str, float]) -> Sketcher:
        """The same where devices get channels by other shares than their speeds."""
        made = copy(self)
        made.channel_shares, made._known = shares, {}
        return made

    @property
    def work(self) -> int:
        """Of a frame on one device."""
        return sum(unit.work for unit in self.units)

    def layers(self, segment: DivisionSegment) -> tuple[str, ...]:
        return tuple(name for unit in self.units[segment.first : segment.stop] for name in unit.layers)

    def speeds(self, devices: Sequence[str]) -> list[float]:
        return [self.cluster.device_named[name].macs_per_second for name in devices]

    def sketch(self, segment: DivisionSegment) -> SegmentSketch | None:
        """The parts of a segment; None where it cannot be split like that."""
        if segment not in self._known:
            try:
                self._known[segment] = self._sketched(segment)
            except (Unsupported, ModelError):
                self._known[segment] = None
        return self._known[segment]

    def _sketched(self, segment: DivisionSegment) -> SegmentSketch | None:
        layers = self.layers(segment)
        if segment.split is SegmentSplit.SUMS:
            return self._summed(segment, layers)
        outputs = self._outputs(layers)
        if segment.split is SegmentSplit.WHOLE:
            return ((self._part(segment.devices[0], layers, outputs),),)
        by_device: list[dict[str, Region]] = [{} for _ in segment.devices]
        for name in outputs:
            for mine, region in zip(by_device, self._regions(segment, name), strict=True):
                if not region.is_empty:
                    mine[name] = region
        if sum(map(bool, by_device)) < 2:
            return None
        parts = zip(segment.devices, by_device, strict=True)
        return (tuple(self._part(device, layers, mine) for device, mine in parts if mine),)

    def _outputs(self, layers: Sequence[str]) -> dict[str, Region]:
        """What others read of these layers, and results that nobody reads."""
        return given_outside(self.network, set(layers))

    def _regions(self, segment: DivisionSegment, tensor: str) -> list[Region]:
        shape = self.network.tensors[tensor].shape
        match segment.split:
            case SegmentSplit.TILES:
                return tile_regions(shape, len(segment.devices))
            case SegmentSplit.ROWS:
                return row_regions(shape, self.speeds(segment.devices))
            case _:
                return self._channel_regions(segment, tensor)

    def _channel_regions(self, segment: DivisionSegment, tensor: str) -> list[Region]:
        shares = [self.channel_shares[name] for name in segment.devices]
        return channel_regions(self.network.tensors[tensor].shape, shares)

    def _summed(self, segment: DivisionSegment, layers: Sequence[str]) -> SegmentSketch | None:
        """Sums of the last unit's first layer over shares of its input, and the layers that finish them."""
        network, last = self.network, self.units[segment.stop - 1]
        summing = network.by_name[last.layers[0]]
        before = layers[: len(layers) - len(last.layers)]
        outputs = self._outputs(layers)
        if not last.can_be_summed or (before and set(self._outputs(before)) != {summing.inputs[0]}):
            return None
        if not set(outputs) <= {network.by_name[name].output for name in last.layers}:
            return None  # others read what comes before the sums too
        shares = self._channel_regions(segment, summing.inputs[0])
        whole = Region.whole(network.tensors[summing.output].shape)
        asked = {
            device: PartialSums(whole, checked_share(network, summing, share))
            for device, share in zip(segment.devices, shares, strict=True)
            if not share.is_empty
        }
        if len(asked) < 2:
            return None
        sums = tuple(
            self._part(device, (*before, summing.name), {summing.output: what}) for device, what in asked.items()
        )
        finished = {summing.name: tuple(what.share for what in asked.values())}
        mine: dict[str, dict[str, Region]] = {device: {} for device in segment.devices}
        for name in outputs:
            for device, region in zip(segment.devices, self._regions(segment, name), strict=True):
                if not region.is_empty:
                    mine[device][name] = region
        finish = tuple(self._part(device, last.layers, given, finished) for device, given in mine.items() if given)
        return sums, finish

    def _part(
        self,
        device: str,
        layers: Sequence[str],
        outputs: Mapping[str, Region | PartialSums],
        finished: Mapping[str, Sequence[Region]] | None = None,
    ) -> PartSketch:
        key = tuple(layers), *outputs.items(), *(finished or {}).items()
        if key not in self._parts:
            self._parts[key] = self._new_part(device, layers, outputs, finished)
        return replace(self._parts[key], device=device)

    def _new_part(
        self,
        device: str,
        layers: Sequence[str],
        outputs: Mapping[str, Region | PartialSums],
        finished: Mapping[str, Sequence[Region]] | None,
    ) -> PartSketch:
        network, shares = self.network, finished or {}
        demand = demanded(network, set(layers), outputs, shares)
        shares = {name: parts for name, parts in shares.items() if name in demand.computed}
        mine = [network.by_name[name] for name in layers if name in demand.computed]
        made = {layer.output for layer in mine}
        reads: dict[TensorKey, Region] = {
            (name, None): region for name, region in demand.wanted.items() if name not in made
        }
        for name, parts in shares.items():
            layer = network.by_name[name]
            reads |= {(layer.output, share): demand.computed[name] for share in parts}
        weights = sum(region.size * network.tensors[name].dtype.bytes for name, region in demand.constants.items())
        divisors = {mean_divisor(network, network.by_name[name]) for name in shares} - {None}
        weights += DType.FLOAT32.bytes * len(divisors)
        work = sum(self._work(layer, demand, outputs.get(layer.output), layer.name in shares) for layer in mine)
        inner = max((self._inner(layer, demand) for layer in mine), default=0)
        return PartSketch(device, tuple(layers), outputs, reads, weights, work, inner, shares)

    def _work(self, layer: Layer, demand: PartDemand, asked: Region | PartialSums | None, is_finished: bool) -> float:
        region = demand.computed[layer.name]
        shapes = self.network.shapes(layer)
        if is_finished:
            return region.size
        if isinstance(asked, PartialSums):
            return partial_macs(layer.op, region, shapes, asked.share)
        return layer.op.macs(region, shapes) or region.size

    def _inner(self, layer: Layer, demand: PartDemand) -> int:
        """The rows of its inputs that a layer needs for one row."""
        network, row = self.network, demand.computed[layer.name]
        if len(row.bounds) > 2:
            start, stop = row.bounds[ROW_AXIS]
            row = row.with_axis(ROW_AXIS, (start, min(start + 1, stop)))
        needs = zip(layer.inputs, layer.op.needs(row, network.shapes(layer)), strict=True)
        read = [(name, need & demand.wanted[name]) for name, need in needs if name in demand.wanted]
        return sum(need.size * network.tensors[name].dtype.bytes for name, need in read)
