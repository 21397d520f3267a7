"""Speeds of actors relative to each other along a spanning tree of channels, and whether other channels agree."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ...errors import ModelError
from ..graph import Channel, Graph, quoted

MOST_BITS = 4096  # of a number of cycles: far beyond use, and still printable


@dataclass(frozen=True)
class ChannelTraversal:
    """A channel traversed forwards or backwards."""

    channel: Channel
    forwards: bool

    @property
    def start(self) -> str:
        return self.channel.source if self.forwards else self.channel.target

    @property
    def end(self) -> str:
        return self.channel.target if self.forwards else self.channel.source

    @property
    def gain(self) -> Fraction:
        """Cycles of the actor it leads to, per cycle of the one it leaves."""
        produced, consumed = self.channel.production.total, self.channel.consumption.total
        return Fraction(produced, consumed) if self.forwards else Fraction(consumed, produced)


@dataclass(frozen=True)
class RelativeRates:
    """For each actor: its component, its cycles per cycle of the component's first actor, and how it was reached."""

    component: Mapping[str, int]
    speed: Mapping[str, Fraction]
    reached_by: Mapping[str, ChannelTraversal | None]

    def fits(self, channel: Channel) -> bool:
        """Whether as many tokens are produced as consumed; channels used only by initial phases always fit."""
        produced = self.speed[channel.source] * channel.production.total
        return produced == self.speed[channel.target] * channel.consumption.total


def relative_rates(graph: Graph) -> RelativeRates:
    """Speeds along a breadth-first tree of each component, so that paths through it are short."""
    component: dict[str, int] = {}
    speed: dict[str, Fraction] = {}
    reached_by: dict[str, ChannelTraversal | None] = {}
    around = _steps(graph)
    for number, root in enumerate(graph.actors):
        if root.name in speed:
            continue
        component[root.name], speed[root.name], reached_by[root.name] = number, Fraction(1), None
        waiting = deque([root.name])
        while waiting:
            here = waiting.popleft()
            for step in around[here]:
                if step.end not in speed:
                    component[step.end], reached_by[step.end] = number, step
                    speed[step.end] = _bounded(graph, speed[here] * step.gain)
                    waiting.append(step.end)
    return RelativeRates(component, speed, reached_by)


def tying(graph: Graph) -> Iterator[Channel]:
    """The channels that relate speeds; channels used only by initial phases do not."""
    return (channel for channel in graph.channels if channel.production.total)


def too_large(graph: Graph) -> ModelError:
    return ModelError(
        f"graph {quoted(graph.name)}: its repetition vector has numbers of more than {MOST_BITS * 3 // 10:,} digits. "
        "Check the rates: along some path they multiply without end"
    )


def _steps(graph: Graph) -> Mapping[str, list[ChannelTraversal]]:
    around: dict[str, list[ChannelTraversal]] = {actor.name: [] for actor in graph.actors}
    for channel in tying(graph):
        around[channel.source].append(ChannelTraversal(channel, forwards=True))
        around[channel.target].append(ChannelTraversal(channel, forwards=False))
    return around


def _bounded(graph: Graph, speed: Fraction) -> Fraction:
    if max(speed.numerator.bit_length(), speed.denominator.bit_length()) > MOST_BITS:
        raise too_large(graph)
    return speed
