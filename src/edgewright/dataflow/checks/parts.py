"""The parts of a graph that set their own pace: actors that wait for each other again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..components import strong_components
from ..graph import Actor, Channel, Graph
from .demand import Supply


@dataclass(frozen=True)
class Component:
    """Actors that wait for each other, directly or through others, and what they wait for."""

    actors: Sequence[Actor]
    limits: Sequence[Supply]

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(slot.channel for slot in self.limits if not slot.is_room)


def parts(graph: Graph, limits: Sequence[Supply]) -> Iterator[Component]:
    """The strongly connected parts in which anything of `limits` is waited for."""
    number = strong_components([actor.name for actor in graph.actors], [(s.taker, s.filler) for s in limits])
    actors: dict[int, list[Actor]] = {}
    inside: dict[int, list[Supply]] = {}
    for actor in graph.actors:
        actors.setdefault(number[actor.name], []).append(actor)
    for slot in limits:
        if number[slot.taker] == number[slot.filler]:
            inside.setdefault(number[slot.taker], []).append(slot)
    for part, found in inside.items():
        yield Component(actors[part], found)
