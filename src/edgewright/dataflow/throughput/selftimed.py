"""Self-timed execution: every firing starts as soon as possible, until the state recurs.

Parts of a graph that do not wait for each other in both directions may drift apart forever, so each strongly connected
part is run separately; the slowest gives the period of the graph.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from ...errors import InputError, Unsupported
from ..checks.consistency import repetitions
from ..checks.demand import Component, Demand, pacing_components, supplies
from ..checks.liveness import blocked
from ..graph import Actor, Graph, check_times, quoted
from .event_simulation import EventSimulator

MOST_WORK = 20_000_000  # firings and entries of stored states: some minutes, some hundred MB
MOST_SHOWN = 200_000  # firings listed: a few seconds, and far more than a picture has pixels


@dataclass(frozen=True)
class Firing:
    actor: str
    index: int  # from 0, including initial phases
    start: Fraction
    end: Fraction


@dataclass(frozen=True)
class SelfTimed:
    """The self-timed behaviour of a graph, with the times of its slowest part."""

    period: Fraction | None  # per iteration; None: it stops
    transient: Fraction = Fraction(0)  # before its behaviour repeats
    iterations: Fraction = Fraction(1)  # of the part before it returns to the same state
    firings: tuple[Firing, ...] = ()  # of the first iterations, as many as requested, by start


def self_timed(graph: Graph, capacities: Mapping[str, int] | None = None, iterations: int = 0) -> SelfTimed:
    """The period of self-timed execution and, if requested, the firings of the first iterations."""
    firings = first_firings(graph, capacities, iterations)
    counts = repetitions(graph)
    if _may_stop_unseen(graph) and blocked(graph, capacities):
        return SelfTimed(None, firings=firings)
    slowest = SelfTimed(Fraction(0), firings=firings)
    for part in pacing_components(graph, capacities):
        regime = _regime(graph, part, counts)
        if regime is None:
            return SelfTimed(None, firings=firings)
        if regime[0] > (slowest.period or 0):
            slowest = SelfTimed(*regime, firings)
    return slowest


def _may_stop_unseen(graph: Graph) -> bool:
    """Whether separate runs of parts may miss a deadlock: they omit channels used only by initial phases, and parts
    without execution time."""
    return any(actor.initial_phases or not _takes_time(actor) for actor in graph.actors)


def _takes_time(actor: Actor) -> bool:
    """Whether it takes time repeatedly; initial phases may."""
    assert actor.times is not None
    return any(actor.times[actor.initial_phases :])


def _regime(graph: Graph, part: Component, counts: Mapping[str, int]) -> tuple[Fraction, Fraction, Fraction] | None:
    """Period, transient and iterations until a state recurs, for one part; None if it stops."""
    if not any(map(_takes_time, part.actors)):
        return Fraction(0), Fraction(0), Fraction(1)
    unit = graph.time_unit
    clockwork = EventSimulator(part.actors, part.limits, unit)
    watched, every = _watched(part, counts)
    seen: dict[Hashable, tuple[int, int]] = {}
    done, work = -1, 0
    while clockwork.instant():
        work += len(clockwork.starts)
        if work > MOST_WORK:
            raise _too_long(graph)
        now = clockwork.now, clockwork.fired[watched]
        if now[1] // every == done:
            continue
        done = now[1] // every
        then = seen.setdefault(clockwork.state(), now)
        if then != now:
            iterations = Fraction(now[1] - then[1], counts[part.actors[watched].name])
            return Fraction(now[0] - then[0], unit) / iterations, Fraction(then[0], unit), iterations
        work += len(part.limits) + len(part.actors)
    return None


def _watched(part: Component, counts: Mapping[str, int]) -> tuple[int, int]:
    """The actor that fires least, and its number of firings before the part alone can return to its state.

    That may be sooner than after an iteration of the whole graph.
    """
    watched = min(range(len(part.actors)), key=lambda i: counts[part.actors[i].name])
    rounds = gcd(*(counts[actor.name] // actor.phases for actor in part.actors))
    return watched, counts[part.actors[watched].name] // rounds


def first_firings(graph: Graph, capacities: Mapping[str, int] | None, iterations: int) -> tuple[Firing, ...]:
    """The firings of the first iterations of self-timed execution, by start."""
    check_times(graph)
    limits, counts = supplies(graph, capacities), repetitions(graph)
    if iterations < 0:
        raise InputError(f"firings of {iterations} iterations: ask for none or more")
    if not iterations:
        return ()
    most = {actor.name: actor.initial_phases + iterations * counts[actor.name] for actor in graph.actors}
    if sum(most.values()) > MOST_SHOWN:
        raise Unsupported(
            f"graph {quoted(graph.name)} makes {sum(most.values()):,} firings in {iterations} iterations, "
            f"more than the {MOST_SHOWN:,} that we list. Ask for fewer iterations"
        )
    if any(actor.initial_phases for actor in graph.actors):
        demand = Demand(graph, list(most), limits)  # initial phases may need others to be well ahead
        demand.reach(most)
        most = {name: max(goal, demand.fired[name]) for name, goal in most.items()}
    clockwork = EventSimulator(graph.actors, limits, graph.time_unit, most)
    firings: list[Firing] = []
    while clockwork.instant():
        firings.extend(_firings(graph, clockwork.starts))
    return tuple(firings)


def _firings(graph: Graph, starts: Iterable[tuple[int, int, int]]) -> Iterator[Firing]:
    for number, index, when in sorted(starts):
        actor = graph.actors[number]
        start = Fraction(when, graph.time_unit)
        yield Firing(actor.name, index, start, start + actor.time(index))


def _too_long(graph: Graph) -> Unsupported:
    return Unsupported(
        f"graph {quoted(graph.name)}: self-timed execution has not come back to an earlier state after "
        f"{MOST_WORK:,} steps. Ask for the period by its cycles instead, which needs no execution"
    )
