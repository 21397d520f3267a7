"""How long devices compute and links send: times from multiply-accumulates, bytes and rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..dataflow.deployments.slots import part_work
from ..errors import InputError
from ..program.deployment import Deployment, Fifo, Worker
from .devices import Cluster, ClusterDevice

WireBytes = Callable[[Fifo], int]  # that a FIFO's region has on a link


def part_times(deployment: Deployment, cluster: Cluster) -> Mapping[tuple[str, str], float]:
    """Seconds of each part on each worker that runs it: its work by its share of the device's rate.

    A layer that multiplies nothing counts an operation for each element that it writes.
    """
    work = {part.name: part_work(part) for part in deployment.parts}
    rates = {worker.name: worker_rate(worker, deployment, cluster) for worker in deployment.workers}
    return {
        (worker.name, part): work[part] / rates[worker.name] for worker in deployment.workers for part in worker.parts
    }


def worker_rate(worker: Worker, deployment: Deployment, cluster: Cluster) -> float:
    """Multiply-accumulates per second of a worker alone on its cores: the share of them among those that are used."""
    device = device_of(worker, cluster)
    cores = {core for one in deployment.workers if one.device == worker.device for core in one.cores}
    return device.macs_per_second * (len(worker.cores) / len(cores) if worker.cores else 1)


def device_of(worker: Worker, cluster: Cluster) -> ClusterDevice:
    """The device that a worker runs on."""
    if worker.device not in cluster.device_named:
        names = ", ".join(list(cluster.device_named)[:8])
        raise InputError(
            f"worker '{worker.name}' runs on device '{worker.device}', which cluster '{cluster.name}' does not have; "
            f"expected one of {names}"
        )
    return cluster.device_named[worker.device]


def transfer_time(cluster: Cluster, size: int, source: str, target: str) -> float:
    """Seconds for which a transfer holds the ports on its way: by the slowest of them."""
    return size / cluster.bandwidth(source, target)
