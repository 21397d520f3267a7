"""The period of a graph: closed-form if actors wait only for themselves, else a maximum ratio of time to delay.

Nothing is executed: this and self-timed execution reach the same result in two ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from ...errors import ModelError
from ..checks.consistency import cycles
from ..checks.demand import Component, pacing_components, supplies
from ..checks.liveness import blocked
from ..graph import Actor, Graph, check_times
from .circuit import Cycle, Gains, Ints, fresh, positive_cycles, wide_enough
from .precedence import PrecedenceGraph


def cycle_ratio(graph: Graph, capacities: Mapping[str, int] | None = None) -> Fraction | None:
    """Time per iteration with these capacities (unlimited if not given); None: deadlock."""
    supplies(graph, capacities)  # refuses invalid capacities
    if any(actor.initial_phases for actor in graph.actors) and blocked(graph, capacities):
        return None
    precedence = PrecedenceGraph(graph)
    precedence.limit_all(capacities)
    return greatest_ratio(precedence, fresh(precedence.nodes))


def greatest_ratio(precedence: PrecedenceGraph, parent: Ints) -> Fraction | None:
    """The maximum ratio of time to delay; None if a cycle has no delay, so that its firings deadlock."""
    if cycles_from(precedence, None, parent):
        return None
    ratio = Fraction(0)
    while cycles := _positive(precedence, _gain(precedence, ratio), parent):
        ratio = max(_ratios(precedence, cycles))
    return ratio / precedence.graph.time_unit


def cycles_from(precedence: PrecedenceGraph, period: Fraction | None, parent: Ints) -> list[Cycle]:
    """Some cycles that keep the period at that value (None: that keep the graph from running at all)."""
    ratio = None if period is None else period * precedence.graph.time_unit
    return _positive(precedence, _gain_at_least(precedence, ratio), parent)


def _positive(precedence: PrecedenceGraph, gain: Gains, parent: Ints) -> list[Cycle]:
    return positive_cycles(precedence.source, gain, parent, precedence.layers)


def _gain(precedence: PrecedenceGraph, ratio: Fraction) -> Gains:
    """Gains that are positive on a cycle with a greater ratio."""
    weight, delay = precedence.weight, precedence.delay
    kind = wide_enough((weight, ratio.denominator), (delay, ratio.numerator), nodes=precedence.nodes)
    return weight.astype(kind) * ratio.denominator - delay.astype(kind) * ratio.numerator


def _gain_at_least(precedence: PrecedenceGraph, ratio: Fraction | None) -> Gains:
    """Gains that are positive on a cycle with at least that ratio, or without delay.

    Each edge gains one more, which is less than one in total after scaling by the length of any cycle.
    """
    scale = precedence.nodes + 1
    weight, delay = precedence.weight, precedence.delay
    above, below = (1, 0) if ratio is None else (ratio.numerator, ratio.denominator)
    kind = wide_enough((weight, below * scale), (delay, above * scale), nodes=precedence.nodes + 1)
    return (weight.astype(kind) * below - delay.astype(kind) * above) * scale + 1


def _ratios(precedence: PrecedenceGraph, cycles: Iterable[Cycle]) -> Iterable[Fraction]:
    for cycle in cycles:
        weight = sum(int(precedence.weight[edge]) for edge in cycle)
        yield Fraction(weight, sum(int(precedence.delay[edge]) for edge in cycle))


def period(graph: Graph, capacities: Mapping[str, int] | None = None) -> Fraction:
    """Time per iteration of self-timed execution; 0 if nothing limits the firing rate.

    The slowest part counts: the output of one strongly connected part can accumulate before the next. The layers of a
    CNN, with one firing at a time, are such parts, and the one with the most work sets the period.
    """
    check_times(graph)
    if any(actor.initial_phases for actor in graph.actors):
        _check_live(graph, capacities)
    whole = cycles(graph)
    return max(
        (_period(graph, part, whole, capacities) for part in pacing_components(graph, capacities)),
        default=Fraction(0),
    )


def _period(graph: Graph, part: Component, whole: Mapping[str, int], capacities: Mapping[str, int] | None) -> Fraction:
    if all(supply.channel.is_serial and supply.first > 0 for supply in part.limits):
        return max(whole[actor.name] * _busy(actor) for actor in part.actors)
    alone = Graph(graph.name, tuple(part.actors), part.channels)
    inside = {name: size for name, size in (capacities or {}).items() if name in alone.channel}
    ratio = cycle_ratio(alone, inside)
    if ratio is None:
        _check_live(graph, capacities)
        raise AssertionError("a part that deadlocks makes the graph deadlock")
    first = part.actors[0].name
    return ratio * (whole[first] // cycles(alone)[first])


def _busy(actor: Actor) -> Fraction:
    """Time of one cycle through its phases."""
    return sum(map(Fraction, (actor.times or ())[actor.initial_phases :]), Fraction(0))


def _check_live(graph: Graph, capacities: Mapping[str, int] | None) -> None:
    deadlock = blocked(graph, capacities)
    if deadlock is not None:
        raise ModelError(str(deadlock))
