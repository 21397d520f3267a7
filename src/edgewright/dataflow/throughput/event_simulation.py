"""Self-timed execution as an event simulation in integer time units; the caller decides when to stop.

A firing takes its tokens and the space for its output when it starts. What it frees and produces is available when it
ends, but never before that of earlier firings of the actor: a channel is a queue.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from heapq import heappop, heappush

from ...errors import Unsupported
from ..checks.demand import Supply
from ..graph import Actor, Rates

MOST_AT_ONCE = 2_000_000  # firings that start at one time
Moves = list[list[tuple[int, int]]]  # by phase: supplies and amounts


class EventSimulator:
    """The state of some executing actors of a graph; only the given supplies are waited for."""

    def __init__(
        self, actors: Sequence[Actor], supplies: Sequence[Supply], unit: int, most: Mapping[str, int] | None = None
    ) -> None:
        number = {actor.name: i for i, actor in enumerate(actors)}
        self.now = 0
        self.fired = [0] * len(actors)
        self.starts: list[tuple[int, int, int]] = []  # actor, firing, start; of the last instant
        self._stock = [supply.first for supply in supplies]
        self._taker = [number[supply.consumer] for supply in supplies]
        self._phase = [0] * len(actors)
        self._initial = [actor.initial_phases for actor in actors]
        self._times = [[int(time * unit) for time in actor.times or ()] for actor in actors]
        self._takes = _moves(actors, [(i, supply.consumer, supply.consumed) for i, supply in enumerate(supplies)])
        self._leaves = _moves(actors, [(i, supply.producer, supply.produced) for i, supply in enumerate(supplies)])
        self._most = [None if most is None else most[actor.name] for actor in actors]
        self._latest = [0] * len(actors)  # when the latest arrival of each is due
        self._running: list[tuple[int, int, int, int]] = []  # due, actor, firing, phase
        self._woken: set[int] = set(range(len(actors)))

    def instant(self) -> bool:
        """Processes everything at the next event time; False if nothing happens anymore."""
        self.starts.clear()
        if self._running:
            self.now = self._running[0][0]
        while True:
            while self._running and self._running[0][0] == self.now:
                self._arrive()
            if not self._woken:
                return bool(self.starts) or bool(self._running)
            self._fire_all(self._woken.pop())

    def duration(self, actor: int, index: int) -> int:
        """Time units of this firing of an actor."""
        times, initial = self._times[actor], self._initial[actor]
        return times[index if index < initial else initial + (index - initial) % (len(times) - initial)]

    def state(self) -> Hashable:
        """The state that determines all further execution."""
        due = sorted((when - self.now, actor, phase) for when, actor, _, phase in self._running)
        return tuple(self._stock), tuple(self._phase), tuple(due)

    def _arrive(self) -> None:
        _, actor, _, phase = heappop(self._running)
        for supply, amount in self._leaves[actor][phase]:
            self._stock[supply] += amount
            self._woken.add(self._taker[supply])

    def _fire_all(self, actor: int) -> None:
        stock = self._stock
        most = self._most[actor]
        while most is None or self.fired[actor] < most:
            phase = self._phase[actor]
            takes = self._takes[actor][phase]
            if any(stock[supply] < amount for supply, amount in takes):
                return
            for supply, amount in takes:
                stock[supply] -= amount
            self._start(actor, phase)
            if len(self.starts) > MOST_AT_ONCE:
                raise Unsupported(
                    f"more than {MOST_AT_ONCE:,} firings start at one moment, too many to execute: firings of an actor "
                    "overlap unless a self-loop with a token forbids it. Add self-loops, or use fewer tokens"
                )

    def _start(self, actor: int, phase: int) -> None:
        times = self._times[actor]
        due = self._latest[actor] = max(self._latest[actor], self.now + times[phase])
        heappush(self._running, (due, actor, self.fired[actor], phase))
        self.starts.append((actor, self.fired[actor], self.now))
        self.fired[actor] += 1
        self._phase[actor] = phase + 1 if phase + 1 < len(times) else self._initial[actor]


def _moves(actors: Sequence[Actor], ends: Iterable[tuple[int, str, Rates]]) -> list[Moves]:
    """For each actor the amounts of each phase, given the supplies at the actor and its rates."""
    of: dict[str, list[tuple[int, Rates]]] = {actor.name: [] for actor in actors}
    for supply, name, rates in ends:
        of[name].append((supply, rates))
    return [
        [
            [(supply, rates.at(p)) for supply, rates in of[a.name] if rates.at(p)]
            for p in range(a.initial_phases + a.phases)
        ]
        for a in actors
    ]
