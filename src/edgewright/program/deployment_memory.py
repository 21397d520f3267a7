"""The memory that a deployment needs: arenas, slots and weights, exact to the byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..network.parts import TensorRegion
from .deployment import ArenaLayout, Deployment, Part, Prediction, Worker, aligned
from .selection import packed_bytes
from .weights import WeightDigests, run_time_constants

WEIGHTS = "weights of "
UNPACKED = "as networks have them, before kernels pack them"


def worker_arenas(deployment: Deployment, worker: Worker) -> Mapping[str, int]:
    """Bytes of each of a worker's arenas: the need of its largest part, rounded up to whole cache lines."""
    arenas: dict[str, int] = {}
    for name in worker.parts:
        for memory, size in deployment.part_named[name].arenas.items():
            arenas[memory] = max(arenas.get(memory, 0), aligned(size))
    return arenas


def laid_out(deployment: Deployment) -> Mapping[tuple[str, str], ArenaLayout]:
    """The memories of all devices: the arenas of all workers side by side, then the slots of all FIFOs."""
    ends: dict[tuple[str, str], int] = {}
    arenas: dict[tuple[str, str], dict[str, int]] = {}
    slots: dict[tuple[str, str], dict[TensorRegion, tuple[int, ...]]] = {}
    for worker in deployment.workers:
        for memory, size in worker_arenas(deployment, worker).items():
            home = worker.device, memory
            arenas.setdefault(home, {})[worker.name] = ends.get(home, 0)
            ends[home] = ends.get(home, 0) + size
    for fifo in deployment.fifos:
        size = deployment.slot_bytes(fifo)
        for device in deployment.devices_of(fifo):
            home = device, fifo.memory
            start = ends.get(home, 0)
            slots.setdefault(home, {})[fifo.what] = tuple(start + n * size for n in range(fifo.slots))
            ends[home] = start + fifo.slots * size
    return {home: ArenaLayout(end, arenas.get(home, {}), slots.get(home, {})) for home, end in ends.items()}


def weights(deployment: Deployment) -> Mapping[str, int]:
    """Bytes of weights on each device. Each part is a library with its own weights, which its replicas share."""
    known: dict[str, dict[str, int]] = {}
    for worker in deployment.workers:
        own = known.setdefault(worker.device, {})
        own.update((name, _weights_of(deployment.part_named[name])) for name in worker.parts if name not in own)
    return {device: sum(sizes.values()) for device, sizes in known.items()}


def _weights_of(part: Part) -> int:
    """Bytes of a part's weights, equal ones once: as packed for kernels if known, else as stored in the network."""
    if part.plan is not None and part.plan.packed:
        return packed_bytes(part.plan.packed)
    digests, network = WeightDigests(), part.network
    sizes = {digests.of(network.constants[name]): network.tensors[name].bytes for name in run_time_constants(network)}
    return sum(sizes.values())


def memory_predictions(deployment: Deployment) -> tuple[Prediction, ...]:
    """Exact RAM and weights of each device; parts that another runtime executes are left out."""
    others = [part.name for part in deployment.parts if part.plan is None]
    how = f"exact, without {', '.join(others)}: another runtime executes them" if others else "exact"
    ram = [
        Prediction(f"RAM of {device}, {memory}", layout.bytes, "B", how)
        for (device, memory), layout in deployment.arenas.items()
    ]
    is_packed = all(part.plan.packed for part in deployment.parts if part.plan is not None and part.plan.weights_bytes)
    method = how if is_packed else f"{UNPACKED}{how.removeprefix('exact')}"
    stored = [Prediction(f"{WEIGHTS}{device}", size, "B", method) for device, size in weights(deployment).items()]
    return (*ram, *stored)


def with_built_weights(deployment: Deployment, size: int) -> Deployment:
    """The deployment of one device with the measured bytes of weights of its libraries."""
    others = [each for each in deployment.predictions if not each.name.startswith(WEIGHTS)]
    stored = [each for each in deployment.predictions if each.name.startswith(WEIGHTS)]
    exact = [replace(each, value=size, how=each.how.replace(UNPACKED, "exact")) for each in stored]
    return replace(deployment, predictions=(*others, *exact))


def with_slots(deployment: Deployment, slots: Mapping[TensorRegion, int]) -> Deployment:
    """The deployment with these numbers of slots per FIFO, and memory to match; predictions are dropped."""
    fifos = tuple(replace(fifo, slots=slots.get(fifo.what, fifo.slots)) for fifo in deployment.fifos)
    changed = replace(deployment, fifos=fifos, predictions=())
    return replace(changed, arenas=laid_out(changed))
