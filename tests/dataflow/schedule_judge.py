"""Whether a schedule keeps its word; shares no code with what makes schedules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from edgewright.dataflow.buffers.schedule import Schedule
from edgewright.dataflow.graph import Channel, Graph


def check_schedule(graph: Graph, capacities: Mapping[str, int] | None, schedule: Schedule) -> str | None:
    """What is wrong with a schedule, or None: tokens or space lacking, or an iteration that is not one."""
    fired: Counter[str] = Counter()
    for actor, count in schedule.first:
        wrong = _check_run(graph, capacities, fired, actor, count)
        if wrong:
            return wrong
    settled = Counter(fired)
    for actor, count in schedule.again:
        wrong = _check_run(graph, capacities, fired, actor, count)
        if wrong:
            return wrong
    for one in graph.actors:
        if settled[one.name] < one.initial_phases:
            return f"'{one.name}' begins to repeat before its initial phases are over"
    return _check_iteration(graph, settled, fired)


def _check_run(
    graph: Graph, capacities: Mapping[str, int] | None, fired: Counter[str], actor: str, count: int
) -> str | None:
    """What stops an actor from firing so often in a row; nobody else fires meanwhile."""
    if actor not in graph.by_name or count < 1:
        return f"'{actor}' cannot fire {count} times: no such actor, or no such number"
    before, after = fired[actor], fired[actor] + count
    loops = [channel for channel in graph.inputs[actor] if channel.is_self_loop]
    for channel in graph.inputs[actor]:
        there = channel.tokens + channel.production.upto(fired[channel.source])
        if not channel.is_self_loop and channel.consumption.upto(after) > there:
            return f"'{actor}' lacks tokens on '{channel.name}' by its firing {after}"
    for channel in graph.outputs[actor]:
        needs = channel.tokens + channel.production.upto(after) - channel.consumption.upto(fired[channel.target])
        if not channel.is_self_loop and capacities is not None and needs > capacities[channel.name]:
            return f"'{actor}' lacks space on '{channel.name}' by its firing {after}"
    fired[actor] = after
    wrong = (_check_loop(loop, capacities, firing) for loop in loops for firing in range(before, after))
    return next((one for one in wrong if one), None)


def _check_loop(loop: Channel, capacities: Mapping[str, int] | None, firing: int) -> str | None:
    """What stops a firing at its self-loop, where it has its old and new tokens at once."""
    held = loop.tokens + loop.production.upto(firing) - loop.consumption.upto(firing)
    if held < loop.consumption.at(firing):
        return f"'{loop.source}' lacks tokens on its self-loop '{loop.name}' at firing {firing + 1}"
    if capacities is not None and held + loop.production.at(firing) > capacities[loop.name]:
        return f"'{loop.source}' lacks space on its self-loop '{loop.name}' at firing {firing + 1}"
    return None


def _check_iteration(graph: Graph, before: Mapping[str, int], after: Mapping[str, int]) -> str | None:
    for actor in graph.actors:
        fires = after[actor.name] - before[actor.name]
        if fires == 0 or fires % actor.phases:
            return f"'{actor.name}' fires {fires} times in an iteration; it has {actor.phases} phases"
    for channel in graph.channels:
        source, target = channel.source, channel.target
        made = channel.production.upto(after[source]) - channel.production.upto(before[source])
        if made != channel.consumption.upto(after[target]) - channel.consumption.upto(before[target]):
            return f"channel '{channel.name}' does not end an iteration as it began it"
    return None
