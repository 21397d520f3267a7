"""A division as a Deployment: its parts cut out and planned, FIFOs between devices, every slot at its address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from ..dataflow.deployments.sharing import SlotTurn
from ..emit import emit
from ..kernels.select import close_plan
from ..memory.deploy import PartRequest, drafted, plan_in_slots
from ..network import Network
from ..platform import load_board
from ..platform.target import target_of
from ..program import Plan
from ..program.deployment import OUTSIDE, Deployment, Fifo, Prediction, Relation, RelationKind, Worker
from ..program.deployment_check import checked_deployment
from ..program.deployment_memory import WEIGHTS, memory_predictions
from ..program.selection import Packed, packed_bytes
from .costs import DivisionCosts
from .devices import Cluster
from .division import Division, pipeline_stages
from .rounds import STAGE_SLOTS
from .sketch import PartSketch
from .slots import SlotLayout

PROCESSOR = "cpu"


@dataclass(frozen=True)
class ClusterDeployment:
    """A deployment over the devices of a cluster, and who waits for bytes that several slots use."""

    deployment: Deployment
    turns: tuple[SlotTurn, ...]
    memory: Mapping[str, int]  # of each device: weights, arenas, slots, frames kept for replay
    replay: Mapping[str, int]

    @property
    def frames_kept(self) -> int:
        """The most frames that are under way: the gateway keeps each until its result is there."""
        (network,) = self.deployment.networks
        frame = sum(network.tensors[name].bytes for name in network.inputs)
        return max(1, max(self.replay.values(), default=0) // max(1, frame))


def deployed(costs: DivisionCosts, division: Division) -> ClusterDeployment:
    """The division with a plan for each part, judged."""
    draft = _ClusterDraft(costs, division)
    planner = RowPlanner(costs.cluster)
    deployment = drafted(costs.network, list(draft.requests()), draft.workers(), slots=1, planner=planner)
    deployment = replace(
        deployment,
        fifos=tuple(replace(fifo, slots=draft.slots(fifo)) for fifo in deployment.fifos),
        relations=tuple(draft.relations()),
    )
    layout = SlotLayout(deployment, draft.rounds, draft.stages)
    placed = replace(deployment, arenas=layout.arenas)
    checked_deployment(placed, with_plans=False)
    placed = replace(placed, predictions=_with_shared_weights(placed))
    replay = costs.replay(division)
    return ClusterDeployment(placed, layout.turns(), memory_of(placed, costs, replay), replay)


def memory_of(deployment: Deployment, costs: DivisionCosts, replay: Mapping[str, int]) -> dict[str, int]:
    """Bytes of each device of the cluster, everything counted."""
    stored = stored_weights(deployment)
    return {
        device.name: stored.get(device.name, 0)
        + replay.get(device.name, 0)
        + sum(layout.bytes for (home, _), layout in deployment.arenas.items() if home == device.name)
        for device in costs.cluster.devices
    }


def stored_weights(deployment: Deployment) -> dict[str, int]:
    """Bytes of weights of each device, as the deployment says."""
    said = (each for each in deployment.predictions if each.name.startswith(WEIGHTS))
    return {each.name.removeprefix(WEIGHTS): int(each.value) for each in said}


def _with_shared_weights(deployment: Deployment) -> tuple[Prediction, ...]:
    """Exact figures of memory; parts of one device have equal weights once, where kernels have packed them."""
    known: dict[str, dict[tuple[str, int], Packed]] = {}
    for worker in deployment.workers:
        own = known.setdefault(worker.device, {})
        for plan in (deployment.plans[part] for part in worker.parts):
            own.update(
                ((each.digest, each.bytes), each) for each in plan.packed if (each.digest, each.bytes) not in own
            )
    sizes = {f"{WEIGHTS}{device}": packed_bytes(own.values()) for device, own in known.items() if own}
    return tuple(replace(each, value=sizes.get(each.name, each.value)) for each in memory_predictions(deployment))


def device_of_part(name: str) -> str:
    return name.rpartition(".")[0]


def round_of_part(name: str) -> int:
    return int(name.rpartition(".")[2])


class RowPlanner:
    """Plans parts row by row where that saves memory. Parts that differ in their weights alone are planned once.

    On a board of the catalogue kernels are selected, so that their scratch counts too.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.targets = {device.name: target_of(load_board(device.board)) for device in cluster.devices if device.board}
        self.known: dict[object, Plan] = {}

    def __call__(self, network: Network) -> Plan:
        target = self.targets.get(device_of_part(network.name))
        key = target, network.layers, network.inputs, network.outputs, tuple(network.tensors.values())
        if key not in self.known:
            whole = plan_in_slots(network, by_rows=True)
            self.known[key] = emit(close_plan(whole, target)).plan if target else whole
            return self.known[key]
        plan = self.known[key]
        constants = {**plan.network.constants, **network.constants}
        mine = replace(plan.network, name=network.name, constants=constants)
        same = replace(plan, program=replace(plan.program, network=mine), packed=())
        return emit(close_plan(same, target)).plan if target else same


class _ClusterDraft:
    """Names, rounds and workers of the parts of a division."""

    def __init__(self, costs: DivisionCosts, division: Division) -> None:
        self.costs = costs
        self.pipeline = pipeline_stages(division)
        self.parts: dict[str, PartSketch] = {}
        self.rounds: dict[str, int] = {}
        self.stages: dict[str, int] = {}
        number = 0
        for stage, segments in enumerate(self.pipeline):
            for segment in segments:
                sketch = costs.sketcher.sketch(segment)
                assert sketch is not None, f"{segment} cannot be split"
                for parts in sketch:
                    for part in parts:
                        name = f"{part.device}.{number}"
                        self.parts[name], self.rounds[name], self.stages[name] = part, number, stage
                    number += 1

    def requests(self) -> Iterator[PartRequest]:
        for name, part in self.parts.items():
            yield PartRequest(name, part.layers, part.outputs, part.finished)

    def workers(self) -> list[Worker]:
        """One for each device and pipeline stage; workers of one device share its processor."""
        found: dict[tuple[str, int], list[str]] = {}
        for name, part in self.parts.items():
            found.setdefault((part.device, self.stages[name]), []).append(name)
        return [
            Worker(f"{device}, stage {stage + 1}", device, PROCESSOR, (), tuple(names))
            for (device, stage), names in found.items()
        ]

    def relations(self) -> Iterator[Relation]:
        """Parts of one device run one at a time."""
        for one, other in combinations(self.parts, 2):
            if self.parts[one].device == self.parts[other].device and self.stages[one] != self.stages[other]:
                yield Relation(RelationKind.EXCLUSIVE, (one, other))

    def slots(self, fifo: Fifo) -> int:
        stages = {self.stages[name] for name in fifo.ends if name != OUTSIDE}
        is_given = fifo.source == OUTSIDE and len(self.pipeline) > 1
        return STAGE_SLOTS if len(stages) > 1 or is_given else 1
