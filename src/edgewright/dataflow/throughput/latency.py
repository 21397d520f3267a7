"""The latency of one iteration if every firing starts as soon as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

from ...errors import ModelError, Unsupported
from ..checks.consistency import repetitions
from ..checks.demand import pacing_components, supplies
from ..checks.liveness import blocked
from ..graph import Actor, Channel, Graph, check_times, quoted
from .event_simulation import EventSimulator
from .selftimed import self_timed

MOST_FIRINGS = 250_000  # a few seconds
_STEADY_FIRINGS = 100_000  # within which the periodic regime is sought


@dataclass(frozen=True)
class Latency:
    """Time from the start of the first source firing to the end of the last sink firing of the same iteration.

    In an iteration each actor fires as in the repetition vector; the first one includes initial phases. Sources take
    nothing from other actors, sinks give nothing to others; if there are none, every actor counts as both. Initial
    tokens let sinks run ahead, in rare cases so far that the latency is negative.
    """

    first: Fraction  # of the first iteration
    steady: Fraction | None  # the maximum in the periodic regime; None if there is none, or only after long
    sources: tuple[str, ...]
    sinks: tuple[str, ...]


def latency(graph: Graph, capacities: Mapping[str, int] | None = None) -> Latency:
    """The latency of the first iteration and, if all actors keep in step, of the periodic regime.

    If they do not (unlimited channels), faster actors run ahead and the latency may grow forever.
    """
    check_times(graph)
    if not graph.actors:
        return Latency(Fraction(0), Fraction(0), (), ())
    run = _TimedRun(graph, capacities, repetitions(graph), _ends(graph, graph.inputs), _ends(graph, graph.outputs))
    run.refuse_many(1)
    deadlock = blocked(graph, capacities)
    if deadlock is not None:
        raise ModelError(str(deadlock))
    return Latency(run.first(), run.steady(), run.sources, run.sinks)


def _ends(graph: Graph, channels: Mapping[str, Sequence[Channel]]) -> tuple[str, ...]:
    names = tuple(actor.name for actor in graph.actors)
    return tuple(name for name in names if all(c.is_self_loop for c in channels[name])) or names


@dataclass
class _Span:
    """One iteration: the start of its source firings and the end of its sink firings, in time units."""

    begin: float = inf
    end: int = 0
    earliest: float = inf  # start of any of these firings
    left: int = 0  # remaining sink firings

    @property
    def length(self) -> int:
        return self.end - int(self.begin)


@dataclass(frozen=True)
class _TimedRun:
    """A live graph, run for some iterations."""

    graph: Graph
    capacities: Mapping[str, int] | None
    firings: Mapping[str, int]  # of one iteration
    sources: tuple[str, ...]
    sinks: tuple[str, ...]

    def first(self) -> Fraction:
        """Initial phases may need more than one iteration of some actors before the first of others is complete."""
        iterations = 1
        while not (spans := self._spans(iterations)):
            iterations *= 2
        return Fraction(spans[0].length, self.graph.time_unit)

    def steady(self) -> Fraction | None:
        if not self._is_in_step() or self._size(1) > _STEADY_FIRINGS:
            return None
        regime = self_timed(self.graph, self.capacities)
        if not regime.period:  # no firing takes time
            return Fraction(0)
        after = regime.transient * self.graph.time_unit
        rounds = ceil(regime.iterations)
        iterations = rounds + ceil(regime.transient / regime.period)
        while self._size(iterations) <= _STEADY_FIRINGS:
            # firings that start when the state is first seen belong to it; later ones recur
            spans = [span for span in self._spans(iterations) if span.earliest > after]
            if len(spans) >= rounds:
                return Fraction(max(span.length for span in spans), self.graph.time_unit)
            iterations *= 2
        return None

    def _is_in_step(self) -> bool:
        """Whether all actors wait for each other, so that none can run ahead forever."""
        paces = list(pacing_components(self.graph, self.capacities))
        return len(paces) == 1 and len(paces[0].actors) == len(self.graph.actors)

    def _size(self, iterations: int) -> int:
        """Firings of this many iterations."""
        return iterations * sum(self.firings.values()) + sum(actor.initial_phases for actor in self.graph.actors)

    def refuse_many(self, iterations: int) -> None:
        """Raises an error if this many iterations take too long to execute."""
        if self._size(iterations) > MOST_FIRINGS:
            raise Unsupported(
                f"graph {quoted(self.graph.name)}: its latency shows only after {self._size(iterations):,} firings; "
                f"we look at {MOST_FIRINGS:,}. Use larger tokens, so that actors fire less often"
            )

    def _spans(self, iterations: int) -> Sequence[_Span]:
        """The first iterations that are complete before any actor exceeds a number of firings."""
        self.refuse_many(iterations)
        spans = [_Span(left=sum(self.firings[name] for name in self.sinks)) for _ in range(iterations)]
        most = {a.name: a.initial_phases + iterations * self.firings[a.name] for a in self.graph.actors}
        limits = supplies(self.graph, self.capacities)
        clockwork = EventSimulator(self.graph.actors, limits, self.graph.time_unit, most)
        ends = {*self.sources, *self.sinks}
        while clockwork.instant():
            for number, index, start in clockwork.starts:
                actor = self.graph.actors[number]
                if actor.name in ends:
                    self._add(spans, actor, index, start, start + clockwork.duration(number, index))
        whole = [not span.left and span.begin < inf for span in spans]
        return spans[: whole.index(False)] if False in whole else spans

    def _add(self, spans: Sequence[_Span], actor: Actor, index: int, start: int, end: int) -> None:
        span = spans[max(0, index - actor.initial_phases) // self.firings[actor.name]]
        span.earliest = min(span.earliest, start)
        if actor.name in self.sources:
            span.begin = min(span.begin, start)
        if actor.name in self.sinks:
            span.end = max(span.end, end)
            span.left -= index >= actor.initial_phases
