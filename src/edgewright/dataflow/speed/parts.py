"""The parts of a graph that set its pace, and what keeps firings of one actor apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..checks.demand import supplies
from ..checks.parts import Component
from ..checks.parts import parts as parts_of
from ..graph import Channel, Graph


def parts(graph: Graph, capacities: Mapping[str, int] | None) -> Iterator[Component]:
    """The strongly connected parts in which anything is waited for again and again."""
    return parts_of(graph, [slot for slot in supplies(graph, capacities) if slot.filled.total])


def is_serial(channel: Channel) -> bool:
    """Whether it is a self-loop of one token that each firing takes and leaves: firings do not overlap."""
    made, taken = channel.production, channel.consumption
    rates = {*made.initial, *made.cycle, *taken.initial, *taken.cycle}
    return channel.is_self_loop and channel.tokens == 1 and rates == {1}
