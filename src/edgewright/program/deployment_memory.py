"""What a deployment takes of each memory: arenas, slots and weights, to the byte as they are allocated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

import numpy as np

from ..network import Array, Network
from .deployment import SLOT_ALIGNMENT, Deployment, Part, Prediction, Worker


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


def run_time_constants(network: Network) -> tuple[str, ...]:
    """The constants that a layer reads, or that are outputs themselves, in order."""
    used = {name for layer in network.layers for name in layer.inputs} | set(network.outputs)
    return tuple(name for name in network.constants if name in used)


class WeightDigests:
    """Digests of arrays, each array that is met again looked at once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, tuple[int, ...], tuple[int, ...], str], tuple[str, Array]] = {}

    def of(self, value: Array) -> str:
        """The digest of type, shape and values."""
        key = (value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str)
        if key not in self._known:
            kind = f"{value.dtype.str}{value.shape}".encode()
            digest = sha256(kind + np.ascontiguousarray(value).tobytes()).hexdigest()
            self._known[key] = digest, value  # kept alive: another array may not come to lie there
        return self._known[key][0]


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
