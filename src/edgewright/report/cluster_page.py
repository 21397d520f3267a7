"""The pages of a network on several devices: one plan in detail, or a comparison of strategies and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from .. import text
from ..cluster.planning import ClusterPlan
from .charts import Card, asset, html_page
from .cluster_gantt import cluster_gantt_svg, layer_range
from .cluster_map import cluster_map_svg, sent_size
from .cluster_memory import cluster_memory_svg
from .cluster_plots import exchange_svg, fullest_svg, speedup_svg

MEGABYTE = 1e6
MOST_PORTS, MOST_NAMED = 60, 4


@dataclass(frozen=True, slots=True)
class ClusterSegmentRow:
    number: int
    stage: int
    layers: str
    split: str
    devices: str
    share: float  # of a frame's MACs, 0..1


@dataclass(frozen=True, slots=True)
class ClusterLinkRow:
    link: str
    sender: str
    bytes: int
    milliseconds: str
    share: float  # of the period, 0..1


@dataclass(frozen=True, slots=True)
class ClusterSizeRow:
    """A row of the table that compares plans."""

    devices: int
    strategy: str
    figures: tuple[str, ...]
    is_best: bool  # among plans of its size, by the objective


def cluster_page(plan: ClusterPlan, notes: Sequence[str] = ()) -> str:
    """The page of one planned deployment, a self-contained HTML document without a script."""
    return html_page(
        "cluster.html",
        plan.network.name,
        _style(),
        about=" · ".join(
            (
                text.plural(len(plan.cluster.devices), "device"),
                f"strategy “{plan.strategy}”",
                f"minimised: {plan.goal.aim.value}",
                text.plural(len(plan.division), "segment"),
                text.plural(plan.stages, "pipeline stage"),
            )
        ),
        cards=tuple(cluster_cards(plan)),
        wall=text.printable(plan.wall),
        notes=[text.printable(note) for note in notes],
        map=Markup(cluster_map_svg(plan)),
        memory=Markup(cluster_memory_svg(plan)),
        gantt=Markup(cluster_gantt_svg(plan)),
        stages=plan.stages,
        latency=text.duration(plan.latency),
        period=text.duration(plan.period),
        segments=tuple(_segments(plan)),
        links=tuple(_links(plan)),
    )


def cluster_sizes_page(plans: Sequence[ClusterPlan], notes: Sequence[str] = ()) -> str:
    """The page that compares estimated plans of one network, a self-contained HTML document without a script."""
    sizes = {len(plan.cluster.devices) for plan in plans}
    strategies = dict.fromkeys(plan.strategy for plan in plans)
    return html_page(
        "cluster_sizes.html",
        plans[0].network.name,
        _style(),
        about=f"{f'{min(sizes)} to ' if len(sizes) > 1 else ''}{max(sizes)} devices · {', '.join(strategies)}",
        aim=plans[0].goal.aim.value,
        single=text.rounded_size(plans[0].single_bytes),
        notes=[text.printable(note) for note in notes],
        plots=tuple(_plots(plans, len(sizes) > 1)),
        rows=tuple(_sizes(plans)),
    )


def _plots(plans: Sequence[ClusterPlan], has_sizes: bool) -> Iterator[tuple[str, str, Markup]]:
    """Title, description and plot of each chart."""
    memory = (
        "weights, arenas, slots and frames kept for replay, as a share of what one device needs for the whole network"
    )
    if has_sizes:
        words = "Frames per second as a multiple of the fastest device alone"
        yield "Speed-up against devices", words, Markup(speedup_svg(plans))
        yield "Memory of the fullest device", memory.capitalize(), Markup(fullest_svg(plans))
    else:
        yield "Speed-up against memory", f"To the right: {memory}", Markup(exchange_svg(plans))


def cluster_cards(plan: ClusterPlan) -> Iterator[Card]:
    count, cost = len(plan.cluster.devices), plan.cost
    share = plan.fullest * count / plan.single_bytes
    how = "every address is planned" if plan.is_exact else "an estimate"
    yield Card(
        "Fullest device", text.rounded_size(plan.fullest), f"{share:.2f} × one device / {count}; {how}", plan.is_exact
    )
    yield Card("One device", text.rounded_size(plan.single_bytes), "weights and arena with whole layers")
    yield Card("Frames per second", text.three_digits(1 / plan.period), "when frames come without pause")
    yield Card("Speed-up", f"{plan.speedup:.2f} ×", f"over the fastest device alone; {count} devices")
    yield Card("Latency", text.duration(plan.latency), "of a frame that has the cluster to itself")
    busiest = f"over all links; {sent_size(cost.busiest_link_bytes)} on the busiest"
    yield Card("Sent for a frame", sent_size(cost.traffic_bytes), busiest)
    if cost.energy:
        yield Card("Energy", f"{cost.energy:.3g} J", "a frame: an estimate from the devices' power")
    proof = "proven best" if plan.is_optimal else "at most, to the best there can be"
    yield Card("Gap", f"{plan.gap:.1%}", proof, plan.is_optimal)


def _segments(plan: ClusterPlan) -> Iterator[ClusterSegmentRow]:
    units = plan.found.costs.sketcher.units
    total = sum(unit.work for unit in units) or 1
    for number, (stage, segment) in enumerate(plan.staged):
        names = [text.printable(name) for name in segment.devices]
        who = ", ".join(names) if len(names) < MOST_NAMED else f"{names[0]} to {names[-1]} ({len(names)})"
        work = sum(unit.work for unit in units[segment.first : segment.stop])
        yield ClusterSegmentRow(number + 1, stage, layer_range(plan, number), segment.split.words, who, work / total)


def _links(plan: ClusterPlan) -> Iterator[ClusterLinkRow]:
    """The ports that send, the busiest first."""
    ports = sorted(plan.cost.port_bytes, key=plan.sending_s, reverse=True)
    for port in ports[:MOST_PORTS]:
        link, sender = port
        took = plan.sending_s(port)
        yield ClusterLinkRow(
            text.printable(link),
            text.printable(sender) or "all its ends",
            plan.cost.port_bytes[port],
            f"{took * 1e3:.3g}",
            took / plan.period,
        )


def _sizes(plans: Sequence[ClusterPlan]) -> Iterator[ClusterSizeRow]:
    best = {
        count: min((plan for plan in plans if len(plan.cluster.devices) == count), key=lambda each: each.goal_value)
        for count in {len(plan.cluster.devices) for plan in plans}
    }
    for plan in plans:
        count = len(plan.cluster.devices)
        yield ClusterSizeRow(count, plan.strategy, plan_figures(plan), plan is best[count])


def plan_figures(plan: ClusterPlan) -> tuple[str, ...]:
    """The figures of a plan for the comparison on the terminal and on the page.

    Memory of the fullest device in MB and relative to a single device; frames/s; speed-up; latency in s; MB sent; MB on
    the busiest link; J/frame; gap.
    """
    cost = plan.cost
    return (
        f"{plan.fullest / MEGABYTE:.2f}",
        f"{plan.fullest / plan.single_bytes:.1%}",
        text.three_digits(1 / plan.period),
        f"{plan.speedup:.2f}",
        f"{plan.latency:.3g}",
        f"{cost.traffic_bytes / MEGABYTE:.3g}",
        f"{cost.busiest_link_bytes / MEGABYTE:.3g}",
        f"{cost.energy:.3g}",
        f"{plan.gap:.1%}",
    )


def _style() -> str:
    return asset("page.css") + asset("charts.css") + asset("cluster.css")
