"""Everything there is to know about a graph, one step after the other; what is too much for us says so in a note.

And the same as values that JSON can hold: times are whole numbers, or texts such as "4/3".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar

from ..errors import EdgewrightError, Unsupported
from .buffers.looped_schedule import looped, nested, schedule_text
from .buffers.minimum import Buffers, minimum_buffers
from .buffers.occupancy import Peak, peak_occupancy
from .buffers.schedule import Sized, Weight, lazy_schedule
from .checks.consistency import mismatch, repetitions
from .checks.deadlock import Deadlock
from .checks.liveness import blocked
from .graph import Graph, check_times, quoted
from .throughput.latency import Latency, latency
from .throughput.pareto import EFFORT, Pareto, Point, pareto
from .throughput.ratio import period

QUICK = EFFORT // 12  # for the fastest capacities among the least: some seconds
_PER_FIRING = 300  # of a front's effort, for its first step
_PER_CHANNEL = 20  # and firing, for its first point

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class GraphAnalysis:
    """The answers for one graph; None where one could not be had, which the notes explain.

    `buffers` are the least, and of those with the same total the fastest where `is_fastest` says so.
    """

    graph: Graph
    weight: Weight  # in which buffers and occupancy are least
    inconsistent: str = ""  # why
    repetitions: Mapping[str, int] = field(default_factory=dict)
    deadlock: Deadlock | None = None
    period: Fraction | None = None  # with channels of any size
    latency: Latency | None = None
    buffers: Buffers | None = None
    period_at_minimum: Fraction | None = None
    is_fastest: bool = False
    latency_at_minimum: Latency | None = None
    peak: Peak | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_consistent(self) -> bool:
        return not self.inconsistent

    @property
    def is_live(self) -> bool:
        return self.is_consistent and self.deadlock is None

    @property
    def trouble(self) -> str:
        """What keeps the graph from running for ever, or nothing."""
        return self.inconsistent or (str(self.deadlock) if self.deadlock else "")


def usual_weight(graph: Graph) -> Weight:
    """Bytes where tokens of some channels have none, as in graphs of CNNs, where such channels only keep order."""
    sizes = {channel.token_bytes for channel in graph.channels}
    return "bytes" if 0 in sizes and len(sizes) > 1 else "tokens"


def analyse(graph: Graph, weight: Weight | None = None, effort: int = QUICK) -> GraphAnalysis:
    """Whether a graph can run for ever, how fast, and in how little memory.

    `effort` bounds the search for the fastest of the least capacities, in the units of `pareto`.
    """
    found = GraphAnalysis(graph, weight or usual_weight(graph))
    wrong = mismatch(graph)
    if wrong is not None:
        return replace(found, inconsistent=str(wrong))
    found = replace(found, repetitions=repetitions(graph), deadlock=blocked(graph))
    if found.deadlock is not None:
        return found
    return _Steps(found).run(effort)


def bounded_front(graph: Graph, weight: Weight, effort: int = EFFORT, most_points: int | None = None) -> Pareto:
    """The front between size and period, unless even its first point is more than the effort can be hoped to allow."""
    firings = sum(repetitions(graph).values())
    if firings * max(_PER_FIRING, _PER_CHANNEL * len(graph.channels)) > effort:
        raise Unsupported(
            f"graph {quoted(graph.name)} makes {firings:,} firings on {len(graph.channels):,} channels in one "
            "iteration, too many for such a search within this limit. Allow more, or give the actors fewer phases"
        )
    return pareto(graph, in_bytes=weight == "bytes", most_points=most_points, effort=effort)


class _Steps:
    """The steps for a live graph, and the notes that collect on the way."""

    def __init__(self, found: GraphAnalysis) -> None:
        self.found = found
        self.graph = found.graph
        self.weight = found.weight
        self.notes: list[str] = []

    def run(self, effort: int) -> GraphAnalysis:
        buffers = self._try("minimum buffers", lambda: minimum_buffers(self.graph, self.weight))
        peak = self._try("peak occupancy", lambda: peak_occupancy(self.graph, self.weight))
        found = replace(self.found, buffers=buffers, peak=peak)
        if self.graph.has_times:
            found = self._timed(found, effort)
        else:
            self._try("period and latency", lambda: check_times(self.graph))
        return replace(found, notes=tuple(self.notes))

    def _timed(self, found: GraphAnalysis, effort: int) -> GraphAnalysis:
        graph = self.graph
        found = replace(
            found,
            period=self._try("period", lambda: period(graph)),
            latency=self._try("latency", lambda: latency(graph)),
        )
        found = self._with_fastest(found, effort)
        if found.buffers is None:
            return found
        sizes = found.buffers.capacities
        return replace(
            found,
            period_at_minimum=self._try("period at the minimum", lambda: period(graph, sizes)),
            latency_at_minimum=self._try("latency at the minimum", lambda: latency(graph, sizes)),
        )

    def _with_fastest(self, found: GraphAnalysis, effort: int) -> GraphAnalysis:
        """The first point of the front between size and period: least buffers, proven, and the fastest of them."""
        front = self._try(
            "fastest of the least buffers", lambda: bounded_front(self.graph, self.weight, effort, most_points=1)
        )
        if front is None:
            return found
        if not front.points:
            self.notes.append(
                "the search for the fastest of the least buffers was cut short: others of the same total may be faster"
            )
            return found
        return replace(found, buffers=_of_point(self.graph, self.weight, front.points[0]), is_fastest=True)

    def _try(self, what: str, step: Callable[[], Answer]) -> Answer | None:
        try:
            return step()
        except EdgewrightError as error:
            self.notes.append(f"{what}: {error}")
            return None


def _of_point(graph: Graph, weight: Weight, point: Point) -> Buffers:
    least = point.bytes if weight == "bytes" else point.tokens
    schedule = lazy_schedule(graph, point.capacities)
    return Buffers(point.tokens, point.bytes, weight, least, schedule, point.capacities)


def number(time: Fraction | None) -> int | str | None:
    """A time as JSON can hold it exactly."""
    if time is None:
        return None
    return int(time) if time.denominator == 1 else str(time)


def analysis_to_dict(found: GraphAnalysis) -> dict[str, object]:
    """Everything that was found, under the names that the command line prints."""
    schedule = found.buffers.schedule if found.buffers else None
    return {
        "name": found.graph.name,
        "consistent": found.is_consistent,
        "live": found.is_live,
        "reason": found.trouble or None,
        "repetitions": dict(found.repetitions),
        "period": number(found.period),
        "period_reason": next((note for note in found.notes if note.startswith("period")), None),
        "throughput": number(1 / found.period) if found.period else None,
        "latency": _latency(found.latency),
        "deadlock": str(found.deadlock) if found.deadlock else None,
        "min_buffer": {**_sized(found.buffers), "capacities": dict(found.buffers.capacities)}
        if found.buffers
        else None,
        "period_at_min": number(found.period_at_minimum),
        "period_at_min_is_best": found.is_fastest,
        "latency_at_min": _latency(found.latency_at_minimum),
        "peak_occupancy": _sized(found.peak) if found.peak else None,
        "schedule": schedule_text(schedule) if schedule else None,
        "schedule_loops": {"first": nested(looped(schedule.first)), "again": nested(looped(schedule.again))}
        if schedule
        else None,
        "notes": list(found.notes),
    }


def front_to_list(front: Pareto, weight: Weight) -> list[list[object]]:
    """Pairs of size and period, smallest size first."""
    return [[point.bytes if weight == "bytes" else point.tokens, number(point.period)] for point in front.points]


def _latency(found: Latency | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "first": number(found.first),
        "steady": number(found.steady),
        "sources": list(found.sources),
        "sinks": list(found.sinks),
    }


def _sized(found: Sized) -> dict[str, object]:
    return {
        "tokens": found.tokens,
        "bytes": found.size_bytes,
        "minimised": found.weight,
        "optimal": found.is_optimal,
        "bound": found.bound,
    }
