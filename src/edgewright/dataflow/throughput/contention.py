"""Self-timed execution in which some actors share resources that serve one firing at a time.

First come, first served: a free resource goes to the firing that has waited longest among those whose other resources
are free too. A firing holds all of its resources from start to end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from math import inf

from ...errors import Unsupported
from ..checks.consistency import repetitions
from ..checks.demand import supplies
from ..graph import Graph, check_times, quoted
from .ratio import cycle_ratio
from .selftimed import Firing

Resource = tuple[str, str]
Held = Mapping[str, Sequence[Resource]]  # what each actor holds while it fires; its firings may not overlap
MOST_FIRINGS = 2_000_000  # some ten seconds
NEVER = 1 << 62


class ContendedExecution:
    """An execution in progress, in integer time units; uses plain lists, since simulations make millions of firings.

    An actor fires when all its supplies suffice. Firings without duration complete before anything is served, and
    simultaneous requests are served in the order of actors.
    """

    def __init__(self, graph: Graph, held: Held, most: Mapping[str, int] | None = None) -> None:
        check_times(graph)
        number = {actor.name: n for n, actor in enumerate(graph.actors)}
        resources = {one: n for n, one in enumerate(dict.fromkeys(one for each in held.values() for one in each))}
        channels = [one.channel for one in supplies(graph, None) if not one.channel.is_serial]
        serial = {channel.source for channel in graph.channels if channel.is_serial}
        self.now = 0
        self.fired = [0] * len(number)
        self.durations = [[int(time * graph.time_unit) for time in actor.times or ()] for actor in graph.actors]
        self.draws: list[Callable[[int], int] | None] = [None] * len(number)  # the actual time of a firing
        self.watched_from = [NEVER] * len(number)  # the first firing of each actor to report
        self.tell: Callable[[int, int, int, int], None] = _ignore  # actor, firing, start, end
        self.is_paused = False
        self._stock = [channel.tokens for channel in channels]
        self._taker = [number[channel.target] for channel in channels]
        self._phases = [actor.initial_phases + actor.phases for actor in graph.actors]
        self._initial = [actor.initial_phases for actor in graph.actors]
        self._takes: list[list[list[tuple[int, int]]]] = [[[] for _ in range(n)] for n in self._phases]
        self._gives: list[list[list[tuple[int, int]]]] = [[[] for _ in range(n)] for n in self._phases]
        for n, channel in enumerate(channels):
            for lists, name, rates in (
                (self._takes, channel.target, channel.consumption),
                (self._gives, channel.source, channel.production),
            ):
                for phase, each in enumerate(lists[number[name]]):
                    if lists is self._takes or rates.at(phase):
                        each.append((n, rates.at(phase)))
        self._phase = [0] * len(number)
        self._ended = [0] * len(number)  # the phase of the firing that ends next
        self._need = [channel.consumption.at(0) for channel in channels]
        self._is_serial = [actor.name in serial for actor in graph.actors]
        self._held = [tuple(resources[one] for one in dict.fromkeys(held.get(name, ()))) for name in number]
        self._most = [NEVER if most is None else most[actor.name] for actor in graph.actors]
        self._missing = [
            sum(self._stock[s] < amount for s, amount in takes[0]) + (NEVER if not most_ else 0)
            for takes, most_ in zip(self._takes, self._most, strict=True)
        ]
        self._ready = [actor for actor, count in enumerate(self._missing) if not count]
        self._running: list[int] = []  # the end of each firing, times the number of actors, plus its actor
        self._latest = [0] * len(number)
        self._is_busy = [False] * len(resources)
        self._waiting: list[dict[int, int]] = [{} for _ in resources]  # actors by their position in the queue
        self._places = 0
        self._asked: list[int] = []
        self._freed: set[int] = set()

    def run(self, until: float = inf) -> bool:
        """Executes everything that ends by then, or until paused; returns whether anything is left."""
        ready, running, asked, freed, held = self._ready, self._running, self._asked, self._freed, self._held
        count, start, end = len(self.fired), self._start, self._end
        while True:
            while ready:
                actor = ready.pop()
                if held[actor]:
                    asked.append(actor)
                else:
                    start(actor)
            if running and running[0] < (self.now + 1) * count:
                end(heappop(running) % count)
            elif asked or freed:
                self._serve()
            elif self.is_paused or not running or running[0] // count > until:
                return bool(running)
            else:
                self.now = running[0] // count

    def left(self, until: int) -> Mapping[int, int]:
        """The remaining time of running firings, by actor."""
        ends = (divmod(one, len(self.fired)) for one in self._running)
        return {actor: max(0, due - until) for due, actor in ends}

    def state(self) -> Hashable:
        """The state that determines all further execution."""
        due = sorted(one - self.now * len(self.fired) for one in self._running)
        waiting = sorted({(place, actor) for each in self._waiting for place, actor in each.items()})
        return tuple(self._stock), tuple(self._phase), tuple(due), tuple(actor for _, actor in waiting)

    def _start(self, actor: int) -> None:
        phase, stock, firing = self._phase[actor], self._stock, self.fired[actor]
        time = self.durations[actor][phase]
        if draw := self.draws[actor]:
            time = draw(time)
        due = max(self.now + time, self._latest[actor])
        self._latest[actor] = due
        heappush(self._running, due * len(self.fired) + actor)
        self.fired[actor] = firing + 1
        missing = 1 if self._is_serial[actor] else 0
        takes = self._takes[actor]
        if len(takes) == 1:
            for supply, amount in takes[0]:
                stock[supply] -= amount
                if stock[supply] < amount:
                    missing += 1
        else:
            for supply, amount in takes[phase]:
                stock[supply] -= amount
            phase = phase + 1 if phase + 1 < len(takes) else self._initial[actor]
            self._phase[actor] = phase
            for supply, amount in takes[phase]:
                self._need[supply] = amount
                if stock[supply] < amount:
                    missing += 1
        if firing + 1 >= self._most[actor]:
            missing = NEVER
        self._missing[actor] = missing
        if not missing:
            self._ready.append(actor)
        if firing >= self.watched_from[actor]:
            self.tell(actor, firing, self.now, due)

    def _end(self, actor: int) -> None:
        stock, need, missing = self._stock, self._need, self._missing
        gives, phase = self._gives[actor], self._ended[actor]
        for supply, amount in gives[phase]:
            old = stock[supply]
            stock[supply] = old + amount
            if old < need[supply] <= old + amount:
                taker = self._taker[supply]
                missing[taker] -= 1
                if not missing[taker]:
                    self._ready.append(taker)
        if len(gives) > 1:
            self._ended[actor] = phase + 1 if phase + 1 < len(gives) else self._initial[actor]
        if self._is_serial[actor]:
            missing[actor] -= 1
            if not missing[actor]:
                self._ready.append(actor)
        for resource in self._held[actor]:
            self._is_busy[resource] = False
            if self._waiting[resource]:
                self._freed.add(resource)

    def _serve(self) -> None:
        """Starts firings that can start, the longest waiting first."""
        waiting: dict[int, int] = {}
        for resource in self._freed:
            waiting |= self._waiting[resource]
        self._freed.clear()
        busy = self._is_busy
        for place in sorted(waiting):
            actor = waiting[place]
            held = self._held[actor]
            if not any(busy[resource] for resource in held):
                for resource in held:
                    busy[resource] = True
                    del self._waiting[resource][place]
                self._start(actor)
        asked = sorted(self._asked)
        self._asked.clear()
        for actor in asked:
            held = self._held[actor]
            if any(busy[resource] for resource in held):
                self._places += 1
                for resource in held:
                    self._waiting[resource][self._places] = actor
            else:
                for resource in held:
                    busy[resource] = True
                self._start(actor)


def _ignore(*_: int) -> None:
    """Reports nothing."""


def contended(graph: Graph, held: Held, most: Mapping[str, int]) -> tuple[Firing, ...]:
    """This many firings of each actor, by start."""
    if sum(most.values()) > MOST_FIRINGS:
        raise Unsupported(
            f"graph {quoted(graph.name)}: {sum(most.values()):,} firings are more than the {MOST_FIRINGS:,} that we "
            "list. Ask for fewer iterations"
        )
    execution, firings = ContendedExecution(graph, held, most), list[Firing]()

    def tell(number: int, index: int, start: int, end: int) -> None:
        unit = graph.time_unit
        firings.append(Firing(graph.actors[number].name, index, Fraction(start, unit), Fraction(end, unit)))

    execution.watched_from = [0] * len(graph.actors)
    execution.tell = tell
    execution.run()
    return tuple(sorted(firings, key=lambda firing: firing.start))


def contended_period(graph: Graph, held: Held) -> Fraction | None:
    """Time per iteration once a state recurs; None if that takes too long, or execution stops."""
    execution, counts = ContendedExecution(graph, held), repetitions(graph)
    watched = min(range(len(graph.actors)), key=lambda i: counts[graph.actors[i].name])
    every = counts[graph.actors[watched].name]
    seen: dict[Hashable, tuple[int, int]] = {}

    def tell(*told: int) -> None:
        execution.is_paused = (told[1] + 1) % every == 0

    execution.watched_from[watched] = 0
    execution.tell = tell
    for iteration in range(1, MOST_FIRINGS // sum(counts.values()) + 1):
        execution.is_paused = False
        if not execution.run():
            return None
        now = execution.now, iteration
        then = seen.setdefault(execution.state(), now)
        if then != now:
            return Fraction(now[0] - then[0], graph.time_unit * (now[1] - then[1]))
    return None


def period_bound(graph: Graph, held: Held) -> Fraction | None:
    """A lower bound of the period for any service order: of the graph without contention, and the load of each
    resource."""
    alone = cycle_ratio(graph)
    return None if alone is None else max([alone, *loads(graph, held).values()])


def loads(graph: Graph, held: Held) -> Mapping[Resource, Fraction]:
    """The time for which each resource is held per iteration."""
    counts, loads = repetitions(graph), dict[Resource, Fraction]()
    for name, resources in held.items():
        actor = graph.by_name[name]
        busy = sum((Fraction(time) for time in actor.times or ()), Fraction(0)) * (counts[name] // actor.phases)
        for resource in dict.fromkeys(resources):
            loads[resource] = loads.get(resource, Fraction(0)) + busy
    return loads
