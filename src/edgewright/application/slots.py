"""Chooses the slots and rings of pipelines: the fewest and smallest that keep about the throughput of one slot per
frame.

A partition releases a slot when the last stage that reads it has ended, not when its run ends. If the rest of its run
is long enough for the producer to refill the slot, a second slot costs memory and gains nothing. If the rest is longer
still, the partition keeps its only slot a little longer: the producer does not run until then, and its memory is free.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import isfinite

from ..dataflow.deployments.phases import PartTimes, pulled_rows, pushed_rows, turn_shares
from ..dataflow.deployments.timed import TimedDeployment
from ..memory.joint.conflicts import last_use
from ..program.deployment import Deployment, Fifo

LOSS = 0.01  # share of the best throughput that small rings may cost
# Shares of the slowest partition's throughput that may be lost: to small rings, and to partitions that wait for each
# other so that they can share memory.
SMALL, SHARED = 0.02, 0.04
SLOWER = 1e-6  # differences of the period below this share are rounding
GRAIN = 2**40  # time units in the run of the slowest partition: integer arithmetic is fast
SPARE = 1.2  # a reader that releases its only slot must have this many producer runs (estimated) left to compute


def minimise_slots(
    deployment: Deployment, times: Mapping[str, Sequence[float]], is_hasty: bool = False
) -> tuple[Deployment, Mapping[str, float]]:
    """The deployment with the fewest slots that keep full throughput, and the period of each pipeline by network.

    `times` holds the stage times of each part. Rings of rows may cost up to 2 % of the throughput (`SMALL`), and 1 %
    (`LOSS`) with `is_hasty`.
    """
    periods, sized = dict[str, float](), {fifo.what: fifo for fifo in deployment.fifos}
    for owner in pipelined(deployment):
        unit = max(sum(times[part.name]) for part in deployment.parts_of(owner)) / GRAIN or 1.0
        units = {name: [time / unit for time in one] for name, one in times.items()}
        pipeline = _with_few(with_small_rings(_pipeline(deployment, owner, units), is_hasty))
        pipeline = pipeline.releasing(_releases(pipeline.rings) | _late_releases(pipeline))
        periods[owner] = float(pipeline.period) * unit
        sized |= {fifo.what: fifo for fifo in pipeline.fifos}
    return replace(deployment, fifos=tuple(sized[fifo.what] for fifo in deployment.fifos)), periods


def pipelined(deployment: Deployment) -> tuple[str, ...]:
    """The networks whose partitions are joined by FIFOs."""
    return tuple(dict.fromkeys(fifo.what.network for fifo in deployment.queues))


def is_live(deployment: Deployment) -> bool:
    """Whether all pipelines run forever without deadlock with the deployment's slots, rings and releases."""
    once = {name: [1.0] * len(plan.program.stages) for name, plan in deployment.plans.items()}
    stages = _releases(deployment.queues)
    pipelines = (_pipeline(deployment, owner, once) for owner in pipelined(deployment))
    return all(isfinite(pipeline.releasing(stages).period) for pipeline in pipelines)


def _pipeline(deployment: Deployment, owner: str, times: Mapping[str, Sequence[float]]) -> TimedDeployment:
    """The pipeline in which slots are released when they have been read, and rings as soon as reading begins."""
    fifos = [fifo for fifo in deployment.queues if fifo.what.network == owner]
    parts, plans = deployment.parts_of(owner), deployment.plans
    stages: dict[str, int] = {}
    pulled, pushed = dict[str, tuple[int, ...]](), dict[str, tuple[int, ...]]()
    for part in parts:
        if read := [part.own(fifo) for fifo in fifos if part.name in fifo.reading and not fifo.rows]:
            stages[part.name] = last_use(plans[part.name], read)
        for ring in (fifo for fifo in fifos if fifo.rows):
            if part.name == ring.source:
                pushed[part.name] = pushed_rows(plans[part.name], part.own(ring))
            elif part.name in ring.reading:
                pulled[part.name] = pulled_rows(plans[part.name], part.own(ring))
                stages[part.name] = -1
    timed = dict[tuple[str, str], PartTimes]()
    for name in (part.name for part in parts):
        shares: list[tuple[float, ...]] = [(1.0,)] * len(times[name])
        for stage in [0] * (name in pulled) + [-1] * (name in pushed):
            shares[stage] = turn_shares(plans[name], stage)
        turns = tuple(map(_whole, times[name], shares))
        timed[name, name] = PartTimes(turns, pulled.get(name, ()), pushed.get(name, ()))
    workers = tuple(worker for worker in deployment.workers if worker.name in {part.name for part in parts})
    return TimedDeployment(owner, workers, tuple(fifos), timed).releasing(stages)


def _whole(time: float, shares: Sequence[float]) -> tuple[int, ...]:
    """The shares of a time in whole units."""
    return tuple(b - a for a, b in pairwise(round(time * share) for share in accumulate(shares, initial=0.0)))


def _releases(fifos: Iterable[Fifo]) -> dict[str, int]:
    """The stage after which each reader releases what it reads."""
    return {one.part: one.stage for fifo in fifos for one in fifo.readers if one.stage is not None}


def with_small_rings(pipeline: TimedDeployment, is_hasty: bool) -> TimedDeployment:
    """The pipeline with the smallest rings that cost little, whose readers let the next frame begin as late as costs
    little: until then a producer and its reader share memory.

    With `is_hasty` the next frame may begin as soon as the reader has.
    """
    best, alone = pipeline.period, pipeline.slowest
    small = best * (1 + LOSS) if is_hasty else max(best * (1 + LOSS), alone * (1 + SMALL))
    for ring in sorted(pipeline.rings, key=_frame_size):
        largest = max(pipeline.times[ring.source, ring.source].pushed)
        trials = [pipeline.with_fifo(ring, replace(ring, rows=n)) for n in range(largest, ring.frame_rows + 1)]
        pipeline = trials[bisect_left(trials[:-1], True, key=lambda trial: trial.period <= small)]
    shared = max(pipeline.period * (1 + LOSS), alone * (1 + SHARED))
    for reader in _releases(pipeline.rings):
        stages = reversed(range(len(pipeline.times[reader, reader].stages))) if not is_hasty else ()
        last = next((n for n in stages if pipeline.releasing({reader: n}).period <= shared), -1)
        pipeline = pipeline.releasing({reader: last})
    return pipeline


def _with_few(pipeline: TimedDeployment) -> TimedDeployment:
    """The pipeline with the fewest slots that cost nothing; slots of large frames are removed first."""
    best = pipeline.period * (1 + SLOWER)
    for fifo in sorted((one for one in pipeline.fifos if not one.rows), key=_frame_size):
        while fifo.slots > 1:
            fewer = replace(fifo, slots=fifo.slots - 1)
            if (trial := pipeline.with_fifo(fifo, fewer)).period > best:
                break
            pipeline, fifo = trial, fewer
    return pipeline


def _frame_size(fifo: Fifo) -> int:
    """A sort key: the largest frames first."""
    return -fifo.what.region.size


def _late_releases(pipeline: TimedDeployment) -> dict[str, int]:
    """The last stages after which partitions can release their only slots without delaying the pipeline."""
    frames = [fifo for fifo in pipeline.fifos if not fifo.rows]
    sources = {fifo.source for fifo in frames}
    times = {key: _slower(one) if key[1] in sources else one for key, one in pipeline.times.items()}
    careful, late = replace(pipeline, times=times), dict[str, int]()
    best = careful.period * (1 + SLOWER)
    for name, first in _releases(frames).items():
        if all(fifo.slots == 1 for fifo in frames if name in fifo.reading):
            for stage in reversed(range(first + 1, len(times[name, name].stages))):
                if (trial := careful.releasing({name: stage})).period <= best:
                    careful, late[name] = trial, stage
                    break
    return late


def _slower(times: PartTimes) -> PartTimes:
    return replace(times, stages=tuple(tuple(round(time * SPARE) for time in turns) for turns in times.stages))
