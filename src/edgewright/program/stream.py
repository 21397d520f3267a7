"""A stretch of layers carried out row by row, on demand: the phases of M 4 without a table of phases.

The last layers are driven from top to bottom. A layer that lacks rows asks its producers for them, one step at a
time, so that every row is computed as late as possible and its memory is free again as early as possible. Skip
connections and concats need no rule of their own: their rows stay needed for longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..network import Interval, Network
from .rows import rows_needed
from .steps import Step, Stream


@dataclass(frozen=True)
class Ask:
    """Before its k-th step, a layer wants `stops[k]` rows of another layer of the stream."""

    producer: int  # its place in the stream
    stops: tuple[int, ...]


@dataclass(frozen=True)
class Flow:
    """A stream with all that follows from its operators: who asks whom, and for how much."""

    network: Network
    stream: Stream

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Where in the stream each layer stands."""
        return {step.layer: index for index, step in enumerate(self.stream.steps)}

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """Rows of each layer's output."""
        tensors, layers = self.network.tensors, self.network.by_name
        return tuple(tensors[layers[step.layer].output].shape[self.stream.axis] for step in self.stream.steps)

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Rows that each layer computes in one step."""
        return tuple(step.region.shape[self.stream.axis] for step in self.stream.steps)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Steps until each layer is complete."""
        return tuple(-(-height // rows) for height, rows in zip(self.heights, self.rows, strict=True))

    @cached_property
    def sinks(self) -> tuple[int, ...]:
        return tuple(self.place[name] for name in self.stream.sinks)

    @cached_property
    def rounds(self) -> int:
        """The last layers advance in this many rounds, in proportion to their heights."""
        return max(self.heights[sink] for sink in self.sinks)

    def wanted(self, sink: int, rounds: int) -> int:
        """Rows of a last layer that must be there after so many rounds."""
        return -(-rounds * self.heights[sink] // self.rounds)

    @cached_property
    def asks(self) -> tuple[tuple[Ask, ...], ...]:
        """For each layer what it asks for, in the order in which it asks."""
        return tuple(self._asks(index) for index in range(len(self.stream.steps)))

    def reads(self, index: int, tensor: str) -> tuple[Interval, ...]:
        """The rows of a tensor that each step of a layer reads."""
        layer = self.network.by_name[self.stream.steps[index].layer]
        rows = rows_needed(self.network, layer, tensor, self.stream.axis)
        assert rows is not None, (layer, tensor)
        size = self.rows[index]
        steps = range(0, self.heights[index], size)
        return tuple((rows[y][0], rows[min(y + size, len(rows)) - 1][1]) for y in steps)

    def order(self) -> Iterator[tuple[int, int]]:
        """The steps as they run: (place in the stream, how many steps this layer has done before)."""
        done = [0] * len(self.stream.steps)  # steps of each layer
        have = [0] * len(self.stream.steps)  # rows of each layer
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
        axis = self.stream.axis
        for index, done in self.order():
            step, rows = self.stream.steps[index], self.rows[index]
            bounds = (done * rows, min((done + 1) * rows, self.heights[index]))
            yield Step(step.layer, step.region.with_axis(axis, bounds), step.sweep)

    def _asks(self, index: int) -> tuple[Ask, ...]:
        layer = self.network.by_name[self.stream.steps[index].layer]
        found: dict[int, tuple[int, ...]] = {}
        for name in self.network.activations(layer):
            if self._origins.get(name):
                stops = tuple(stop for _, stop in self.reads(index, name))
                for producer, own in self._through(name, stops):
                    found[producer] = tuple(map(max, found.get(producer, own), own))
        return tuple(Ask(producer, stops) for producer, stops in found.items())

    @cached_property
    def _origins(self) -> Mapping[str, bool]:
        """The tensors that are made of what the stream computes, looking through layers that cost nothing."""
        found: dict[str, bool] = {}
        for layer in self.network.layers:
            found[layer.output] = layer.name in self.place or any(found.get(name) for name in layer.inputs)
        return found

    def _through(self, name: str, stops: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(layer of the stream, rows wanted of it) for a wish for rows of a tensor; concats and slices pass it on."""
        layer = self.network.producers[name]
        if layer.name in self.place:
            yield self.place[layer.name], stops
            return
        for source in self.network.activations(layer):
            if self._origins.get(source):
                rows = rows_needed(self.network, layer, source, self.stream.axis)
                assert rows is not None, layer
                yield from self._through(source, tuple(rows[stop - 1][1] if stop else 0 for stop in stops))
