"""Fused layers executed row by row on demand: the phases of M 4 without a table of phases.

The last layers are driven from top to bottom. A layer that lacks rows asks its producers for them, one step at a
time, so that every row is computed as late as possible and its memory is free again as early as possible. Skip
connections and concats need no rule of their own: their rows stay needed for longer. In bands of rows all this begins
again with every band, at the first row that its last layers need of each layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ..errors import ModelError
from ..network import Interval, Layer, Network
from .fusion import COLUMNS, FusedLayers
from .steps import ROWS, Step, hull, is_in_step, restricted, rows_needed
from .tiling import Tiling


@dataclass(frozen=True, slots=True)
class PixelChain:
    """Layers that run as one step: each reads only the pixel that the one before has just computed."""

    layers: tuple[str, ...]
    rows: int  # in a step
    columns: int = 0  # in a go; 0 for whole rows

    @property
    def last(self) -> str:
        return self.layers[-1]


@dataclass(frozen=True, slots=True)
class RowDemand:
    """Before its k-th step, a chain needs `stops[k]` rows of another chain."""

    producer: int  # its place among the chains
    stops: tuple[int, ...]


@dataclass(frozen=True)
class RowTrace:
    """A streamed schedule and the demands between its layers that follow from the operators."""

    fused: FusedLayers

    @property
    def network(self) -> Network:
        return self.fused.network

    @cached_property
    def chains(self) -> tuple[PixelChain, ...]:
        """The chains, producers first. A layer joins the chain of a layer that it alone reads, pixel by pixel."""
        ends: dict[str, list[str]] = {}  # chains by what their last layer writes
        depth: dict[str, int] = {}  # layers that a row of each tensor has come through
        for name in self.fused.schedule.layers:
            layer = self.network.by_name[name]
            reads = self.network.activations(layer)
            fitting = [x for x in reads if x in ends and self._hands_on(x, layer)]
            fitting = [x for x in fitting if ends[x][-1] not in self.fused.sinks]
            depth[layer.output] = 1 + max((depth.get(x, 0) for x in reads), default=0)
            # What has come the longest way is there last; what waits for it is better computed before.
            before = ends.pop(max(fitting, key=lambda x: depth[x])) if fitting else []
            ends[layer.output] = [*before, name]
        order = {name: at for at, name in enumerate(self.fused.schedule.layers)}
        return tuple(self._chain(names) for names in sorted(ends.values(), key=lambda names: order[names[-1]]))

    def _chain(self, layers: list[str]) -> PixelChain:
        rows, columns = dict(self.fused.schedule.rows), dict(self.fused.schedule.columns)
        most = max(min(rows.get(name, 1), self._height(name)) for name in layers)
        return PixelChain(tuple(layers), most, columns.get(layers[-1], 0))

    def _height(self, name: str) -> int:
        return self.fused.driven(name, ROWS)[ROWS]

    @cached_property
    def place(self) -> Mapping[str, int]:
        """The index of the chain that contains each layer."""
        return {name: index for index, chain in enumerate(self.chains) for name in chain.layers}

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """The number of rows of each chain: of its output, or of the input that it sums over."""
        return tuple(self._height(chain.last) for chain in self.chains)

    @cached_property
    def sinks(self) -> tuple[int, ...]:
        """The chains that no other chain reads: these are driven to their end."""
        return tuple(dict.fromkeys(self.place[name] for name in self.fused.sinks))

    @cached_property
    def rounds(self) -> int:
        """The number of rounds in which all sinks advance together, in proportion to their heights."""
        return max(self.heights[sink] for sink in self.sinks)

    @cached_property
    def rounds_of(self) -> tuple[Interval, ...]:
        """The rounds of each band; one band where no tiles cut rows."""
        return ((0, self.rounds),) if self._rows is None else tuple(pairwise((0, *self._rows.split.ends)))

    @cached_property
    def bands(self) -> tuple[tuple[Interval, ...], ...]:
        """For each band, the rows that each chain computes. Rows that no one asks for are never computed."""
        if self._rows is not None:
            return tuple(zip(*(self._rows.intervals[chain.last] for chain in self.chains), strict=True))
        ends = [taken * chain.rows for taken, chain in zip(self.taken, self.chains, strict=True)]
        return (tuple((0, min(end, height)) for end, height in zip(ends, self.heights, strict=True)),)

    @cached_property
    def _rows(self) -> Tiling | None:
        """The tiles that cut rows."""
        return next((Tiling(self.fused, split) for split in self.fused.schedule.splits if split.axis == ROWS), None)

    def wanted(self, sink: int, rounds: int) -> int:
        """Rows of a sink that must be computed after this number of rounds."""
        return -(-rounds * self.heights[sink] // self.rounds)

    @cached_property
    def demands(self) -> tuple[tuple[RowDemand, ...], ...]:
        """For each chain, the rows that it asks of others, in the order in which it asks.

        The producer with the longest path behind it is asked last: by then, fewer of the rows that it is made of may
        still be needed.
        """
        levels: list[tuple[RowDemand, ...]] = []
        depths: list[int] = []
        for index in range(len(self.chains)):
            demands = self._demands(index)
            if any(demand.producer >= index for demand, _ in demands):
                raise ModelError("a layer that runs row by row comes before what it reads")
            depth = {demand: depths[demand.producer] + layers for demand, layers in demands}
            depths.append(max(depth.values(), default=len(self.chains[index].layers)))
            levels.append(tuple(sorted(depth, key=depth.__getitem__)))
        return tuple(levels)

    @cached_property
    def taken(self) -> tuple[int, ...]:
        """The number of steps that each chain takes. Rows that no one asks for are never computed."""
        taken = [self._count(index) if index in self.sinks else 0 for index in range(len(self.chains))]
        for index in reversed(range(len(taken))):
            for demand in self.demands[index]:
                rows = max(demand.stops[: taken[index]], default=0)
                taken[demand.producer] = max(taken[demand.producer], -(-rows // self.chains[demand.producer].rows))
        return tuple(taken)

    def _count(self, index: int) -> int:
        return -(-self.heights[index] // self.chains[index].rows)

    def reads(self, index: int, tensor: str) -> tuple[Interval, ...]:
        """The rows of a tensor that each step of a chain reads."""
        rows: list[Interval] = []
        for name in self.chains[index].layers:
            layer = self.network.by_name[name]
            if tensor in layer.inputs:
                read = self._rows_of(index, layer, tensor)
                rows = [*map(hull, rows, read)] if rows else [*read]
        size, height = self.chains[index].rows, self.heights[index]
        if size == 1:
            return tuple(rows[:height])
        return tuple((rows[y][0], rows[min(y + size, len(rows)) - 1][1]) for y in range(0, height, size))

    def order(self, band: int = 0) -> Iterator[tuple[int, int]]:
        """The steps of a band in execution order: (index of the chain, number of its steps before this one)."""
        is_cut = self._rows is not None
        done = [low for low, _ in self.bands[band]] if is_cut else [0] * len(self.chains)  # steps of each chain
        have = [*done]  # rows of each chain: where tiles cut them, one in a step
        demands = [[(demand.producer, demand.stops) for demand in asked] for asked in self.demands]
        heights, rows = self.heights, [chain.rows for chain in self.chains]
        start, stop = self.rounds_of[band]
        for round_ in range(start + 1, stop + 1):
            for sink in self.sinks:
                waiting = [sink] if have[sink] < self.wanted(sink, round_) else []
                while waiting:  # the last one has been asked by the one before it
                    at = waiting[-1]
                    for producer, stops in demands[at]:
                        if have[producer] < stops[done[at]]:
                            waiting.append(producer)
                            break
                    else:
                        yield at, done[at]
                        done[at] += 1
                        have[at] = min(done[at] * rows[at], heights[at])
                        if at != sink or have[sink] >= self.wanted(sink, round_):
                            waiting.pop()

    def turns(self, band: int = 0) -> Iterator[tuple[Step, ...]]:
        """The steps of a band in execution order, grouped by chain, and by columns where the chain goes by columns."""
        for index, done in self.order(band):
            rows = self.rows_of_step(index, done)
            parts = self.columns(index, self.chains[index].columns)
            yield tuple(self.step(name, rows, part) for part in parts for name in self.chains[index].layers)

    def rows_of_step(self, index: int, done: int) -> Interval:
        """The rows that a chain computes after this number of steps."""
        rows = self.chains[index].rows
        return done * rows, min((done + 1) * rows, self.heights[index])

    def columns(self, index: int, width: int) -> tuple[Interval | None, ...]:
        """The columns of a chain in parts of this width; None for all."""
        if not width:
            return (None,)
        across = self.fused.driven(self.chains[index].last, COLUMNS)[COLUMNS]
        return tuple((x, min(x + width, across)) for x in range(0, across, width))

    def step(self, name: str, rows: Interval, columns: Interval | None) -> Step:
        """The step of a layer for these rows and columns."""
        step = restricted(self.network, self.fused.wholes[name], ROWS, rows)
        return step if columns is None else restricted(self.network, step, COLUMNS, columns)

    def _hands_on(self, tensor: str, reader: Layer) -> bool:
        """Whether only this layer reads the tensor, and for each pixel only the pixel at the same position."""
        if self.network.sole_reader(tensor) is not reader:
            return False
        return all(self._is_in_step(tensor, reader, axis) for axis in (ROWS, COLUMNS))

    def _is_in_step(self, tensor: str, reader: Layer, axis: int) -> bool:
        """Whether the reader needs only index i along the axis for its own index i; always true of a sum's input."""
        if tensor == reader.inputs[0] and self.fused.sums_over(reader.name, axis):
            return True
        return is_in_step(self.network, reader, tensor, axis)

    def _rows_of(self, index: int, layer: Layer, tensor: str) -> tuple[Interval, ...]:
        if tensor == layer.inputs[0] and self.fused.sums_over(layer.name, ROWS):
            return tuple((y, y + 1) for y in range(self.heights[index]))
        return self._rows_needed(layer, tensor)

    def _rows_needed(self, layer: Layer, tensor: str) -> tuple[Interval, ...]:
        rows = rows_needed(self.network, layer, tensor)
        if rows is None:
            raise ModelError(f"layer '{layer.name}' does not read '{tensor}' from top to bottom, row by row")
        return rows

    def _demands(self, index: int) -> list[tuple[RowDemand, int]]:
        """The demands of a chain, each with the number of its layers that pass it on."""
        layers = [self.network.by_name[name] for name in self.chains[index].layers]
        inside = {layer.output for layer in layers}
        demands: dict[int, tuple[tuple[int, ...], int]] = {}
        for at, layer in enumerate(layers):
            for name in self.network.activations(layer):
                if self._origins.get(name) and name not in inside:
                    stops = tuple(stop for _, stop in self.reads(index, name))
                    for producer, own in self._through(name, stops):
                        before, length = demands.get(producer, (own, len(layers) - at))
                        demands[producer] = tuple(map(max, before, own)), length
        return [(RowDemand(producer, stops), length) for producer, (stops, length) in demands.items()]

    @cached_property
    def _origins(self) -> Mapping[str, bool]:
        """The tensors that depend on layers of the group, looking through layers that cost nothing."""
        origins: dict[str, bool] = {}
        for layer in self.network.layers:
            origins[layer.output] = layer.name in self.place or any(origins.get(name) for name in layer.inputs)
        return origins

    def _through(self, name: str, stops: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(chain, rows wanted of it) for rows of a tensor, followed through layers that execute nothing."""
        layer = self.network.producers[name]
        if layer.name in self.place:
            yield self.place[layer.name], stops
            return
        for source in self.network.activations(layer):
            if self._origins.get(source):
                rows = self._rows_needed(layer, source)
                yield from self._through(source, tuple(rows[stop - 1][1] if stop else 0 for stop in stops))
