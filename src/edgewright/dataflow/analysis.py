"""Analyses a graph step by step; a note replaces each result that would take too long.

Also converts the results to JSON values: times are integers, or texts such as "4/3".
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

QUICK = EFFORT // 12  # for the fastest of the least capacities: some seconds
_PER_FIRING = 300  # effort per firing for the first step of a front
_PER_CHANNEL = 20  # effort per channel and firing for its first point

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class GraphAnalysis:
    """The results for one graph; None for those that are missing, which the notes explain.

    `buffers` are the least and, if `is_fastest`, the fastest of those with the same total.
    """

    graph: Graph
    weight: Weight  # the measure in which buffers and occupancy are minimised
    inconsistent: str = ""  # the reason
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
        """What keeps the graph from running forever, or an empty text."""
        return self.inconsistent or (str(self.deadlock) if self.deadlock else "")


def usual_weight(graph: Graph) -> Weight:
    """Bytes if the tokens of some channels have none, as in graphs of CNNs, where such channels only keep order."""
    sizes = {channel.token_bytes for channel in graph.channels}
    return "bytes" if 0 in sizes and len(sizes) > 1 else "tokens"


def analyse(graph: Graph, weight: Weight | None = None, effort: int = QUICK) -> GraphAnalysis:
    """Liveness, throughput and the smallest buffers of a graph.

    `effort` bounds the search for the fastest of the least capacities, in the units of `pareto`.
    """
    analysis = GraphAnalysis(graph, weight or usual_weight(graph))
    wrong = mismatch(graph)
    if wrong is not None:
        return replace(analysis, inconsistent=str(wrong))
    analysis = replace(analysis, repetitions=repetitions(graph), deadlock=blocked(graph))
    if analysis.deadlock is not None:
        return analysis
    return _Steps(analysis).run(effort)


def bounded_front(graph: Graph, weight: Weight, effort: int = EFFORT, most_points: int | None = None) -> Pareto:
    """The front of size and period, unless the effort is too small even for its first point."""
    firings = sum(repetitions(graph).values())
    if firings * max(_PER_FIRING, _PER_CHANNEL * len(graph.channels)) > effort:
        raise Unsupported(
            f"graph {quoted(graph.name)} makes {firings:,} firings on {len(graph.channels):,} channels in one "
            "iteration, too many for such a search within this limit. Allow more, or give the actors fewer phases"
        )
    return pareto(graph, in_bytes=weight == "bytes", most_points=most_points, effort=effort)


class _Steps:
    """The steps for a live graph, with the notes they add."""

    def __init__(self, analysis: GraphAnalysis) -> None:
        self.analysis = analysis
        self.graph = analysis.graph
        self.weight = analysis.weight
        self.notes: list[str] = []

    def run(self, effort: int) -> GraphAnalysis:
        buffers = self._try("minimum buffers", lambda: minimum_buffers(self.graph, self.weight))
        peak = self._try("peak occupancy", lambda: peak_occupancy(self.graph, self.weight))
        analysis = replace(self.analysis, buffers=buffers, peak=peak)
        if self.graph.has_times:
            analysis = self._timed(analysis, effort)
        else:
            self._try("period and latency", lambda: check_times(self.graph))
        return replace(analysis, notes=tuple(self.notes))

    def _timed(self, analysis: GraphAnalysis, effort: int) -> GraphAnalysis:
        graph = self.graph
        analysis = replace(
            analysis,
            period=self._try("period", lambda: period(graph)),
            latency=self._try("latency", lambda: latency(graph)),
        )
        analysis = self._with_fastest(analysis, effort)
        if analysis.buffers is None:
            return analysis
        sizes = analysis.buffers.capacities
        return replace(
            analysis,
            period_at_minimum=self._try("period at the minimum", lambda: period(graph, sizes)),
            latency_at_minimum=self._try("latency at the minimum", lambda: latency(graph, sizes)),
        )

    def _with_fastest(self, analysis: GraphAnalysis, effort: int) -> GraphAnalysis:
        """The first point of the front of size and period: least buffers, proven, and the fastest of them."""
        front = self._try(
            "fastest of the least buffers", lambda: bounded_front(self.graph, self.weight, effort, most_points=1)
        )
        if front is None:
            return analysis
        if not front.points:
            self.notes.append(
                "the search for the fastest of the least buffers was cut short: others of the same total may be faster"
            )
            return analysis
        return replace(analysis, buffers=_of_point(self.graph, self.weight, front.points[0]), is_fastest=True)

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
    """A time in exact JSON form."""
    if time is None:
        return None
    return int(time) if time.denominator == 1 else str(time)


def analysis_to_dict(analysis: GraphAnalysis) -> dict[str, object]:
    """The results with the keys of `--json`."""
    schedule = analysis.buffers.schedule if analysis.buffers else None
    return {
        "name": analysis.graph.name,
        "consistent": analysis.is_consistent,
        "live": analysis.is_live,
        "reason": analysis.trouble or None,
        "repetitions": dict(analysis.repetitions),
        "period": number(analysis.period),
        "period_reason": next((note for note in analysis.notes if note.startswith("period")), None),
        "throughput": number(1 / analysis.period) if analysis.period else None,
        "latency": _latency(analysis.latency),
        "deadlock": str(analysis.deadlock) if analysis.deadlock else None,
        "min_buffer": {**_sized(analysis.buffers), "capacities": dict(analysis.buffers.capacities)}
        if analysis.buffers
        else None,
        "period_at_min": number(analysis.period_at_minimum),
        "period_at_min_is_best": analysis.is_fastest,
        "latency_at_min": _latency(analysis.latency_at_minimum),
        "peak_occupancy": _sized(analysis.peak) if analysis.peak else None,
        "schedule": schedule_text(schedule) if schedule else None,
        "schedule_loops": {"first": nested(looped(schedule.first)), "again": nested(looped(schedule.again))}
        if schedule
        else None,
        "notes": list(analysis.notes),
    }


def front_to_list(front: Pareto, weight: Weight) -> list[list[object]]:
    """Pairs of size and period, by increasing size."""
    return [[point.bytes if weight == "bytes" else point.tokens, number(point.period)] for point in front.points]


def _latency(latency: Latency | None) -> dict[str, object] | None:
    if latency is None:
        return None
    return {
        "first": number(latency.first),
        "steady": number(latency.steady),
        "sources": list(latency.sources),
        "sinks": list(latency.sinks),
    }


def _sized(sized: Sized) -> dict[str, object]:
    return {
        "tokens": sized.tokens,
        "bytes": sized.size_bytes,
        "minimised": sized.weight,
        "optimal": sized.is_optimal,
        "bound": sized.bound,
    }
