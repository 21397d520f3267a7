"""A stretch of layers carried out row by row, on demand: the phases of M 4 without a table of phases.

The last layers are driven from top to bottom. A layer that lacks rows asks its producers for them, one step at a
time, so that every row is computed as late as possible and its memory is free again as early as possible. Skip
connections and concats need no rule of their own: their rows stay needed for longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import ModelError
from ..network import Interval, Layer, Network, Region
from .rows import rows_needed
from .shares import restricted, summed_axes
from .steps import Step, Stream, Unit


@dataclass(frozen=True)
class Ask:
    """Before its k-th step, a unit wants `stops[k]` rows of another unit of the stream."""

    producer: int  # its place in the stream
    stops: tuple[int, ...]


@dataclass(frozen=True)
class Flow:
    """A stream with all that follows from its operators: who asks whom, and for how much."""

    network: Network
    stream: Stream

    @cached_property
    def place(self) -> Mapping[str, int]:
        """In which unit of the stream each layer stands."""
        return {step.layer: index for index, unit in enumerate(self.stream.units) for step in unit.steps}

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """Rows that each unit goes through: of its output, or of what it sums up."""
        return tuple(self._bounds(unit.last).shape[self.stream.axis] for unit in self.wholes)

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Rows that each unit computes in one step."""
        return tuple(self._bounds(unit.last).shape[self.stream.axis] for unit in self.stream.units)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Steps until each unit is complete."""
        return tuple(-(-height // rows) for height, rows in zip(self.heights, self.rows, strict=True))

    @cached_property
    def sinks(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.place[name] for name in self.stream.sinks))

    @cached_property
    def rounds(self) -> int:
        """The last layers advance in this many rounds, in proportion to their heights."""
        return max(self.heights[sink] for sink in self.sinks)

    def wanted(self, sink: int, rounds: int) -> int:
        """Rows of a last layer that must be there after so many rounds."""
        return -(-rounds * self.heights[sink] // self.rounds)

    @cached_property
    def asks(self) -> tuple[tuple[Ask, ...], ...]:
        """For each unit what it asks for, in the order in which it asks.

        What has come the longest way is asked for last: by then, what it was made of may be needed no more.
        """
        found: list[tuple[Ask, ...]] = []
        depths: list[int] = []
        for index in range(len(self.stream.units)):
            asks = self._asks(index)
            if any(ask.producer >= index for ask, _ in asks):
                raise ModelError("a layer of a stream comes before what it reads")
            ways = {ask: depths[ask.producer] + layers for ask, layers in asks}
            depths.append(max(ways.values(), default=len(self.stream.units[index].steps)))
            found.append(tuple(sorted(ways, key=ways.__getitem__)))
        return tuple(found)

    @cached_property
    def taken(self) -> tuple[int, ...]:
        """Steps that each unit really takes: rows that nobody asks for are never computed."""
        found = [count if index in self.sinks else 0 for index, count in enumerate(self.counts)]
        for index in reversed(range(len(found))):
            for ask in self.asks[index]:
                rows = max(ask.stops[: found[index]], default=0)
                found[ask.producer] = max(found[ask.producer], -(-rows // self.rows[ask.producer]))
        return tuple(found)

    @property
    def is_sound(self) -> bool:
        """Whether the units can run as they are: each of layers of the same size, and behind what it reads.

        A ModelError where an operator stands against it.
        """
        axis = self.stream.axis
        for unit, whole in zip(self.stream.units, self.wholes, strict=True):
            sizes = {self._bounds(step).shape[axis : axis + 2] for step in whole.steps}
            alike = {size if unit.width else size[:1] for size in sizes}
            if len(alike) > 1 or self._bounds(unit.last).is_empty:
                return False
        return len(self.asks) == len(self.stream.units)

    def reads(self, index: int, tensor: str) -> tuple[Interval, ...]:
        """The rows of a tensor that each step of a unit reads."""
        rows: list[Interval] = []
        for step in self.stream.units[index].steps:
            layer = self.network.by_name[step.layer]
            if tensor in layer.inputs:
                found = self._rows_of(index, step, layer, tensor)
                rows = [*map(_hull, rows, found)] if rows else [*found]
        size = self.rows[index]
        steps = range(0, self.heights[index], size)
        return tuple((rows[y][0], rows[min(y + size, len(rows)) - 1][1]) for y in steps)

    def order(self) -> Iterator[tuple[int, int]]:
        """The steps as they run: (place in the stream, how many steps this unit has done before)."""
        done = [0] * len(self.stream.units)  # steps of each unit
        have = [0] * len(self.stream.units)  # rows of each unit
        asks, rows, heights = self.asks, self.rows, self.heights
        for round_ in range(1, self.rounds + 1):
            for sink in self.sinks:
                waiting = [sink] if have[sink] < self.wanted(sink, round_) else []
                while waiting:  # the last one has been asked by the one before it
                    at = waiting[-1]
                    for ask in asks[at]:
                        if have[ask.producer] < ask.stops[done[at]]:
                            waiting.append(ask.producer)
                            break
                    else:
                        yield at, done[at]
                        done[at] += 1
                        have[at] = min(done[at] * rows[at], heights[at])
                        if at != sink or have[sink] >= self.wanted(sink, round_):
                            waiting.pop()

    def steps(self) -> Iterator[Step]:
        """The steps as they run, each with the rows it computes."""
        for index, done in self.order():
            rows = self.rows[index]
            yield from self.parts(index, (done * rows, min((done + 1) * rows, self.heights[index])))

    def parts(self, index: int, rows: Interval) -> Iterator[Step]:
        """The steps of one unit for these rows, a few columns after the other if it says so."""
        unit = self.stream.units[index]
        for columns in self.columns(index):
            for step in unit.steps:
                yield self.part(step, rows, columns)

    def columns(self, index: int) -> tuple[Interval | None, ...]:
        """What a unit computes of its rows in one go: these columns; None for all."""
        return self.split(index, self.stream.units[index].width)

    def split(self, index: int, width: int) -> tuple[Interval | None, ...]:
        """The columns of a unit in parts of this width; None for all."""
        if not width:
            return (None,)
        across = self._bounds(self.wholes[index].last).shape[self.stream.axis + 1]
        return tuple((x, min(x + width, across)) for x in range(0, across, width))

    def part(self, step: Step, rows: Interval, columns: Interval | None) -> Step:
        """The step for these rows and columns."""
        axis = self.stream.axis
        step = restricted(self.network, step, axis, rows)
        return step if columns is None else restricted(self.network, step, axis + 1, columns)

    @cached_property
    def wholes(self) -> tuple[Unit, ...]:
        """The units with all their rows."""
        found = []
        for unit in self.stream.units:
            steps = []
            for step in unit.steps:
                layer = self.network.by_name[step.layer]
                shape = self.network.tensors[layer.output].shape
                share = Region.whole(self.network.shapes(layer)[0]) if step.share else None
                steps.append(replace(step, region=Region.whole(shape), share=share))
            found.append(replace(unit, steps=tuple(steps)))
        return tuple(found)

    def _bounds(self, step: Step) -> Region:
        """What the rows of the stream are rows of: the output, or the input that is summed up over them."""
        layer = self.network.by_name[step.layer]
        sums_rows = step.share is not None and self.stream.axis in summed_axes(self.network, layer)
        return step.share if sums_rows and step.share else step.region

    def _rows_of(self, index: int, step: Step, layer: Layer, tensor: str) -> tuple[Interval, ...]:
        if self._bounds(step) is step.share and tensor == layer.inputs[0]:
            return tuple((y, y + 1) for y in range(self.heights[index]))
        return self._rows_needed(layer, tensor)

    def _rows_needed(self, layer: Layer, tensor: str) -> tuple[Interval, ...]:
        rows = rows_needed(self.network, layer, tensor, self.stream.axis)
        if rows is None:
            raise ModelError(f"layer '{layer.name}' does not read '{tensor}' from top to bottom, row by row")
        return rows

    def _asks(self, index: int) -> list[tuple[Ask, int]]:
        """What a unit asks for, and through how many of its layers that goes."""
        unit = self.stream.units[index]
        inside = {self.network.by_name[step.layer].output for step in unit.steps}
        found: dict[int, tuple[tuple[int, ...], int]] = {}
        for at, step in enumerate(unit.steps):
            for name in self.network.activations(self.network.by_name[step.layer]):
                if self._origins.get(name) and name not in inside:
                    stops = tuple(stop for _, stop in self.reads(index, name))
                    for producer, own in self._through(name, stops):
                        before, layers = found.get(producer, (own, len(unit.steps) - at))
                        found[producer] = tuple(map(max, before, own)), layers
        return [(Ask(producer, stops), layers) for producer, (stops, layers) in found.items()]

    @cached_property
    def _origins(self) -> Mapping[str, bool]:
        """The tensors that are made of what the stream computes, looking through layers that cost nothing."""
        found: dict[str, bool] = {}
        for layer in self.network.layers:
            found[layer.output] = layer.name in self.place or any(found.get(name) for name in layer.inputs)
        return found

    def _through(self, name: str, stops: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(unit of the stream, rows wanted of it) for a wish for rows of a tensor; concats and slices pass it on."""
        layer = self.network.producers[name]
        if layer.name in self.place:
            yield self.place[layer.name], stops
            return
        for source in self.network.activations(layer):
            if self._origins.get(source):
                rows = self._rows_needed(layer, source)
                yield from self._through(source, tuple(rows[stop - 1][1] if stop else 0 for stop in stops))


def _hull(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])
