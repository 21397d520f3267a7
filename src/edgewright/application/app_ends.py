"""C names of an application's networks, the inputs and outputs that the caller passes, and where the networks poll."""

from __future__ import annotations

from collections.abc import Mapping

from ..emit.names import safe_prefix
from ..program.deployment import OUTSIDE
from .description import PreemptionPoints
from .joint import JointLayout
from .members import AppMember


def c_name(member: AppMember) -> str:
    """The prefix of a member's functions; partitions are numbered."""
    whole = member.entry.prefix or member.entry.name
    return safe_prefix(whole + member.name.removeprefix(member.owner).replace(".", "_"))


def resident_ends(layout: JointLayout, member: AppMember) -> frozenset[str]:
    """Inputs and outputs that one network hands over to another: they stay in the arena."""
    fifos = [fifo for fifo in (*layout.application.fifos, *layout.application.shared) if member.name in fifo.ends]
    handed = {member.own(fifo) for fifo in fifos if fifo.source != OUTSIDE or fifo.writer != member.name}
    return frozenset(handed - set(layout.plans[member.name].outside))


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
