"""Resources shared by workers and transfers: ports of links, cores, and memory that two FIFOs' slots use in turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...network.parts import TensorRegion
from ...program.deployment import Worker
from ..graph import Actor, Channel, Rates
from ..throughput.contention import Resource
from .phases import GivenTime


@dataclass(frozen=True)
class SharedLinks:
    """The links between devices, as used by transfers."""

    ports: Callable[[str, str], tuple[Resource, ...]]  # held by a transfer between two devices while it is sent
    delay: Callable[[str, str], GivenTime]  # additional delay, which holds nothing
    outside: str  # the device at which frames enter and results leave
    pieces: int = 1  # of each transfer: between two of them, ports serve others that wait


@dataclass(frozen=True, slots=True)
class SlotTurn:
    """Two FIFOs' slots that share memory of a device in turn.

    The writer of `then` for a frame starts when all readers of `first` have ended, for the frame that came `frames`
    before.
    """

    device: str
    first: TensorRegion
    then: TensorRegion
    frames: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    """A firing in the service order of a resource: of a phase, some iterations behind the first of the order."""

    actor: str
    phase: int
    behind: int = 0


def shared_cores(workers: Sequence[Worker]) -> Mapping[str, tuple[Resource, ...]]:
    """The cores that each worker shares with others; workers that name no core use the whole processor."""
    users: dict[Resource, list[str]] = defaultdict(list)
    for worker in workers:
        for core in worker.cores or ("",):
            users[f"{worker.device}, {worker.processor}", f"core {core}".strip()].append(worker.name)
    held: dict[str, list[Resource]] = defaultdict(list)
    for resource, names in users.items():
        for name in names if len(names) > 1 else ():
            held[name].append(resource)
    return {name: tuple(resources) for name, resources in held.items()}


def in_order(resource: Resource, order: Sequence[Service], actors: Mapping[str, Actor]) -> Iterator[Channel]:
    """The channels that keep firings in this order in every round."""
    for n, (one, then, tokens) in enumerate(_neighbours(order)):
        source, target = actors[one.actor], actors[then.actor]
        if source is target and tokens >= (one.phase >= then.phase):
            continue  # the actor's own order is at least as strong
        yield Channel(
            f"{': '.join(resource)}, turn {n}: {one.actor} -> {then.actor}",
            source.name,
            target.name,
            actor_rates(source, {one.phase: 1}),
            actor_rates(target, {then.phase: 1}, at_first=max(0, -tokens)),
            max(0, tokens),
            0,
            "turn",
        )


def late(orders: Iterable[Sequence[Service]]) -> set[str]:
    """Actors that first wait for later iterations of others; they do so in an initial phase."""
    return {then.actor for order in orders for _, then, tokens in _neighbours(order) if tokens < 0}


def actor_rates(actor: Actor, by_phase: Mapping[int, int], at_first: int = 0) -> Rates:
    """What an actor moves in its phases, and in its initial phase if it has one."""
    return Rates(tuple(by_phase.get(n, 0) for n in range(actor.phases)), (at_first,) * actor.initial_phases)


def _neighbours(order: Sequence[Service]) -> Iterator[tuple[Service, Service, int]]:
    """Each firing with the next one, and the tokens that allow that one to start."""
    for one, then in pairwise(order):
        yield one, then, one.behind - then.behind
    if len(order) > 1:
        yield order[-1], order[0], 1 + order[-1].behind - order[0].behind
