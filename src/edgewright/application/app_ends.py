"""C names of an application's networks, the inputs and outputs that the caller passes, and where the networks poll."""

from __future__ import annotations

from collections.abc import Mapping

from ..program.deployment import OUTSIDE, Fifo
from .description import PreemptionPoints
from .joint import JointLayout
from .members import AppMember


def c_name(member: AppMember) -> str:
    """The prefix of a member's functions; partitions are numbered."""
    whole = member.entry.prefix or member.entry.name
    return (whole + member.name.removeprefix(member.owner).replace(".", "_")).lower()


def resident_ends(layout: JointLayout, member: AppMember) -> frozenset[str]:
    """Inputs and outputs that one network hands over to another: they stay in the arena."""
    application = layout.application
    fifos = (*application.fifos, *(x for x in application.shared if bringer(x) != member.name))
    handed = {member.own(fifo) for fifo in fifos if member.name in fifo.ends}
    return frozenset(handed - set(layout.plans[member.name].outside))


def bringer(fifo: Fifo) -> str | None:
    """The first reader of a frame that no network makes: the caller passes the frame to it."""
    return fifo.readers[0].part if fifo.source == OUTSIDE else None


def given_ends(layout: JointLayout, member: AppMember) -> tuple[list[str], list[str]]:
    """The inputs and outputs that the caller passes, in the order of the run function's parameters."""
    away = {*resident_ends(layout, member), *layout.plans[member.name].outside}
    network = member.network
    return [x for x in network.inputs if x not in away], [x for x in dict.fromkeys(network.outputs) if x not in away]


def polled_rows(layout: JointLayout, member: str) -> Mapping[int, tuple[int, ...]]:
    """For each stage, the turns after which the member may be interrupted."""
    if PreemptionPoints.ROWS not in layout.problem.relations.interrupted_at(member):
        return {}
    places = sorted(layout.problem.allowed(member, PreemptionPoints.ROWS).rows)
    return {stage: tuple(turn for at, turn in places if at == stage) for stage, _ in places}
