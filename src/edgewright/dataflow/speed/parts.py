"""The parts of a graph that set their own pace: actors that wait for each other again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..checks.demand import Slot, slots
from ..components import strong_components
from ..graph import Actor, Channel, Graph


@dataclass(frozen=True)
class Part:
    """Actors that wait for each other, directly or through others, and what they wait for again and again."""

    actors: Sequence[Actor]
    limits: Sequence[Slot]

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(slot.channel for slot in self.limits if not slot.is_room)


def parts(graph: Graph, capacities: Mapping[str, int] | None) -> Iterator[Part]:
    """The strongly connected parts in which anything is waited for."""
    limits = [slot for slot in slots(graph, capacities) if slot.filled.total]
    number = strong_components([actor.name for actor in graph.actors], [(s.taker, s.filler) for s in limits])
    actors: dict[int, list[Actor]] = {}
    inside: dict[int, list[Slot]] = {}
    for actor in graph.actors:
        actors.setdefault(number[actor.name], []).append(actor)
    for slot in limits:
        if number[slot.taker] == number[slot.filler]:
            inside.setdefault(number[slot.taker], []).append(slot)
    for part, found in inside.items():
        yield Part(actors[part], found)


def is_serial(channel: Channel) -> bool:
    """Whether it is a self-loop of one token that each firing takes and leaves: firings do not overlap."""
    made, taken = channel.production, channel.consumption
    rates = {*made.initial, *made.cycle, *taken.initial, *taken.cycle}
    return channel.is_self_loop and channel.tokens == 1 and rates == {1}
