"""Slots of pipelines: as few as let the pipeline run as fast as with one for each frame under way.

A partition gives a slot back when its last stage that reads it has ended, and not with its run. Where what remains of
its run is long enough for the producer to fill the slot again, double buffers cost memory and bring nothing. And where
more than enough remains, it keeps the only slot for longer: until then the producer does not run, and its memory is
free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..program import Plan
from .members import Application, CrossingTensor
from .rings import RingPace

FRAMES = 24  # of a simulation; the second half counts
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
    found, freed = list(application.crossings), dict[str, int]()
    for owner in dict.fromkeys(crossing.owner for crossing in found):
        own = sorted((n for n, one in enumerate(found) if one.owner == owner), key=lambda n: (-found[n].bytes, n))
        if found[own[0]].rows:
            rows, stage = RingPace.of(found[own[0]], plans, times).settled(is_hasty)
            found[own[0]] = replace(found[own[0]], rows=rows)
            freed[found[own[0]].readers[0][0]] = stage
            continue
        until = {
            name: sum(times[name][: last_use(plans[name], tensors) + 1])
            for name, tensors in crossing_inputs(found[n] for n in own).items()
        }
        runs = {member.name: sum(times[member.name]) for member in application.members_of(owner)}
        best = _period(runs, until, [found[n] for n in own])
        for n in own:
            while found[n].slots > 1:
                fewer = replace(found[n], slots=found[n].slots - 1)
                if _period(runs, until, [fewer if m == n else found[m] for m in own]) > best * (1 + SLOWER):
                    break
                found[n] = fewer
        freed |= _freed(runs, until, [found[n] for n in own], times)
    return replace(application, crossings=tuple(found), freed=freed)


def _freed(
    runs: Mapping[str, float],
    until: Mapping[str, float],
    crossings: Sequence[CrossingTensor],
    times: Mapping[str, Sequence[float]],
) -> Mapping[str, int]:
    """The last stages at whose ends partitions can give their only slots back without holding the pipeline up."""
    sources = {one.source[0] for one in crossings}
    careful = {name: run * SPARE if name in sources else run for name, run in runs.items()}
    kept, found = dict(until), dict[str, int]()
    best = _period(careful, until, crossings)
    for name in until:
        own = [one for one in crossings if name in dict(one.readers)]
        if all(one.slots == 1 for one in own):
            for stage in reversed(range(len(times[name]))):
                longer = {**kept, name: sum(times[name][: stage + 1])}
                if longer[name] <= until[name]:
                    break
                if _period(careful, longer, crossings) <= best * (1 + SLOWER):
                    kept, found[name] = longer, stage
                    break
    return found


def crossing_inputs(crossings: Iterable[CrossingTensor]) -> dict[str, list[str]]:
    """The inputs of each reader that other partitions make."""
    found: dict[str, list[str]] = {}
    for crossing in crossings:
        for name, tensor in crossing.readers:
            found.setdefault(name, []).append(tensor)
    return found


def _period(runs: Mapping[str, float], until: Mapping[str, float], crossings: Sequence[CrossingTensor]) -> float:
    """Between two frames in the long run, every partition on a core of its own, producers first in `runs`."""
    ends: dict[str, list[float]] = {name: [] for name in runs}
    freed: dict[str, list[float]] = {name: [] for name in runs}
    for frame in range(FRAMES):
        for name, run in runs.items():
            start = ends[name][-1] if frame else 0.0
            for crossing in crossings:
                if name in dict(crossing.readers):
                    start = max(start, ends[crossing.source[0]][frame])
                if name == crossing.source[0] and frame >= crossing.slots:
                    start = max(start, *(freed[reader][frame - crossing.slots] for reader, _ in crossing.readers))
            ends[name].append(start + run)
            freed[name].append(start + until.get(name, run))
    half = FRAMES // 2
    return max((ends[name][-1] - ends[name][half - 1]) / (FRAMES - half) for name in runs)
