"""A cluster plan as it is run: what each device has to know, with its library, signed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...network import DType
from ...network.parts import TensorRegion
from ...network.tensor import Tensor
from ...program.deployment import OUTSIDE, Deployment, Fifo
from ..deploying import ClusterDeployment
from ..devices import Cluster
from ..node.node_plan import NodeFifo, NodePart, NodePlan, NodeTurn, Number, plan_bytes
from .device_library import DeviceLibrary
from .keys import sign

MEMORY = "ram"  # that arenas and slots of a device on Linux lie in


@dataclass(frozen=True)
class PreparedPlan:
    """All that a coordinator hands to devices, and the ends of the network in numbers of FIFOs."""

    name: str
    nodes: Mapping[str, NodePlan]  # by device, the gateway among them
    signed: Mapping[str, tuple[bytes, bytes]]  # by device: the plan, its signature
    libraries: Mapping[str, Path]  # by digest
    given: Mapping[Number, TensorRegion]
    results: Mapping[Number, TensorRegion]
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    frames_kept: int  # by the gateway, as planned
    memory: Mapping[str, int]  # as planned: weights, arenas, slots, frames kept

    @property
    def devices(self) -> frozenset[str]:
        """The devices that it takes. One that computes nothing is not missed."""
        return frozenset(self.nodes)

    def files(self, device: str) -> dict[str, int]:
        """What the device must have on its disk: bytes by digest."""
        library = self.nodes[device].library if device in self.nodes else None
        return {library.digest: library.bytes} if library else {}


def prepared_plan(
    name: str,
    planned: ClusterDeployment,
    cluster: Cluster,
    wire_share: float,
    libraries: Mapping[str, DeviceLibrary],
    keys: Path,
) -> PreparedPlan:
    deployment = planned.deployment
    (network,) = deployment.networks
    nodes = node_plans(name, planned, cluster, wire_share, libraries)
    signed = {}
    for device, plan in nodes.items():
        content = plan_bytes(plan)
        signed[device] = content, sign(keys, content)
    fifos = deployment.fifos
    return PreparedPlan(
        name,
        nodes,
        signed,
        {library.about.digest: library.path for library in libraries.values()},
        {number: fifo.what for number, fifo in enumerate(fifos) if fifo.source == OUTSIDE},
        {number: fifo.what for number, fifo in enumerate(fifos) if OUTSIDE in fifo.reading},
        {each: network.tensors[each] for each in network.inputs},
        {each: network.tensors[each] for each in network.outputs},
        planned.frames_kept,
        planned.memory,
    )


def node_plans(
    name: str,
    planned: ClusterDeployment,
    cluster: Cluster,
    wire_share: float,
    libraries: Mapping[str, DeviceLibrary],
) -> dict[str, NodePlan]:
    """What each device has to know."""
    writer = _NodePlans(name, planned, cluster, wire_share, libraries)
    return {device: writer.plan(device) for device in writer.devices}


class _NodePlans:
    """A deployment as each of its devices sees it."""

    def __init__(
        self,
        name: str,
        planned: ClusterDeployment,
        cluster: Cluster,
        wire_share: float,
        libraries: Mapping[str, DeviceLibrary],
    ) -> None:
        self.name, self.planned, self.cluster = name, planned, cluster
        self.is_short, self.libraries = wire_share < 1, libraries
        self.deployment: Deployment = planned.deployment
        self.home = {part: worker.device for worker in self.deployment.workers for part in worker.parts}
        self.devices = tuple(dict.fromkeys([cluster.gateway, *self.home.values()]))

    def plan(self, device: str) -> NodePlan:
        workers = [worker for worker in self.deployment.workers if worker.device == device and worker.parts]
        names = [part for worker in workers for part in worker.parts]
        number = {name: place for place, name in enumerate(names)}
        layout = self.deployment.arenas.get((device, MEMORY))
        fifos = tuple(self._fifos(device, number))
        index = {fifo.what: place for place, fifo in enumerate(self.deployment.fifos)}
        turns = tuple(
            NodeTurn(index[turn.first], index[turn.then], turn.frames)
            for turn in self.planned.turns
            if turn.device == device
        )
        library = self.libraries.get(device)
        peers = {each.origin for each in fifos} | {target for each in fifos for target in each.sent_to}
        return NodePlan(
            self.name,
            device,
            self.cluster.gateway,
            layout.bytes if layout else 0,
            library.about if library else None,
            tuple(self._part(name, index) for name in names),
            tuple(tuple(number[name] for name in worker.parts) for worker in workers),
            fifos,
            turns,
            {peer: self.cluster.device_named[peer].address_or_name for peer in sorted(peers - {device})},
        )

    def _part(self, name: str, index: Mapping[TensorRegion, int]) -> NodePart:
        part, device = self.deployment.part_named[name], self.home[name]
        worker = next(worker for worker in self.deployment.workers if name in worker.parts)
        layout = self.deployment.arenas.get((device, MEMORY))
        starts = tuple(layout.workers[worker.name] for memory in part.arenas) if layout else ()
        assert set(part.arenas) <= {MEMORY}, "parts of a device on Linux have one memory"
        reads = tuple(index[part.inputs[own]] for own in part.network.inputs)
        writes = tuple(index[part.outputs[own]] for own in part.network.outputs)
        return NodePart(name, self.libraries[device].functions[name], starts, reads, writes)

    def _fifos(self, device: str, number: Mapping[str, int]) -> Iterator[NodeFifo]:
        gateway = self.cluster.gateway
        layout = self.deployment.arenas.get((device, MEMORY))
        for place, fifo in enumerate(self.deployment.fifos):
            is_given, is_result = fifo.source == OUTSIDE, OUTSIDE in fifo.reading
            origin = gateway if is_given else self.home[fifo.source]
            targets = self._targets(fifo, origin)
            if device not in (origin, *targets):
                continue
            tensor = self.deployment.tensor(fifo)
            yield NodeFifo(
                place,
                tensor.bytes,
                tuple(layout.slots.get(fifo.what, ())) if layout else (),
                origin,
                tuple(number[part] for part in fifo.reading if part in number),
                targets if device == origin else (),
                is_given and device == gateway,
                is_result and device == gateway,
                self.is_short and tensor.dtype is DType.FLOAT32 and fifo.what.share is None,
            )

    def _targets(self, fifo: Fifo, origin: str) -> tuple[str, ...]:
        """The devices that it is sent to. Frames from outside are copied into slots of the gateway, too."""
        reading: Sequence[str] = [self.home[part] for part in fifo.reading if part != OUTSIDE]
        if OUTSIDE in fifo.reading:
            reading = [*reading, self.cluster.gateway]
        return tuple(dict.fromkeys(each for each in reading if each != origin or fifo.source == OUTSIDE))
