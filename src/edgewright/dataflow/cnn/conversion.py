"""CNNs as dataflow: one actor for each layer, one channel for each pair of layers joined by a tensor.

A layer that runs by rows reads rows that its earlier phases have read already. CSDF has no reading without consuming,
so a single channel cannot express both what a phase needs and what it frees. There are three ways:

window     Two channels. One carries the rows: they are consumed by the phase that reads them last, so its capacity
           is a rolling window, and a schedule that respects it never overwrites a row that is still to be read. The
           other, of tokens without bytes, consumes rows when they are first needed, so no phase starts too early.
           If no row is read twice one channel does both.
self-loop  As printed (M Algorithm 4): rows are consumed when first needed, and a self-loop represents those that are
           kept. They lie in the input buffer already, so the loop counts no bytes (as in M table 4.1). The capacity
           can be too small for a rolling window: with padding, the first phase needs fewer rows than later ones.
resend     As Ex2 of M table 4.1: an input with as many phases as its only reader sends each of them all that it reads,
           including the overlap. Other channels are windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from ... import text
from ...errors import ModelError, Unsupported
from ...network import Interval, Layer, Network, Tensor, describe
from ...program.steps import has_rows, row_count
from ..graph import Actor, Channel, Graph, Rates, serial_loop
from ..graph import fold as folded
from .counts import input_actors, output_actors
from .counts import phases as by_rows
from .durations import Given, durations
from .rows import parts, reads, steps, use

MOST_ROWS = 100_000  # of an image
Reuse = Literal["window", "self-loop", "resend"]
Tokens = Literal["rows", "elements"]


def cnn_to_sdf(network: Network, *, serial: bool = False, times: Given | None = None) -> Graph:
    """The network as an SDF graph (M Algorithm 1): each layer fires once, a token is an element.

    Inputs and outputs are actors too.
    """
    conversion = _Conversion(network, dict.fromkeys(by_rows(network), 1), "window", "elements", serial, times)
    return conversion.graph()


def cnn_to_csdf(
    network: Network,
    phases: Mapping[str, int] | None = None,
    *,
    reuse: Reuse = "window",
    tokens: Tokens = "rows",
    serial: bool = True,
    fold: bool = False,
    times: Given | None = None,
) -> Graph:
    """The network as a CSDF graph whose actors run by phases (M Algorithm 4).

    The module's docstring explains `reuse`, the model of overlapping windows. `phases` override those of Algorithm 3
    for a layer, or for an input or output under its actor's name. A token is a row of a tensor (the whole tensor if it
    is not an image), or an element as in the papers. `serial` gives each actor a self-loop, so that its firings do not
    overlap. `times` are of whole layers, distributed over the phases by their work; without them a phase takes as long
    as it has MACs, or elements if it multiplies nothing. `fold` cuts cycles to their period (rule of B).
    """
    batches = [name for name in network.inputs if _is_batch(network.tensors[name])]
    if batches:
        shape = describe.shape(network.tensors[batches[0]].shape)
        raise Unsupported(f"input '{batches[0]}' is {shape}: phases run on one image at a time; use batch 1")
    for tensor in network.tensors.values():
        if has_rows(tensor.shape) and tensor.shape[1] > MOST_ROWS:
            raise Unsupported(f"'{tensor.name}' has {tensor.shape[1]:,} rows, each a phase; {MOST_ROWS:,} is the limit")
    chosen = {**by_rows(network), **_checked(network, phases or {})}
    graph = _Conversion(network, chosen, reuse, tokens, serial, times).graph()
    return folded(graph) if fold else graph


def _is_batch(tensor: Tensor) -> bool:
    return len(tensor.shape) == 4 and not has_rows(tensor.shape)


def _checked(network: Network, phases: Mapping[str, int]) -> Mapping[str, int]:
    known = by_rows(network)
    actors = {name: tensor for tensor, name in (*input_actors(network).items(), *output_actors(network).items())}
    for name, count in phases.items():
        if name not in known:
            raise ModelError(f"phases are given for '{name}', but network '{network.name}' has no such layer")
        tensor = actors[name] if name in actors else network.by_name[name].output
        most = row_count(network.tensors[tensor].shape)
        if not 1 <= count <= most:
            raise ModelError(f"'{name}' cannot run in {count} phases: its output has {text.plural(most, 'row')}")
    return phases


@dataclass(frozen=True)
class _Edge:
    """A tensor between the actor that makes it and one that reads it."""

    tensor: Tensor
    source: str
    target: str
    reader: Layer | None  # None for an output of the network
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True)
class _Conversion:
    network: Network
    phases: Mapping[str, int]
    reuse: Reuse
    tokens: Tokens
    serial: bool
    times: Given | None

    def graph(self) -> Graph:
        channels = [channel for edge in self.edges() for channel in self.channels(edge)]
        actors = tuple(self.actors())
        loops = [serial_loop(actor, "one phase at a time") for actor in actors] if self.serial else []
        return Graph(self.network.name, actors, (*channels, *loops))

    @cached_property
    def inputs(self) -> Mapping[str, str]:
        return input_actors(self.network)

    @cached_property
    def outputs(self) -> Mapping[str, str]:
        return output_actors(self.network)

    def actors(self) -> Iterator[Actor]:
        times = durations(self.network, self.phases, self.times)
        for name, count in self.phases.items():
            yield Actor(name, count, times[name], note=self.notes[name])

    @cached_property
    def notes(self) -> Mapping[str, str]:
        tensors = self.network.tensors
        notes = {name: f"input {tensors[tensor]}" for tensor, name in self.inputs.items()}
        notes |= {name: f"output {tensors[tensor]}" for tensor, name in self.outputs.items()}
        for layer in self.network.layers:
            notes[layer.name] = describe.operator(layer.op, self.network.shapes(layer))
        return notes

    def edges(self) -> Iterator[_Edge]:
        """One for each tensor and each actor that reads it."""
        made = {**self.inputs, **{layer.output: layer.name for layer in self.network.layers}}
        for name, source in made.items():
            readers: list[tuple[str, Layer | None]] = [(one.name, one) for one in self.network.readers[name]]
            if name in self.outputs:
                readers.append((self.outputs[name], None))
            for target, reader in readers:
                note = self.kind(source, target, reader) if len(readers) > 1 else ""
                yield _Edge(self.network.tensors[name], source, target, reader, note)

    def kind(self, source: str, target: str, reader: Layer | None) -> str:
        """A description of one of several channels out of a layer."""
        joins = reader is not None and len(self.network.activations(reader)) > 1
        return f"{'skip connection' if joins else 'branch'} {source} -> {target}"

    def channels(self, edge: _Edge) -> Iterator[Channel]:
        rows, count = row_count(edge.tensor.shape), self.phases[edge.target]
        made = [stop - start for start, stop in parts(rows, self.phases[edge.source])]
        read = self.read(edge, count)
        going = use(read, rows)
        if self.reuse == "resend" and going.has_overlap and self.is_resent(edge):
            lengths = [stop - start for start, stop in read]
            yield self.channel(edge, lengths, lengths)
        elif self.reuse == "self-loop":
            yield self.channel(edge, made, steps(going.needed))
            if going.has_overlap:
                yield self.reuse_loop(edge, going.kept)
        else:
            yield self.channel(edge, made, steps(going.done))
            if going.has_overlap:
                needed = self.channel(edge, made, steps(going.needed))
                note = f"rows of {edge.source} that {edge.target} must find; they are freed in {edge.name}"
                yield replace(needed, name=f"{edge.name}.needed", token_bytes=0, note=note)

    def read(self, edge: _Edge, count: int) -> tuple[Interval, ...]:
        if edge.reader is None:  # an output is taken as it is
            return parts(row_count(edge.tensor.shape), count)
        return reads(self.network, edge.reader, edge.tensor.name, count)

    def is_resent(self, edge: _Edge) -> bool:
        name = edge.tensor.name
        is_alone = name in self.inputs and self.network.sole_reader(name) is not None
        return is_alone and self.phases[edge.source] == self.phases[edge.target]

    def channel(self, edge: _Edge, made: Iterable[int], used: Iterable[int]) -> Channel:
        row = edge.tensor.size // row_count(edge.tensor.shape)
        tokens, size = (1, row * edge.tensor.dtype.bytes) if self.tokens == "rows" else (row, edge.tensor.dtype.bytes)
        production = Rates(tuple(tokens * rows for rows in made))
        consumption = Rates(tuple(tokens * rows for rows in used))
        return Channel(edge.name, edge.source, edge.target, production, consumption, 0, size, edge.note)

    def reuse_loop(self, edge: _Edge, kept: tuple[int, ...]) -> Channel:
        """The rows kept for the next phase, as the printed algorithm passes them on."""
        loop = self.channel(edge, kept, (0, *kept[:-1]))
        note = f"rows of {edge.source} that {edge.target} reads again"
        return replace(loop, name=f"{edge.name}.reuse", source=edge.target, token_bytes=0, note=note)
