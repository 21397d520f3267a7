"""Application plans in a file: the Deployment without weights, judged on loading, and the layout that it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from ..memory.layout import Placement
from ..program.deployment import Deployment, InterruptionPoints, Relation, RelationKind
from ..program.deployment_check import difference
from ..program.deployment_file import load_alone, save_alone
from .conflicts import JointProblem
from .deploying import deployment_of, unjudged_deployment
from .description import PreemptionPoints
from .joint import ARENA, JointLayout
from .members import Application, slot_name
from .rings import reading_rows, ring_ends
from .slots import is_live


def save_application_plan(layout: JointLayout, path: Path) -> None:
    save_alone(deployment_of(layout, layout.plans), path)


def load_application_plan(application: Application, path: Path) -> JointLayout:
    """The layout in a file, for an application that says the same of its networks, relations and buffers."""
    deployment = load_alone(path, application.networks.values())
    try:
        layout = _layout(application, deployment)
        for what, stored, said in _promises(deployment, unjudged_deployment(layout, layout.plans)):
            if stored != said:
                raise InputError(f"its {what} are not those of the application; plan it anew")
        if not is_live(layout.application, layout.plans):
            raise InputError("its slots and rings let partitions wait for each other for ever; plan it anew")
    except InputError as error:
        error.add_note(f"read from {path}")
        raise
    return layout


def _layout(application: Application, deployment: Deployment) -> JointLayout:
    """The layout with the FIFOs, points and addresses of the deployment."""
    if set(deployment.part_named) != set(application.by_name):
        raise InputError("its parts are not the networks and partitions of the application; plan it anew")
    stored = {fifo.what: fifo for fifo in deployment.fifos}
    fifos = []
    for fifo in application.fifos:
        if fifo.what not in stored:
            raise InputError(f"it has no FIFO for '{fifo.what.tensor}' of '{fifo.what.network}'; plan it anew")
        crossing = stored[fifo.what]
        fifos.append(replace(fifo, slots=crossing.slots, rows=crossing.rows, readers=crossing.readers))
    sized = replace(application, fifos=tuple(fifos))
    plans = {}
    for part in deployment.parts:
        if part.plan is None:
            raise InputError(f"part '{part.name}' has no plan; plan it anew")
        member = application.by_name[part.name]
        pulled, _ = ring_ends(sized, part.name)
        own = member.network if pulled is None else reading_rows(member.network, pulled)
        if differing := difference(own, part.network):
            raise InputError(f"part '{part.name}' computes something else than the application: its {differing} differ")
        network = replace(part.plan.network, constants={**part.network.constants, **member.network.constants})
        plans[part.name] = replace(part.plan, program=replace(part.plan.program, network=network))
    problem = JointProblem(sized, plans, dict(_points(deployment, JointProblem(sized, plans))))
    buffers = problem.buffers()
    offsets: dict[str, int] = {}
    homes: dict[str, str] = {}
    for buffer in buffers:
        for use in (use for use in buffer.uses if use.buffer):
            own_buffer = plans[use.member].buffer_named[use.buffer]
            offsets[buffer.name], homes[buffer.name] = own_buffer.offset, own_buffer.memory
    for (_, memory), arena in deployment.arenas.items():
        for fifo in problem.application.fifos:
            for number, at in enumerate(arena.slots.get(fifo.what, ())):
                offsets[slot_name(fifo, number)], homes[slot_name(fifo, number)] = at, memory
        for name, at in arena.buffers.items():
            offsets[name], homes[name] = at, memory
    if missing := [buffer.name for buffer in buffers if buffer.name not in offsets]:
        raise InputError(f"'{missing[0]}' has no address; plan it anew")
    graph = problem.graph(buffers)
    peak = max(offsets[buffer.name] + graph.sizes[buffer.name] for buffer in buffers)
    if not set(homes.values()) <= {ARENA, *application.memories}:
        raise InputError("its memories are not those of the application; plan it anew")
    named = homes if set(homes.values()) <= application.memories.keys() else {}
    return JointLayout(problem, buffers, graph, Placement(offsets, peak, 0, "from a file"), plans, named)


def _points(deployment: Deployment, problem: JointProblem) -> Iterator[tuple[str, InterruptionPoints]]:
    """Where parts may be interrupted that may not be everywhere their relations allow."""
    points: dict[str, InterruptionPoints] = {}
    for relation in deployment.relations:
        if relation.points is not None:
            low = relation.parts[1]
            known = points.get(low, InterruptionPoints())
            points[low] = InterruptionPoints(known.after | relation.points.after, known.rows | relation.points.rows)
    for low, chosen in points.items():
        every = problem.live(low).points(PreemptionPoints.ROWS)
        if chosen.after != every.after or chosen.rows not in (frozenset(), every.rows):
            yield low, chosen


def _promises(stored: Deployment, said: Deployment) -> Iterator[tuple[str, object, object]]:
    """What a file says beside what follows from the application and the addresses in it."""
    yield "networks", stored.networks, said.networks
    yield "parts", _ends(stored), _ends(said)
    yield "FIFOs", set(stored.fifos), set(said.fifos)
    yield "relations", _relations(stored), _relations(said)
    yield "buffers", set(stored.buffers), set(said.buffers)
    yield "arenas", stored.arenas, said.arenas
    yield "workers", set(stored.workers), set(said.workers)


def _ends(deployment: Deployment) -> Mapping[str, object]:
    return {part.name: (dict(part.inputs), dict(part.outputs)) for part in deployment.parts}


def _relations(deployment: Deployment) -> set[tuple[RelationKind, object, InterruptionPoints | None]]:
    """Relations, those that hold both ways without an order of their parts."""

    def parts(relation: Relation) -> object:
        is_ordered = relation.kind in (RelationKind.PREEMPTS, RelationKind.SAME_INPUT, RelationKind.AFTER)
        return relation.parts if is_ordered else frozenset(relation.parts)

    return {(relation.kind, parts(relation), relation.points) for relation in deployment.relations}
