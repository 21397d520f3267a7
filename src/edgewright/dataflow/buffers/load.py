"""What the channels of a graph hold together while its actors fire one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle, islice

from ..graph import Graph, Rates
from .sized import Weight, price


@dataclass(frozen=True, eq=False)
class Load:
    """What each firing adds at its start and gives back at its end; self-loops are left out."""

    base: int  # held before anything fires
    rises: Mapping[str, Sequence[int]]  # by actor, firing after firing
    falls: Mapping[str, Sequence[int]]

    def peak(self, runs: Iterable[tuple[str, int]]) -> int:
        """The most that is held at once when actors fire in this order."""
        held = peak = self.base
        done = dict.fromkeys(self.rises, 0)
        for actor, count in runs:
            before = done[actor]
            done[actor] = after = before + count
            rises, falls = self.rises[actor], self.falls[actor]
            for firing in range(before, after):
                held += rises[firing]
                if held > peak:
                    peak = held
                held -= falls[firing]
        return peak

    def least_peak(self) -> int:
        """What no order can go below: each firing holds all that it consumes and produces."""
        firings = (
            rise + fall
            for actor in self.rises
            for rise, fall in zip(self.rises[actor], self.falls[actor], strict=True)
        )
        return max(self.base, max(firings, default=0))


def load(graph: Graph, firings: Mapping[str, int], weight: Weight) -> Load:
    """The load of so many firings of each actor."""
    rises = {name: [0] * count for name, count in firings.items()}
    falls = {name: [0] * count for name, count in firings.items()}
    channels = [channel for channel in graph.channels if not channel.is_self_loop]
    for channel in channels:
        each = price(channel, weight)
        _add(rises[channel.source], channel.production, each)
        _add(falls[channel.target], channel.consumption, each)
    return Load(sum(price(one, weight) * one.tokens for one in channels), rises, falls)


def _add(totals: list[int], rates: Rates, each: int) -> None:
    moved = islice(chain(rates.initial, cycle(rates.cycle)), len(totals))
    totals[:] = [total + each * tokens for total, tokens in zip(totals, moved, strict=True)]
