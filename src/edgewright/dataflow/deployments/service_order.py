"""The fixed order in which ports and shared cores serve, and the latency of a frame with first-come, first-served.

An order makes a deployment with shared links one CSDF graph, whose period is exact. It is taken from an execution
without an order: as in a software pipeline, what starts late in a frame is served between earlier work on later frames.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from ...errors import InputError
from ..throughput.contention import Resource, contended, period_bound
from ..throughput.selftimed import Firing
from .sharing import Service
from .timed import TimedDeployment

MOST_ITERATIONS = 24  # executed to find an order
FIRINGS = 100_000  # total for that, fewer for large graphs

Orders = Mapping[Resource, tuple[Service, ...]]
_Starts = Mapping[tuple[str, int], Fraction]  # of a phase of an actor, in one iteration


def in_best_order(timed: TimedDeployment) -> TimedDeployment:
    """The deployment with the service order that has the shortest period of those tried."""
    users: dict[Resource, list[str]] = defaultdict(list)
    for name, resources in timed.held.items():
        for resource in dict.fromkeys(resources):
            users[resource].append(name)
    shared = {resource: names for resource, names in users.items() if len(names) > 1}
    if not shared:
        return timed
    bound = period_bound(timed.graph, timed.held)
    if bound is None:
        raise InputError(
            f"deployment '{timed.name}': its parts wait for each other for ever; give its FIFOs more slots"
        )
    best = None
    for orders in _candidates(timed, shared, bound):
        trial = replace(timed, orders=orders)
        if best is None or trial.period < best.period:
            best = trial
        if best.period * timed.iteration_frames == bound:
            break
    assert best is not None
    return best


def frame_latency(timed: TimedDeployment) -> Fraction:
    """The time from a frame's arrival to its last result if no other frame is in progress."""
    most = {name: sum(frame == 0 for frame in frames) for name, frames in timed.frames.items()}
    free = replace(timed, orders={})
    return max(firing.end for firing in contended(free.graph, free.held, most))


def _candidates(timed: TimedDeployment, shared: Mapping[Resource, list[str]], bound: Fraction) -> Iterator[Orders]:
    """Orders of a late iteration, repeated in the period reached or in the least one; of the first iteration; and of
    the first one without overlap, which always works."""
    phases = {actor.name: actor.phases for actor in timed.graph.actors}
    count = max(3, min(MOST_ITERATIONS, FIRINGS // sum(phases.values())))
    firings = contended(timed.graph, timed.held, {name: count * n for name, n in phases.items()})
    third = count // 3  # the last iterations have fewer competitors
    first, middle, later = (_starts(firings, phases, n) for n in (0, third, 2 * third))
    reached = max(later[one] - middle[one] for one in later) / third
    for starts, period in ((later, reached), (later, bound), (first, reached), (first, bound), (first, None)):
        yield {resource: _order(starts, names, phases, period) for resource, names in shared.items()}


def _starts(firings: tuple[Firing, ...], phases: Mapping[str, int], iteration: int) -> _Starts:
    return {
        (one.actor, one.index % phases[one.actor]): one.start
        for one in firings
        if one.index // phases[one.actor] == iteration
    }


def _order(
    starts: _Starts, names: list[str], phases: Mapping[str, int], period: Fraction | None
) -> tuple[Service, ...]:
    """By start within a period, whose iterations overlap; without a period they do not."""
    origin = min(starts.values())
    services = []
    for name in names:
        for phase in range(phases[name]):
            start = starts[name, phase] - origin
            behind, rest = divmod(start, period) if period else (0, start)
            services.append((rest, -behind, name, phase))
    least = min(-behind for _, behind, _, _ in services)
    return tuple(Service(name, phase, int(-behind - least)) for _, behind, name, phase in sorted(services))
