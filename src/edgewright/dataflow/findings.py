"""Analyses and fronts as values that JSON can hold; times are whole numbers, or texts such as "4/3"."""

from __future__ import annotations

from fractions import Fraction

from .analysis import GraphAnalysis
from .buffers.looped import looped, nested, schedule_text
from .buffers.schedule import Sized, Weight
from .speed.latency import Latency
from .speed.pareto import Pareto


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
