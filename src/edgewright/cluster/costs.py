"""What a division of a network over a cluster costs: memory of each device, bytes on each link, time of a frame.

The counts are those of the deployment that it becomes (`deploying`); two things are estimates: what parts need inside,
and the time. It is counted as if all devices of a group computed a segment, and then exchanged what they made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

from ..network import Network
from ..program.weights import run_time_constants
from .devices import Cluster, Port
from .division import Division, pipeline_stages
from .pacing import StageStep, shared_period
from .rounds import STAGE_SLOTS, Exchange, Place, RoundReader, Rounds
from .sketch import Sketcher, TensorKey

STEEPNESS = 12  # of the mean of memory over time


@dataclass(frozen=True)
class DivisionCost:
    """What a division comes to. Bytes are of one frame; times are estimates."""

    memory: Mapping[str, int]  # of each device: weights, arenas, slots, frames kept for replay
    weights: Mapping[str, int]
    busy: Mapping[str, float]  # seconds that each device computes for a frame
    port_bytes: Mapping[Port, int]
    period: float
    latency: float
    energy: float
    pressure: float  # a mean of the memory over devices and time in which the largest figures count most

    @property
    def fullest(self) -> int:
        return max(self.memory.values())

    @property
    def traffic_bytes(self) -> int:
        """All that is sent, once for each link that it passes."""
        return sum(self.port_bytes.values())

    @property
    def busiest_link_bytes(self) -> int:
        return max(self.port_bytes.values(), default=0)


class DivisionCosts:
    """Costs of divisions of one network on one cluster.

    `wire_share` is the size of real numbers on the wire.
    """

    def __init__(
        self, network: Network, cluster: Cluster, wire_share: float = 1.0, sketcher: Sketcher | None = None
    ) -> None:
        self.network, self.cluster, self.wire_share = network, cluster, wire_share
        self.sketcher = sketcher or Sketcher(network, cluster)
        self.margins: Mapping[str, tuple[int, int]] = {}  # by device: bytes of weights, and others, to be added
        self.rounds = Rounds(network, cluster, self.sketcher, wire_share)

    @cached_property
    def frame_bytes(self) -> int:
        return sum(self.network.tensors[name].bytes for name in self.network.inputs)

    @cached_property
    def weights_bytes(self) -> int:
        """Of the whole network, once."""
        return sum(self.network.tensors[name].bytes for name in run_time_constants(self.network))

    def cost(self, division: Division) -> DivisionCost | None:
        """None where a segment cannot be split as asked."""
        sketches = [self.sketcher.sketch(segment) for segment in division]
        if any(sketch is None for sketch in sketches):
            return None
        return _Costing(self, division).cost()

    def replay(self, division: Division) -> dict[str, int]:
        """Bytes of the frames under way that the gateway keeps, to send them again when a device fails."""
        return {self.cluster.gateway: self.frame_bytes * len(pipeline_stages(division))}

    def with_margins(self, margins: Mapping[str, tuple[int, int]]) -> DivisionCosts:
        """The costs with more bytes on each device: of weights, and of everything else."""
        made = copy(self)
        made.margins = margins
        return made

    def with_even_memory(self, cost: DivisionCost) -> DivisionCosts:
        """The costs where fuller devices get fewer channels, so that all are equally full."""
        room, fill = dict[str, float](), dict[str, float]()
        for device in self.cluster.devices:
            used = cost.memory[device.name] if device.flash_bytes is None else cost.weights[device.name]
            room[device.name] = float(device.flash_bytes or device.ram_bytes or 1)
            fill[device.name] = used / room[device.name]
        mean = sum(fill.values()) / len(fill)
        shares = self.sketcher.channel_shares
        moved = {name: (mean - fill[name]) * room[name] / max(1, cost.weights[name]) for name in room}
        even = {name: share * min(2.0, max(0.25, 1 + moved[name])) for name, share in shares.items()}
        made = DivisionCosts(self.network, self.cluster, self.wire_share, self.sketcher.with_shares(even))
        return made.with_margins(self.margins)


class _Costing:
    """One division on its way to its costs. A round is a segment's parts; sums and their finish are two."""

    def __init__(self, costs: DivisionCosts, division: Division) -> None:
        self.costs, self.cluster, self.division = costs, costs.cluster, division
        self.rounds: list[Place] = []
        self.stage_of: list[int] = []
        for stage, segments in enumerate(pipeline_stages(division)):
            for segment in segments:
                plain = replace(segment, begins_stage=False)  # its costs are the same
                for number in range(len(costs.sketcher.sketch(plain) or ())):
                    self.rounds.append((plain, number))
                    self.stage_of.append(stage)
        self.stages = self.stage_of[-1] + 1
        self.alone = [costs.rounds.costs(place) for place in self.rounds]

    def cost(self) -> DivisionCost:
        exchanges = self._exchanges()
        busy: dict[str, float] = defaultdict(float)
        compute = [each.seconds for each in self.alone]
        for each in compute:
            for device, took in each.items():
                busy[device] += took
        spent = [
            max(each.values()) + self._time(exchange.inside)
            for each, exchange in zip(compute, exchanges[1:], strict=True)
        ]
        first = self._time(exchanges[0].inside + exchanges[0].passed)
        stages = [0.0] * self.stages
        for stage, took in zip(self.stage_of, spent, strict=True):
            stages[stage] += took
        if self.stages == 1:
            stages[0] += first
        ports: Counter[Port] = Counter()
        for exchange in exchanges:
            ports.update(exchange.inside)
            ports.update(exchange.passed)
        links = [size / self.cluster.link_named[link].bytes_per_second for (link, _), size in ports.items()]
        latency = sum(spent) + first + sum(self._time(exchange.passed) for exchange in exchanges[1:])
        period = max(*stages, *busy.values(), *links, first)
        if self._shares_devices():
            period = max(period, shared_period(self._steps(exchanges), STAGE_SLOTS))
        weights = self._weights()
        memory, pressure = self._memory(weights, exchanges)
        energy = self._energy(busy, period)
        return DivisionCost(memory, weights, dict(busy), dict(ports), period, latency, energy, pressure)

    def _shares_devices(self) -> bool:
        """Whether a device works for several stages."""
        members: dict[str, int] = {}
        return any(
            members.setdefault(device, stage) != stage
            for each, stage in zip(self.alone, self.stage_of, strict=True)
            for device in each.seconds
        )

    def _steps(self, exchanges: list[Exchange]) -> list[list[StageStep]]:
        """What each stage does with a frame: its rounds compute, exchange and pass results on."""
        found: list[list[StageStep]] = [[] for _ in range(self.stages)]
        for stage, each, exchange in zip(self.stage_of, self.alone, exchanges[1:], strict=True):
            inside, passed = self._seconds(exchange.inside), self._seconds(exchange.passed)
            found[stage] += [StageStep(each.seconds), StageStep(inside), StageStep(passed, is_waited_for=False)]
        return found

    def _seconds(self, sent: Mapping[Port, int]) -> dict[Port, float]:
        links = self.cluster.link_named
        return {port: size / links[port[0]].bytes_per_second for port, size in sent.items()}

    def _exchanges(self) -> list[Exchange]:
        """Of the frame, then of each round."""
        costs, makers = self.costs, dict[TensorKey, int]()
        readers: list[dict[int, None]] = [{} for _ in range(len(self.rounds) + 1)]
        for number, each in enumerate(self.alone):
            for key in each.reads:
                if key in makers:
                    readers[makers[key] + 1][number] = None
                elif key[0] in costs.network.inputs:
                    readers[0][number] = None
            makers.update(dict.fromkeys(each.gives, number))
        return [
            costs.rounds.exchange(
                self.rounds[source - 1] if source else None,
                tuple(self._reader(source - 1, number) for number in numbers),
            )
            for source, numbers in enumerate(readers)
        ]

    def _reader(self, source: int, number: int) -> RoundReader:
        is_inside = self.stages == 1 if source < 0 else self.stage_of[source] == self.stage_of[number]
        return RoundReader(self.rounds[number], number - max(source, 0), is_inside)

    def _time(self, sent: Mapping[Port, int]) -> float:
        """The time of an exchange: the busiest link sets it, and the longest way is waited for."""
        if not sent:
            return 0.0
        links = self.cluster.link_named
        slowest = max(size / links[link].bytes_per_second for (link, _), size in sent.items())
        return slowest + 2 * max(links[link].latency_s for link, _ in sent)

    def _weights(self) -> dict[str, int]:
        margins = self.costs.margins
        found = {name: margins.get(name, (0, 0))[0] for name in self.cluster.device_named}
        for each in self.alone:
            for device, size in each.weights.items():
                found[device] += size
        return found

    def _memory(self, weights: Mapping[str, int], exchanges: list[Exchange]) -> tuple[dict[str, int], float]:
        """Of each device, and the mean of all that they hold from round to round."""
        found = Counter(weights)
        found.update({name: more for name, (_, more) in self.costs.margins.items()})
        slots: dict[tuple[str, int], Counter[int]] = defaultdict(Counter)  # changes, by device and stage
        for source, exchange in enumerate(exchanges):
            start = max(0, source - 1)
            for (device, rounds), size in exchange.lives.items():
                slots[device, self.stage_of[start]][start] += size
                slots[device, self.stage_of[start]][start + rounds + 1] -= size
            found.update(exchange.kept)
        found.update(self.costs.replay(self.division))
        peaks, inner = Counter[str](), Counter[str]()  # the arena is that of one stage at a time
        levels: dict[tuple[str, int], list[int]] = {}
        working = self._inner()
        for device, stage in dict.fromkeys([*slots, *working]):
            changes, needs = slots[device, stage], working[device, stage]
            used, now, peak = list[int](), 0, 0
            for number in sorted({*changes, *needs}):
                now += changes[number]
                peak = max(peak, now)
                used.append(now + needs.get(number, 0))
            levels[device, stage] = [level - peak for level in used]
            peaks[device] += peak
            inner[device] = max(inner[device], *levels[device, stage])
        found.update(peaks)
        held = [found[device] + level for (device, _), places in levels.items() for level in places]
        found.update(inner)
        most = max(held)
        pressure = most * (sum((each / most) ** STEEPNESS for each in held) / len(held)) ** (1 / STEEPNESS)
        return dict(found), pressure

    def _inner(self) -> dict[tuple[str, int], dict[int, int]]:
        """What parts need inside, by device and stage, in their rounds."""
        found: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        for number, each in enumerate(self.alone):
            for device, size in each.inner.items():
                found[device, self.stage_of[number]][number] = size
        return found

    def _energy(self, busy: Mapping[str, float], period: float) -> float:
        """Joules of a frame."""
        return sum(
            device.idle_watts * period + (device.active_watts - device.idle_watts) * busy.get(device.name, 0.0)
            for device in self.cluster.devices
        )
