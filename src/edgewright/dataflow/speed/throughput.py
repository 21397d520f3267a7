"""The period of a graph: in closed form where actors wait only for themselves, else by its cycles."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ...errors import ModelError
from ..checks.components import Component, is_serial, pacing_components
from ..checks.consistency import cycles
from ..checks.liveness import blocked
from ..graph import Actor, Graph
from .ratio import cycle_ratio
from .timing import check_times


def period(graph: Graph, capacities: Mapping[str, int] | None = None) -> Fraction:
    """Time per iteration of self-timed execution; 0 where nothing limits how often actors fire.

    The slowest part counts: what one strongly connected part gives to others can pile up between them. The layers of a
    CNN, each busy with one firing at a time, are such parts, and the one with the most to do sets the period.
    """
    check_times(graph)
    if any(actor.initial_phases for actor in graph.actors):
        _check_live(graph, capacities)
    whole = cycles(graph)
    return max(
        (_period(graph, part, whole, capacities) for part in pacing_components(graph, capacities)),
        default=Fraction(0),
    )


def _period(
    graph: Graph, part: Component, whole: Mapping[str, int], capacities: Mapping[str, int] | None
) -> Fraction:
    if all(is_serial(supply.channel) and supply.first > 0 for supply in part.limits):
        return max(whole[actor.name] * _busy(actor) for actor in part.actors)
    alone = Graph(graph.name, tuple(part.actors), part.channels)
    inside = {name: size for name, size in (capacities or {}).items() if name in alone.channel}
    found = cycle_ratio(alone, inside)
    if found is None:
        _check_live(graph, capacities)
        raise AssertionError("a part that deadlocks makes the graph deadlock")
    first = part.actors[0].name
    return found * (whole[first] // cycles(alone)[first])


def _busy(actor: Actor) -> Fraction:
    """Time of one cycle through its phases."""
    return sum(map(Fraction, (actor.times or ())[actor.initial_phases :]), Fraction(0))


def _check_live(graph: Graph, capacities: Mapping[str, int] | None) -> None:
    deadlock = blocked(graph, capacities)
    if deadlock is not None:
        raise ModelError(str(deadlock))
