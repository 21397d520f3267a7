"""The slots and rings of pipelines: as few, and as small, as let them run about as fast as with one slot for each
frame.

A partition releases a slot when the last stage that reads it has ended, not when its run ends. Where the rest of its
run is long enough for the producer to fill the slot again, a second slot costs memory and gains nothing. Where the rest
is longer still, the partition holds its only slot a little longer: the producer does not run until then, and its memory
is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..program import Plan
from .members import Application, CrossingTensor
from .pace import PipelinePace

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
        name: application.freed.get(name, last_use(plans[name], tensors))
        for name, tensors in crossing_inputs(application.crossings).items()
    }


def with_few_slots(
    application: Application,
    plans: Mapping[str, Plan],
    times: Mapping[str, Sequence[float]],
    is_hasty: bool = False,
) -> Application:
    """The application with as few slots as cost no throughput; `times` are those of the stages of each member.

    Rings of rows may cost a little, and in haste next to none.
    """
    found, freed = dict[str, CrossingTensor](), dict[str, int]()
    for owner in dict.fromkeys(crossing.owner for crossing in application.crossings):
        pace = _pace(application, owner, plans, times)
        pace, kept = with_small_rings(pace, is_hasty)
        pace = _with_few(pace)
        found |= {one.name: one for one in pace.crossings}
        freed |= {**kept, **_freed(pace)}
    crossings = tuple(found[one.name] for one in application.crossings)
    return replace(application, crossings=crossings, freed=freed)


def _pace(
    application: Application, owner: str, plans: Mapping[str, Plan], times: Mapping[str, Sequence[float]]
) -> PipelinePace:
    """The pipeline in which slots are given back when they have been read, and rings as soon as reading begins."""
    own = [one for one in application.crossings if one.owner == owner]
    inputs = crossing_inputs(one for one in own if not one.rows)
    freed = {name: last_use(plans[name], tensors) for name, tensors in inputs.items()}
    rings = {one.readers[0][0]: -1 for one in own if one.rows}
    return PipelinePace.of(application, owner, plans, times, {**freed, **rings})


def with_small_rings(pace: PipelinePace, is_hasty: bool) -> tuple[PipelinePace, Mapping[str, int]]:
    """The pipeline with the smallest rings that cost little, and the last stage at whose end each reader may let the
    next frame begin: until then its producer and it have memory in common.

    In haste it is let in as soon as the reader has begun.
    """
    best, alone = pace.period(), pace.slowest
    small = best * (1 + LOSS) if is_hasty else max(best * (1 + LOSS), alone * (1 + SMALL))
    for ring in sorted((one for one in pace.crossings if one.rows), key=lambda one: -one.bytes):
        pushed = pace.member(ring.source[0]).pushed
        assert pushed is not None
        low, high = pushed.largest, ring.height
        while low < high:
            middle = (low + high) // 2
            is_fast = pace.with_rows(ring, middle).period() <= small
            low, high = (low, middle) if is_fast else (middle + 1, high)
        pace = pace.with_rows(ring, low)
    shared = max(pace.period() * (1 + LOSS), alone * (1 + SHARED))
    freed: dict[str, int] = {}
    for reader in (one.readers[0][0] for one in pace.crossings if one.rows):
        stages = reversed(range(len(pace.member(reader).times))) if not is_hasty else ()
        freed[reader] = next((n for n in stages if pace.giving_back(reader, n).period() <= shared), -1)
        pace = pace.giving_back(reader, freed[reader])
    return pace, freed


def _with_few(pace: PipelinePace) -> PipelinePace:
    """The same with slots as few as cost nothing, the largest frames first."""
    best = pace.period() * (1 + SLOWER)
    for old in sorted((one for one in pace.crossings if not one.rows), key=lambda one: -one.bytes):
        crossing = old
        while crossing.slots > 1:
            fewer = replace(crossing, slots=crossing.slots - 1)
            if (trial := pace.with_crossing(crossing, fewer)).period() > best:
                break
            pace, crossing = trial, fewer
    return pace


def _freed(pace: PipelinePace) -> Mapping[str, int]:
    """The last stages at whose ends partitions can give their only slots back without holding the pipeline up."""
    frames = [one for one in pace.crossings if not one.rows]
    sources = {one.source[0] for one in frames}
    members = tuple(member.slower(SPARE) if member.name in sources else member for member in pace.members)
    careful, found = replace(pace, members=members), dict[str, int]()
    best = careful.period() * (1 + SLOWER)
    for name in crossing_inputs(frames):
        if all(one.slots == 1 for one in frames if name in dict(one.readers)):
            for stage in reversed(range(pace.freed[name] + 1, len(pace.member(name).times))):
                if (trial := careful.giving_back(name, stage)).period() <= best:
                    careful, found[name] = trial, stage
                    break
    return found


def crossing_inputs(crossings: Iterable[CrossingTensor]) -> dict[str, list[str]]:
    """The inputs of each reader that other partitions make."""
    found: dict[str, list[str]] = {}
    for crossing in crossings:
        for name, tensor in crossing.readers:
            found.setdefault(name, []).append(tensor)
    return found
