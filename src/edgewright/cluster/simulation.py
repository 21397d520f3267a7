"""Frames over a cluster, event by event: contention, latencies that vary, devices that fail and return.

Ports and shared cores serve who comes first, as the runtime does, not in the fixed order of `timing`. Transfers may be
cut into pieces, which makes those that share a port take turns, as TCP connections do on a cable. The gateway keeps
each frame until its result is there; when a device fails, all frames under way are lost, and the gateway sends them
again once every device is back. The gateway itself does not fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from random import Random
from statistics import mean
from typing import TypedDict, Unpack

from ..dataflow.cnn.durations import exact_time
from ..dataflow.deployments.sharing import SharedLinks, SlotTurn
from ..dataflow.deployments.slots import GivenTimes
from ..dataflow.deployments.timed import TimedDeployment
from ..dataflow.graph import Channel, Graph, Rates
from ..dataflow.throughput.contention import NEVER, ContendedExecution, Resource
from ..errors import InputError
from ..program.deployment import Deployment
from .devices import Cluster
from .rates import WireBytes
from .timing import unordered

HOUR = 3600.0
MOST_FAILURES = 10_000


@dataclass(frozen=True)
class WanLatency:
    """A delay of each transfer besides that of its links: log-normal, drawn for each; none overtakes an earlier one."""

    median_s: float
    spread: float = 0.5  # standard deviation of the delay's logarithm
    seed: int = 0


@dataclass(frozen=True)
class Churn:
    """Devices that fail and return, independently of each other, after times that are distributed exponentially."""

    per_hour: float  # failures of each device
    away_s: float = 10.0  # mean time until a device is back
    detect_s: float = 0.6  # after which frames are sent again
    seed: int = 0


class TrafficKeywords(TypedDict, total=False):
    """The fields of `Traffic` as keywords."""

    every_s: float
    wan: WanLatency | None
    churn: Churn | None
    under_way: int | None
    pieces: int
    shown: int | None


@dataclass(frozen=True)
class Traffic:
    """How frames arrive at a simulated cluster, and what disturbs it."""

    every_s: float = 0.0  # between frames; 0: as soon as the gateway accepts one
    wan: WanLatency | None = None
    churn: Churn | None = None
    under_way: int | None = None  # frames that the gateway keeps at most, each until its result arrives
    pieces: int = 1  # of each transfer: between two of them its ports serve others
    shown: int | None = None  # the frame of the Gantt chart; by default the one in the middle


@dataclass(frozen=True, slots=True)
class BusySpan:
    """A bar of the Gantt chart of a frame."""

    row: str  # a device, or a link and who sends on it
    label: str  # the part, or the tensor that is sent
    start_s: float  # from the frame's arrival
    end_s: float


@dataclass(frozen=True)
class ClusterRun:
    """What a simulation came to."""

    seconds: float  # until the last result
    results_s: tuple[float, ...]  # when each frame's result was there
    latencies_s: tuple[float, ...]  # of each frame, from its first arrival
    device_busy: Mapping[str, float]  # share of the time in which each device computes
    port_busy: Mapping[Resource, float]  # share of the time in which each port sends
    spans: tuple[BusySpan, ...]  # of one frame
    failures: int = 0
    frames_again: int = 0  # sent again from the gateway
    sent_bytes: int = 0
    sent_bytes_again: int = 0

    @property
    def throughput(self) -> float:
        """Frames per second while frames still come in; the first half of these results is left out (pipelines fill).

        Where the last frame comes in before the second result, all results count.
        """
        last_arrival = self.results_s[-1] - self.latencies_s[-1]
        steady = [when for when in self.results_s if when <= last_arrival]
        if len(steady) < 2:
            steady = [0.0, *self.results_s]
        half = (len(steady) - 1) // 2
        time = steady[-1] - steady[half]
        return (len(steady) - 1 - half) / time if time else inf

    @property
    def latency_s(self) -> float:
        """The mean latency."""
        return mean(self.latencies_s)


def simulate(
    deployment: Deployment,
    cluster: Cluster,
    frames: int,
    *,
    times: GivenTimes | None = None,
    turns: tuple[SlotTurn, ...] = (),
    wire_bytes: WireBytes | None = None,
    is_judged: bool = False,
    **traffic: Unpack[TrafficKeywords],
) -> ClusterRun:
    """Runs frames through a deployment. `traffic` gives the fields of `Traffic` as keywords."""
    if frames < 1:
        raise InputError(f"a simulation of {frames} frames: ask for at least one")
    timed = unordered(deployment, cluster, times, turns=turns, wire_bytes=wire_bytes, is_judged=is_judged)
    asked = Traffic(**traffic)
    if timed.links is not None:
        timed = replace(timed, links=_with_traffic(timed.links, asked))
    sizes = {name: (wire_bytes or _bytes_of(deployment))(fifo) for name, (fifo, _) in timed.senders.items()}
    run = _Simulation(timed, cluster, frames, asked)
    return run.result(sizes)


def _with_traffic(links: SharedLinks, traffic: Traffic) -> SharedLinks:
    """The links with the median of further delays, and with transfers in pieces."""
    if traffic.wan is None:
        return replace(links, pieces=traffic.pieces)
    median = exact_time(traffic.wan.median_s)
    return replace(links, pieces=traffic.pieces, delay=lambda a, b: exact_time(links.delay(a, b)) + median)


def _bytes_of(deployment: Deployment) -> WireBytes:
    return lambda fifo: deployment.tensor(fifo).bytes


class _Simulation:
    """Epochs: from when all devices are there until one fails."""

    def __init__(
        self,
        timed: TimedDeployment,
        cluster: Cluster,
        frames: int,
        traffic: Traffic,
    ) -> None:
        self.timed, self.cluster, self.frames, self.wan = timed, cluster, frames, traffic.wan
        self.pieces = timed.links.pieces if timed.links else 1
        self.shown = frames // 2 if traffic.shown is None else traffic.shown
        self.graph = _arriving(timed, traffic.every_s, traffic.under_way)
        wan, churn = traffic.wan, traffic.churn
        self.draw = Random(wan.seed if wan else 0)
        self.busy, self.fired = Counter[str](), Counter[str]()
        self.arrivals: list[float] = []
        self.results: list[float] = []
        self.spans: tuple[BusySpan, ...] = ()
        self.failures = self.frames_again = 0
        failures = _Failures(timed, cluster, churn) if churn and churn.per_hour > 0 else None
        begin = 0.0
        while len(self.results) < frames:
            if failures is None:
                self._epoch(begin, inf)
            else:
                failure = failures.next(begin)
                self._epoch(begin, failure)
                begin = failures.back(failure)

    def _epoch(self, begin: float, end: float) -> None:
        done, unit = len(self.results), self.graph.time_unit
        epoch = _Epoch(self.timed, self.graph, self.frames - done, self.wan, self.draw, self.shown - done)
        epoch.run((end - begin) * unit)
        self.busy.update(epoch.busy_times)
        self.fired.update(epoch.firings)
        self.results += [begin + when / unit for when in epoch.results]
        self.arrivals += [begin + when / unit for when in epoch.arrivals[len(self.arrivals) - done :]]
        if done <= self.shown < len(self.results):
            start = epoch.arrivals[self.shown - done]
            self.spans = tuple(self._spans(epoch, start, unit))
        if len(self.results) == self.frames:
            return
        if end == inf:
            raise InputError(f"deployment '{self.timed.name}': its parts wait for each other for ever")
        self.failures += 1
        self.frames_again += len(epoch.arrivals) - len(epoch.results)
        if self.failures > MOST_FAILURES:
            raise InputError(
                f"after {MOST_FAILURES:,} failures {len(self.results):,} of {self.frames:,} frames are done; "
                "a cluster whose devices fail this often needs smaller groups"
            )

    def result(self, sizes: Mapping[str, int]) -> ClusterRun:
        seconds, unit = self.results[-1], self.graph.time_unit
        shares = {name: busy / unit / seconds if seconds else 0.0 for name, busy in self.busy.items()}
        ports = Counter[Resource](dict.fromkeys(self.cluster.ports, 0))
        for name in sizes:
            for port in self.timed.held.get(name, ()):
                ports[port] += shares.get(name, 0.0)  # type: ignore[assignment]
        once = _firings(self.timed, self.frames)
        sent = sum(size * self.fired[name] for name, size in sizes.items()) // self.pieces
        return ClusterRun(
            seconds=seconds,
            results_s=tuple(self.results),
            latencies_s=tuple(out - into for into, out in zip(self.arrivals, self.results, strict=True)),
            device_busy=self._device_busy(shares),
            port_busy=dict(ports),
            spans=self.spans,
            failures=self.failures,
            frames_again=self.frames_again,
            sent_bytes=sent,
            sent_bytes_again=sent - sum(size * once[name] for name, size in sizes.items()) // self.pieces,
        )

    def _device_busy(self, shares: Mapping[str, float]) -> Mapping[str, float]:
        """By device: its workers' shares of the cores that are used there."""
        cores: dict[str, set[int]] = {device.name: set() for device in self.cluster.devices}
        for worker in self.timed.workers:
            cores[worker.device] |= set(worker.cores)
        found = dict.fromkeys(cores, 0.0)
        for worker in self.timed.workers:
            used = len(worker.cores) / len(cores[worker.device]) if worker.cores else 1.0
            found[worker.device] += used * shares.get(worker.name, 0.0)
        return found

    def _spans(self, epoch: _Epoch, start: int, unit: int) -> Iterator[BusySpan]:
        devices = {worker.name: worker.device for worker in self.timed.workers}
        for name, phase, begin, end in epoch.spans:
            if name not in self.timed.labels:
                continue  # under way
            label = self.timed.labels[name][phase]
            rows = (devices[name],) if name in devices else map(port_row, self.timed.held.get(name, ()))
            for row in rows:
                yield BusySpan(row, label, (begin - start) / unit, (end - start) / unit)


def port_row(port: Resource) -> str:
    """The row of a port in a Gantt chart."""
    if isinstance(port, str):
        return port
    link, sender = port
    return f"{link} from {sender}" if sender else link


def _arriving(timed: TimedDeployment, every_s: float, under_way: int | None) -> Graph:
    """The graph with `every_s` between two frames that arrive, and at most `under_way` frames under way."""
    source, sink = timed.ends
    every, graph = exact_time(every_s), timed.graph
    actors = (
        replace(actor, times=(every,) * actor.phases) if actor.name == source else actor for actor in graph.actors
    )
    kept: tuple[Channel, ...] = ()
    if under_way is not None:
        once = Rates((1,) * next(actor.phases for actor in graph.actors if actor.name == source))
        kept = (Channel("kept frames", sink, source, once, once, under_way),)
    return replace(graph, actors=tuple(actors), channels=(*graph.channels, *kept))


def _firings(timed: TimedDeployment, frames: int) -> Mapping[str, int]:
    """How often each actor fires for this number of frames."""
    whole, rest = divmod(frames, timed.iteration_frames)
    return {name: whole * len(each) + sum(frame < rest for frame in each) for name, each in timed.frames.items()}


class _Failures:
    """When devices fail and return."""

    def __init__(self, timed: TimedDeployment, cluster: Cluster, churn: Churn) -> None:
        used = {worker.device for worker in timed.workers} - {cluster.gateway}
        self.rate = len(used) * churn.per_hour / HOUR
        self.churn, self.draw = churn, Random(churn.seed)

    def next(self, now: float) -> float:
        """When the next device fails."""
        return now + self.draw.expovariate(self.rate) if self.rate else inf

    def back(self, failure: float) -> float:
        """When frames are sent again: all devices are back, those that failed meanwhile too."""
        back = failure + self.draw.expovariate(1 / self.churn.away_s)
        for _ in range(MOST_FAILURES):
            another = self.next(failure)
            if another >= back:
                return back + self.churn.detect_s
            failure, back = another, max(back, another + self.draw.expovariate(1 / self.churn.away_s))
        raise InputError(f"more than {MOST_FAILURES:,} devices fail before all are back; ask for fewer failures")


class _Epoch:
    """Frames from the first on, through a cluster on which nothing is under way."""

    def __init__(
        self,
        timed: TimedDeployment,
        graph: Graph,
        frames: int,
        wan: WanLatency | None,
        draw: Random,
        shown: int,
    ) -> None:
        self.execution = ContendedExecution(graph, timed.held, _firings(timed, frames))
        self.graph, self.arrivals, self.results = graph, list[int](), list[int]()
        self.spans: list[tuple[str, int, int, int]] = []  # actor, phase, start and end, of the frame that is shown
        self._left: Mapping[int, int] = {}
        names = [actor.name for actor in graph.actors]
        self._ends = tuple(map(names.index, timed.ends))
        first, self._last = (_firings(timed, max(0, shown + n)) for n in (0, 1))
        execution = self.execution
        execution.watched_from = [
            0 if name in timed.ends else first[name] if self._last[name] > first[name] else NEVER for name in names
        ]
        execution.tell = self._note
        if wan is not None:
            median, spread = float(exact_time(wan.median_s) * graph.time_unit), wan.spread

            def drawn(time: int) -> int:
                return time + int(median * (draw.lognormvariate(0.0, spread) - 1.0))

            delays = set(timed.delays.values())
            execution.draws = [drawn if name in delays else None for name in names]

    def run(self, until: float) -> None:
        """Until all is done, or until then."""
        self.execution.run(until)
        self._left = {} if until == inf else self.execution.left(int(until))

    @property
    def busy_times(self) -> Mapping[str, int]:
        """For how long each actor has fired."""
        found = {}
        for number, (actor, fired) in enumerate(zip(self.graph.actors, self.execution.fired, strict=True)):
            times = self.execution.durations[number]
            whole, rest = divmod(fired, len(times))
            found[actor.name] = whole * sum(times) + sum(times[:rest]) - self._left.get(number, 0)
        return found

    @property
    def firings(self) -> Mapping[str, int]:
        return {actor.name: fired for actor, fired in zip(self.graph.actors, self.execution.fired, strict=True)}

    def _note(self, number: int, firing: int, start: int, end: int) -> None:
        if number == self._ends[0]:
            self.arrivals.append(end)
        elif number == self._ends[1]:
            self.results.append(end)
        else:
            actor = self.graph.actors[number]
            if firing < self._last[actor.name] and end > start:
                self.spans.append((actor.name, firing % actor.phases, start, end))
            if firing + 1 >= self._last[actor.name]:
                self.execution.watched_from[number] = NEVER
