"""Layers fused into one stage: their parts, row-by-row or layer-by-layer order, and what follows for each layer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..network import Network, Region, Shape
from .steps import ROWS, Step, summed_axes

COLUMNS = ROWS + 1
CHANNELS = -1


@dataclass(frozen=True, slots=True)
class Split:
    """One loop over tiles: where each part of the last layers ends along an axis."""

    axis: int  # ROWS or COLUMNS (FFMT, the halo is computed again), or CHANNELS (FDT)
    ends: tuple[int, ...]
    lanes: int = 1  # cores that share the loop: part t is computed by lane t mod lanes


@dataclass(frozen=True, slots=True)
class FusionSchedule:
    """How layers run as one stage. With a single layer and no other field set, that layer runs whole."""

    layers: tuple[str, ...]  # producers first
    splits: tuple[Split, ...] = ()  # loops over tiles, outermost first
    streamed: bool = False  # inside of all tiles: row by row on demand (phases, M 4), or layer after layer
    rows: tuple[tuple[str, int], ...] = ()  # of a layer's step, where that is not one row
    columns: tuple[tuple[str, int], ...] = ()  # of a chain's step, by its last layer; 0 for all, as if not named

    @property
    def name(self) -> str:
        first, last = self.layers[0], self.layers[-1]
        return first if first == last else f"{first} .. {last}"

    @property
    def is_whole(self) -> bool:
        """Whether every layer is computed as a whole."""
        return not self.splits and not self.streamed

    @property
    def is_undivided(self) -> bool:
        """Whether every layer is computed in one step, or in one step for each lane."""
        is_dealt = len(self.layers) == len(self.splits) == 1 and not self.streamed
        return self.is_whole or (is_dealt and self.lanes == len(self.splits[0].ends))

    @property
    def lanes(self) -> int:
        """Cores that compute parts at the same time; more than one only in the outermost loop."""
        return self.splits[0].lanes if self.splits else 1

    @property
    def is_banded(self) -> bool:
        """Whether the outermost tiles are bands of rows, and each band goes row by row."""
        return self.streamed and self.axes[:1] == (ROWS,)

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(split.axis for split in self.splits)


def even_ends(size: int, parts: int, unit: int = 1) -> tuple[int, ...]:
    """The ends of `parts` nearly equal intervals over 0..size, all but the last of them multiples of `unit`."""
    blocks = -(-size // unit)
    parts = min(parts, blocks)
    large, small = blocks % parts, blocks // parts
    ends, at = [], 0
    for index in range(parts):
        at += (small + (index < large)) * unit
        ends.append(min(at, size))
    return tuple(ends)


@dataclass(frozen=True)
class FusedLayers:
    """A schedule applied to its network: which layers are sinks that drive the others, and which are partial sums."""

    network: Network
    schedule: FusionSchedule
    free: Collection[str] = ()  # layers of the network that execute nothing

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        """The layers whose output is read outside the group: the schedule splits these, and the others follow."""
        inside = {*self.schedule.layers, *self.free}

        def is_read_outside(tensor: str) -> bool:
            if tensor in self.network.outputs or not self.network.readers[tensor]:
                return True
            return any(
                reader.name not in inside or (reader.name in self.free and is_read_outside(reader.output))
                for reader in self.network.readers[tensor]
            )

        by_name = self.network.by_name
        return tuple(name for name in self.schedule.layers if is_read_outside(by_name[name].output))

    @cached_property
    def partial(self) -> tuple[str, ...]:
        """The layers that run as partial sums over parts of their input; all others compute parts of their output."""
        if self.schedule.is_whole:
            return ()
        read = self._read_inside
        return tuple(name for name in self.sinks if name not in read and self.adds_up(name))

    @cached_property
    def wholes(self) -> Mapping[str, Step]:
        """For each layer, the step that computes its whole output."""
        whole_steps = {}
        for name in self.schedule.layers:
            layer = self.network.by_name[name]
            share = Region.whole(self.network.shapes(layer)[0]) if name in self.partial else None
            whole_steps[name] = Step(name, Region.whole(self.network.tensors[layer.output].shape), partial=share)
        return whole_steps

    def sums_over(self, name: str, axis: int) -> bool:
        """Whether a part along the axis is a part of the input that the layer sums over, not of its output."""
        layer = self.network.by_name[name]
        rank = len(self.network.tensors[layer.inputs[0]].shape)
        return name in self.partial and rank > 0 and axis % rank in summed_axes(self.network, layer)

    def driven(self, name: str, axis: int) -> Shape:
        """The shape that a split along the axis cuts: the layer's output, or the input that it sums over."""
        layer = self.network.by_name[name]
        return self.network.tensors[layer.inputs[0] if self.sums_over(name, axis) else layer.output].shape

    @cached_property
    def _read_inside(self) -> set[str]:
        """The layers of the group whose output another one reads, directly or through layers that execute nothing."""
        inside = set(self.schedule.layers)
        places = [self.network.position[name] for name in inside]
        sources: dict[str, tuple[str, ...]] = {}  # of each tensor: the fused layers that it is made of
        names: set[str] = set()
        for layer in self.network.layers[min(places) : max(places) + 1]:
            made = tuple(dict.fromkeys(name for x in layer.inputs for name in sources.get(x, ())))
            if layer.name in inside:
                names.update(made)
                sources[layer.output] = (layer.name,)
            elif layer.name in self.free and made:
                sources[layer.output] = made
        return names

    def adds_up(self, name: str) -> bool:
        """Whether a sink runs as partial sums: over channels computed inside the group, or over rows and columns."""
        layer = self.network.by_name[name]
        rank = len(self.network.tensors[layer.inputs[0]].shape)
        summed = summed_axes(self.network, layer)
        if CHANNELS in self.schedule.axes and rank - 1 in summed:
            return self._is_made_inside(layer.inputs[0])
        along = {*self.schedule.axes, *((ROWS,) if self.schedule.streamed else ())} - {CHANNELS}
        return bool(along & set(summed)) and rank == 4

    def _is_made_inside(self, tensor: str) -> bool:
        producer = self.network.producers.get(tensor)
        if producer is not None and producer.name in self.free:
            return any(self._is_made_inside(source) for source in self.network.activations(producer))
        return producer is not None and producer.name in self.schedule.layers
