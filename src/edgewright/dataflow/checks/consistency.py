"""How often each actor runs in one iteration, so that every channel ends as it began; not whether it can."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from math import lcm

from ...errors import ModelError
from ..graph import Graph
from .mismatch import Mismatch, mismatch_of
from .speeds import MOST_BITS, Speeds, speeds, too_large, tying

_LOOKED_AT = 50  # channels that do not fit, of which the one with the shortest cycle is told


def repetitions(graph: Graph) -> Mapping[str, int]:
    """Firings of each actor in one iteration: the smallest that leave every channel as it was (M 2.5).

    Initial phases run before the first iteration and are not counted.
    """
    whole = cycles(graph)
    return {actor.name: whole[actor.name] * actor.phases for actor in graph.actors}


def cycles(graph: Graph) -> Mapping[str, int]:
    """Whole cycles through its phases that each actor makes in one iteration; smallest within each component."""
    found = speeds(graph)
    wrong = _mismatch(graph, found)
    if wrong is not None:
        raise ModelError(str(wrong))
    return _smallest(graph, found)


def mismatch(graph: Graph) -> Mismatch | None:
    """The undirected cycle of channels whose rates do not fit, or None where the graph is consistent."""
    return _mismatch(graph, speeds(graph))


def _mismatch(graph: Graph, found: Speeds) -> Mismatch | None:
    """The shortest of the first cycles that do not fit: easiest to look at."""
    wrong = islice((channel for channel in tying(graph) if not found.fits(channel)), _LOOKED_AT)
    told = [mismatch_of(graph, channel, found.reached_by) for channel in wrong]
    return min(told, key=lambda one: len(one.steps), default=None)


def _smallest(graph: Graph, found: Speeds) -> Mapping[str, int]:
    """The speeds scaled to whole numbers, component by component; one of them is 1, so that none are smaller."""
    scale: dict[int, int] = {}
    for name, speed in found.speed.items():
        part = found.component[name]
        scale[part] = lcm(scale.get(part, 1), speed.denominator)
        if scale[part].bit_length() > MOST_BITS:
            raise too_large(graph)
    return {a.name: int(found.speed[a.name] * scale[found.component[a.name]]) for a in graph.actors}
