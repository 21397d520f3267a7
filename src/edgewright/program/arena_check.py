"""Judges a deployment's relations and memories: they name existing parts and points, and each arena has the size of
what lies in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, combinations

from .deployment import (
    CONCURRENCY,
    SLOT_ALIGNMENT,
    ArenaLayout,
    Deployment,
    InterruptionPoints,
    Relation,
    RelationKind,
)


def flaws_of_relations(deployment: Deployment) -> Iterator[str]:
    """Relations that name unknown parts or contradict each other, and points that are no ends of stages or turns."""
    pairs = Counter(
        frozenset(pair)
        for relation in deployment.relations
        if relation.kind in CONCURRENCY
        for pair in combinations(relation.parts, 2)
    )
    for pair, count in pairs.items():
        if count > 1:
            yield f"two relations say how {' and '.join(sorted(pair))} run beside each other"
    places: dict[str, InterruptionPoints] = {}
    for relation in deployment.relations:
        unknown = [name for name in relation.parts if name not in deployment.part_named]
        if unknown or len(set(relation.parts)) < max(2, len(relation.parts)):
            yield f"a relation '{relation.kind.value}' is not between different parts: {', '.join(relation.parts)}"
        elif relation.points is not None:
            yield from _flaws_of_points(deployment, relation, places)
    for buffer in deployment.buffers:
        if unknown := [name for name in buffer.parts or () if name not in deployment.part_named]:
            yield f"buffer '{buffer.name}' is in use during the runs of '{unknown[0]}', which is no part"


def _flaws_of_points(
    deployment: Deployment, relation: Relation, places: dict[str, InterruptionPoints]
) -> Iterator[str]:
    low, points = relation.parts[-1], relation.points
    plan = deployment.part_named[low].plan
    if relation.kind is not RelationKind.PREEMPTS or len(relation.parts) != 2 or points is None or plan is None:
        yield f"a relation '{relation.kind.value}' of {', '.join(relation.parts)} has points of interruption"
        return
    stages = plan.program.stages
    turns = {n: sum(1 for _ in plan.program.turns(stages[n])) for n, _ in points.rows if 0 <= n < len(stages)}
    if not all(0 <= n < len(stages) - 1 for n in points.after) or not all(
        0 <= turn < turns.get(n, 0) for n, turn in points.rows
    ):
        yield f"part '{low}' may be interrupted where none of its stages or turns ends"
    known = places.setdefault(low, points)
    if known.after != points.after or (known.rows and points.rows and known.rows != points.rows):
        yield f"part '{low}' may be interrupted at different points by different parts, which no gate can tell apart"


def broken_promises(deployment: Deployment) -> Iterator[str]:
    """Arenas whose stated size differs from that of their contents."""
    ends: dict[tuple[str, str], int] = {}
    for worker in deployment.workers:
        needs = [deployment.part_named[name].arenas for name in worker.parts]
        for memory in {memory for arenas in needs for memory in arenas}:
            most = max(arenas.get(memory, 0) for arenas in needs)
            layout = deployment.arenas.get((worker.device, memory), ArenaLayout(0))
            if worker.name not in layout.workers:
                yield f"the arena of worker '{worker.name}' has no place in '{memory}' of '{worker.device}'"
                return
            _extend(ends, (worker.device, memory), layout.workers[worker.name] + most)
    for home, layout in deployment.arenas.items():
        sizes = {fifo.what: deployment.slot_size(fifo) for fifo in deployment.fifos}
        own = {buffer.name: buffer.bytes for buffer in deployment.buffers}
        if unknown := [*(layout.slots.keys() - sizes.keys()), *(layout.buffers.keys() - own.keys())]:
            yield f"something lies in '{home[1]}' of '{home[0]}' that is no FIFO and no buffer: {unknown[0]}"
            return
        places = (*layout.workers.values(), *chain.from_iterable(layout.slots.values()), *layout.buffers.values())
        if min((*places, *own.values()), default=0) < 0:
            yield f"something begins before '{home[1]}' of '{home[0]}', or has a negative size"
            return
        for what, starts in layout.slots.items():
            for at in starts:
                _extend(ends, home, at + sizes[what])
        for name, at in layout.buffers.items():
            _extend(ends, home, at + own[name])
    for buffer in deployment.buffers:
        if sum(buffer.name in layout.buffers for layout in deployment.arenas.values()) != 1:
            yield f"buffer '{buffer.name}' does not lie in one memory"
    for fifo in deployment.fifos:
        for device in deployment.devices_of(fifo):
            layout = deployment.arenas.get((device, fifo.memory), ArenaLayout(0))
            if fifo.what in layout.slots and len(layout.slots[fifo.what]) != fifo.slots:
                yield f"the FIFO of '{fifo.what.tensor}' has {fifo.slots} slots, and others on '{device}'"
    for device, memory in sorted({*ends, *deployment.arenas}):
        told = deployment.arenas.get((device, memory), ArenaLayout(0)).bytes
        least = ends.get((device, memory), 0)
        if not least <= told <= -(-least // SLOT_ALIGNMENT) * SLOT_ALIGNMENT:
            yield f"arenas and slots of '{device}' take {least} bytes of '{memory}', but it states {told}"


def _extend(ends: dict[tuple[str, str], int], home: tuple[str, str], end: int) -> None:
    ends[home] = max(ends.get(home, 0), end)
