"""A stretch of layers carried out part by part: what each part needs of every layer follows from the operators.

The parts of the last layers are given. Going backwards, a layer computes what the layers that read it need: with
its halo along rows and columns (FFMT), its own channels along channels (FDT).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ..network import Interval, Layer, Network, Region
from .rows import rows_needed
from .shares import summed_axes
from .steps import Tiles


@dataclass(frozen=True)
class Tiling:
    """Tiles with all that follows from the operators."""

    network: Network
    tiles: Tiles

    @property
    def count(self) -> int:
        return len(self.tiles.ends)

    @property
    def driven_size(self) -> int:
        """What the first of the last layers has along the axis: of its output, or of the input that it sums up."""
        step = next(step for step in self.tiles.steps if step.layer == self.tiles.sinks[0])
        layer = self.network.by_name[step.layer]
        return self._size(layer.inputs[0] if step.share and self.sums(layer) else layer.output)

    @cached_property
    def intervals(self) -> Mapping[str, tuple[Interval, ...]]:
        """For each layer, part by part: what it computes along the axis; of its input, where it sums over it."""
        steps = {step.layer: step for step in self.tiles.steps}
        wanted: dict[str, list[Interval]] = {}  # of each tensor, part by part
        found: dict[str, tuple[Interval, ...]] = {}
        for layer in self._around:
            parts = wanted.get(layer.output)
            if layer.name in steps:
                is_summed = steps[layer.name].share is not None and self.sums(layer)
                size = self._size(layer.inputs[0] if is_summed else layer.output)
                if layer.name in self.tiles.sinks:
                    own = self._scaled(size)
                    parts = [_hull(a, b) for a, b in zip(parts, own, strict=True)] if parts else own
                if parts is None:  # nobody reads it
                    parts = [(0, size)] * self.count
                found[layer.name] = tuple(parts)
            elif parts is None or not self._is_inside.get(layer.output):
                continue
            for name in self.network.activations(layer):
                if self._is_inside.get(name):
                    is_share = layer.name in steps and steps[layer.name].share is not None and self.sums(layer)
                    needs = (
                        parts
                        if is_share and name == layer.inputs[0]
                        else [self._needed(layer, name, part) for part in parts]
                    )
                    before = wanted.get(name)
                    wanted[name] = (
                        [_hull(a, b) for a, b in zip(before, needs, strict=True)] if before else [*needs]
                    )
        return found

    def _scaled(self, size: int) -> list[Interval]:
        """The parts of a last layer; one of another size than the first is cut in proportion."""
        total = self.tiles.ends[-1]
        ends = [0, *(-(-end * size // total) for end in self.tiles.ends)]
        return list(pairwise(ends))

    def _size(self, name: str) -> int:
        return self.network.tensors[name].shape[self.tiles.axis]

    def sums(self, layer: Layer) -> bool:
        """Whether the layer can sum up its input share by share along the axis."""
        rank = len(self.network.tensors[layer.inputs[0]].shape)
        return self.tiles.axis % rank in summed_axes(self.network, layer)

    def _needed(self, layer: Layer, name: str, part: Interval) -> Interval:
        """What the layer reads of a tensor along the axis for this part of its output."""
        axis, shapes = self.tiles.axis, self.network.shapes(layer)
        if part[1] <= part[0]:
            return (0, 0)
        if rows := rows_needed(self.network, layer, name, axis % len(self.network.tensors[layer.output].shape)):
            return rows[part[0]][0], rows[part[1] - 1][1]
        whole = Region.whole(self.network.tensors[layer.output].shape)
        needs = layer.op.needs(whole.with_axis(axis % len(whole.bounds), part), shapes)
        found: Interval = (0, 0)
        for other, needed in zip(layer.inputs, needs, strict=True):
            if other == name:
                found = _hull(found, needed.bounds[axis])
        return found

    @cached_property
    def _around(self) -> tuple[Layer, ...]:
        """The layers from the last of the stretch back to its first, and what lies between."""
        places = [self.network.position[step.layer] for step in self.tiles.steps]
        return self.network.layers[min(places) : max(places) + 1][::-1]

    @cached_property
    def _is_inside(self) -> Mapping[str, bool]:
        """The tensors that are made of what the stretch computes."""
        names = {step.layer for step in self.tiles.steps}
        found: dict[str, bool] = {}
        for layer in reversed(self._around):
            found[layer.output] = layer.name in names or any(found.get(name) for name in layer.inputs)
        return found


def _hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval around both; empty ones do not count."""
    if a[1] <= a[0] or b[1] <= b[0]:
        return b if a[1] <= a[0] else a
    return min(a[0], b[0]), max(a[1], b[1])
