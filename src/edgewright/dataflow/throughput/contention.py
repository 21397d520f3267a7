"""Self-timed execution in which some actors share resources, each of which serves one firing at a time.

First come, first served: a resource that falls free goes to the firing that has waited longest among those whose other
resources are free too. A firing holds all of its resources from its start to its end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

from ...errors import Unsupported
from ..checks.consistency import repetitions
from ..checks.demand import Supply, supplies
from ..graph import Actor, Graph, check_times, quoted
from .event_simulation import EventSimulator
from .ratio import cycle_ratio
from .selftimed import Firing

Resource = tuple[str, str]
Held = Mapping[str, Sequence[Resource]]  # what each actor holds while it fires; its firings may not overlap
MOST_FIRINGS = 2_000_000  # some ten seconds


class ContendedSimulator(EventSimulator):
    """An event simulation in which actors wait for resources too."""

    def __init__(
        self,
        actors: Sequence[Actor],
        limits: Sequence[Supply],
        unit: int,
        held: Held,
        most: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(actors, limits, unit, most)
        number = {one: n for n, one in enumerate(dict.fromkeys(one for each in held.values() for one in each))}
        self._held = [tuple(number[one] for one in dict.fromkeys(held.get(actor.name, ()))) for actor in actors]
        self._is_busy = [False] * len(number)
        self._waiting: list[dict[int, int]] = [{} for _ in number]  # by resource: actors by their place in the queue
        self._place: dict[int, int] = {}  # in the queue, of actors that wait
        self._asked: list[int] = []  # actors that have begun to wait in this instant
        self._freed: set[int] = set()
        self._places = 0

    def instant(self) -> bool:
        self.starts.clear()
        if self._running:
            self.now = self._running[0][0]
        while True:
            while self._running and self._running[0][0] == self.now:
                self._arrive()
            while self._woken:
                self._fire_all(self._woken.pop())
            if self._running and self._running[0][0] == self.now:
                continue  # what takes no time is over before anything is served
            if not (self._asked or self._freed):
                return bool(self.starts) or bool(self._running)
            self._serve()

    def state(self) -> Hashable:
        return super().state(), tuple(sorted(self._place, key=lambda actor: self._place[actor]))

    def _arrive(self) -> None:
        actor = self._running[0][1]
        super()._arrive()
        for resource in self._held[actor]:
            self._is_busy[resource] = False
            self._freed.add(resource)

    def _fire_all(self, actor: int) -> None:
        if not self._held[actor]:
            super()._fire_all(actor)
        elif actor not in self._place and self._may_fire(actor):
            self._place[actor] = -1  # until all that ask at this moment are known
            self._asked.append(actor)

    def _may_fire(self, actor: int) -> bool:
        most = self._most[actor]
        takes = self._takes[actor][self._phase[actor]]
        return (most is None or self.fired[actor] < most) and all(self._stock[s] >= amount for s, amount in takes)

    def _serve(self) -> None:
        """Starts what may start, the longest waiting first."""
        for actor in sorted(self._asked):
            self._places += 1
            self._place[actor] = self._places
            for resource in self._held[actor]:
                self._waiting[resource][self._places] = actor
        asked = {self._place[actor]: actor for actor in self._asked}
        waiting = asked.copy()
        for resource in self._freed:
            waiting |= self._waiting[resource]
        self._asked.clear()
        self._freed.clear()
        for place in sorted(waiting):
            actor = waiting[place]
            held = self._held[actor]
            if not any(self._is_busy[resource] for resource in held):
                for resource in held:
                    self._is_busy[resource] = True
                    del self._waiting[resource][place]
                del self._place[actor]
                phase = self._phase[actor]
                for supply, amount in self._takes[actor][phase]:
                    self._stock[supply] -= amount
                self._start(actor, phase)


def contended(graph: Graph, held: Held, most: Mapping[str, int]) -> tuple[Firing, ...]:
    """So many firings of each actor, by their start."""
    if sum(most.values()) > MOST_FIRINGS:
        raise Unsupported(
            f"graph {quoted(graph.name)}: {sum(most.values()):,} firings are more than the {MOST_FIRINGS:,} that we "
            "list. Ask for fewer iterations"
        )
    simulator = _simulator(graph, held, most)
    firings: list[Firing] = []
    while simulator.instant():
        for number, index, when in sorted(simulator.starts):
            start, actor = Fraction(when, graph.time_unit), graph.actors[number]
            firings.append(Firing(actor.name, index, start, start + actor.time(index)))
    return tuple(firings)


def contended_period(graph: Graph, held: Held) -> Fraction | None:
    """Time per iteration once a state comes back; None where that takes too long, or execution comes to a stop."""
    simulator, counts = _simulator(graph, held), repetitions(graph)
    watched = min(range(len(graph.actors)), key=lambda i: counts[graph.actors[i].name])
    every = counts[graph.actors[watched].name]
    seen: dict[Hashable, tuple[int, int]] = {}
    done, work = -1, 0
    while simulator.instant() and work < MOST_FIRINGS:
        work += len(simulator.starts)
        iteration = simulator.fired[watched] // every
        if iteration > done:
            done, now = iteration, (simulator.now, iteration)
            then = seen.setdefault(simulator.state(), now)
            if then != now:
                return Fraction(now[0] - then[0], graph.time_unit * (now[1] - then[1]))
    return None


def period_bound(graph: Graph, held: Held) -> Fraction | None:
    """A period that no order of service beats: of the graph without contention, and what each resource has to do."""
    alone = cycle_ratio(graph)
    return None if alone is None else max([alone, *loads(graph, held).values()])


def loads(graph: Graph, held: Held) -> Mapping[Resource, Fraction]:
    """The time for which each resource is held in an iteration."""
    counts, found = repetitions(graph), dict[Resource, Fraction]()
    for name, resources in held.items():
        actor = graph.by_name[name]
        busy = sum((Fraction(time) for time in actor.times or ()), Fraction(0)) * (counts[name] // actor.phases)
        for resource in dict.fromkeys(resources):
            found[resource] = found.get(resource, Fraction(0)) + busy
    return found


def _simulator(graph: Graph, held: Held, most: Mapping[str, int] | None = None) -> ContendedSimulator:
    check_times(graph)
    return ContendedSimulator(graph.actors, supplies(graph, None), graph.time_unit, held, most)
