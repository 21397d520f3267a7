"""A cluster plan in a folder: the Deployment with its weights, and beside it the cluster that it is for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..dataflow.deployments.sharing import SlotTurn
from ..errors import Damaged, InputError
from ..files import read_file, write_atomic
from ..platform.schema import Count, FileEntry
from ..program.deployment_file import load_deployment, save_deployment
from ..program.plan_file import validated
from .deploying import ClusterDeployment
from .devices import Cluster
from .planning import ClusterPlan
from .rates import device_of

FILE, FORMAT, THING = "cluster.json", 1, "cluster plan"


class TurnEntry(FileEntry):
    """A SlotTurn: FIFOs by their place in the deployment."""

    device: str
    first: Count
    then: Count
    frames: Count


class ClusterPlanFile(FileEntry):
    format: int
    strategy: str
    cluster: Cluster
    wire_share: float
    turns: tuple[TurnEntry, ...]
    memory: dict[str, int]
    replay: dict[str, int]


@dataclass(frozen=True)
class SavedClusterPlan:
    """What is read back from the folder of a plan."""

    strategy: str
    cluster: Cluster
    wire_share: float
    planned: ClusterDeployment


def save_cluster_plan(plan: ClusterPlan, folder: Path) -> None:
    """Writes the folder of a plan whose parts are planned."""
    planned = plan.deployment
    assert planned is not None
    place = {fifo.what: number for number, fifo in enumerate(planned.deployment.fifos)}
    turns = (
        TurnEntry(device=turn.device, first=place[turn.first], then=place[turn.then], frames=turn.frames)
        for turn in planned.turns
    )
    file = ClusterPlanFile.model_construct(
        format=FORMAT,
        strategy=plan.strategy,
        cluster=plan.cluster,
        wire_share=plan.found.costs.wire_share,
        turns=tuple(turns),
        memory=dict(planned.memory),
        replay=dict(planned.replay),
    )
    save_deployment(planned.deployment, folder)
    write_atomic(folder / FILE, file.model_dump_json(indent=1) + "\n")


def load_cluster_plan(folder: Path) -> SavedClusterPlan:
    """The plan in a folder, judged."""
    content = read_file(folder / FILE, "give a folder that `edgewright cluster plan -o` wrote")
    try:
        file = validated(content, ClusterPlanFile, FORMAT, THING)
        _check_cluster(file.cluster)
        deployment = load_deployment(folder)
        for worker in deployment.workers:
            device_of(worker, file.cluster)
        fifos = deployment.fifos
        for turn in file.turns:
            if max(turn.first, turn.then) >= len(fifos) or turn.device not in file.cluster.device_named:
                raise Damaged("a turn of slots names a FIFO or a device that is not there", THING)
    except InputError as error:
        error.add_note(f"read from {folder / FILE}")
        raise
    turns = (SlotTurn(turn.device, fifos[turn.first].what, fifos[turn.then].what, turn.frames) for turn in file.turns)
    planned = ClusterDeployment(deployment, tuple(turns), file.memory, file.replay)
    return SavedClusterPlan(file.strategy, file.cluster, file.wire_share, planned)


def _check_cluster(cluster: Cluster) -> None:
    """An error where devices and links are not what a plan can be for."""
    names = [device.name for device in cluster.devices]
    slow = [device.name for device in cluster.devices if not device.macs_per_second > 0]
    slow += [link.name for link in cluster.links if not link.bytes_per_second > 0 or not link.latency_s >= 0]
    if not names or len(set(names)) < len(names) or cluster.gateway not in names or slow:
        raise Damaged("its cluster is not complete: devices with names of their own, rates above 0, a gateway", THING)
    for name in names:
        cluster.route(cluster.gateway, name)
