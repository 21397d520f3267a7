"""Executes a network in the order of a CSDF schedule, each channel a rolling buffer of rows: a judge of conversions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from edgewright.dataflow import Graph
from edgewright.network import Array, Network, Region
from edgewright.network.kernels import Operand, compute

ROWS = 1
Firing = tuple[str, int]


def row_count(shape: Sequence[int]) -> int:
    return shape[ROWS] if len(shape) == 4 and shape[0] == 1 else 1


class Tokens:
    """The channels of a graph while it runs without time, one firing after the other."""

    def __init__(self, graph: Graph, firings: Mapping[str, int], capacities: Mapping[str, int] | None = None) -> None:
        self.graph = graph
        self.left = dict(firings)
        self.fired = dict.fromkeys(firings, 0)
        self.held = {channel.name: channel.tokens for channel in graph.channels}
        self.most = dict(self.held)
        self.capacities = capacities or {}

    def ready(self) -> list[str]:
        return [name for name in self.left if self.left[name] and self._can_fire(name)]

    def _can_fire(self, name: str) -> bool:
        at = self.fired[name]
        if any(self.held[c.name] < c.consumption.at(at) for c in self.graph.inputs[name]):
            return False
        return all(
            self.held[c.name] + c.production.at(at) <= self.capacities.get(c.name, 1 << 60)
            for c in self.graph.outputs[name]
        )

    def fire(self, name: str) -> None:
        """Space is claimed before anything is given back."""
        at = self.fired[name]
        for channel in self.graph.outputs[name]:
            self.held[channel.name] += channel.production.at(at)
            self.most[channel.name] = max(self.most[channel.name], self.held[channel.name])
        for channel in self.graph.inputs[name]:
            self.held[channel.name] -= channel.consumption.at(at)
        self.fired[name] += 1
        self.left[name] -= 1


def schedule(
    graph: Graph,
    firings: Mapping[str, int],
    pick: Callable[[list[str]], str],
    capacities: Mapping[str, int] | None = None,
) -> tuple[list[Firing], Mapping[str, int]]:
    """Firings of one iteration in the order that `pick` chooses, and the most tokens each channel held."""
    tokens, order = Tokens(graph, firings, capacities), []
    while ready := tokens.ready():
        name = pick(ready)
        order.append((name, tokens.fired[name]))
        tokens.fire(name)
    assert not any(tokens.left.values()), f"stuck with {tokens.left} to fire"
    return order, tokens.most


class Rolling:
    """A buffer of `capacity` rows: row r lies in slot r modulo capacity, and no row is written over a live one."""

    def __init__(self, capacity: int) -> None:
        self.slots: list[tuple[int, Array] | None] = [None] * capacity
        self.made = self.freed = 0

    def write(self, rows: Sequence[Array]) -> None:
        for row in rows:
            slot = self.made % len(self.slots)
            assert self.slots[slot] is None, f"row {self.made} would overwrite row {self.slots[slot][0]}"
            self.slots[slot] = (self.made, row)
            self.made += 1

    def read(self, row: int) -> Array:
        kept = self.slots[row % len(self.slots)]
        assert kept is not None and kept[0] == row, f"row {row} is not there"
        return kept[1]

    def free(self, count: int) -> None:
        for _ in range(count):
            assert self.slots[self.freed % len(self.slots)] is not None, f"row {self.freed} was never made"
            self.slots[self.freed % len(self.slots)] = None
            self.freed += 1


def run_rows(
    network: Network,
    graph: Graph,
    order: Sequence[Firing],
    capacities: Mapping[str, int],
    inputs: Mapping[str, Array],
) -> dict[str, Array]:
    """The network's outputs, computed phase by phase in rolling buffers of these capacities (tokens are rows)."""
    carriers = [c for c in graph.channels if c.token_bytes and not c.is_self_loop]
    buffers = {channel.name: Rolling(capacities[channel.name]) for channel in carriers}
    made: dict[str, list[Array]] = {name: [] for name in network.outputs if name not in network.constants}
    for name, firing in order:
        incoming = [c for c in carriers if c.target == name]
        rows = _rows(network, graph, name, firing, incoming, buffers, inputs, made)
        for channel in carriers:
            if channel.source == name:
                buffers[channel.name].write(rows)
        for channel in incoming:
            buffers[channel.name].free(channel.consumption.at(firing))
    fixed = {name: network.constants[name] for name in network.outputs if name in network.constants}
    given = {name: inputs[name] for name in network.outputs if name in inputs}  # an input may be an output too
    found = {name: np.concatenate(rows, axis=ROWS) if len(rows) > 1 else rows[0] for name, rows in made.items() if rows}
    return {**fixed, **given, **found}


def _rows(network, graph, name, firing, incoming, buffers, inputs, made) -> list[Array]:
    """What one firing hands on, row by row."""
    count = graph.by_name[name].phases
    if name in network.by_name:
        layer = network.by_name[name]
        result = network.tensors[layer.output]
        region = _part(result.shape, count, firing)
        sources = {c.source: buffers[c.name] for c in incoming}
        operands = [
            Operand(_gather(network, graph, tensor, need, sources), need, network.tensors[tensor])
            for tensor, need in zip(layer.inputs, layer.op.needs(region, network.shapes(layer)), strict=True)
        ]
        return _split(compute(layer.op, region, operands, result, network.arithmetic))
    if name in network.inputs:
        return _split(inputs[name][_part(inputs[name].shape, count, firing).slices])
    (channel,) = incoming
    tensor = name.removesuffix(".out")
    start, stop = _cuts(row_count(network.tensors[tensor].shape), count, firing)
    made[tensor] += [buffers[channel.name].read(row) for row in range(start, stop)]
    return []


def _gather(network: Network, graph: Graph, tensor: str, need: Region, sources: Mapping[str, Rolling]) -> Array:
    if tensor in network.constants:
        return network.constants[tensor][need.slices]
    shape = network.tensors[tensor].shape
    if need.is_empty:
        return np.empty(need.shape, network.tensors[tensor].dtype.numpy)
    source = network.producers[tensor].name if tensor in network.producers else tensor
    if row_count(shape) == 1:
        return sources[source].read(0)[need.slices]
    rows = [sources[source].read(row) for row in range(*need.bounds[ROWS])]
    return np.concatenate(rows, axis=ROWS)[need.with_axis(ROWS, (0, len(rows))).slices]


def _part(shape: Sequence[int], count: int, firing: int) -> Region:
    whole = Region.whole(shape)
    return whole.with_axis(ROWS, _cuts(shape[ROWS], count, firing)) if count > 1 else whole


def _cuts(rows: int, count: int, firing: int) -> tuple[int, int]:
    return rows * firing // count, rows * (firing + 1) // count


def _split(value: Array) -> list[Array]:
    if row_count(value.shape) == 1:
        return [value]
    return [value[:, i : i + 1] for i in range(value.shape[ROWS])]
