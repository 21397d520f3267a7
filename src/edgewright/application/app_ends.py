"""C names of an application's parts, the inputs and outputs that the caller passes, and where the parts poll."""

from __future__ import annotations

from collections.abc import Mapping

from ..emit.names import safe_prefix
from ..program.deployment import OUTSIDE, Deployment, Part
from .draft import Application


def c_name(application: Application, part: Part) -> str:
    """The prefix of a part's functions; partitions are numbered."""
    whole = application.file.network(part.name).prefix or part.owner
    return safe_prefix(whole + part.name.removeprefix(part.owner).replace(".", "_"))


def resident_ends(deployment: Deployment, part: Part) -> frozenset[str]:
    """Inputs and outputs that one part hands over to another: they stay in the arena."""
    fifos = [fifo for fifo in (*deployment.queues, *deployment.shared) if part.name in fifo.ends]
    handed = {part.own(fifo) for fifo in fifos if fifo.source != OUTSIDE or fifo.writer != part.name}
    return frozenset(handed - set(deployment.plans[part.name].outside))


def given_ends(deployment: Deployment, part: Part) -> tuple[list[str], list[str]]:
    """The inputs and outputs that the caller passes, in the order of the run function's parameters."""
    away = {*resident_ends(deployment, part), *deployment.plans[part.name].outside}
    network = part.network
    return [x for x in network.inputs if x not in away], [x for x in dict.fromkeys(network.outputs) if x not in away]


def polled_rows(deployment: Deployment, part: str) -> Mapping[int, tuple[int, ...]]:
    """For each stage, the turns after which the part may be interrupted."""
    places = sorted(deployment.points_of(part).rows)
    return {stage: tuple(turn for at, turn in places if at == stage) for stage, _ in places}
