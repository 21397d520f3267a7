"""Cyclo-static dataflow graphs: actors that fire in phases, channels that carry tokens between them.

In an SDF graph every actor has one phase (M 2.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import lcm

from ..errors import ModelError
from ..text import printable, shortened

Time = int | Fraction


@dataclass(frozen=True)
class Rates:
    """Tokens moved by each firing: an initial part once, then a cycle forever."""

    cycle: tuple[int, ...]
    initial: tuple[int, ...] = ()

    @classmethod
    def only(cls, phase: int, count: int, tokens: int = 1) -> Rates:
        """All tokens of a cycle in one of its phases."""
        return cls(tuple(tokens if n == phase else 0 for n in range(count)))

    def at(self, firing: int) -> int:
        """Tokens moved by a firing, counted from 0."""
        first = len(self.initial)
        return self.initial[firing] if firing < first else self.cycle[(firing - first) % len(self.cycle)]

    def upto(self, firings: int) -> int:
        """Total tokens moved by that many firings, from the first on."""
        first = len(self.initial)
        if firings <= first:
            return self._initial_sums[firings]
        cycles, rest = divmod(firings - first, len(self.cycle))
        return self._initial_sums[-1] + cycles * self.total + self._sums[rest]

    @property
    def total(self) -> int:
        """Tokens moved by one cycle."""
        return self._sums[-1]

    @cached_property
    def _sums(self) -> tuple[int, ...]:
        return tuple(accumulate(self.cycle, initial=0))

    @cached_property
    def _initial_sums(self) -> tuple[int, ...]:
        return tuple(accumulate(self.initial, initial=0))


@dataclass(frozen=True)
class Actor:
    """Fires repeatedly, going through its phases; firings may overlap in time unless a self-loop forbids it."""

    name: str
    phases: int = 1
    times: tuple[Time, ...] | None = None  # of the phases, initial ones first; None if unknown
    initial_phases: int = 0
    note: str = ""  # a description for people: a layer and its operator

    def time(self, firing: int) -> Time:
        assert self.times is not None
        first = self.initial_phases
        return self.times[firing if firing < first else first + (firing - first) % self.phases]


@dataclass(frozen=True)
class Channel:
    """A first-in, first-out queue of tokens from one actor to another, or to itself."""

    name: str
    source: str
    target: str
    production: Rates
    consumption: Rates
    tokens: int = 0  # initial tokens
    token_bytes: int = 1
    note: str = ""

    @property
    def is_self_loop(self) -> bool:
        return self.source == self.target

    @property
    def is_serial(self) -> bool:
        """Whether it is a self-loop of one token that each firing takes and returns: firings do not overlap."""
        produced, consumed = self.production, self.consumption
        rates = {*produced.initial, *produced.cycle, *consumed.initial, *consumed.cycle}
        return self.is_self_loop and self.tokens == 1 and rates == {1}


@dataclass(frozen=True)
class Graph:
    """A graph, checked on construction: names are unique, ends exist, rates fit the phases of their actors."""

    name: str
    actors: tuple[Actor, ...]
    channels: tuple[Channel, ...]

    def __post_init__(self) -> None:
        _check_unique("actor", [actor.name for actor in self.actors])
        _check_unique("channel", [channel.name for channel in self.channels])
        for actor in self.actors:
            _check_actor(actor)
        for channel in self.channels:
            _check_channel(channel, self.by_name)

    @cached_property
    def by_name(self) -> Mapping[str, Actor]:
        return {actor.name: actor for actor in self.actors}

    @cached_property
    def channel(self) -> Mapping[str, Channel]:
        return {channel.name: channel for channel in self.channels}

    @cached_property
    def inputs(self) -> Mapping[str, tuple[Channel, ...]]:
        """For each actor the channels it consumes from, including self-loops."""
        return _grouped(self.actors, [(channel.target, channel) for channel in self.channels])

    @cached_property
    def outputs(self) -> Mapping[str, tuple[Channel, ...]]:
        """For each actor the channels it produces into, including self-loops."""
        return _grouped(self.actors, [(channel.source, channel) for channel in self.channels])

    @property
    def is_sdf(self) -> bool:
        return all(actor.phases == 1 and not actor.initial_phases for actor in self.actors)

    @property
    def has_times(self) -> bool:
        return all(actor.times is not None for actor in self.actors)

    @cached_property
    def time_unit(self) -> int:
        """The factor that makes every execution time an integer."""
        times = [time for actor in self.actors for time in actor.times or ()]
        return lcm(*(Fraction(time).denominator for time in times)) if times else 1


def _grouped(actors: Iterable[Actor], ends: Iterable[tuple[str, Channel]]) -> Mapping[str, tuple[Channel, ...]]:
    grouped: dict[str, list[Channel]] = {actor.name: [] for actor in actors}
    for name, channel in ends:
        grouped[name].append(channel)
    return {name: tuple(channels) for name, channels in grouped.items()}


def _check_unique(kind: str, names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ModelError(f"{kind} '{twice[0]}' is there twice: give each {kind} a name of its own")


def _check_actor(actor: Actor) -> None:
    if actor.phases < 1 or actor.initial_phases < 0:
        raise ModelError(f"actor '{actor.name}' has {actor.phases} phases; it needs at least one")
    if actor.times is None:
        return
    wanted = actor.initial_phases + actor.phases
    if len(actor.times) != wanted:
        raise ModelError(f"actor '{actor.name}' has {wanted} phases, but {len(actor.times)} execution times")
    if any(time < 0 for time in actor.times):
        raise ModelError(f"actor '{actor.name}' has a negative execution time")


def _check_channel(channel: Channel, actors: Mapping[str, Actor]) -> None:
    what = f"channel '{channel.name}'"
    ends = (("source", channel.source, channel.production), ("target", channel.target, channel.consumption))
    for end, name, rates in ends:
        if name not in actors:
            raise ModelError(f"{what}: its {end} '{name}' is not an actor of the graph")
        actor = actors[name]
        if (len(rates.cycle), len(rates.initial)) != (actor.phases, actor.initial_phases):
            raise ModelError(
                f"{what}: {len(rates.initial)} + {len(rates.cycle)} rates at its {end}, but actor '{name}' has "
                f"{actor.initial_phases} initial and {actor.phases} repeated phases"
            )
        if min((*rates.initial, *rates.cycle)) < 0:
            raise ModelError(f"{what}: a negative rate at its {end} '{name}'")
    if channel.tokens < 0 or channel.token_bytes < 0:
        raise ModelError(f"{what}: tokens and their size cannot be negative")
    if not channel.production.total and channel.consumption.total:
        raise ModelError(f"{what}: '{channel.target}' consumes from it, but '{channel.source}' never produces")
    if channel.production.total and not channel.consumption.total:
        raise ModelError(f"{what}: '{channel.source}' produces into it, but '{channel.target}' never consumes")


def serial_loop(actor: Actor, note: str) -> Channel:
    """The self-loop, of a token without bytes, that keeps firings of the actor from overlapping."""
    ones = Rates((1,) * actor.phases, (1,) * actor.initial_phases)
    return Channel(f"{actor.name}.serial", actor.name, actor.name, ones, ones, tokens=1, token_bytes=0, note=note)


ROOM = 60  # characters of a name in a message


def quoted(name: str) -> str:
    """The name as shown in messages."""
    return f"'{shortened(printable(name), ROOM)}'"


def labelled(thing: Actor | Channel) -> str:
    """The name with its note, if any: 'add_3' (Add)."""
    if not thing.note:
        return quoted(thing.name)
    return f"{quoted(thing.name)} ({shortened(printable(thing.note), ROOM)})"


def listed(words: Sequence[str], most: int) -> str:
    """The words separated by commas; a long list is abbreviated in the middle."""
    if len(words) <= most:
        return ", ".join(words)
    head = most - most // 2
    return ", ".join([*words[:head], f"… {len(words) - most:,} more …", *words[len(words) - most // 2 :]])


def check_times(graph: Graph) -> None:
    """Refuses a graph in which an actor has no execution times."""
    missing = [actor.name for actor in graph.actors if actor.times is None]
    if missing:
        raise ModelError(
            f"graph {quoted(graph.name)}: no execution time is given for {len(missing)} of its {len(graph.actors)} "
            f"actors, first {quoted(missing[0])}; throughput needs one for each. Give times, or ask only for what "
            "needs none"
        )


def fold(graph: Graph) -> Graph:
    """The graph with every actor's cycle cut to its shortest period: fewer, equal phases.

    Firings, tokens and times are unchanged; the cycle only ends sooner (rule of B: an actor that does the same for
    every row has one phase). If all actors fold, one iteration is a part of an image.
    """
    lengths = {actor.name: _period(graph, actor) for actor in graph.actors}
    channels = [
        replace(
            channel,
            production=_cut(channel.production, lengths[channel.source]),
            consumption=_cut(channel.consumption, lengths[channel.target]),
        )
        for channel in graph.channels
    ]
    actors = [
        replace(actor, phases=length, times=actor.times and actor.times[: actor.initial_phases + length])
        for actor, length in zip(graph.actors, lengths.values(), strict=True)
    ]
    return Graph(graph.name, tuple(actors), tuple(channels))


def _period(graph: Graph, actor: Actor) -> int:
    series: list[Sequence[object]] = [channel.production.cycle for channel in graph.outputs[actor.name]]
    series += [channel.consumption.cycle for channel in graph.inputs[actor.name]]
    if actor.times is not None:
        series.append(actor.times[actor.initial_phases :])
    divisors = [n for n in range(1, actor.phases + 1) if actor.phases % n == 0]
    return next(n for n in divisors if all(one[n:] == one[:-n] for one in series))


def _cut(rates: Rates, length: int) -> Rates:
    return Rates(rates.cycle[:length], rates.initial)
