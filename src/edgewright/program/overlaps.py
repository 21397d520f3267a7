"""Judges shared memory: whether any part writes bytes that another one still needs.

What may happen at the same time follows from relations, workers and FIFOs; which bytes that takes follows from the
steps of the plans (`byte_trace`). Conflict graphs, lifetimes and layouts are not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from ..network import Array
from .byte_trace import ByteTrace
from .deployment import OUTSIDE, Deployment, Fifo, FirmwareBuffer, RelationKind, Worker
from .plan import Plan

Home = tuple[str, str]  # a device and one of its memories
Stages = Collection[int] | None  # of a plan; None: all


def overlaps(deployment: Deployment) -> Iterator[str]:
    """The harmful overwrites, each as a sentence."""
    runs = [
        PartRun(deployment, worker, name, plan)
        for worker in deployment.workers
        for name in worker.parts
        if (plan := deployment.part_named[name].plan) is not None
    ]
    yield from _moved_ends(deployment, runs)
    for one, other in combinations(runs, 2):
        yield from _meetings(deployment, one, other)
    for fifo in deployment.fifos:
        for run in runs:
            yield from _overwritten_frames(deployment, fifo, run)
    for buffer in deployment.buffers:
        yield from _overwritten_buffers(deployment, buffer, runs)
    yield from _overlapping_slots(deployment)


@dataclass(frozen=True)
class PartRun:
    """A part on one worker, and the bytes that it uses of the device's memories."""

    deployment: Deployment
    worker: Worker
    part: str
    plan: Plan

    @cached_property
    def trace(self) -> ByteTrace:
        reads = self.deployment.reads[self.part]
        copied = [own for own, fifo in reads.items() if self.part == fifo.writer and own not in self.plan.outside]
        return ByteTrace(self.plan, [own for own in copied if own not in self.plan.pulled])

    @property
    def homes(self) -> Iterator[Home]:
        return ((self.worker.device, memory) for memory in self.plan.arenas)

    def base(self, home: Home) -> int:
        return self.deployment.arenas[home].workers[self.worker.name]

    def reach(self, home: Home) -> range:
        """All bytes of the worker's arena that the plan may touch."""
        return range(self.base(home), self.base(home) + self.plan.arenas.get(home[1], 0))

    def written(self, home: Home, stages: Stages = None) -> Array:
        return self.placed(home, self.trace.written(home[1], stages))

    def used(self, home: Home, stages: Stages = None) -> Array:
        return self.placed(home, self.trace.used(home[1], stages))

    def placed(self, home: Home, mask: Array) -> Array:
        marks = np.zeros(max(self.deployment.arenas[home].bytes, self.base(home) + len(mask)), bool)
        marks[self.base(home) : self.base(home) + len(mask)] = mask
        return marks


def _meetings(deployment: Deployment, one: PartRun, other: PartRun) -> Iterator[str]:
    """Two parts that may be in progress at the same time."""
    if one.part == other.part and one.worker is other.worker:
        return
    near = [home for home in one.homes if home in other.homes and _meet(one.reach(home), other.reach(home))]
    if not near or (one.part != other.part and not deployment.may_meet(one.part, other.part)):
        return
    relation = deployment.concurrency(one.part, other.part)
    handed = [fifo for fifo in deployment.fifos if fifo.keeps_latest and {one.part, other.part} <= set(fifo.ends)]
    shared = [place for fifo in handed for place in _frame_places(deployment, fifo)]  # judged frame by frame
    for home in near:
        if relation.kind is RelationKind.PREEMPTS and relation.points is not None:
            high, low = (one, other) if relation.parts[0] == one.part else (other, one)
            live = low.placed(home, low.trace.live(home[1], relation.points))
            if (at := _first(high.written(home) & live)) is not None:
                where = f"byte {at} of '{home[1]}'"
                yield f"part '{high.part}' overwrites {where}, which '{low.part}' needs when it goes on"
                return
            continue
        for mine, theirs in _together(deployment, one, other):
            clash = one.written(home, mine) & other.used(home, theirs)
            clash |= one.used(home, mine) & other.written(home, theirs)
            for place, start, size in shared:
                clash[start : start + size] &= place != home
            if (at := _first(clash)) is not None:
                yield f"parts '{one.part}' and '{other.part}' use byte {at} of '{home[1]}' at the same time"
                return


def _together(deployment: Deployment, one: PartRun, other: PartRun) -> Iterator[tuple[Stages, Stages]]:
    """The stages of two concurrent parts that may fall together: all, unless one fills the other's only slot."""
    for source, reader in ((one, other), (other, one)):
        only = [x for x in deployment.fifos if x.source == source.part and reader.part in x.reading and x.slots == 1]
        if not only or only[0].keeps_latest:
            continue
        released = max(deployment.release_stage(fifo, reader.part) for fifo in only)
        pairs: list[tuple[Stages, Stages]] = [(None, range(released + 1, len(reader.plan.program.stages)))]
        if any(fifo.rows for fifo in only):
            last = len(source.plan.program.stages) - 1
            pairs.append((range(last, last + 1), range(_pulling(deployment, only[0], reader) + 1)))
        yield from (pair if source is one else pair[::-1] for pair in pairs if pair[1])
        return
    yield None, None


def _pulling(deployment: Deployment, fifo: Fifo, reader: PartRun) -> int:
    """The last stage that takes rows out of a ring."""
    own = deployment.part_named[reader.part].own(fifo)
    stages = enumerate(reader.plan.program.stages)
    by_name = reader.plan.network.by_name
    return max(n for n, stage in stages if any(own in by_name[layer].inputs for layer in stage.layers))


def _overwritten_frames(deployment: Deployment, fifo: Fifo, run: PartRun) -> Iterator[str]:
    """Parts that overwrite a frame that others still read, or that is kept."""
    for home, start, size in _frame_places(deployment, fifo):
        if home not in run.homes or not _meet(run.reach(home), range(start, start + size)):
            continue
        mask = (
            _kept_mask(fifo, run, home) if fifo.is_kept else run.written(home, _harmful_stages(deployment, fifo, run))
        )
        if (at := _first(mask[start : start + size])) is not None:
            what = f"'{fifo.what.tensor}' of '{fifo.what.network}'"
            yield f"part '{run.part}' overwrites byte {start + at} of '{home[1]}', where {what} lies for others"
            return


def _kept_mask(fifo: Fifo, run: PartRun, home: Home) -> Array:
    """The bytes that a part writes, but for a kept frame itself: the output that it is, the input that is copied."""
    if run.part == fifo.source:
        own = run.deployment.part_named[run.part].own(fifo)
        return run.placed(home, run.trace.written(home[1], but=run.plan.views[own].buffer))
    return run.placed(home, run.trace.computed(home[1])) if run.part == fifo.writer else run.written(home)


def _harmful_stages(deployment: Deployment, fifo: Fifo, run: PartRun) -> Collection[int]:
    """The stages in which a part must not write where a frame lies."""
    stages, is_end = range(len(run.plan.program.stages)), run.part in fifo.ends
    if fifo.keeps_latest:
        is_free = run.part == fifo.writer or (is_end and deployment.is_last(fifo, run.part))
        return () if is_free else stages
    if _has_slots(deployment, fifo):
        return stages if is_end or _is_beside(deployment, fifo, run.part) else ()
    if OUTSIDE in fifo.ends:  # it lies in the arena of its part, as anything else of it does
        return ()
    if not is_end:
        return stages if _is_beside(deployment, fifo, run.part) else ()
    if fifo.rows and run.part in fifo.reading:
        pulling, released = _pulling(deployment, fifo, run), deployment.release_stage(fifo, run.part)
        return [stage for stage in stages if stage <= pulling or stage > released]
    return ()


def _is_beside(deployment: Deployment, fifo: Fifo, part: str) -> bool:
    """Whether a part may run while frames of the FIFO's network are under way."""
    return any(deployment.may_meet(part, own.name) for own in deployment.parts_of(fifo.what.network))


def _frame_places(deployment: Deployment, fifo: Fifo) -> Iterator[tuple[Home, int, int]]:
    """The memory of a FIFO's frames: its slots, or the one place in the plans of its ends."""
    if _has_slots(deployment, fifo):
        for home, layout in deployment.arenas.items():
            for at in layout.slots.get(fifo.what, ()):
                yield home, at, deployment.slot_size(fifo)
        return
    for name in fifo.ends[:1] if fifo.rows else fifo.ends:
        place = _place(deployment, fifo, name) if name != OUTSIDE else None
        if place is not None:
            yield place
            return


def _has_slots(deployment: Deployment, fifo: Fifo) -> bool:
    return any(fifo.what in layout.slots for layout in deployment.arenas.values())


def _place(deployment: Deployment, fifo: Fifo, part: str) -> tuple[Home, int, int] | None:
    """The place of a FIFO's tensor in a part's plan; None if it is not in the arena as a whole."""
    plan = deployment.part_named[part].plan
    own = deployment.part_named[part].own(fifo)
    if plan is None or own in plan.outside or own not in plan.views:
        return None
    view, worker = plan.views[own], deployment.workers_of[part][0]
    if view.window is not None and not (fifo.rows and part == fifo.source):
        return None
    buffer = plan.buffer_named[view.buffer]
    home = worker.device, buffer.memory
    return home, deployment.arenas[home].workers[worker.name] + buffer.offset + view.offset, deployment.slot_size(fifo)


def _moved_ends(deployment: Deployment, runs: list[PartRun]) -> Iterator[str]:
    """Frames in place whose writers and readers have them at different addresses."""
    with_plan = {run.part for run in runs}
    for fifo in deployment.fifos:
        names = [name for name in fifo.ends if name in with_plan]
        if _has_slots(deployment, fifo) or fifo.rows:
            continue
        places = {name: _place(deployment, fifo, name) for name in names}
        dense = [name for name, place in places.items() if place is not None and _is_dense(deployment, fifo, name)]
        if len(names) > 1 and (len({places[name] for name in names}) > 1 or len(dense) < len(names)):
            yield f"'{fifo.what.tensor}' of '{fifo.what.network}' does not lie at one address for {', '.join(names)}"


def _is_dense(deployment: Deployment, fifo: Fifo, part: str) -> bool:
    plan = deployment.part_named[part].plan
    own = deployment.part_named[part].own(fifo)
    return plan is not None and plan.network.tensors[own].is_dense(plan.views[own].strides)


def _overwritten_buffers(deployment: Deployment, buffer: FirmwareBuffer, runs: list[PartRun]) -> Iterator[str]:
    """A buffer of the firmware that a part writes while it is in use, or that lies where a part keeps something."""
    home = next(home for home, layout in deployment.arenas.items() if buffer.name in layout.buffers)
    place = range(at := deployment.arenas[home].buffers[buffer.name], at + buffer.bytes)
    for run in runs:
        if home not in run.homes or not _meet(run.reach(home), place):
            continue
        if buffer.parts is None or run.part in buffer.parts:
            mask = run.used(home)
        else:
            mask = np.zeros(deployment.arenas[home].bytes, bool)
            for name in buffer.parts:
                relation = deployment.concurrency(run.part, name)
                if relation.kind is RelationKind.EXCLUSIVE:
                    continue
                if relation.kind is RelationKind.PREEMPTS and relation.points and relation.parts[1] == run.part:
                    mask |= run.placed(home, run.trace.live(home[1], relation.points))
                else:
                    mask |= run.used(home)
        if _first(mask[place.start : place.stop]) is not None:
            yield f"buffer '{buffer.name}' of the firmware lies where part '{run.part}' keeps something"
            return


def _overlapping_slots(deployment: Deployment) -> Iterator[str]:
    """Slots and firmware buffers that overlap and may be in use at the same time."""
    for home, layout in deployment.arenas.items():
        things: list[_SlotThing] = []
        for fifo in deployment.fifos:
            own = frozenset(part.name for part in deployment.parts_of(fifo.what.network))
            places = [(at, size) for where, at, size in _frame_places(deployment, fifo) if where == home]
            if fifo.is_kept or _has_slots(deployment, fifo) or OUTSIDE not in fifo.ends or fifo.keeps_latest:
                users = None if fifo.is_kept or fifo.keeps_latest else own
                span = _worker_span(deployment, fifo, home[0])
                things += [_SlotThing(fifo.what.tensor, range(at, at + size), users, span) for at, size in places]
        for buffer in deployment.buffers:
            if buffer.name in layout.buffers:
                at = layout.buffers[buffer.name]
                users = None if buffer.parts is None else frozenset(buffer.parts)
                things.append(_SlotThing(buffer.name, range(at, at + buffer.bytes), users))
        things.sort(key=lambda thing: thing.place.start)
        open_things: list[_SlotThing] = []
        for thing in things:
            open_things = [each for each in open_things if each.place.stop > thing.place.start]
            for other in open_things:
                if not _in_turn(other.span, thing.span) and _used_together(deployment, other.users, thing.users):
                    yield f"'{other.name}' and '{thing.name}' overlap in '{home[1]}'"
                    return
            open_things.append(thing)


_WorkerSpan = tuple[str, int, int]  # a worker, and the first and last of its parts that use a slot


@dataclass(frozen=True, slots=True)
class _SlotThing:
    """A slot or a buffer of the firmware."""

    name: str
    place: range
    users: frozenset[str] | None  # None: everybody
    span: _WorkerSpan | None = None


def _used_together(deployment: Deployment, mine: frozenset[str] | None, theirs: frozenset[str] | None) -> bool:
    return mine is None or theirs is None or any(deployment.may_meet(a, b) for a in mine for b in theirs)


def _worker_span(deployment: Deployment, fifo: Fifo, device: str) -> _WorkerSpan | None:
    """Where in a worker's order a single slot is used, if one worker of the device has all of its users there.

    Frames that come over a link wait for their turn; those that the board's own outside world writes do not.
    """
    is_cluster = len({worker.device for worker in deployment.workers}) > 1
    near = [worker for worker in deployment.workers if worker.device == device and set(worker.parts) & set(fifo.ends)]
    if fifo.slots != 1 or fifo.keeps_latest or len(near) != 1 or (OUTSIDE in fifo.ends and not is_cluster):
        return None
    places = [number for number, part in enumerate(near[0].parts) if part in fifo.ends]
    return near[0].name, min(places), max(places)


def _in_turn(one: _WorkerSpan | None, other: _WorkerSpan | None) -> bool:
    """Whether a worker has finished with one slot before it uses the other."""
    if one is None or other is None or one[0] != other[0]:
        return False
    return one[2] < other[1] or other[2] < one[1]


def _meet(a: range, b: range) -> bool:
    return max(a.start, b.start) < min(a.stop, b.stop)


def _first(mask: Array) -> int | None:
    """The index of the first marked byte."""
    return int(mask.argmax()) if mask.any() else None
