"""The page of a dataflow graph: liveness, throughput, buffer sizes, and pictures of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from .. import text
from ..dataflow.analysis import GraphAnalysis
from ..dataflow.buffers.looped_schedule import schedule_text
from ..dataflow.buffers.schedule import price
from ..dataflow.formats.dot import short
from ..dataflow.graph import Actor
from ..dataflow.throughput.pareto import Pareto
from ..dataflow.throughput.selftimed import Firing
from .charts import Card, asset, exact, html_page, speed
from .gantt import gantt_svg
from .pareto_plot import pareto_svg

MOST_ROWS = 2000  # of a table; browsers become slow with more


@dataclass(frozen=True, slots=True)
class ActorRow:
    name: str
    note: str
    phases: str
    firings: str
    time: str
    share: float  # of the busiest actor's time, 0..1


@dataclass(frozen=True, slots=True)
class ChannelRow:
    name: str
    ends: str
    note: str
    production: str
    consumption: str
    tokens: int
    token_bytes: int
    capacity: int | None
    size: int | None
    share: float  # of the largest channel's bytes, or tokens, 0..1


def dataflow_page(
    analysis: GraphAnalysis, *, firings: Sequence[Firing] = (), front: Pareto | None = None, unit: str = ""
) -> str:
    """A self-contained HTML document without a script, with a Gantt chart of `firings` and a step plot of `front`."""
    graph = analysis.graph
    steps = unit if graph.has_times else "steps"  # without times, each firing takes one step
    gantt = gantt_svg(graph, firings, analysis.repetitions, unit=steps, standalone=False) if firings else ""
    plot = pareto_svg(front, analysis.weight, unit=unit, standalone=False) if front else ""
    schedule = schedule_text(analysis.buffers.schedule) if analysis.buffers else ""
    return html_page(
        "dataflow.html",
        graph.name,
        asset("page.css") + asset("charts.css") + asset("dataflow.css"),
        about=about(analysis),
        cards=tuple(cards(analysis, unit)),
        trouble=text.printable(analysis.trouble),
        notes=[text.printable(note) for note in analysis.notes],
        gantt=Markup(gantt),
        front=front,
        exact=exact,
        speed=speed,
        weight=analysis.weight,
        unit=unit,
        plot=Markup(plot),
        actors=tuple(actor_rows(analysis))[:MOST_ROWS],
        channels=tuple(channel_rows(analysis))[:MOST_ROWS],
        actor_count=len(graph.actors),
        channel_count=len(graph.channels),
        has_capacities=analysis.buffers is not None,
        has_notes=any(actor.note for actor in graph.actors) or any(channel.note for channel in graph.channels),
        schedule=text.printable(schedule),
    )


def about(analysis: GraphAnalysis) -> str:
    """The graph in one line."""
    graph = analysis.graph
    parts = [
        "SDF graph" if graph.is_sdf else "CSDF graph",
        text.plural(len(graph.actors), "actor"),
        text.plural(len(graph.channels), "channel"),
    ]
    if analysis.repetitions:
        parts.append(f"{text.plural(sum(analysis.repetitions.values()), 'firing')} per iteration")
    return " · ".join(parts)


def cards(analysis: GraphAnalysis, unit: str) -> Iterator[Card]:
    if analysis.period is not None:
        yield Card("Period", exact(analysis.period), f"{unit} per iteration, with channels of any size".strip())
    if analysis.buffers is not None:
        least = analysis.buffers
        proof = "proven least" if least.is_optimal else f"at least {_amount(least.bound, least.weight)}"
        figure, other = text.size(least.size_bytes), text.plural(least.tokens, "token")
        figure, other = (figure, other) if least.weight == "bytes" else (other, figure)
        yield Card("Minimum buffers", figure, f"{other}; {proof}", least.is_optimal)
    if analysis.period_at_minimum is not None:
        which = "the fastest of all such buffers" if analysis.is_fastest else "others of this size may be faster"
        yield Card("Period at the minimum", exact(analysis.period_at_minimum), which, analysis.is_fastest)
    if analysis.peak is not None:
        peak = analysis.peak
        figure = text.size(peak.size_bytes) if peak.weight == "bytes" else text.plural(peak.tokens, "token")
        proof = "proven least" if peak.is_optimal else f"at least {_amount(peak.bound, peak.weight)}"
        yield Card("Peak occupancy", figure, f"one memory for all channels; {proof}", peak.is_optimal)
    if analysis.latency is not None:
        yield Card(
            "Latency", exact(analysis.latency.first), f"{unit} from first to last firing of an iteration".strip()
        )


def actor_rows(analysis: GraphAnalysis) -> Iterator[ActorRow]:
    graph = analysis.graph
    times = {actor.name: busy_time(actor, analysis.repetitions.get(actor.name, 0)) for actor in graph.actors}
    most = max((time or Fraction(0) for time in times.values()), default=Fraction(0)) or Fraction(1)
    for actor in graph.actors:
        time, firings = times[actor.name], analysis.repetitions.get(actor.name)
        first = f"{actor.initial_phases:,} + " if actor.initial_phases else ""
        yield ActorRow(
            text.printable(actor.name),
            text.printable(actor.note),
            f"{first}{actor.phases:,}",
            "–" if firings is None else text.count(firings),
            "–" if time is None else exact(time),
            float((time or 0) / most),
        )


def busy_time(actor: Actor, firings: int) -> Fraction | None:
    """The time that an actor is busy in one iteration; None without times."""
    if actor.times is None:
        return None
    again = actor.times[actor.initial_phases :]
    return sum(map(Fraction, again), Fraction(0)) * (firings // actor.phases)


def channel_rows(analysis: GraphAnalysis) -> Iterator[ChannelRow]:
    capacities = analysis.buffers.capacities if analysis.buffers else {}
    weigh = [capacities.get(channel.name, 0) * price(channel, analysis.weight) for channel in analysis.graph.channels]
    most = max(weigh, default=0) or 1
    for channel, weight in zip(analysis.graph.channels, weigh, strict=True):
        capacity = capacities.get(channel.name)
        yield ChannelRow(
            text.printable(channel.name),
            text.printable(f"{channel.source} → {channel.target}"),
            text.printable(channel.note),
            short(channel.production),
            short(channel.consumption),
            channel.tokens,
            channel.token_bytes,
            capacity,
            None if capacity is None else capacity * channel.token_bytes,
            weight / most,
        )


def _amount(number: int, weight: str) -> str:
    return text.size(number) if weight == "bytes" else text.plural(number, "token")
