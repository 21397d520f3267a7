"""Row FIFOs of pipelines: tensors passed between partitions as a ring of rows instead of whole frames.

The producer's last stage makes rows from top to bottom and pauses while the ring is full; the reader's first stage
pulls them. Both then work on the same frame, and the producer begins the next one when the reader allows it.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import Infeasible
from ..memory.row_windows import pullable
from ..network import Layer, Network
from ..network.operators import MaxPool2d
from ..program import FusionSchedule, Plan, Stage, Sweep, faults
from ..program.deployment import Deployment, Fifo, Part
from .draft import Application


def possible_rings(application: Application) -> tuple[Fifo, ...]:
    """The tensors that could cross row by row according to the file."""
    return tuple(fifo for fifo in application.deployment.queues if _can_be_ring(application, fifo))


def with_rings(application: Application, chosen: tuple[Fifo, ...]) -> Application:
    """The application in which these tensors cross as rows."""
    deployment = application.deployment
    fifos = tuple(replace(x, slots=1, rows=x.frame_rows) if x in chosen else x for x in deployment.fifos)
    return replace(application, deployment=replace(deployment, fifos=fifos))


def _can_be_ring(application: Application, fifo: Fifo) -> bool:
    """Whether this tensor is the only one between two partitions, and neither has a deadline or a preemption."""
    entry, deployment = application.file.network(fifo.what.network), application.deployment
    if entry.plain or entry.phases or entry.period is not None or len(fifo.readers) != 1 or fifo.frame_rows < 2:
        return False
    source, reader = (deployment.part_named[name] for name in fifo.ends)
    if source.network.outputs != (source.own(fifo),) or reader.network.inputs != (reader.own(fifo),):
        return False
    interrupting = {name for relation in deployment.preemptions for name in relation.parts}
    names = {part.name for part in deployment.parts_of(fifo.what.network)}
    return not names & interrupting and fifo.what.tensor not in application.networks[fifo.what.network].outputs


def ring_ends(deployment: Deployment, part: Part) -> tuple[str | None, str | None]:
    """The input of a part that it pulls out of a ring, and the output that it pushes into one."""
    pulled = next((part.own(ring) for ring in deployment.rings if part.name in ring.reading), None)
    return pulled, next((part.own(ring) for ring in deployment.rings if ring.source == part.name), None)


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
    """The plan with a last stage that makes rows of this output one after the other; an error if impossible."""
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
