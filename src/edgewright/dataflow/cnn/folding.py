"""Graphs with fewer phases that fire alike: an actor whose phases repeat within its cycle needs only one repetition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph import Actor, Graph, Rates


def fold(graph: Graph) -> Graph:
    """The graph with every actor's cycle cut to its shortest period.

    Firings, tokens and times stay what they were; the cycle only ends sooner (rule of B: an actor that does the same
    for every row has one phase). Where all actors fold, one iteration is a part of an image.
    """
    lengths = {actor.name: _period(graph, actor) for actor in graph.actors}
    channels = [
        replace(
            channel,
            production=_cut(channel.production, lengths[channel.source]),
            consumption=_cut(channel.consumption, lengths[channel.target]),
        )
        for channel in graph.channels
    ]
    actors = [_folded(actor, lengths[actor.name]) for actor in graph.actors]
    return Graph(graph.name, tuple(actors), tuple(channels))


def _period(graph: Graph, actor: Actor) -> int:
    series: list[Sequence[object]] = [channel.production.cycle for channel in graph.outputs[actor.name]]
    series += [channel.consumption.cycle for channel in graph.inputs[actor.name]]
    if actor.times is not None:
        series.append(actor.times[actor.initial_phases :])
    divisors = [n for n in range(1, actor.phases + 1) if actor.phases % n == 0]
    return next(n for n in divisors if all(one[n:] == one[:-n] for one in series))


def _folded(actor: Actor, length: int) -> Actor:
    times = None if actor.times is None else actor.times[: actor.initial_phases + length]
    return replace(actor, phases=length, times=times)


def _cut(rates: Rates, length: int) -> Rates:
    return Rates(rates.cycle[:length], rates.initial)
