"""The rounds of a division: what their parts cost, and the tensors that devices keep and send between them.

A round is the parts of one segment that run at the same time, one on each device of its group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..network import DType, Network, Region
from .devices import Cluster, Port
from .division import DivisionSegment
from .sketch import SUM_BYTES, PartSketch, Sketcher, TensorKey

STAGE_SLOTS = 2  # of what passes from one pipeline stage to the next: one is filled while the other is read

Place = tuple[DivisionSegment, int]  # a segment, and the round of its parts


@dataclass(frozen=True, slots=True)
class RoundCosts:
    """What the parts of a round cost by themselves, by device, and the tensors that they read and give."""

    seconds: Mapping[str, float]
    weights: Mapping[str, int]
    inner: Mapping[str, int]
    reads: tuple[TensorKey, ...]
    gives: tuple[TensorKey, ...]


@dataclass(frozen=True, slots=True)
class PartFlow:
    """A region that one part gives another; `held` is all that the source has of the tensor."""

    key: TensorKey
    held: Region
    region: Region
    source: str  # a device
    target: str

    @property
    def carried(self) -> Region:
        """What the FIFO carries: on one device readers look into the whole."""
        return self.held if self.source == self.target else self.region


@dataclass(frozen=True, slots=True)
class RoundReader:
    """A round that reads what another makes."""

    place: Place
    distance: int  # rounds from the one that makes it
    is_inside: bool  # both are in one pipeline stage


@dataclass
class Exchange:
    """The bytes that are kept and sent because of the tensors that one round makes."""

    lives: Counter[tuple[str, int]] = field(default_factory=Counter)  # bytes by device and rounds that they are kept
    kept: Counter[str] = field(default_factory=Counter)  # bytes by device that are kept all the time
    inside: Counter[Port] = field(default_factory=Counter)  # bytes sent before the stage goes on
    passed: Counter[Port] = field(default_factory=Counter)  # bytes sent to other stages, and results


class Rounds:
    """The rounds that divisions of one network on one cluster have; each is counted once, for all divisions.

    `wire_share` is the size of real numbers on the wire.
    """

    def __init__(self, network: Network, cluster: Cluster, sketcher: Sketcher, wire_share: float) -> None:
        self.network, self.cluster, self.sketcher, self.wire_share = network, cluster, sketcher, wire_share
        self._exchanges: dict[tuple[Place | None, tuple[RoundReader, ...]], Exchange] = {}
        self._costs: dict[Place, RoundCosts] = {}

    def parts(self, place: Place) -> tuple[PartSketch, ...]:
        sketch = self.sketcher.sketch(place[0])
        assert sketch is not None
        return sketch[place[1]]

    def costs(self, place: Place) -> RoundCosts:
        if place not in self._costs:
            rates, parts = self.cluster.device_named, self.parts(place)
            self._costs[place] = RoundCosts(
                {part.device: part.work / rates[part.device].macs_per_second for part in parts},
                {part.device: part.weights_bytes for part in parts},
                {part.device: part.inner_bytes for part in parts},
                tuple(dict.fromkeys(key for part in parts for key in part.reads)),
                tuple(dict.fromkeys(key for part in parts for key in part.gives)),
            )
        return self._costs[place]

    def exchange(self, source: Place | None, readers: tuple[RoundReader, ...]) -> Exchange:
        """What is kept and sent because of one round's tensors, or because of the frame from outside (None)."""
        key = source, readers
        if key not in self._exchanges:
            self._exchanges[key] = self._exchanged(source, readers)
        return self._exchanges[key]

    def _exchanged(self, source: Place | None, readers: tuple[RoundReader, ...]) -> Exchange:
        found = Exchange()
        lives: dict[tuple[str, TensorKey, Region, str], tuple[int, int]] = {}  # bytes, and rounds that they are kept
        ways: dict[tuple[str, TensorKey, Region, str], tuple[PartFlow, bool]] = {}  # to whom, and whether a stage waits

        def keep(device: str, flow: PartFlow, rounds: int) -> None:
            item = device, flow.key, flow.carried, flow.source
            lives[item] = self._region_bytes(flow.key, flow.carried), max(lives.get(item, (0, 0))[1], rounds)

        crossing: dict[tuple[str, TensorKey, Region, str], int] = {}
        for reader in readers:
            for flow in self._flows(source, reader.place):
                is_near = flow.source == flow.target and source is not None
                sides = (flow.target,) if source is None else tuple({flow.source, flow.target})
                for device in sides:
                    if reader.is_inside:
                        keep(device, flow, reader.distance if is_near or device == flow.target else 1)
                    else:
                        item = device, flow.key, flow.carried, flow.source
                        crossing[item] = STAGE_SLOTS * self._region_bytes(flow.key, flow.carried)
                if flow.source != flow.target:
                    way = flow.source, flow.key, flow.carried, flow.target
                    is_inside = reader.is_inside or (way in ways and ways[way][1])
                    ways[way] = flow, is_inside
        for flow in self._results(source) if source is not None else ():
            keep(flow.source, flow, 1)
            if flow.source != flow.target:
                ways.setdefault((flow.source, flow.key, flow.carried, flow.target), (flow, False))
        for item, (size, rounds) in lives.items():
            if item not in crossing:
                found.lives[item[0], rounds] += size
        for (device, *_), size in crossing.items():
            found.kept[device] += size
        for flow, is_inside in ways.values():
            self._send(flow, found.inside if is_inside else found.passed)
        return found

    def _results(self, source: Place) -> Iterator[PartFlow]:
        """What goes to the gateway as a result."""
        for part in self.parts(source):
            for key, held in part.gives.items():
                if key[0] in self.network.outputs and key[1] is None:
                    yield PartFlow(key, held, held, part.device, self.cluster.gateway)

    def _send(self, flow: PartFlow, sent: Counter[Port]) -> None:
        size = self._region_bytes(flow.key, flow.region)
        if self.network.tensors[flow.key[0]].dtype is DType.FLOAT32 and flow.key[1] is None:
            size = round(size * self.wire_share)
        for port in self.cluster.route(flow.source, flow.target):
            sent[port] += size

    def _flows(self, source: Place | None, reader: Place) -> Iterator[PartFlow]:
        """What one round's parts, or the gateway (None), give those of another."""
        for part in self.parts(reader):
            for key, wanted in part.reads.items():
                if source is None:
                    if key[1] is None and key[0] in self.network.inputs:
                        yield PartFlow(key, wanted, wanted, self.cluster.gateway, part.device)
                    continue
                for giver in self.parts(source):
                    held = giver.gives.get(key)
                    if held is not None and not (inside := held & wanted).is_empty:
                        yield PartFlow(key, held, inside, giver.device, part.device)

    def _region_bytes(self, key: TensorKey, region: Region) -> int:
        return region.size * (SUM_BYTES if key[1] is not None else self.network.tensors[key[0]].dtype.bytes)
