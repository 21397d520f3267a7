"""Fused layers computed tile by tile: the region of every layer for each tile follows from the operators.

The parts of the last layers are given. Going backwards, a layer computes what the layers that read it need: with its
halo along rows and columns (FFMT), its own channels along channels (FDT).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ..network import Interval, Layer, Network, Region
from .fusion import FusedLayers, Split
from .steps import rows_needed


@dataclass(frozen=True)
class Tiling:
    """One loop over tiles, and the intervals of every layer that follow from the operators."""

    fused: FusedLayers
    split: Split
    is_backward: bool = False  # the last tile comes first

    @property
    def network(self) -> Network:
        return self.fused.network

    def size(self, layer: str) -> int:
        """The size of a layer along the axis: of its output, or of the input that it sums over."""
        return self.fused.driven(layer, self.split.axis)[self.split.axis]

    @cached_property
    def intervals(self) -> Mapping[str, tuple[Interval, ...]]:
        """By layer and tile, the interval along the axis that is computed; of the input where the layer sums it up.

        Tiles are in the order of execution.
        """
        wanted: dict[str, list[Interval]] = {}  # of each tensor, part by part
        intervals: dict[str, tuple[Interval, ...]] = {}
        for layer in self._around:
            parts = wanted.get(layer.output)
            is_fused = layer.name in self.fused.schedule.layers
            if is_fused:
                if layer.name in self.fused.sinks:
                    own = self._scaled(self.size(layer.name))
                    parts = [_hull(a, b) for a, b in zip(parts, own, strict=True)] if parts else own
                if parts is None:  # nobody reads it
                    parts = [(0, self.size(layer.name))] * len(self.split.ends)
                intervals[layer.name] = tuple(parts)
            elif parts is None or not self._is_inside.get(layer.output):
                continue
            sums = is_fused and self.fused.sums_over(layer.name, self.split.axis)
            for name in self.network.activations(layer):
                if self._is_inside.get(name):
                    is_share = sums and name == layer.inputs[0]
                    needs = parts if is_share else self._needed(layer, name, parts)
                    before = wanted.get(name)
                    wanted[name] = [_hull(a, b) for a, b in zip(before, needs, strict=True)] if before else [*needs]
        return {name: parts[::-1] for name, parts in intervals.items()} if self.is_backward else intervals

    def reads(self, name: str) -> tuple[Interval, ...]:
        """What the fused layers read of a tensor along the axis, part by part."""
        reads: list[Interval] = [(0, 0)] * len(self.split.ends)
        for layer in self.network.readers[name]:
            if own := self.intervals.get(layer.name):
                reads = [_hull(a, b) for a, b in zip(reads, self._needed(layer, name, own), strict=True)]
        return tuple(reads)

    def _scaled(self, size: int) -> list[Interval]:
        """The tiles of a sink; sinks of another size than the first are cut in proportion to it."""
        total = self.split.ends[-1]
        ends = [0, *(-(-end * size // total) for end in self.split.ends)]
        return list(pairwise(ends))

    def _needed(self, layer: Layer, name: str, parts: Sequence[Interval]) -> list[Interval]:
        """What the layer reads of a tensor along the axis for each of these parts of its output."""
        axis, out = self.split.axis, self.network.tensors[layer.output].shape
        own = axis % max(1, len(out))
        if rows := rows_needed(self.network, layer, name, own):
            return [(rows[start][0], rows[stop - 1][1]) if stop > start else (0, 0) for start, stop in parts]
        whole, shapes = Region.whole(out), self.network.shapes(layer)
        hulls: list[Interval] = [(0, 0)] * len(parts)
        for at, part in enumerate(parts):
            needs = layer.op.needs(whole.with_axis(own, part), shapes) if part[1] > part[0] else ()
            for other, needed in zip(layer.inputs, needs, strict=False):
                if other == name:
                    hulls[at] = _hull(hulls[at], needed.bounds[axis])
        return hulls

    @cached_property
    def _around(self) -> tuple[Layer, ...]:
        """All layers of the network from the last of the fused ones back to the first."""
        places = [self.network.position[name] for name in self.fused.schedule.layers]
        return self.network.layers[min(places) : max(places) + 1][::-1]

    @cached_property
    def _is_inside(self) -> Mapping[str, bool]:
        """For each tensor, whether it depends on layers of the group."""
        names = set(self.fused.schedule.layers)
        inside: dict[str, bool] = {}
        for layer in reversed(self._around):
            inside[layer.output] = layer.name in names or any(inside.get(name) for name in layer.inputs)
        return inside


def _hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval around both; empty ones do not count."""
    if a[1] <= a[0] or b[1] <= b[0]:
        return b if a[1] <= a[0] else a
    return min(a[0], b[0]), max(a[1], b[1])
