"""The exact timing of a deployment whose FIFOs cross the links of a cluster.

A transfer holds every port of its route while it is sent at the rate of the slowest (cut-through); latencies follow,
and hold nothing. A port serves one transfer at a time, in a fixed order; so does a core that several workers use.
Frames arrive at the gateway, and results leave from there.
"""

from __future__ import annotations

from ..dataflow.deployments.service_order import in_best_order
from ..dataflow.deployments.sharing import SharedLinks, SlotTurn
from ..dataflow.deployments.slots import GivenTimes, timed_deployment
from ..dataflow.deployments.timed import TimedDeployment
from ..program.deployment import Deployment, Fifo
from .devices import Cluster
from .rates import WireBytes, device_of, part_times, transfer_time


def on_cluster(
    deployment: Deployment,
    cluster: Cluster,
    times: GivenTimes | None = None,
    *,
    turns: tuple[SlotTurn, ...] = (),
    wire_bytes: WireBytes | None = None,
    is_judged: bool = False,
) -> TimedDeployment:
    """The deployment in the best order of service, whose `period` is in seconds, as are the times of parts."""
    return in_best_order(unordered(deployment, cluster, times, turns=turns, wire_bytes=wire_bytes, is_judged=is_judged))


def unordered(
    deployment: Deployment,
    cluster: Cluster,
    times: GivenTimes | None = None,
    *,
    turns: tuple[SlotTurn, ...] = (),
    wire_bytes: WireBytes | None = None,
    is_judged: bool = False,
) -> TimedDeployment:
    """The same where ports and cores serve who comes first; its `period` is that without any contention."""
    for worker in deployment.workers:
        device_of(worker, cluster)

    def sending(fifo: Fifo, source: str, target: str) -> float:
        size = wire_bytes(fifo) if wire_bytes else deployment.tensor(fifo).bytes
        return transfer_time(cluster, size, source, target)

    links = SharedLinks(cluster.route, cluster.latency, cluster.gateway)
    given = part_times(deployment, cluster) if times is None else times
    return timed_deployment(deployment, given, sending, links, turns, is_judged=is_judged)
