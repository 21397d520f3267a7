"""Plans of one network over a cluster: a strategy's division, its figures, and how good they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from ..errors import Infeasible, InputError
from ..memory.planner import plan
from ..network import Network
from .costs import DivisionCost, DivisionCosts
from .deploying import ClusterDeployment, deployed, round_of_part, stored_weights
from .devices import Cluster, Port
from .division import Division, DivisionSegment, pipeline_stages
from .goal import ClusterGoal
from .hybrid import FoundDivision, division_near
from .simulation import ClusterRun, simulate
from .strategies import HYBRID, Strategies
from .wire import float16_error, wire_bytes

SIMULATED_FRAMES = 8  # for the throughput, and more for each pipeline stage, which may have two
CORRECTIONS = 4  # of estimates that turned out too low
PROVEN = 1e-9  # a gap that is none


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What the memory of a device is for, in bytes."""

    weights: int
    working: int  # arenas and slots
    replay: int  # frames kept to be sent again when a device fails
    has_flash: bool = False  # which weights lie in

    @property
    def ram(self) -> int:
        return self.working + self.replay + (0 if self.has_flash else self.weights)

    @property
    def total(self) -> int:
        return self.weights + self.working + self.replay


@dataclass(frozen=True)
class ClusterPlan:
    """What a strategy comes to on a cluster."""

    strategy: str
    network: Network
    found: FoundDivision
    goal: ClusterGoal
    single_bytes: int  # one device with whole layers: weights, and the plan with the least RAM
    deployment: ClusterDeployment | None = None  # where every part was planned, memory is exact
    run: ClusterRun | None = None  # and some frames were simulated
    frame: ClusterRun | None = None  # one frame alone
    wire_error: float | None = None  # of outputs, where real numbers are sent with 16 bits

    @property
    def cluster(self) -> Cluster:
        return self.found.costs.cluster

    @property
    def division(self) -> Division:
        return self.found.division

    @property
    def cost(self) -> DivisionCost:
        return self.found.cost

    @property
    def is_exact(self) -> bool:
        """Whether memory is that of a deployment with all its addresses."""
        return self.deployment is not None

    @property
    def memory(self) -> Mapping[str, int]:
        return self.deployment.memory if self.deployment else self.cost.memory

    @cached_property
    def memory_parts(self) -> Mapping[str, DeviceMemory]:
        """The memory of each device by what it is for."""
        stored = stored_weights(self.deployment.deployment) if self.deployment else self.cost.weights
        replay = self.found.costs.replay(self.division)
        found: dict[str, DeviceMemory] = {}
        for name, total in self.memory.items():
            kept, again = stored.get(name, 0), replay.get(name, 0)
            has_flash = self.cluster.device_named[name].flash_bytes is not None
            found[name] = DeviceMemory(kept, total - kept - again, again, has_flash)
        return found

    def layers(self, segment: DivisionSegment) -> tuple[str, ...]:
        return self.found.costs.sketcher.layers(segment)

    @cached_property
    def part_segments(self) -> Mapping[str, int]:
        """The number of the segment that each part of the deployment belongs to."""
        sketches = map(self.found.costs.sketcher.sketch, self.division)
        rounds = [number for number, sketch in enumerate(sketches) for _ in sketch or ()]
        parts = self.deployment.deployment.parts if self.deployment else ()
        return {part.name: rounds[round_of_part(part.name)] for part in parts}

    @property
    def fullest(self) -> int:
        return max(self.memory.values())

    @property
    def period(self) -> float:
        """Seconds from result to result when frames come without pause."""
        simulated = 1 / self.run.throughput if self.run else 0.0
        return simulated or self.cost.period  # below a nanosecond it is not simulated

    @property
    def latency(self) -> float:
        """Seconds of a frame that has the cluster to itself."""
        return self.frame.latency_s if self.frame else self.cost.latency

    @property
    def single_period(self) -> float:
        """Seconds of a frame on the fastest device alone."""
        return self.found.costs.sketcher.work / max(device.macs_per_second for device in self.cluster.devices)

    @property
    def speedup(self) -> float:
        return self.single_period / self.period

    @cached_property
    def gap(self) -> float:
        """The share of the goal's value that a better plan could save at most."""
        return self.goal.gap(self.found.costs, self._figures)

    @property
    def goal_value(self) -> float:
        """What the goal makes small."""
        return self.goal.value(self._figures)

    @property
    def _figures(self) -> DivisionCost:
        weights = {name: parts.weights for name, parts in self.memory_parts.items()}
        return replace(self.cost, memory=self.memory, weights=weights, period=self.period, latency=self.latency)

    @property
    def broken_limits(self) -> tuple[str, ...]:
        return tuple(words for _, words in self.goal.broken(self.found.costs, self._figures))

    @property
    def stages(self) -> int:
        return len(pipeline_stages(self.division))

    @property
    def staged(self) -> Iterator[tuple[int, DivisionSegment]]:
        """Each segment with the number of its pipeline stage."""
        stages = enumerate(pipeline_stages(self.division), 1)
        return ((number, segment) for number, stage in stages for segment in stage)

    @property
    def is_optimal(self) -> bool:
        return self.gap <= PROVEN

    @property
    def wall(self) -> str:
        """What keeps the plan from being faster."""
        busiest = max(self.cost.busy, key=lambda name: self.cost.busy[name])
        port = self.busiest_port
        sending = self.sending_s(port) if port else 0.0
        if self.cost.busy[busiest] >= max(sending, 0.9 * self.period):
            return f"device '{busiest}' computes for {self.cost.busy[busiest]:.3g} s of each frame"
        if port and sending >= 0.9 * self.period:
            return f"link '{port[0]}' sends for {sending:.3g} s of each frame"
        waiting = 1 - self.cost.busy[busiest] / self.period
        return f"devices wait for each other's data for {waiting:.0%} of the time"

    @property
    def busiest_port(self) -> Port | None:
        ports = self.cost.port_bytes
        return max(ports, key=self.sending_s) if ports else None

    @cached_property
    def sent_and_received(self) -> Mapping[str, tuple[int, int]]:
        """Bytes of a frame that each device sends to others and gets from them, where parts are planned."""
        assert self.deployment is not None
        made, sent, received = self.deployment.deployment, Counter[str](), Counter[str]()
        size_of = wire_bytes(made, self.found.costs.wire_share)
        for fifo in made.fifos:
            size = size_of(fifo)
            home = self.homes.get(fifo.source, self.cluster.gateway)
            for target in {self.homes.get(reader, self.cluster.gateway) for reader in fifo.reading} - {home}:
                sent[home] += size
                received[target] += size
        return {name: (sent[name], received[name]) for name in self.cluster.device_named}

    @cached_property
    def homes(self) -> Mapping[str, str]:
        """The device of each part."""
        workers = self.deployment.deployment.workers if self.deployment else ()
        return {part: worker.device for worker in workers for part in worker.parts}

    def sending_s(self, port: Port) -> float:
        """Seconds for which a port sends for each frame."""
        return self.cost.port_bytes.get(port, 0) / self.cluster.link_named[port[0]].bytes_per_second


class ClusterPlanner:
    """Plans one network for one goal on clusters of any size."""

    def __init__(self, network: Network, goal: ClusterGoal, wire_share: float = 1.0) -> None:
        self.network, self.goal, self.wire_share = network, goal, wire_share
        self._last: Strategies | None = None  # strategies of one cluster share what was computed for it

    @cached_property
    def single_bytes(self) -> int:
        whole = plan(self.network, explain=False)
        return whole.peak_bytes + sum(self.network.tensors[name].bytes for name in self.network.constants)

    def plan(self, cluster: Cluster, strategy: str = HYBRID) -> ClusterPlan:
        """The strategy's division with estimated figures; an error where limits are broken or it does not apply."""
        if not self.network.layers:
            raise InputError(
                f"'{self.network.name}' has no layers to divide: its outputs are its inputs. Give another model"
            )
        strategies = self._strategies(cluster)
        self.goal.check(strategies.costs)
        if strategy not in strategies.table:
            raise InputError(f"there is no strategy '{strategy}'; there are {', '.join(strategies.table)}")
        return self._planned(strategies, strategy)

    def _strategies(self, cluster: Cluster) -> Strategies:
        if self._last is None or self._last.costs.cluster is not cluster:
            self._last = Strategies(DivisionCosts(self.network, cluster, self.wire_share), self.goal)
        return self._last

    def _planned(self, strategies: Strategies, strategy: str) -> ClusterPlan:
        found = strategies.table[strategy]()
        made = ClusterPlan(strategy, self.network, found, strategies.goal, self.single_bytes)
        if made.broken_limits:
            raise Infeasible(f"strategy '{strategy}' does not keep the limits: {'; '.join(made.broken_limits[:3])}")
        return replace(made, goal=self.goal)

    def realised(self, draft: ClusterPlan) -> ClusterPlan:
        """The plan with every part cut out, planned and placed, and frames simulated: memory is what is allocated.

        Where the exact figures break limits that the estimates kept, estimates are corrected and another is found.
        """
        for _ in range(CORRECTIONS):
            made = self._realised(draft)
            if not made.broken_limits:
                return made
            draft = self._corrected(made)
        raise Infeasible(
            f"strategy '{draft.strategy}' keeps the limits by its estimates, but not once its parts are planned: "
            f"{'; '.join(made.broken_limits[:3])}. Ask for a little less memory (--ram), or for more throughput"
        )

    def _corrected(self, made: ClusterPlan) -> ClusterPlan:
        """A plan by estimates that expect what another plan came to more than was estimated."""
        goal, margins = self.goal, {name: self._margin(made, name) for name in made.memory}
        slower, later = max(1.0, made.period / made.cost.period), max(1.0, made.latency / made.cost.latency)
        goal = replace(
            goal,
            min_throughput=goal.min_throughput and goal.min_throughput * slower,
            max_latency=goal.max_latency and goal.max_latency / later,
        )
        if made.strategy == HYBRID:
            with suppress(Infeasible):
                found = division_near(made.found.costs.with_margins(margins), goal, made.division)
                return replace(made, found=found)
        costs = DivisionCosts(self.network, made.cluster, self.wire_share).with_margins(margins)
        return self._planned(Strategies(costs, goal), made.strategy)

    def _margin(self, made: ClusterPlan, name: str) -> tuple[int, int]:
        """By how many bytes of weights, and of everything else, estimates of a device were too low."""
        before = made.found.costs.margins.get(name, (0, 0))
        parts, cost = made.memory_parts[name], made.cost
        expected = cost.weights[name], cost.memory[name] - cost.weights[name]
        exact = parts.weights, parts.total - parts.weights
        weights, others = (max(0, old + had - want) for old, had, want in zip(before, exact, expected, strict=True))
        return weights, others

    def _realised(self, draft: ClusterPlan) -> ClusterPlan:
        planned = deployed(draft.found.costs, draft.division)
        runs = [
            simulate(
                planned.deployment,
                draft.cluster,
                frames,
                turns=planned.turns,
                wire_bytes=wire_bytes(planned.deployment, self.wire_share),
                is_judged=True,
                under_way=planned.frames_kept,
            )
            for frames in (SIMULATED_FRAMES + 3 * draft.stages, 1)
        ]
        is_short = self.wire_share < 1
        error = float16_error(planned.deployment, draft.cluster.gateway) if is_short else None
        return replace(draft, deployment=planned, run=runs[0], frame=runs[1], wire_error=error)


def checked_cluster(cluster: Cluster) -> Cluster:
    """The cluster, if there is something to divide a network over."""
    if len(cluster.devices) < 2:
        raise InputError(
            f"cluster '{cluster.name}' has one device; dividing a network takes two or more. "
            "`edgewright plan` and `edgewright map` are for one"
        )
    return cluster
