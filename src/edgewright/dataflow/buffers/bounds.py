"""Lower bounds on each channel's capacity, for any capacities of the others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import networkx as nx

from ..graph import Channel
from .untimed import Line, Untimed, sums

_MOST_LOOKS = 20_000_000  # table lookups: some seconds; only large blocks and cycles need many


def loop_capacity(channel: Channel, firings: int) -> int:
    """The most that a self-loop holds: a firing claims space for its tokens before it frees those it consumes."""
    produced = sums(channel.production, firings, channel.tokens)
    consumed = sums(channel.consumption, firings)
    return max(channel.tokens, *(after - before for after, before in zip(produced[1:], consumed[:-1], strict=True)))


def least_capacities(graph: Untimed) -> list[int]:
    """For each line the least capacity under which the graph is live if all other lines are unbounded.

    When the source fires for the (j+1)th time its target has fired at most as often as j firings of the source allow,
    and if it did, the fewest tokens are left on the line; this has no closed form and is counted. Two actors that share
    a single line wait for nothing else, so the result is then the minimum itself.
    """
    least = [line.channel.tokens for line in graph.lines]
    left = _MOST_LOOKS
    for actor, outputs in enumerate(graph.outputs):
        # without one line, everything else that the target waits for comes through that line, hence after it
        reached, looks = _reached(graph, actor, left) if len(outputs) > 1 else ({}, 0)
        left -= looks
        for at in outputs:
            line = graph.lines[at]
            done = reached.get(line.target) or _follow(line, range(graph.goal[actor]))
            held = (line.produced[j + 1] - line.consumed[k] for j, k in enumerate(done))
            least[at] = max(least[at], *held)
    return least


def _follow(line: Line, source: Sequence[int]) -> list[int]:
    """Firings of the target after these firings of the source."""
    return [bisect_right(line.consumed, line.produced[done]) - 1 for done in source]


def _reached(graph: Untimed, actor: int, most: int) -> tuple[dict[int, list[int]], int]:
    """For each downstream actor, the firings possible after 0, 1, 2, ... firings of this one; and the number of
    lookups.

    Iterates until nothing changes, once if there are no cycles. Empty if that takes too many lookups: other bounds are
    then used.
    """
    behind = _behind(graph, actor)
    reached = {other: [0] * graph.goal[actor] for other in behind}
    reached[actor] = list(range(graph.goal[actor]))
    lines = {other: [one for one in graph.into(other) if one.source in reached] for other in behind}
    each_round = graph.goal[actor] * sum(map(len, lines.values()))
    looks = 0
    changed = True
    while changed:
        if looks + each_round > most:
            return {}, looks
        looks += each_round
        changed = False
        for other in behind:
            each = [_follow(line, reached[line.source]) for line in lines[other]]
            now = [min(graph.limit[other], *column) for column in zip(*each, strict=True)]
            changed |= now != reached[other]
            reached[other] = now
    return reached, looks


def _behind(graph: Untimed, actor: int) -> list[int]:
    """The other actors reached by tokens of this one, producers before consumers where possible."""
    return list(nx.dfs_postorder_nodes(graph.links, actor))[-2::-1]
