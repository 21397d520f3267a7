"""A deployment on a cluster as plain tasks, one for each run and transfer of each frame, and two simulators of them.

It shares no code with the graphs of `dataflow`: who waits for whom is written down frame by frame.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from random import Random

from edgewright.cluster.devices import Cluster, ClusterDevice, ClusterLink
from edgewright.dataflow.deployments.sharing import SlotTurn
from edgewright.program.deployment import OUTSIDE, Deployment, Worker

Key = tuple[object, ...]


@dataclass
class Task:
    rank: tuple[int, ...]  # among tasks that become ready at one moment
    time: Fraction
    after: list[tuple[Key, Fraction]] = field(default_factory=list)  # tasks, and how long after their ends
    holds: tuple[object, ...] = ()


def nanoseconds(time: float) -> Fraction:
    return Fraction(round(time * 10**9), 10**9)


class Tasks:
    """("in", f), ("out", f), (part, f) and (fifo number, device, f)."""

    def __init__(
        self,
        deployment: Deployment,
        cluster: Cluster,
        times: Mapping[tuple[str, str], Fraction],
        frames: int,
        turns: Sequence[SlotTurn] = (),
    ) -> None:
        self.deployment, self.cluster, self.times, self.frames = deployment, cluster, times, frames
        self.tasks: dict[Key, Task] = {}
        self.readers: dict[tuple[int, int, str], list[Key]] = defaultdict(list)  # of a fifo's frame on a device
        self.writer: dict[tuple[int, int, str], Key] = {}
        for frame in range(frames):
            self._make(frame)
        for frame in range(frames):
            self._wait(frame)
        numbers = {fifo.what: n for n, fifo in enumerate(deployment.fifos)}
        for turn in turns:
            for frame in range(turn.frames, frames):
                writer = self.writer.get((numbers[turn.then], frame, turn.device))
                for reader in self.readers.get((numbers[turn.first], frame - turn.frames, turn.device), ()):
                    if writer is not None:
                        self.tasks[writer].after.append((reader, Fraction(0)))

    def worker(self, part: str, frame: int) -> Worker:
        return next(w for w in self.deployment.workers if part in w.parts and frame % w.replica[1] == w.replica[0])

    def place(self, end: str, frame: int) -> str:
        return self.cluster.gateway if end == OUTSIDE else self.worker(end, frame).device

    def key(self, end: str, frame: int, side: str) -> Key:
        return (side, frame) if end == OUTSIDE else (end, frame)

    def _make(self, frame: int) -> None:
        workers = [worker.name for worker in self.deployment.workers]
        self.tasks["in", frame] = Task((0, 0), Fraction(0))
        self.tasks["out", frame] = Task((0, 1), Fraction(0))
        for part in self.deployment.part_named:
            worker = self.worker(part, frame)
            cores = self._cores(worker)
            self.tasks[part, frame] = Task((1, workers.index(worker.name)), self.times[worker.name, part], holds=cores)
        for number, fifo in enumerate(self.deployment.fifos):
            home = self.place(fifo.source, frame)
            self.writer[number, frame, home] = self.key(fifo.source, frame, "in")
            for reader in fifo.reading:
                device = self.place(reader, frame)
                self.readers[number, frame, device].append(self.key(reader, frame, "out"))
                if device != home and (number, device, frame) not in self.tasks:
                    time = nanoseconds(self.deployment.tensor(fifo).bytes / self.cluster.bandwidth(home, device))
                    ports = self.cluster.route(home, device) if time else ()
                    rank = self._rank(number, device, home)
                    self.tasks[number, device, frame] = Task(rank, time, holds=ports)
                    self.writer[number, frame, device] = number, device, frame
                    self.readers[number, frame, home].append((number, device, frame))

    def _rank(self, number: int, device: str, home: str) -> tuple[int, ...]:
        """Transfers of a FIFO are ranked by the order in which it first meets their devices, and their sources."""
        fifo, frames = self.deployment.fifos[number], range(24)
        met = [self.place(reader, frame) for reader in fifo.reading for frame in frames]
        sent = [f for f in frames if any(self.place(reader, f) == device for reader in fifo.reading)]
        homes = [one for f in sent if (one := self.place(fifo.source, f)) != device]
        return 2, number, met.index(device), homes.index(home)

    def _cores(self, worker: Worker) -> tuple[object, ...]:
        def uses(one: Worker) -> set[object]:
            return {(one.device, one.processor, core) for core in one.cores or ("all",)}

        others = [uses(one) for one in self.deployment.workers if one.name != worker.name]
        return tuple(core for core in uses(worker) if any(core in cores for cores in others))

    def _wait(self, frame: int) -> None:
        def after(task: Key, others: Iterable[Key], lag: Fraction = Fraction(0)) -> None:
            self.tasks[task].after += [(other, lag) for other in others]

        for side in ("in", "out"):
            after((side, frame), [(side, frame - 1)] if frame else [])
        for part in self.deployment.part_named:
            worker = self.worker(part, frame)
            at = worker.parts.index(part)
            before = frame - worker.replica[1]
            after(
                (part, frame), [(worker.parts[at - 1], frame)] if at else [(worker.parts[-1], before)] * (before >= 0)
            )
        for number, fifo in enumerate(self.deployment.fifos):
            home = self.place(fifo.source, frame)
            source = self.writer[number, frame, home]
            for reader in fifo.reading:
                device = self.place(reader, frame)
                lag = nanoseconds(self.cluster.latency(home, device)) if device != home else Fraction(0)
                after(self.key(reader, frame, "out"), [self.writer[number, frame, device]], lag)
            old = frame - fifo.slots
            if old >= 0:
                after(source, self.readers[number, old, self.place(fifo.source, old)])
            for device in {self.place(reader, frame) for reader in fifo.reading} - {home}:
                sent = number, device, frame
                after(sent, [source])
                earlier = [f for f in range(frame) if (number, device, f) in self.tasks]
                same = [f for f in earlier if self.place(fifo.source, f) == home]
                after(sent, [(number, device, same[-1])] if same else [])
                slot = [f for f in earlier if (frame - f) % fifo.slots == 0]
                after(sent, self.readers[number, slot[-1], device] if slot else [])


def longest_path(tasks: Mapping[Key, Task], orders: Iterable[Sequence[Key]] = ()) -> Mapping[Key, Fraction]:
    """When each task ends where everything starts as soon as the tasks before it have ended."""
    before = {key: list(task.after) for key, task in tasks.items()}
    for order in orders:
        for one, then in pairwise(order):
            before[then].append((one, Fraction(0)))
    ends: dict[Key, Fraction] = {}
    stack = list(tasks)
    while stack:
        key = stack[-1]
        missing = [other for other, _ in before[key] if other not in ends]
        assert len(stack) < 10**6, "tasks wait for each other"
        if missing and key not in ends:
            stack += missing
            continue
        stack.pop()
        ends[key] = max((ends[other] + lag for other, lag in before[key]), default=Fraction(0)) + tasks[key].time
    return ends


def first_come_first_served(tasks: Mapping[Key, Task]) -> Mapping[Key, Fraction]:
    """When each task ends where a resource takes the task that is ready longest and has its other resources free."""
    left = {key: len(task.after) for key, task in tasks.items()}
    next_of: dict[Key, list[tuple[Key, Fraction]]] = defaultdict(list)
    for key, task in tasks.items():
        for other, lag in task.after:
            next_of[other].append((key, lag))
    ready = {key: Fraction(0) for key, task in tasks.items()}
    ends: dict[Key, Fraction] = {}
    waiting = {key for key, count in left.items() if not count}
    running: dict[Key, Fraction] = {}
    busy: set[object] = set()
    now = Fraction(0)
    while waiting or running:
        for key in [key for key, end in running.items() if end == now]:
            del running[key]
            ends[key] = now
            busy -= set(tasks[key].holds)
            for other, lag in next_of[key]:
                left[other] -= 1
                ready[other] = max(ready[other], now + lag)
                if not left[other]:
                    waiting.add(other)
        timeless = [key for key in waiting if ready[key] <= now and not tasks[key].holds]
        for key in timeless:
            waiting.remove(key)
            running[key] = now + tasks[key].time
        if any(end == now for end in running.values()):
            continue  # what takes no time is over before anything is served
        served = False
        for key in sorted((k for k in waiting if ready[k] <= now), key=lambda k: (ready[k], tasks[k].rank)):
            if not busy & set(tasks[key].holds):
                waiting.remove(key)
                busy |= set(tasks[key].holds)
                running[key] = now + tasks[key].time
                served = True
        if served and any(end == now for end in running.values()):
            continue
        later = [*running.values(), *(ready[k] for k in waiting if ready[k] > now)]
        if later:
            now = min(later)
        else:
            assert not waiting and not running, "tasks wait for ever"
    return ends


def random_cluster(random: Random, count: int) -> Cluster:
    """Unequal devices on a switch, on a bus, or in a row."""
    names = [f"d{n}" for n in range(count)]
    devices = tuple(ClusterDevice(name, random.uniform(1e6, 5e6)) for name in names)

    def figures() -> tuple[float, float]:
        return random.uniform(2e4, 4e6), random.choice((0.0, random.uniform(1e-5, 1e-2)))

    match random.randrange(3):
        case 0:
            links = [ClusterLink(f"l-{name}", (name, "switch"), *figures(), random.random() < 0.3) for name in names]
        case 1:
            links = [ClusterLink("bus", tuple(names), *figures())]
        case _:
            links = [ClusterLink(f"l{n}", (names[n], names[n + 1]), *figures()) for n in range(count - 1)]
    return Cluster("random", devices, tuple(links), random.choice(names))
