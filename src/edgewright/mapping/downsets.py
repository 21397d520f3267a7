"""The cuts of a network: sets of layers that contain the producers of everything they read. A stage lies between two
cuts.

A pipeline never waits in a cycle exactly if its stages can be ordered so that none reads from a later one: then the
first k stages together are such a set (a downset of the order of layers), for every k. So pipelines are chains of
downsets from the empty set to all layers. A chain of n layers has n + 1 downsets, and networks with branches have a few
more; if there are too many, a subset is used, and the best chain in it is no longer proven best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .problem import Execution, MappingProblem

MOST = 1200  # downsets; keeps tables of their pairs small
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Downsets:
    """Downsets from the empty set to all layers, smallest first; `complete` if these are all."""

    problem: MappingProblem
    sets: tuple[int, ...]  # bit i is layer i
    complete: bool

    @cached_property
    def members(self) -> Flags:
        """A row for each downset, a column for each layer."""
        return np.array([[one >> i & 1 for i in range(len(self.problem.layers))] for one in self.sets], dtype=bool)

    @cached_property
    def is_stage(self) -> Flags:
        """Whether the downset of the column contains that of the row, and more."""
        inside = self.members.astype(np.float32)
        missing = inside @ (1 - inside).T
        sizes = inside.sum(1)
        return (missing == 0) & (sizes[:, None] < sizes[None, :])

    def layers(self, start: int, stop: int) -> tuple[int, ...]:
        """The layers between two downsets."""
        return tuple(np.flatnonzero(self.members[stop] & ~self.members[start]).tolist())

    def seconds(self, execution: Execution) -> Floats:
        """The time of each stage including transfers; infinite if there is no such stage, or it cannot be executed."""
        times = np.array(execution.seconds)
        possible = np.isfinite(times)
        sums = self.members @ np.where(possible, times, 0.0)
        seconds: Floats = sums[None, :] - sums[:, None]
        if not possible.all():
            blocked = self.members @ (~possible).astype(np.float64)
            seconds = np.where(blocked[None, :] > blocked[:, None], np.inf, seconds)
        if self.problem.has_moves:
            pool = self.problem.pool[execution.pool]
            moved = self.moved_outside if pool.is_gpu else self.moved
            seconds = seconds + pool.reading.seconds(1, 0) * moved.tensors_in + pool.reading.per_byte * moved.bytes_in
            seconds += pool.writing.latency * moved.tensors_out + pool.writing.per_byte * moved.bytes_out
        return np.where(self.is_stage, np.maximum(seconds, 0.0), np.inf)

    @cached_property
    def moved(self) -> StageTraffic:
        """The transfers between stages."""
        return self._moved(outside=False)

    @cached_property
    def moved_outside(self) -> StageTraffic:
        """Like `moved`, with inputs and outputs of the network."""
        return self._moved(outside=True)

    def _moved(self, outside: bool) -> StageTraffic:
        size = len(self.sets), len(self.sets)
        moved = StageTraffic(np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size))
        for tensor in self.problem.tensors:
            read = self.members[:, list(tensor.readers)].sum(1)
            there = np.ones(len(self.sets), bool) if tensor.producer is None else self.members[:, tensor.producer]
            if tensor.producer is not None or outside:
                moved.add_in(there[:, None] & (read[None, :] > read[:, None]), tensor.bytes)
            if tensor.producer is not None:
                waits = (read < len(tensor.readers)) | (tensor.is_output and outside)
                moved.add_out(~there[:, None] & (there & waits)[None, :], tensor.bytes)
        return moved

    @cached_property
    def working_bytes(self) -> Floats:
        """The most that a layer of each stage reads and writes: a lower bound for the stage's arena."""
        working = np.zeros((len(self.sets), len(self.sets)))
        sizes = self.problem.working_bytes
        for layer in sorted(range(len(sizes)), key=lambda layer: sizes[layer]):
            inside = self.members[:, layer]
            working[~inside[:, None] & inside[None, :]] = sizes[layer]
        return working


@dataclass(frozen=True)
class StageTraffic:
    """The tensors and bytes that each stage receives from others and sends to others."""

    tensors_in: Floats
    bytes_in: Floats
    tensors_out: Floats
    bytes_out: Floats

    def add_in(self, where: Flags, size: int) -> None:
        self.tensors_in[where] += 1
        self.bytes_in[where] += size

    def add_out(self, where: Flags, size: int) -> None:
        self.tensors_out[where] += 1
        self.bytes_out[where] += size


def find_cuts(problem: MappingProblem, most: int = MOST) -> Downsets:
    """All downsets; if there are more than `most`, those along a few orders of the layers."""
    waits = [sum(1 << other for other in before) for before in problem.before]
    everything = (1 << len(waits)) - 1
    cuts, front = {0}, {0}
    while front and len(cuts) <= most:
        front = {
            one | 1 << layer
            for one in front
            for layer, wait in enumerate(waits)
            if not one >> layer & 1 and wait & one == wait
        }
        cuts |= front
    complete = not front
    if not complete:
        cuts = {prefix for order in _orders(problem) for prefix in _prefixes(order)}
    assert everything in cuts
    return Downsets(problem, tuple(sorted(cuts, key=lambda one: (one.bit_count(), one))), complete)


def _orders(problem: MappingProblem) -> Iterator[Sequence[int]]:
    """The given order, depth first and breadth first; these finish branches one by one or side by side."""
    yield range(len(problem.layers))
    after: list[list[int]] = [[] for _ in problem.layers]
    for producer, reader, _ in problem.edges:
        after[producer].append(reader)
    for end in (-1, 0):
        waiting = [len(before) for before in problem.before]
        ready = [layer for layer, count in enumerate(waiting) if not count]
        order: list[int] = []
        while ready:
            layer = ready.pop(end)
            order.append(layer)
            for reader in dict.fromkeys(after[layer]):
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)
        yield order


def _prefixes(order: Sequence[int]) -> Iterator[int]:
    done = 0
    yield done
    for layer in order:
        done |= 1 << layer
        yield done
