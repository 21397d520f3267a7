"""The requirements of `run` on a deployment: one device, whole frames in slots, parallel workers."""

from __future__ import annotations

from itertools import pairwise

from ..errors import InputError
from ..program.deployment import SLOT_ALIGNMENT, ArenaLayout, Deployment, RelationKind
from ..program.deployment_check import region_text
from ..program.deployment_memory import worker_arenas


def check_executable(deployment: Deployment) -> None:
    """Raises an error if threads of this machine cannot execute the deployment."""
    devices = dict.fromkeys(worker.device for worker in deployment.workers)
    if len(devices) > 1:
        raise InputError(
            f"this deployment is for {len(devices)} devices ({', '.join(devices)}); a pipeline runs on one"
        )
    for fifo in deployment.fifos:
        if fifo.rows:
            what = f"the FIFO of {region_text(fifo.what)} is a ring of {fifo.rows} rows"
            raise InputError(f"{what}; a pipeline hands over whole frames: give it slots instead")
    for relation in deployment.relations:
        if relation.kind not in (RelationKind.EXCLUSIVE, RelationKind.PREEMPTS):
            continue
        if len({deployment.workers_of[name] for name in relation.parts}) > 1:
            what = f"parts {' and '.join(relation.parts)} may not run at the same time ({relation.kind.value})"
            raise InputError(f"{what}; a pipeline runs its workers in parallel: give these parts to one worker")
    _check_memory(deployment)


def _check_memory(deployment: Deployment) -> None:
    """Raises an error if the arenas of workers and the slots overlap in their memories."""
    device = deployment.workers[0].device
    for fifo in deployment.fifos:
        layout = deployment.arenas.get((device, fifo.memory), ArenaLayout(0))
        if len(layout.slots.get(fifo.what, ())) != fifo.slots:
            what = f"the slots of {region_text(fifo.what)}"
            raise InputError(f"{what} have no place in '{fifo.memory}'; lay the memory out again")
    arenas = {worker.name: worker_arenas(deployment, worker) for worker in deployment.workers}
    for (_, memory), layout in deployment.arenas.items():
        pieces = [(layout.workers.get(name, -1), own[memory]) for name, own in arenas.items() if memory in own]
        for fifo in (each for each in deployment.fifos if each.memory == memory):
            pieces += [(start, deployment.slot_bytes(fifo)) for start in layout.slots.get(fifo.what, ())]
        pieces = [(0, 0), *sorted(pieces), (layout.bytes, 0)]
        is_apart = all(start + size <= after for (start, size), (after, _) in pairwise(pieces))
        if not is_apart or any(start % SLOT_ALIGNMENT for start, _ in pieces):
            raise InputError(f"arenas and slots overlap in '{memory}', or lie outside it; lay the memory out again")
