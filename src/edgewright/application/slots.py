"""The slots and rings of pipelines: as few, and as small, as let them run about as fast as with one slot for each
frame.

A partition releases a slot when the last stage that reads it has ended, not when its run ends. Where the rest of its
run is long enough for the producer to fill the slot again, a second slot costs memory and gains nothing. Where the rest
is longer still, the partition holds its only slot a little longer: the producer does not run until then, and its memory
is free.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import isfinite

from ..dataflow.deployments.phases import PartTimes, pulled_rows, pushed_rows, turn_shares
from ..dataflow.deployments.timed import TimedDeployment
from ..program import Plan
from ..program.deployment import Fifo, Worker
from .members import Application, frame_rows

LOSS = 0.01  # of the best pace with rings that small ones may cost
# Of the slowest partition's own pace that may be lost by small rings, and where partitions wait for each other, which
# lets them have memory in common.
SMALL, SHARED = 0.02, 0.04
SLOWER = 1e-6  # a share of the period that is rounding
GRAIN = 2**40  # units of time in the run of the slowest partition: whole numbers are fast to reckon with
SPARE = 1.2  # times the producer's estimated run: what must remain of its reader's when its only slot is given back


def last_use(plan: Plan, tensors: Sequence[str]) -> int:
    """The last stage that reads these inputs, or anything that lies in their memory, or writes there."""
    buffers = {plan.views[tensor].buffer for tensor in tensors}
    last = 0
    for number, stage in enumerate(plan.program.stages):
        layers = [plan.network.by_name[name] for name in stage.layers]
        touched = {name for layer in layers for name in (*layer.inputs, layer.output)}
        if any(name in plan.views and plan.views[name].buffer in buffers for name in touched):
            last = number
    return last


def given_back(application: Application, plans: Mapping[str, Plan]) -> Mapping[str, int]:
    """Of each partition that others make something for: the stage at whose end it gives its slots back."""
    return {
        name: application.release_stages.get(name, last_use(plans[name], tensors))
        for name, tensors in crossing_inputs(application, application.fifos).items()
    }


def with_few_slots(
    application: Application,
    plans: Mapping[str, Plan],
    times: Mapping[str, Sequence[float]],
    is_hasty: bool = False,
) -> tuple[Application, Mapping[str, float]]:
    """The application with as few slots as cost no throughput, and the period of each of its pipelines, by network.

    `times` are those of the stages of each member. Rings of rows may cost a little throughput, and in haste almost
    none.
    """
    periods, stages = dict[str, float](), dict[str, int]()
    sized = {fifo.what: fifo for fifo in application.fifos}
    for owner in dict.fromkeys(fifo.what.network for fifo in application.fifos):
        unit = max(sum(times[member.name]) for member in application.members_of(owner)) / GRAIN or 1.0
        units = {name: [time / unit for time in one] for name, one in times.items()}
        pipeline = _with_few(with_small_rings(_pipeline(application, owner, plans, units), is_hasty))
        kept = _releases(pipeline.rings) | _late_releases(pipeline)
        periods[owner] = float(pipeline.releasing(kept).period) * unit
        stages |= kept
        sized |= {fifo.what: fifo for fifo in pipeline.fifos}
    fifos = tuple(sized[fifo.what] for fifo in application.fifos)
    return replace(application, fifos=fifos).releasing(stages), periods


def is_live(application: Application, plans: Mapping[str, Plan]) -> bool:
    """Whether all pipelines go on for ever with the slots, rings and releases that the application has."""
    once = {name: [1.0] * len(plan.program.stages) for name, plan in plans.items()}
    owners = dict.fromkeys(fifo.what.network for fifo in application.fifos)
    pipelines = (_pipeline(application, owner, plans, once) for owner in owners)
    return all(isfinite(pipeline.releasing(application.release_stages).period) for pipeline in pipelines)


def _pipeline(
    application: Application, owner: str, plans: Mapping[str, Plan], times: Mapping[str, Sequence[float]]
) -> TimedDeployment:
    """The pipeline in which slots are released when they have been read, and rings as soon as reading begins."""
    fifos = application.fifos_of(owner)
    inputs = crossing_inputs(application, (fifo for fifo in fifos if not fifo.rows))
    stages = {name: last_use(plans[name], tensors) for name, tensors in inputs.items()}
    pulled, pushed = dict[str, tuple[int, ...]](), dict[str, tuple[int, ...]]()
    for ring in (fifo for fifo in fifos if fifo.rows):
        (source, made), (reader, read) = application.ends(ring)
        pushed[source], pulled[reader] = pushed_rows(plans[source], made), pulled_rows(plans[reader], read)
        stages[reader] = -1
    parts = dict[tuple[str, str], PartTimes]()
    for name in (member.name for member in application.members_of(owner)):
        shares: list[tuple[float, ...]] = [(1.0,)] * len(times[name])
        for stage in [0] * (name in pulled) + [-1] * (name in pushed):
            shares[stage] = turn_shares(plans[name], stage)
        turns = tuple(map(_whole, times[name], shares))
        parts[name, name] = PartTimes(turns, pulled.get(name, ()), pushed.get(name, ()))
    workers = tuple(Worker(name, "", "", (), (name,)) for name, _ in parts)
    return TimedDeployment(owner, workers, fifos, parts).releasing(stages)


def _whole(time: float, shares: Sequence[float]) -> tuple[int, ...]:
    """The shares of a time in whole units."""
    return tuple(b - a for a, b in pairwise(round(time * share) for share in accumulate(shares, initial=0.0)))


def _releases(fifos: Iterable[Fifo]) -> dict[str, int]:
    """The stage after which each reader releases what it reads."""
    return {one.part: one.stage for fifo in fifos for one in fifo.readers if one.stage is not None}


def with_small_rings(pipeline: TimedDeployment, is_hasty: bool) -> TimedDeployment:
    """The pipeline with the smallest rings that cost little, whose readers let the next frame begin as late as costs
    little: until then a producer and its reader have memory in common.

    In haste the next frame may begin as soon as the reader has.
    """
    best, alone = pipeline.period, pipeline.slowest
    small = best * (1 + LOSS) if is_hasty else max(best * (1 + LOSS), alone * (1 + SMALL))
    for ring in sorted(pipeline.rings, key=_frame_size):
        largest = max(pipeline.times[ring.source, ring.source].pushed)
        trials = [pipeline.with_fifo(ring, replace(ring, rows=n)) for n in range(largest, frame_rows(ring) + 1)]
        pipeline = trials[bisect_left(trials[:-1], True, key=lambda trial: trial.period <= small)]
    shared = max(pipeline.period * (1 + LOSS), alone * (1 + SHARED))
    for reader in _releases(pipeline.rings):
        stages = reversed(range(len(pipeline.times[reader, reader].stages))) if not is_hasty else ()
        last = next((n for n in stages if pipeline.releasing({reader: n}).period <= shared), -1)
        pipeline = pipeline.releasing({reader: last})
    return pipeline


def _with_few(pipeline: TimedDeployment) -> TimedDeployment:
    """The same with slots as few as cost nothing, the largest frames first."""
    best = pipeline.period * (1 + SLOWER)
    for fifo in sorted((one for one in pipeline.fifos if not one.rows), key=_frame_size):
        while fifo.slots > 1:
            fewer = replace(fifo, slots=fifo.slots - 1)
            if (trial := pipeline.with_fifo(fifo, fewer)).period > best:
                break
            pipeline, fifo = trial, fewer
    return pipeline


def _frame_size(fifo: Fifo) -> int:
    """A key that puts the largest frames first."""
    return -fifo.what.region.size


def _late_releases(pipeline: TimedDeployment) -> dict[str, int]:
    """The last stages after which partitions can release their only slots without holding the pipeline up."""
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


def crossing_inputs(application: Application, fifos: Iterable[Fifo]) -> dict[str, list[str]]:
    """The inputs of each reader that these FIFOs bring."""
    inputs: dict[str, list[str]] = {}
    for fifo in fifos:
        for name in fifo.reading:
            inputs.setdefault(name, []).append(application.by_name[name].own(fifo))
    return inputs
