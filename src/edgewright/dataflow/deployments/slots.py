"""The period of a deployment, and the least slots of its FIFOs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial

from ...errors import InputError
from ...network.parts import TensorRegion
from ...program.deployment import Deployment, Part
from ...program.deployment_check import checked_deployment
from ..cnn.durations import layer_work
from ..graph import Graph
from .phases import GivenTime, PartTimes
from .sharing import SharedLinks, SlotTurn
from .timed import MoveTime, TimedDeployment

GivenTimes = Mapping[tuple[str, str], GivenTime | PartTimes]  # of (worker, part), all in one unit
MOST_SLOTS_TRIED = 64


def timed_deployment(
    deployment: Deployment,
    times: GivenTimes | None = None,
    moving: MoveTime | None = None,
    links: SharedLinks | None = None,
    turns: tuple[SlotTurn, ...] = (),
    *,
    is_judged: bool = False,
) -> TimedDeployment:
    """The deployment with times of parts on workers, by default their work.

    `moving` are the times of sending a region from device to device, by default none. A deployment is checked first,
    unless that was done already.
    """
    if not is_judged:
        checked_deployment(deployment, with_plans=False)
    if times is None:
        work = {part.name: part_work(part) for part in deployment.parts}
        times = {(worker.name, part): work[part] for worker in deployment.workers for part in worker.parts}
    staged = {key: one if isinstance(one, PartTimes) else PartTimes(((one,),)) for key, one in times.items()}
    sizes = {fifo.what: deployment.tensor(fifo).bytes for fifo in deployment.fifos}
    name = " + ".join(network.name for network in deployment.networks)
    return TimedDeployment(name, deployment.workers, deployment.fifos, staged, sizes, moving, links, turns)


def deployed_csdf(deployment: Deployment, times: GivenTimes | None = None, moving: MoveTime | None = None) -> Graph:
    """The deployment as its workers execute it. Each FIFO is, for each reader, a channel of frames or rows and a
    channel back of free slots."""
    return timed_deployment(deployment, times, moving).graph


def frame_period(deployment: Deployment, times: GivenTimes | None = None, moving: MoveTime | None = None) -> Fraction:
    """Time between frames if every part starts as soon as possible: the inverse of the throughput."""
    period = timed_deployment(deployment, times, moving).period
    if isinstance(period, float):
        raise InputError("parts of this deployment wait for each other for ever; give their rings more rows")
    return period


def fifo_slots(
    deployment: Deployment, times: GivenTimes | None = None, moving: MoveTime | None = None
) -> Mapping[TensorRegion, int]:
    """Slots that reach the throughput of unlimited slots; no single FIFO can do with fewer.

    FIFOs of large tensors are minimised first. One slot for each is enough for liveness.
    """
    timed = timed_deployment(deployment, times, moving)

    def period(slots: Mapping[TensorRegion, int]) -> Fraction | float:
        return replace(timed, fifos=tuple(replace(fifo, slots=slots[fifo.what]) for fifo in timed.fifos)).period

    tensors, count = [fifo.what for fifo in timed.fifos], 1
    best = min(period(dict.fromkeys(tensors, n)) for n in (MOST_SLOTS_TRIED, MOST_SLOTS_TRIED - 1))
    while count < MOST_SLOTS_TRIED and period(dict.fromkeys(tensors, count)) > best:
        count *= 2
    slots = dict.fromkeys(tensors, count)
    for fifo in sorted(deployment.fifos, key=lambda fifo: -deployment.slot_bytes(fifo)):
        is_enough = partial(lambda what, n: period({**slots, what: n}) <= best, fifo.what)
        slots[fifo.what] = 1 + bisect_left(range(1, count), True, key=is_enough)
    return slots


def part_work(part: Part) -> int:
    """MACs of a part, or the elements that it writes if it multiplies nothing."""
    return sum(layer_work(part.network, layer) for layer in part.network.by_name)
