"""Row FIFOs of pipelines: what crosses from one partition to the next as a ring of rows instead of whole frames.

The producer's last stage makes rows from top to bottom and stops while the ring is full; the reader's first stage pulls
them out of it. Both are at work on the same frame then, and the producer begins the next one when the reader lets it.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import Infeasible
from ..memory.row_windows import pullable
from ..network import Layer, Network
from ..network.operators import MaxPool2d
from ..program import FusionSchedule, Plan, Stage, Sweep, faults
from ..program.deployment import Fifo
from .members import Application, frame_rows
from .relations import Relations


def possible_rings(application: Application) -> tuple[Fifo, ...]:
    """What could cross row by row as far as the file says."""
    return tuple(fifo for fifo in application.fifos if _can_be_ring(application, fifo))


def with_rings(application: Application, chosen: tuple[Fifo, ...]) -> Application:
    """The application in which these cross as rows, and not as frames."""
    fifos = (replace(x, slots=1, rows=frame_rows(x)) if x in chosen else x for x in application.fifos)
    return replace(application, fifos=tuple(fifos))


def _can_be_ring(application: Application, fifo: Fifo) -> bool:
    """Whether this tensor is all that joins two partitions, and neither has a deadline or is part of a preemption."""
    entry = application.file.network(fifo.what.network)
    if entry.plain or entry.phases or entry.period is not None or len(fifo.readers) != 1 or frame_rows(fifo) < 2:
        return False
    (source, made), (reader, read) = application.ends(fifo)
    if application.by_name[source].network.outputs != (made,) or application.by_name[reader].network.inputs != (read,):
        return False
    names = {member.name for member in application.members_of(fifo.what.network)}
    is_interrupting = any(names & set(pair) for pair in Relations(application).preemptions)
    return not is_interrupting and fifo.what.tensor not in application.networks[fifo.what.network].outputs


def ring_ends(application: Application, member: str) -> tuple[str | None, str | None]:
    """The input of a member that it pulls out of a ring, and the output that it pushes into one."""
    rings, own = application.rings, application.by_name[member].own
    pulled = next((own(ring) for ring in rings if member in ring.reading), None)
    return pulled, next((own(ring) for ring in rings if ring.source == member), None)


def reading_rows(network: Network, tensor: str) -> Network:
    """The network with one layer that reads the input, so that its rows can be pulled: a 1×1 pool, which copies."""
    if tensor in pullable(network):
        return network
    copy = f"{tensor}:rows"
    first = Layer(copy, MaxPool2d((1, 1)), (tensor,), copy)
    others = [
        replace(layer, inputs=tuple(copy if name == tensor else name for name in layer.inputs))
        for layer in network.layers
    ]
    return network.with_layers([first, *others], [replace(network.tensors[tensor], name=copy)])


def pushing_rows(plan: Plan, tensor: str) -> Plan:
    """The plan with a last stage that makes rows of this output one after the other; an error where it cannot."""
    *before, last = plan.program.stages
    schedule = FusionSchedule(last.layers, streamed=True) if last.schedule.is_whole else last.schedule
    stage = Stage(last.name, schedule)
    trial = replace(plan, program=replace(plan.program, stages=(*before, stage)))
    maker = plan.network.producers[tensor].name
    is_stream = schedule.streamed and not schedule.splits and last.sweep is Sweep.FORWARD
    if not is_stream or trial.program.fused(stage).sinks != (maker,) or maker in trial.program.partial(stage):
        raise Infeasible(f"'{tensor}' does not come row by row: it cannot cross in a ring")
    if (fault := next(faults(trial), None)) is not None:
        raise Infeasible(f"'{tensor}' does not come row by row: {fault}")
    return trial
