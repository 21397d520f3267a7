"""The layers of each processor cut into subnets, run one after the other, so that processors never wait in a circle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH = 32  # sets of finished layers that the search follows side by side


@dataclass(frozen=True)
class Wiring:
    """Layers in an order in which they can run, what each waits for, and where each runs."""

    layers: tuple[str, ...]
    before: Mapping[str, frozenset[str]]
    processor: Mapping[str, str]


def cut(wiring: Wiring) -> dict[str, tuple[tuple[str, ...], ...]]:
    """For each processor its subnets, in the order in which it runs them; together as few as the search finds.

    A subnet starts when all that it reads is there, and hands over its results when it ends. Subnets are runs of one
    global order: each reads only from earlier ones, so that executing them in that order never blocks. (M Algorithm 2
    as printed cuts each processor's layers alone, and two processors may then wait for each other.) A run takes
    every layer that is ready: leaving one for later never saves a run. What is left to choose is the sequence of
    processors; the search follows the sets of finished layers that hold most, so it is exact while there are no
    more than `WIDTH` of them that none includes. At last each layer moves to the latest run that serves its readers, so
    that a subnet hands over what others wait for without doing what they do not.
    """
    sequence = _sequence(_Bits(wiring))
    runs = _latest(wiring, sequence)
    subnets: dict[str, list[tuple[str, ...]]] = {}
    for run, processor in enumerate(sequence):
        layers = tuple(layer for layer in wiring.layers if runs[layer] == run)
        if layers:
            subnets.setdefault(processor, []).append(layers)
    return {processor: tuple(found) for processor, found in subnets.items()}


class _Bits:
    """The wiring with sets of layers as the bits of a number."""

    def __init__(self, wiring: Wiring) -> None:
        bit = {layer: 1 << i for i, layer in enumerate(wiring.layers)}
        self.everything = (1 << len(wiring.layers)) - 1
        self.mine: dict[str, list[tuple[int, int]]] = {}  # of each processor: a layer, and what it waits for
        for layer in wiring.layers:
            waits = sum(bit[other] for other in wiring.before[layer])
            self.mine.setdefault(wiring.processor[layer], []).append((bit[layer], waits))

    def run(self, done: int, processor: str) -> int:
        """What is finished when the processor has run all it can."""
        for layer, waits in self.mine[processor]:
            if waits & done == waits:
                done |= layer
        return done


def _sequence(bits: _Bits) -> tuple[str, ...]:
    """The processors in the order in which they run, breadth first over sets of finished layers."""
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
    """The sets that no other includes, those with most layers first, and not more than are followed."""
    kept: dict[int, tuple[str, ...]] = {}
    for done in sorted(front, key=lambda done: -done.bit_count()):
        if not any(done & other == done for other in kept):
            kept[done] = front[done]
        if len(kept) == WIDTH:
            break
    return kept


def _latest(wiring: Wiring, sequence: Sequence[str]) -> dict[str, int]:
    """The run in which each layer is computed: the last of its processor's that comes before all who read it."""
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
