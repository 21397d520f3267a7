"""Makes a Deployment from networks and the parts to cut them into: FIFOs between parts, and a plan for each part.

The division into parts is decided elsewhere (by hand, by mapping, by a cluster's strategies). Within a device, a FIFO
carries the whole output of its source and readers use regions of it; other devices receive only the regions that they
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import ModelError
from ..network import Network, Region
from ..network.part_ends import with_inputs, with_outputs
from ..network.partial import PartialSums
from ..network.parts import NetworkPart, TensorRegion, cut, given_outside
from ..program import Plan
from ..program.deployment import OUTSIDE, Deployment, Fifo, Part, Reader, Worker
from ..program.deployment_check import checked_deployment
from ..program.deployment_memory import laid_out, memory_predictions
from .planner import plan

Planner = Callable[[Network], Plan | None]
SLOTS = 2  # one is filled while the other is read


@dataclass(frozen=True)
class PartRequest:
    """A part to cut out: layers of a network, and the regions of their outputs that other parts read."""

    name: str
    layers: tuple[str, ...]
    outputs: Mapping[str, Region | PartialSums] | None = None  # None: every tensor read outside, whole
    finished: Mapping[str, Sequence[Region]] = field(
        default_factory=dict
    )  # layers that add the partial sums of other parts
    network: str | None = None  # owner of the layers; None if there is only one network


def deploy(
    networks: Network | Sequence[Network],
    requests: Sequence[PartRequest],
    workers: Sequence[Worker],
    *,
    slots: int = SLOTS,
    memory: str = "ram",
    planner: Planner | None = None,
) -> Deployment:
    """The deployment in which these workers run these parts, with a given number of slots in every FIFO.

    `planner` returns the plan of each part, or None for parts that another runtime executes; by default the plan with
    the least RAM whose inputs and outputs lie in the FIFOs' slots.
    """
    draft = drafted(networks, requests, workers, slots=slots, memory=memory, planner=planner)
    placed = replace(draft, arenas=laid_out(draft))
    checked_deployment(placed, with_plans=False)
    return replace(placed, predictions=memory_predictions(placed))


def drafted(
    networks: Network | Sequence[Network],
    requests: Sequence[PartRequest],
    workers: Sequence[Worker],
    *,
    slots: int = SLOTS,
    memory: str = "ram",
    planner: Planner | None = None,
) -> Deployment:
    """The deployment without addresses and unchecked, for callers that lay out slots themselves."""
    whole = (networks,) if isinstance(networks, Network) else tuple(networks)
    draft = _DeploymentDraft(whole, requests, workers)
    parts = draft.parts()
    made = planner or plan_in_slots
    return Deployment(
        networks=whole,
        parts=tuple(
            Part(name, part.network, made(part.network), part.inputs, part.outputs) for name, part in parts.items()
        ),
        workers=tuple(workers),
        fifos=tuple(
            Fifo(what, source, tuple(map(Reader, readers)), slots, memory=memory)
            for what, (source, readers) in draft.carried.items()
        ),
        arenas={},
    )


def plan_in_slots(network: Network, alignment: int | None = None, by_rows: bool = False) -> Plan:
    """The plan with the least RAM that leaves inputs and outputs in the caller's memory.

    With `by_rows`, layers may run row by row.
    """
    ends = dict.fromkeys((*network.inputs, *network.outputs))
    outside = [name for name in ends if name not in network.constants]
    return plan(network, outside=outside, alignment=alignment, explain=False, phases=by_rows)


class _DeploymentDraft:
    """A deployment under construction."""

    def __init__(self, networks: Sequence[Network], requests: Sequence[PartRequest], workers: Sequence[Worker]) -> None:
        self.networks = {network.name: network for network in networks}
        self.devices = {
            request.name: frozenset(worker.device for worker in workers if request.name in worker.parts)
            for request in requests
        }
        self.everywhere = frozenset(worker.device for worker in workers)
        self.carried: dict[TensorRegion, tuple[str, list[str]]] = {}  # the contents of FIFOs: source and readers
        self.cut = {request.name: self._cut(request) for request in requests}
        if len(self.cut) < len(requests):
            raise ModelError("two parts have the same name")

    def _network(self, request: PartRequest) -> Network:
        if request.network is None and len(self.networks) == 1:
            return next(iter(self.networks.values()))
        if request.network not in self.networks:
            names = ", ".join(f"'{name}'" for name in self.networks)
            raise ModelError(f"part '{request.name}' is of network '{request.network}'; there are {names}")
        return self.networks[request.network]

    def _cut(self, request: PartRequest) -> NetworkPart:
        network, chosen = self._network(request), set(request.layers)
        outputs = given_outside(network, chosen) if request.outputs is None else request.outputs
        part = cut(network, request.layers, outputs, request.finished)
        return replace(part, network=replace(part.network, name=request.name))

    def parts(self) -> dict[str, NetworkPart]:
        """The parts, with inputs and outputs equal to the contents of FIFOs."""
        pieces = {
            name: {own: self._pieces(name, what) for own, what in part.inputs.items()}
            for name, part in self.cut.items()
        }
        self._give_results()
        parts = {}
        for name, part in self.cut.items():
            given = [what for what, (source, _) in self.carried.items() if source == name]
            if not given:
                raise ModelError(f"part '{name}' gives nothing that another part or the caller reads")
            ended = with_outputs(part, given)
            parts[name] = with_inputs(ended, {own: pieces[name][own] for own in ended.inputs})
        return parts

    def _pieces(self, reader: str, wanted: TensorRegion) -> list[TensorRegion]:
        """The FIFOs that together carry a region to a part."""
        network = self.networks[wanted.network]
        if wanted.tensor in network.inputs:
            whole = replace(wanted, region=Region.whole(network.tensors[wanted.tensor].shape))
            return [self._carry(whole if len(self.everywhere) == 1 else wanted, OUTSIDE, reader)]
        pieces, left = [], wanted.region.size
        for source, held in self._held(wanted):
            inside = held.region & wanted.region
            if inside.is_empty or not left:
                continue
            is_near = self.devices[source] == self.devices[reader] and len(self.devices[source]) == 1
            pieces.append(self._carry(held if is_near else replace(held, region=inside), source, reader))
            left -= inside.size
        if left:
            sums = " (partial sums)" if wanted.share is not None else ""
            raise ModelError(
                f"part '{reader}' reads {wanted.region} of '{wanted.tensor}'{sums}, and other parts give "
                f"{wanted.region.size - left} of its {wanted.region.size} elements"
            )
        return pieces

    def _held(self, wanted: TensorRegion) -> list[tuple[str, TensorRegion]]:
        """The regions of a tensor that parts produce; an exact match comes first."""
        key = (wanted.network, wanted.tensor, wanted.share)
        regions = [
            (name, held)
            for name, part in self.cut.items()
            for held in part.outputs.values()
            if (held.network, held.tensor, held.share) == key
        ]
        return sorted(regions, key=lambda each: each[1] != wanted)

    def _carry(self, what: TensorRegion, source: str, reader: str) -> TensorRegion:
        known, readers = self.carried.setdefault(what, (source, []))
        if known != source:
            raise ModelError(f"parts '{known}' and '{source}' both compute {what.region} of '{what.tensor}'")
        if reader not in readers:
            readers.append(reader)
        return what

    def _give_results(self) -> None:
        """Passes the outputs of the networks to the caller, in the regions in which they are computed."""
        for name, part in self.cut.items():
            for held in part.outputs.values():
                if held.share is None and held.tensor in self.networks[held.network].outputs:
                    self._carry(held, name, OUTSIDE)
