"""What a network of an application is called in C, which of its ends the caller hands over, and where it polls."""

from __future__ import annotations

from collections.abc import Mapping

from .description import PreemptionPoints
from .joint import JointLayout
from .members import AppMember


def c_name(member: AppMember) -> str:
    """The prefix of a member's functions; partitions are numbered."""
    whole = member.entry.prefix or member.entry.name
    return (whole + member.name.removeprefix(member.owner).replace(".", "_")).lower()


def resident_ends(layout: JointLayout, member: AppMember) -> frozenset[str]:
    """Inputs and outputs that are handed over: they lie where the next network reads them."""
    relations, owner = layout.problem.relations, member.owner
    found = {
        tensor
        for name, tensor in (*(b for _, b in relations.cascades), *(a for a, _ in relations.cascades))
        if name == owner
    }
    for frame in relations.frames:
        found |= {tensor for name, tensor in frame[1:] if name == owner}
    for crossing in layout.application.crossings:
        found |= {tensor for name, tensor in (crossing.source, *crossing.readers) if name == member.name}
    found -= set(layout.plans[member.name].outside)
    return frozenset(found)


def given_ends(layout: JointLayout, member: AppMember) -> tuple[list[str], list[str]]:
    """The inputs and outputs that the caller has, in the order of the run function."""
    away = {*resident_ends(layout, member), *layout.plans[member.name].outside}
    network = member.network
    return [x for x in network.inputs if x not in away], [x for x in dict.fromkeys(network.outputs) if x not in away]


def polled_rows(layout: JointLayout, member: str) -> Mapping[int, tuple[int, ...]]:
    """The turns of each stage after which somebody may interrupt the member."""
    relations, kind = layout.problem.relations, PreemptionPoints.ROWS
    if not any(low == member and one.points is kind for (_, low), one in relations.preemptions.items()):
        return {}
    places = sorted(layout.problem.allowed(member, kind).rows)
    return {stage: tuple(turn for at, turn in places if at == stage) for stage, _ in places}
