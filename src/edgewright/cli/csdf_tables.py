"""Tables of dataflow graphs: actors, channels, analysis results, the trade-off between buffer size and period."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from rich.table import Table

from .. import text
from ..dataflow.analysis import GraphAnalysis
from ..dataflow.buffers.looped_schedule import schedule_text
from ..dataflow.buffers.minimum import Buffers
from ..dataflow.buffers.occupancy import Peak
from ..dataflow.buffers.schedule import Weight
from ..dataflow.formats.dot import short
from ..dataflow.graph import Actor, Channel, Graph
from ..dataflow.throughput.latency import Latency
from ..dataflow.throughput.pareto import Pareto
from ..report.charts import exact, speed
from ..report.dataflow_page import busy_time
from .common import facts, shown, table

MOST = 40  # rows of a table
LONGEST_NAME = 19  # characters shown of the name at one end of a channel
LONGEST = 600  # characters shown of a schedule


def actors_table(graph: Graph, firings: Mapping[str, int], unit: str) -> Table:
    """The actors in order; of many, those with the most work."""
    has_notes = any(actor.note for actor in graph.actors)
    names = ("actor", "what it is") if has_notes else ("actor",)
    numbers = (">phases", ">firings", f">time, {unit}" if unit else ">time")
    made = table(f"{shown(graph.name)}: actors", *names, *numbers)
    kept = _busiest(graph, firings)
    for actor in graph.actors:
        if actor.name in kept:
            made.add_row(*_actor_row(actor, firings, has_notes))
    if len(kept) < len(graph.actors):
        made.add_row(f"… {len(graph.actors) - len(kept)} that work less; --json has all")
    return made


def _busiest(graph: Graph, firings: Mapping[str, int]) -> set[str]:
    def work(actor: Actor) -> tuple[Fraction, int]:
        fires = firings.get(actor.name, 0)
        return busy_time(actor, fires) or Fraction(0), fires

    return {actor.name for actor in sorted(graph.actors, key=work, reverse=True)[:MOST]}


def _actor_row(actor: Actor, firings: Mapping[str, int], has_note: bool) -> Iterator[str]:
    fires = firings.get(actor.name)
    time = None if fires is None else busy_time(actor, fires)
    yield shown(actor.name)
    if has_note:
        yield shown(text.shortened(actor.note, 60))
    yield f"{actor.initial_phases} + {actor.phases}" if actor.initial_phases else text.count(actor.phases)
    yield "–" if fires is None else text.count(fires)
    yield "–" if time is None else exact(time)


def channels_table(graph: Graph, capacities: Mapping[str, int] | None = None) -> Table:
    """The channels. Self-loops that only prevent overlapping firings are counted, not listed."""
    channels = [channel for channel in graph.channels if not channel.is_serial]
    made = Table(title="channels", title_justify="left", caption_justify="left")
    made.add_column("channel", overflow="fold", min_width=24)
    for heading in ("produced", "consumed"):
        made.add_column(heading, overflow="fold", min_width=10, max_width=30)
    for heading in ("initial", "B each", *(("capacity", "bytes") if capacities else ())):
        made.add_column(heading, justify="right", no_wrap=True)
    if any(channel.note for channel in channels):
        made.add_column("what it is", no_wrap=True, overflow="ellipsis", max_width=28)
    kept = _largest(channels, capacities)
    for channel in channels:
        if channel.name in kept:
            made.add_row(*list(_channel_row(channel, capacities))[: len(made.columns)])
    if len(kept) < len(channels):
        made.add_row(f"… {len(channels) - len(kept)} more; --json has all")
    if loops := len(graph.channels) - len(channels):
        made.caption = f"and {text.plural(loops, 'self-loop')} of one token: firings of that actor do not overlap"
    return made


def _largest(channels: Sequence[Channel], capacities: Mapping[str, int] | None) -> set[str]:
    """The channels that hold the most, or else transfer the most; skip connections first, since they enlarge others."""

    def weight(channel: Channel) -> tuple[bool, int]:
        held = capacities[channel.name] if capacities else channel.production.total
        return channel.note.startswith("skip"), held * channel.token_bytes

    return {channel.name for channel in sorted(channels, key=weight, reverse=True)[:MOST]}


def _channel_row(channel: Channel, capacities: Mapping[str, int] | None) -> Iterator[str]:
    yield shown(_name(channel))
    yield shown(short(channel.production))
    yield shown(short(channel.consumption))
    yield text.count(channel.tokens)
    yield text.count(channel.token_bytes)
    if capacities:
        yield text.count(capacities[channel.name])
        yield text.count(capacities[channel.name] * channel.token_bytes)
    yield shown(channel.note.removesuffix(f" {channel.source} -> {channel.target}"))


def _name(channel: Channel) -> str:
    """The channel's name without its ends, which begin the name of a CNN's channel."""
    ends = f"{channel.source}->{channel.target}"
    short_ends = "->".join(text.shortened(name, LONGEST_NAME) for name in (channel.source, channel.target))
    if channel.name.startswith(ends):
        return short_ends + channel.name.removeprefix(ends)
    return f"{text.shortened(channel.name, LONGEST_NAME)}: {short_ends}"


def graph_line(graph: Graph, firings: Mapping[str, int]) -> str:
    kind = "SDF" if graph.is_sdf else "CSDF"
    fires = f", {text.plural(sum(firings.values()), 'firing')} per iteration" if firings else ""
    actors, channels = text.plural(len(graph.actors), "actor"), text.plural(len(graph.channels), "channel")
    return f"{kind}: {actors}, {channels}{fires}"


def findings_table(analysis: GraphAnalysis, unit: str) -> Table:
    """One line for each result of the analysis."""
    unit = unit or "units of time"
    grid = facts()
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("consistent", "yes", f"{text.plural(sum(analysis.repetitions.values()), 'firing')} per iteration")
    grid.add_row("live", "yes", "every actor can fire for ever")
    free = f"{unit} per iteration, with channels of any size"
    _add_time(grid, "period", analysis.period, free if analysis.period else "nothing limits how often actors fire")
    _add_latency(grid, "latency", analysis.latency, unit)
    if analysis.buffers:
        least = analysis.buffers
        _add_size(grid, "minimum buffers", least, "the sum of all capacities")
        which = "the fastest of all such buffers" if analysis.is_fastest else "others of this total may be faster"
        _add_time(grid, "period there", analysis.period_at_minimum, f"{unit} per iteration; {which}")
        _add_latency(grid, "latency there", analysis.latency_at_minimum, unit)
    if analysis.peak:
        _add_size(grid, "peak occupancy", analysis.peak, "held at once, in one memory for all channels")
    if analysis.buffers:
        schedule = text.printable(schedule_text(analysis.buffers.schedule))
        cut = schedule if len(schedule) <= LONGEST else f"{schedule[:LONGEST].rsplit(' ', 1)[0]} … --json has all"
        grid.add_row("schedule", "", shown(cut))
    return grid


def _add_time(grid: Table, label: str, time: Fraction | None, what: str) -> None:
    if time is not None:
        grid.add_row(label, exact(time), what)


def _add_latency(grid: Table, label: str, latency: Latency | None, unit: str) -> None:
    if latency is not None:
        steady = f"; later up to {exact(latency.steady)}" if latency.steady is not None else ""
        grid.add_row(label, exact(latency.first), f"{unit} from the first firing to the last{steady}")


def _add_size(grid: Table, label: str, buffers: Buffers | Peak, what: str) -> None:
    """Adds the size in bytes and in tokens; the minimised one comes first."""
    tokens, size = text.plural(buffers.tokens, "token"), text.size(buffers.size_bytes)
    main, other = (size, tokens) if buffers.weight == "bytes" else (tokens, size)
    bound = text.size(buffers.bound) if buffers.weight == "bytes" else text.plural(buffers.bound, "token")
    proof = "proven least" if buffers.is_optimal else f"no less than {bound} is possible"
    grid.add_row(label, main, f"{other}; {what}; {proof}")


def front_table(front: Pareto, unit: str) -> Table:
    """The points of the front, the smallest first; of many, the first and last ones."""
    period = f">period, {unit}" if unit else ">period"
    made = table("buffer size against throughput", ">tokens", ">bytes", period, ">of the best speed")
    points = list(enumerate(front.points))
    for index, point in points if len(points) <= MOST else [*points[: MOST - 5], *points[-5:]]:
        if index and index == len(points) - 5 and len(points) > MOST:
            made.add_row(f"… {len(points) - MOST} more")
        share = speed(front.best_period, point.period)
        made.add_row(text.count(point.tokens), text.count(point.bytes), exact(point.period), share)
    return made


def front_line(front: Pareto, weight: Weight) -> str:
    """Whether the front is complete."""
    if front.complete:
        return f"complete: no capacities give a shorter period than {exact(front.best_period)}"
    if not front.best_period:
        return "without end: nothing but the channels limits the period; larger ones make it ever shorter"
    beyond = ""
    if front.next is not None:
        size = front.next.bytes if weight == "bytes" else front.next.tokens
        beyond = f"; {text.count(size)} {weight} reach {exact(front.next.period)}, maybe less"
    return (
        f"cut short: proven for totals below {text.count(front.proven)} {weight}{beyond}; "
        f"with channels of any size the period is {exact(front.best_period)}; --limit gives more time"
    )
