"""An application as a Deployment: its plans with kernels selected, in one arena, judged before anybody relies on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from ..program import Plan
from ..program.deployment import (
    OUTSIDE,
    ArenaLayout,
    Deployment,
    Fifo,
    FirmwareBuffer,
    Part,
    Reader,
    Relation,
    RelationKind,
    Worker,
)
from ..program.deployment_check import checked_deployment
from .description import ALWAYS, PreemptionPoints
from .joint import JointLayout
from .members import AppMember, slot_name

DEVICE = "board"


def deployment_of(layout: JointLayout, plans: Mapping[str, Plan]) -> Deployment:
    """The layout with these plans, each of which lies in the common arena; an error names what is wrong with it."""
    return checked_deployment(unjudged_deployment(layout, plans))


def unjudged_deployment(layout: JointLayout, plans: Mapping[str, Plan]) -> Deployment:
    application = layout.application
    return Deployment(
        tuple(application.networks.values()),
        tuple(_part(member, plans[member.name]) for member in application.members),
        tuple(Worker(name, DEVICE, application.target.name, (), (name,)) for name in application.by_name),
        tuple(_fifos(layout)),
        {(DEVICE, memory): _arena(layout, memory, size) for memory, size in layout.arenas.items()},
        relations=tuple(_relations(layout)),
        buffers=tuple(_buffers(layout)),
    )


def _part(member: AppMember, plan: Plan) -> Part:
    """The member as it is planned: layers that planning added to copy rows are part of it."""
    network = replace(plan.network, constants={**plan.network.constants, **member.network.constants})
    return Part(member.name, network, plan, member.inputs, member.outputs)


def _fifos(layout: JointLayout) -> Iterator[Fifo]:
    application, kept = layout.application, layout.problem.relations.kept
    for fifo in application.fifos:
        yield replace(fifo, readers=tuple(Reader(name, layout.problem.freed[name]) for name in fifo.reading))
    carried = {fifo.what for fifo in application.fifos}
    for fifo in application.shared:
        is_kept = any(end in kept for end in application.ends(fifo))
        carried.add(fifo.what)
        yield replace(fifo, is_kept=is_kept)
    for member in application.members:
        for own, what in member.inputs.items():
            if what not in carried:
                is_kept = (member.name, own) in kept
                yield Fifo(what, OUTSIDE, _readers(layout, what), 1, is_kept=is_kept)
                carried.add(what)
        for own, what in member.outputs.items():
            if what not in carried:
                yield Fifo(what, member.name, (Reader(OUTSIDE),), 1, is_kept=(member.name, own) in kept)
                carried.add(what)


def _readers(layout: JointLayout, what: object) -> tuple[Reader, ...]:
    return tuple(Reader(one.name) for one in layout.application.members if what in one.inputs.values())


def _relations(layout: JointLayout) -> Iterator[Relation]:
    relations = layout.problem.relations
    for a, b in combinations(layout.application.by_name, 2):
        if relations.are_parallel(a, b):
            yield Relation(RelationKind.PARALLEL, (a, b))
        elif not relations.may_run_together(a, b):
            yield Relation(RelationKind.EXCLUSIVE, (a, b))
    for (high, low), preemption in relations.preemptions.items():
        is_anywhere = preemption.points is PreemptionPoints.ANYWHERE
        points = None if is_anywhere else layout.problem.allowed(low, preemption.points)
        yield Relation(RelationKind.PREEMPTS, (high, low), points)
    for relation in relations.of(RelationKind.SAME_INPUT):
        yield Relation(RelationKind.SAME_INPUT, relation.networks)


def _arena(layout: JointLayout, memory: str, size: int) -> ArenaLayout:
    in_slots = {b.fifo for b in layout.buffers if b.fifo is not None and not b.uses}
    return ArenaLayout(
        size,
        dict.fromkeys(layout.application.by_name, 0),
        {
            fifo.what: tuple(layout.at(slot_name(fifo, n)) for n in range(fifo.slots))
            for fifo in layout.application.fifos
            if fifo in in_slots and layout.home(slot_name(fifo)) == memory
        },
        {b.name: layout.at(b.name) for b in layout.application.file.buffers if layout.home(b.name) == memory},
    )


def _buffers(layout: JointLayout) -> Iterator[FirmwareBuffer]:
    application = layout.application
    for own in application.file.buffers:
        if own.alive == ALWAYS:
            yield FirmwareBuffer(own.name, own.size)
        else:
            parts = tuple(member.name for name in own.alive for member in application.members_of(name))
            yield FirmwareBuffer(own.name, own.size, parts)
