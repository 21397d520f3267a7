"""Random dataflow graphs for property tests: consistent by construction, and live where asked for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import strategies as st

from edgewright.dataflow.checks.consistency import repetitions
from edgewright.dataflow.graph import Actor, Channel, Graph, Rates

# Small first: hypothesis shrinks towards the beginning.
TIMES = st.one_of(st.integers(1, 6), st.integers(0, 6), st.fractions(0, 4, max_denominator=3))


@st.composite
def graphs(
    draw,
    *,
    actors=5,  # at most
    cycles=3,  # of an actor in one iteration, at most
    phases=3,
    initial_phases=2,  # 0: none
    factor=2,  # by which rates exceed the least that fit, at most
    tokens=4,  # on a channel at first, at most
    extra=3,  # channels beyond those that hold a component together
    times=TIMES,  # None: none
    self_loops=True,
    directed_cycles=True,
    sdf=False,
) -> Graph:
    """Consistent graphs, live or not: several components, parallel channels, cycles, zero rates, initial phases."""
    whole = draw(st.lists(st.integers(1, cycles), min_size=1, max_size=actors))
    if sdf:
        phases, initial_phases = 1, 0
    made = [_actor(draw, i, phases, initial_phases, times) for i in range(len(whole))]
    ends = [(draw(st.integers(0, i - 1)), i) for i in range(1, len(whole)) if draw(_mostly)]
    for _ in range(draw(st.integers(0, extra))):
        ends.append((draw(st.integers(0, len(whole) - 1)), draw(st.integers(0, len(whole) - 1))))
    ends = [(max(e), min(e)) if directed_cycles and draw(_seldom) else (min(e), max(e)) for e in ends]
    ends = [e for e in ends if e[0] != e[1] or self_loops]
    channels = [
        _channel(draw, f"c{number}", (made[s], whole[s]), (made[t], whole[t]), factor, tokens)
        for number, (s, t) in enumerate(ends)
    ]
    if self_loops:
        channels += [_serial(actor) for actor in made if draw(st.booleans())]
    return Graph("random", tuple(made), tuple(channels))


@st.composite
def live_graphs(draw, **options) -> Graph:
    """Graphs in which every actor can fire for ever, given channels without limit."""
    return made_live(draw(graphs(**options)))


def tiny_graphs(**options) -> st.SearchStrategy[Graph]:
    """Live graphs small enough to try every capacity of every channel."""
    return live_graphs(**{"actors": 3, "cycles": 2, "phases": 2, "factor": 1, "tokens": 2, "extra": 1, **options})


_mostly = st.sampled_from([True, True, True, True, False])
_seldom = st.sampled_from([False, False, False, True])


def _actor(draw, number: int, phases: int, initial_phases: int, times) -> Actor:
    cycle = draw(st.integers(1, phases))
    initial = draw(st.integers(0, initial_phases)) if initial_phases and draw(_seldom) else 0
    durations = None
    if times is not None:
        durations = tuple(draw(st.lists(times, min_size=initial + cycle, max_size=initial + cycle)))
    return Actor("abcdefghijklmnop"[number], cycle, durations, initial)


def _channel(draw, name: str, source, target, factor: int, tokens: int) -> Channel:
    """Rates that balance: in one iteration as many tokens are made as are taken."""
    (from_actor, from_cycles), (to_actor, to_cycles) = source, target
    ratio = Fraction(to_cycles, from_cycles)
    times = draw(st.integers(1, factor))
    production = _rates(draw, from_actor, ratio.numerator * times)
    consumption = _rates(draw, to_actor, ratio.denominator * times)
    return Channel(name, from_actor.name, to_actor.name, production, consumption, draw(st.integers(0, tokens)))


def _rates(draw, actor: Actor, total: int) -> Rates:
    """A total spread over the phases of an actor; some may get nothing."""
    cuts = sorted(draw(st.integers(0, total)) for _ in range(actor.phases - 1))
    cycle = tuple(b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True))
    return Rates(cycle, tuple(draw(st.integers(0, 2)) for _ in range(actor.initial_phases)))


def _serial(actor: Actor) -> Channel:
    """A self-loop of one token: firings of the actor do not overlap."""
    ones = Rates((1,) * actor.phases, (1,) * actor.initial_phases)
    return Channel(f"self_{actor.name}", actor.name, actor.name, ones, ones, tokens=1)


def made_live(graph: Graph) -> Graph:
    """The graph with initial tokens added, where it would block, until it does not."""
    while lacking := _lacking(graph):
        name, missing = lacking
        channels = (replace(c, tokens=c.tokens + missing) if c.name == name else c for c in graph.channels)
        graph = replace(graph, channels=tuple(channels))
    return graph


def _lacking(graph: Graph) -> tuple[str, int] | None:
    """A channel of a cycle that blocks and the tokens it lacks, or None where the graph is live.

    Each actor is made to run its initial phases and then one iteration. It draws on the actors that it waits for, so
    that one which waits for itself, through others, is found where that happens.
    """
    fired = {actor.name: 0 for actor in graph.actors}
    lacking = _run(graph, fired, {actor.name: actor.initial_phases for actor in graph.actors})
    return lacking or _run(graph, fired, {name: fired[name] + more for name, more in repetitions(graph).items()})


def _run(graph: Graph, fired: dict[str, int], goals: dict[str, int]) -> tuple[str, int] | None:
    for name, goal in goals.items():
        while fired[name] < goal:
            lacking = _pull(graph, fired, name, [])
            if lacking:
                return lacking
    return None


def _pull(graph: Graph, fired: dict[str, int], name: str, above: list[str]) -> tuple[str, int] | None:
    """Fire an actor once, and before it those it waits for; or say what is lacking in a cycle of waits."""
    for channel in graph.inputs[name]:
        while (missing := _missing(channel, fired)) > 0:
            if channel.source in [*above, name]:
                return channel.name, missing
            lacking = _pull(graph, fired, channel.source, [*above, name])
            if lacking:
                return lacking
    fired[name] += 1
    return None


def _missing(channel: Channel, fired: dict[str, int]) -> int:
    there = channel.tokens + channel.production.upto(fired[channel.source])
    return channel.consumption.upto(fired[channel.target] + 1) - there
