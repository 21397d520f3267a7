"""What a deployment takes of each memory: arenas, slots and weights, to the byte as they are allocated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..network.parts import TensorRegion
from .deployment import SLOT_ALIGNMENT, Deployment, Part, Prediction, Worker
from .weights import WeightDigests, run_time_constants


def worker_arenas(deployment: Deployment, worker: Worker) -> Mapping[str, int]:
    """Bytes of each of a worker's arenas: what the largest of its parts needs, in whole cache lines."""
    found: dict[str, int] = {}
    for name in worker.parts:
        plan = deployment.part_named[name].plan
        for memory, size in plan.arenas.items() if plan else ():
            found[memory] = max(found.get(memory, 0), -(-size // SLOT_ALIGNMENT) * SLOT_ALIGNMENT)
    return found


def reserved(deployment: Deployment) -> Mapping[tuple[str, str], int]:
    """Bytes of RAM by device and memory: the arenas of all workers, and the slots of all FIFOs."""
    found: dict[tuple[str, str], int] = {}
    for worker in deployment.workers:
        for memory, size in worker_arenas(deployment, worker).items():
            found[worker.device, memory] = found.get((worker.device, memory), 0) + size
    for fifo in deployment.fifos:
        for device in deployment.devices_of(fifo):
            size = fifo.slots * deployment.slot_bytes(fifo)
            found[device, fifo.memory] = found.get((device, fifo.memory), 0) + size
    return found


def weights(deployment: Deployment) -> Mapping[str, int]:
    """Bytes of weights on each device. What parts and replicas of a device have in common is there once."""
    known: dict[str, dict[str, int]] = {}
    digests = WeightDigests()
    for worker in deployment.workers:
        own = known.setdefault(worker.device, {})
        for name in worker.parts:
            own.update(_weights_of(deployment.part_named[name], digests))
    return {device: sum(sizes.values()) for device, sizes in known.items()}


def _weights_of(part: Part, digests: WeightDigests) -> Iterator[tuple[str, int]]:
    """Digest and bytes of each weight: as kernels read them where they are packed, else as the network has them."""
    if part.plan is not None and part.plan.packed:
        yield from ((packed.digest, packed.bytes) for packed in part.plan.packed)
        return
    for name in run_time_constants(part.network):
        yield digests.of(part.network.constants[name]), part.network.tensors[name].bytes


def memory_predictions(deployment: Deployment) -> tuple[Prediction, ...]:
    """RAM and weights of each device, exact; parts that another runtime executes are not in it."""
    others = [part.name for part in deployment.parts if part.plan is None]
    how = f"exact, without {', '.join(others)}: another runtime executes them" if others else "exact"
    ram = [
        Prediction(f"RAM of {device}, {memory}", size, "B", how)
        for (device, memory), size in deployment.arenas.items()
    ]
    stored = [Prediction(f"weights of {device}", size, "B", how) for device, size in weights(deployment).items()]
    return (*ram, *stored)


def with_slots(deployment: Deployment, slots: Mapping[TensorRegion, int]) -> Deployment:
    """The deployment with so many slots for what FIFOs carry, and memory to match; predictions are not kept."""
    fifos = tuple(replace(fifo, slots=slots.get(fifo.what, fifo.slots)) for fifo in deployment.fifos)
    changed = replace(deployment, fifos=fifos, predictions=())
    return replace(changed, arenas=reserved(changed))
