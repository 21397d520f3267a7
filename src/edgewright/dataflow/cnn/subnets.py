"""Cuts the layers of each processor into subnets, run one after the other, so that processors never wait in a cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH = 32  # sets of finished layers that the search follows in parallel


@dataclass(frozen=True)
class Wiring:
    """Layers in a valid order, with dependencies and processors."""

    layers: tuple[str, ...]
    before: Mapping[str, frozenset[str]]
    processor: Mapping[str, str]


def cut(wiring: Wiring) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The subnets of each processor in execution order; their total is as small as the search finds.

    A subnet starts when all that it reads is available, and passes on its results when it ends. Subnets are runs of one
    global order: each reads only from earlier ones, so that executing them in that order never blocks. (M Algorithm 2
    as printed cuts each processor's layers separately, and two processors may then wait for each other.) A run takes
    every ready layer: postponing one never saves a run. What remains to choose is the sequence of processors; the
    search follows the largest sets of finished layers, and is exact while at most `WIDTH` of them are maximal. Finally
    each layer moves to the latest run that serves its readers, so that a subnet does not delay its results by work that
    others do not need.
    """
    sequence = _sequence(_Bits(wiring))
    runs = _latest(wiring, sequence)
    subnets: dict[str, list[tuple[str, ...]]] = {}
    for run, processor in enumerate(sequence):
        layers = tuple(layer for layer in wiring.layers if runs[layer] == run)
        if layers:
            subnets.setdefault(processor, []).append(layers)
    return {processor: tuple(names) for processor, names in subnets.items()}


class _Bits:
    """The wiring with sets of layers as bits of an integer."""

    def __init__(self, wiring: Wiring) -> None:
        bit = {layer: 1 << i for i, layer in enumerate(wiring.layers)}
        self.everything = (1 << len(wiring.layers)) - 1
        self.mine: dict[str, list[tuple[int, int]]] = {}  # of each processor: a layer, and its dependencies
        for layer in wiring.layers:
            waits = sum(bit[other] for other in wiring.before[layer])
            self.mine.setdefault(wiring.processor[layer], []).append((bit[layer], waits))

    def run(self, done: int, processor: str) -> int:
        """The finished layers after the processor has run all it can."""
        for layer, waits in self.mine[processor]:
            if waits & done == waits:
                done |= layer
        return done


def _sequence(bits: _Bits) -> tuple[str, ...]:
    """The sequence of processors, by breadth-first search over sets of finished layers."""
    front: dict[int, tuple[str, ...]] = {0: ()}
    while bits.everything not in front:
        following: dict[int, tuple[str, ...]] = {}
        for done, path in front.items():
            for processor in bits.mine:
                after = bits.run(done, processor)
                if after != done:
                    following.setdefault(after, (*path, processor))
        front = _largest(following)
    return front[bits.everything]


def _largest(front: Mapping[int, tuple[str, ...]]) -> dict[int, tuple[str, ...]]:
    """The maximal sets, largest first, at most as many as are followed."""
    kept: dict[int, tuple[str, ...]] = {}
    for done in sorted(front, key=lambda done: -done.bit_count()):
        if not any(done & other == done for other in kept):
            kept[done] = front[done]
        if len(kept) == WIDTH:
            break
    return kept


def _latest(wiring: Wiring, sequence: Sequence[str]) -> dict[str, int]:
    """The run in which each layer is computed: the last of its processor's before all its readers."""
    readers: dict[str, list[str]] = {layer: [] for layer in wiring.layers}
    for layer in wiring.layers:
        for other in wiring.before[layer]:
            readers[other].append(layer)
    runs: dict[str, int] = {}
    for layer in reversed(wiring.layers):
        here = wiring.processor[layer]
        limit = min((runs[one] - (wiring.processor[one] != here) for one in readers[layer]), default=len(sequence) - 1)
        runs[layer] = next(run for run in range(limit, -1, -1) if sequence[run] == here)
    return runs
