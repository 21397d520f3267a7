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

from ..program import Plan
from ..program.deployment import Fifo
from .members import Application, frame_rows
from .pace import PacedMember, PipelinePace, RowSteps, pulled_steps, pushed_steps

LOSS = 0.01  # of the best pace with rings that small ones may cost
# Of the slowest partition's own pace that may be lost by small rings, and where partitions wait for each other, which
# lets them have memory in common.
SMALL, SHARED = 0.02, 0.04
SLOWER = 1e-6  # a share of the period that is rounding
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
) -> tuple[Application, Mapping[str, PipelinePace]]:
    """The application with as few slots as cost no throughput, and the pace of each of its pipelines, by network.

    `times` are those of the stages of each member. Rings of rows may cost a little throughput, and in haste next to
    none.
    """
    paces, freed = dict[str, PipelinePace](), dict[str, int]()
    for owner in dict.fromkeys(fifo.what.network for fifo in application.fifos):
        pace = _with_few(with_small_rings(_pace(application, owner, plans, times), is_hasty))
        pulling = [ring.readers[0].part for ring in pace.rings]
        kept = {reader: pace.freed[reader] for reader in pulling} | _freed(pace)
        freed |= kept
        paces[owner] = replace(pace, freed={**pace.freed, **kept})
    sized = {fifo.what: fifo for pace in paces.values() for fifo in pace.fifos}
    fifos = tuple(sized[fifo.what] for fifo in application.fifos)
    return replace(application, fifos=fifos).releasing(freed), paces


def _pace(
    application: Application, owner: str, plans: Mapping[str, Plan], times: Mapping[str, Sequence[float]]
) -> PipelinePace:
    """The pipeline in which slots are given back when they have been read, and rings as soon as reading begins."""
    fifos = application.fifos_of(owner)
    inputs = crossing_inputs(application, (fifo for fifo in fifos if not fifo.rows))
    freed = {name: last_use(plans[name], tensors) for name, tensors in inputs.items()}
    pulled, pushed = dict[str, RowSteps](), dict[str, RowSteps]()
    for ring in (fifo for fifo in fifos if fifo.rows):
        (source, made), (reader, read) = application.ends(ring)
        pushed[source] = pushed_steps(plans[source], made, times[source][-1])
        pulled[reader] = pulled_steps(plans[reader], read, times[reader][0])
        freed[reader] = -1
    names = [member.name for member in application.members_of(owner)]
    members = (PacedMember(name, tuple(times[name]), pulled.get(name), pushed.get(name)) for name in names)
    return PipelinePace(tuple(members), fifos, freed)


def with_small_rings(pace: PipelinePace, is_hasty: bool) -> PipelinePace:
    """The pipeline with the smallest rings that cost little, whose readers let the next frame begin as late as costs
    little: until then a producer and its reader have memory in common.

    In haste the next frame may begin as soon as the reader has.
    """
    best, alone = pace.period(), pace.slowest
    small = best * (1 + LOSS) if is_hasty else max(best * (1 + LOSS), alone * (1 + SMALL))
    for ring in sorted(pace.rings, key=_frame_size):
        pushed = pace.member(ring.source).pushed
        assert pushed is not None
        trials = [pace.with_fifo(ring, replace(ring, rows=n)) for n in range(pushed.largest, frame_rows(ring) + 1)]
        pace = trials[bisect_left(trials[:-1], True, key=lambda trial: trial.period() <= small)]
    shared = max(pace.period() * (1 + LOSS), alone * (1 + SHARED))
    for reader in (ring.readers[0].part for ring in pace.rings):
        stages = reversed(range(len(pace.member(reader).times))) if not is_hasty else ()
        last = next((n for n in stages if pace.giving_back(reader, n).period() <= shared), -1)
        pace = pace.giving_back(reader, last)
    return pace


def _with_few(pace: PipelinePace) -> PipelinePace:
    """The same with slots as few as cost nothing, the largest frames first."""
    best = pace.period() * (1 + SLOWER)
    for fifo in sorted((one for one in pace.fifos if not one.rows), key=_frame_size):
        while fifo.slots > 1:
            fewer = replace(fifo, slots=fifo.slots - 1)
            if (trial := pace.with_fifo(fifo, fewer)).period() > best:
                break
            pace, fifo = trial, fewer
    return pace


def _frame_size(fifo: Fifo) -> int:
    """A key that puts the largest frames first."""
    return -fifo.what.region.size


def _freed(pace: PipelinePace) -> dict[str, int]:
    """The last stages at whose ends partitions can give their only slots back without holding the pipeline up."""
    frames = [fifo for fifo in pace.fifos if not fifo.rows]
    sources = {fifo.source for fifo in frames}
    members = tuple(member.slower(SPARE) if member.name in sources else member for member in pace.members)
    careful, found = replace(pace, members=members), dict[str, int]()
    best = careful.period() * (1 + SLOWER)
    for name in dict.fromkeys(name for fifo in frames for name in fifo.reading):
        if all(fifo.slots == 1 for fifo in frames if name in fifo.reading):
            for stage in reversed(range(pace.freed[name] + 1, len(pace.member(name).times))):
                if (trial := careful.giving_back(name, stage)).period() <= best:
                    careful, found[name] = trial, stage
                    break
    return found


def crossing_inputs(application: Application, fifos: Iterable[Fifo]) -> dict[str, list[str]]:
    """The inputs of each reader that these FIFOs bring."""
    inputs: dict[str, list[str]] = {}
    for fifo in fifos:
        for name in fifo.reading:
            inputs.setdefault(name, []).append(application.by_name[name].own(fifo))
    return inputs
