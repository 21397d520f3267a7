"""Whether every actor can fire forever; if not, the blocking cycle of waits and fixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd

from ..graph import Actor, Graph
from .consistency import cycles, repetitions
from .deadlock import BlockedFiring, Deadlock, Fix
from .demand import Demand, Supply, components, supplies

MOST_FIXES = 3  # that are listed
_TRIED_FIXES = 8  # channels of the blocking cycle that are examined
_TRIED_RAISES = 20  # attempts for one channel
_FIX_FIRINGS = 50_000  # per iteration; beyond it fixes are not tried


def blocked(graph: Graph, capacities: Mapping[str, int] | None = None) -> Deadlock | None:
    """The deadlock that the graph runs into, or None if it is live; channels without a capacity are unlimited.

    Each strongly connected part is run separately: initial phases, then one iteration, which returns it to its state.
    Inputs from outside can be produced as far ahead as needed.
    """
    deadlock = _first_block(graph, capacities)
    if deadlock is None or not deadlock.cycle or sum(repetitions(graph).values()) > _FIX_FIRINGS:
        return deadlock
    return replace(deadlock, fixes=_fixes(deadlock))


def _first_block(graph: Graph, capacities: Mapping[str, int] | None) -> Deadlock | None:
    limits = supplies(graph, capacities)
    starved = [supply for supply in limits if _starves(supply)]
    if starved:
        return _starvation(graph, capacities or {}, starved[0])
    whole = cycles(graph)
    for part in components(graph, limits):
        demand = Demand(graph, [actor.name for actor in part.actors], part.limits)
        if not _is_live(part.actors, demand, whole):
            return _deadlock(graph, capacities or {}, demand)
    return None


def _is_live(actors: Sequence[Actor], demand: Demand, whole: Mapping[str, int]) -> bool:
    """Whether a part completes its initial phases and an iteration; alone it may need fewer cycles."""
    if not demand.reach({actor.name: actor.initial_phases for actor in actors}):
        return False
    shared = gcd(*(whole[actor.name] for actor in actors))
    return demand.reach({a.name: demand.fired[a.name] + whole[a.name] // shared * a.phases for a in actors})


def _starves(supply: Supply) -> bool:
    """Whether initial phases take more tokens than exist and initial phases produce, with no cycle that adds some."""
    return not supply.produced.total and supply.first + sum(supply.produced.initial) < sum(supply.consumed.initial)


def _starvation(graph: Graph, capacities: Mapping[str, int], supply: Supply) -> Deadlock:
    """The wait of the first firing that a channel used only by initial phases cannot serve."""
    there = supply.first + sum(supply.produced.initial)
    firing = next(f for f in range(len(supply.consumed.initial)) if supply.consumed.upto(f + 1) > there)
    holds = there - supply.consumed.upto(firing)
    wait = BlockedFiring(supply.consumer, supply.channel, supply.is_room, holds, supply.consumed.at(firing))
    return Deadlock(graph, capacities, (), (wait,))


def _deadlock(graph: Graph, capacities: Mapping[str, int], demand: Demand) -> Deadlock:
    waits = {name: _wait(demand, name) for name in demand.stuck}
    cycle = tuple(waits[name] for name in demand.cycle)
    return Deadlock(graph, capacities, cycle, tuple(waits.values()))


def _wait(demand: Demand, name: str) -> BlockedFiring:
    number = demand.stuck[name]
    supply = demand.supplies[number]
    return BlockedFiring(name, supply.channel, supply.is_room, demand.stock[number], demand.needs(name))


def _fixes(deadlock: Deadlock) -> tuple[Fix, ...]:
    """Changes of one channel of the cycle, cheapest first: larger capacities if space is missing, else more tokens."""
    waits = [wait for wait in deadlock.cycle if wait.is_room] or list(deadlock.cycle)
    waits.sort(key=lambda wait: wait.missing * wait.channel.token_bytes)
    fixes = [_fix(deadlock, wait) for wait in waits[:_TRIED_FIXES]]
    enough = [fix for fix in fixes if fix.is_enough]
    return tuple(enough[:MOST_FIXES] or fixes[:1])


def _fix(deadlock: Deadlock, wait: BlockedFiring) -> Fix:
    """The least change of this channel that makes the graph live or moves the deadlock elsewhere.

    Until its deficit is covered, the cycle blocks at the same firings.
    """
    channel, is_room = wait.channel, wait.is_room
    now = deadlock.capacities[channel.name] if is_room else channel.tokens
    wanted, is_enough = now + wait.missing, False
    for _ in range(_TRIED_RAISES):
        following = _first_block(*_raised(deadlock, wait, wanted))
        if following is None:
            is_enough = True
            break
        again = [w for w in following.cycle if w.channel.name == channel.name and w.is_room == is_room]
        if not again:
            break
        wanted += again[0].missing
    return Fix(channel, is_room, now, wanted, is_enough)


def _raised(deadlock: Deadlock, wait: BlockedFiring, wanted: int) -> tuple[Graph, Mapping[str, int]]:
    """The graph and capacities with the tokens or the capacity of one channel changed; tokens add their space."""
    graph, name = deadlock.graph, wait.channel.name
    if wait.is_room:
        return graph, {**deadlock.capacities, name: wanted}
    more = wanted - wait.channel.tokens
    channels = tuple(replace(c, tokens=wanted) if c.name == name else c for c in graph.channels)
    wider = {other: size + more * (other == name) for other, size in deadlock.capacities.items()}
    return replace(graph, channels=channels), wider
