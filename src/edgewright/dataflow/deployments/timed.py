"""Workers, FIFOs and times as a CSDF graph: an actor per worker with phases for its parts, channels for dependencies.

Incoming frames and outgoing results are actors too, which take no time. Where a FIFO crosses between devices, a mover
takes the time of sending and holds every port on the way meanwhile (cut-through); the delay after it holds nothing.
Free slots are known to the sender at once. Replicas take turns: the graph's iteration has as many frames as it takes
until all workers have had the same number. Equal replicas of one phase on a board are one actor with several
simultaneous firings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf, lcm
from types import MappingProxyType

from ...errors import InputError
from ...network.parts import TensorRegion
from ...program.deployment import OUTSIDE, Fifo, Reader, Worker
from ...program.deployment_check import region_text
from ..cnn.durations import exact_time
from ..graph import Actor, Channel, Graph, Time, serial_loop
from ..throughput.contention import Resource
from ..throughput.ratio import cycle_ratio
from .phases import GivenTime, PartPhases, PartTimes, part_phases
from .sharing import Service, SharedLinks, SlotTurn, actor_rates, in_order, late, shared_cores

MoveTime = Callable[[Fifo, str, str], GivenTime]  # of a FIFO's region from one device to another


@dataclass(frozen=True)
class TimedDeployment:
    """The properties that determine the speed of a deployment. FIFOs with 0 slots have no limit."""

    name: str
    workers: tuple[Worker, ...]
    fifos: tuple[Fifo, ...]
    times: Mapping[tuple[str, str], PartTimes]  # by worker and part
    token_bytes: Mapping[TensorRegion, int] = field(default_factory=dict)
    moving: MoveTime | None = None
    links: SharedLinks | None = None
    turns: tuple[SlotTurn, ...] = ()
    orders: Mapping[Resource, tuple[Service, ...]] = field(default_factory=dict)  # the order in which resources serve

    @cached_property
    def graph(self) -> Graph:
        """The workers with their dependencies; the channel of a FIFO to a reader has its tensor as note."""
        return self._drawn.graph

    @cached_property
    def period(self) -> Fraction | float:
        """Time between frames if every part starts as soon as possible; infinite if parts deadlock."""
        ratio = cycle_ratio(self.graph)
        return inf if ratio is None else ratio / self._drawn.turns

    @property
    def iteration_frames(self) -> int:
        """Frames per iteration of the graph."""
        return self._drawn.turns

    @property
    def frames(self) -> Mapping[str, tuple[int, ...]]:
        """The frame of an iteration that each phase of each actor processes."""
        return self._drawn.frames

    @property
    def ends(self) -> tuple[str, str]:
        """The actors that provide frames and take results."""
        return self._drawn.source, self._drawn.sink

    @property
    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """The part or tensor of each phase of each worker and transfer."""
        return self._drawn.labels

    @property
    def senders(self) -> Mapping[str, tuple[Fifo, str]]:
        """The FIFO of each transfer, and its receiving device."""
        return self._drawn.senders

    @property
    def delays(self) -> Mapping[str, str]:
        """The actor of the delay after each transfer that has one."""
        return self._drawn.delays

    @property
    def held(self) -> Mapping[str, tuple[Resource, ...]]:
        """What actors hold while they fire: ports of links, and cores shared by several workers of a cluster."""
        return self._drawn.held

    @property
    def slowest(self) -> Fraction:
        """The time of the slowest worker per frame, a lower bound of the period."""
        runs = ((worker, sum(self.times[worker.name, part].run for part in worker.parts)) for worker in self.workers)
        return max(Fraction(run) / worker.replica[1] for worker, run in runs)

    @property
    def rings(self) -> tuple[Fifo, ...]:
        return tuple(fifo for fifo in self.fifos if fifo.rows)

    def with_fifo(self, old: Fifo, new: Fifo) -> TimedDeployment:
        return replace(self, fifos=tuple(new if fifo == old else fifo for fifo in self.fifos))

    def releasing(self, stages: Mapping[str, int]) -> TimedDeployment:
        """The deployment in which these parts release all their inputs after these stages."""
        readers = [tuple(Reader(one.part, stages.get(one.part, one.stage)) for one in f.readers) for f in self.fifos]
        return replace(self, fifos=tuple(map(lambda fifo, new: replace(fifo, readers=new), self.fifos, readers)))

    @cached_property
    def _drawn(self) -> _DeployedGraph:
        return _DeployedGraph(self)


@dataclass(frozen=True)
class _WorkerActor:
    """A worker, or several equal replicas."""

    name: str
    device: str
    parts: Mapping[str, tuple[int, PartPhases]]  # with the first phase of each
    length: int  # phases per frame
    turn: tuple[int, int]  # takes the frames f with f mod n = i
    replicas: int = 1  # simultaneous firings

    @property
    def times(self) -> tuple[Time, ...]:
        return tuple(time for _, phases in self.parts.values() for time in phases.times)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(part for part, (_, phases) in self.parts.items() for _ in phases.times)

    def frames(self, turns: int) -> tuple[int, ...]:
        """The frame of each phase, in an iteration of this many frames."""
        first, every = self.turn
        return tuple(frame for frame in range(first, turns, every) for _ in range(self.length))


@dataclass(frozen=True, slots=True)
class _PartRun:
    """A run of a part for one frame of the iteration: phases of an actor from `start` on."""

    actor: str
    start: int
    phases: PartPhases

    def end(self, stage: int | None = None) -> int:
        """The last phase of a stage, or of the run if times are not given by stage."""
        return self.start + self.phases.ends.get(stage, len(self.phases.times) - 1)

    def rows(self, by_phase: Mapping[int, int]) -> Counter[int]:
        return Counter({self.start + phase: rows for phase, rows in by_phase.items()})


AT_ONCE = PartPhases((0,))


@dataclass
class _Queue:
    """Tokens that the phases of one actor produce and those of another consume."""

    gives: Counter[int] = field(default_factory=Counter)
    takes: Counter[int] = field(default_factory=Counter)
    tokens: int = 0

    def join(self, give: int, take: int, tokens: int = 0) -> None:
        self.gives[give] += 1
        self.takes[take] += 1
        self.tokens += tokens


_Slots = tuple[str, TensorRegion]  # a device, and the contents of its slots
_Key = tuple[str, str, str]  # the contents of a queue, its producer and its consumer


class _DeployedGraph:
    def __init__(self, timed: TimedDeployment) -> None:
        self.timed = timed
        self.stages: dict[str, set[int | None]] = defaultdict(set)  # of parts, that others wait for
        for fifo in timed.fifos:
            for reader in fifo.readers:
                self.stages[reader.part].add(reader.stage)
        self.workers = list(self._workers())
        self.turns = lcm(*(worker.turn[1] for worker in self.workers))
        names = {worker.name for worker in timed.workers}
        self.source, self.sink = (_unused(name, names) for name in ("frames in", "results out"))
        outside = timed.links.outside if timed.links else ""
        self.device_of = {one.name: one.device for one in self.workers} | {self.source: outside, self.sink: outside}
        self.held = dict(shared_cores(timed.workers)) if timed.links else {}
        self.times = {one.name: one.times * (self.turns // one.turn[1]) for one in self.workers}
        self.frames = {one.name: one.frames(self.turns) for one in self.workers}
        for end in (self.source, self.sink):
            self.times[end], self.frames[end] = (0,) * self.turns, tuple(range(self.turns))
        self.labels = {one.name: one.labels * (self.turns // one.turn[1]) for one in self.workers}
        self.senders: dict[str, tuple[Fifo, str]] = {}
        self.delays: dict[str, str] = {}  # the actor of each mover's delay
        self.writers: dict[_Slots, dict[int, _PartRun]] = defaultdict(dict)
        self.readers: dict[_Slots, list[tuple[int, _PartRun, int]]] = defaultdict(list)  # with the phase that ends it
        self.graph = self._graph()

    def _graph(self) -> Graph:
        queues = [(fifo, *one) for fifo in self.timed.fifos for one in self._queues(fifo)]
        ends = {name for *_, (_, *pair), _ in queues for name in pair}
        for end in (self.source, self.sink):
            if end not in ends:
                del self.times[end], self.frames[end]
        notes = {one.name: ", ".join(one.parts) for one in self.workers}
        waiting = late(self.timed.orders.values())
        actors = {}
        for name, times in self.times.items():
            first = (0,) if name in waiting else ()
            actors[name] = Actor(name, len(times), (*first, *times), len(first), notes.get(name, ""))
        channels = [self._channel(fifo, reader, key, queue, actors) for fifo, reader, key, queue in queues]
        at_once = {one.name: one.replicas for one in self.workers}
        loops = (serial_loop(actor, "one part at a time") for actor in actors.values())
        delays = set(self.delays.values())
        channels += [replace(x, tokens=at_once.get(x.source, 1)) for x in loops if x.source not in delays]
        channels += [_one_by_one(actors[mover], actors[delay]) for mover, delay in self.delays.items()]
        channels += self._slot_turns(actors)
        for resource, order in self.timed.orders.items():
            channels += in_order(resource, order, actors)
        return Graph(self.timed.name, tuple(actors.values()), tuple(channels))

    def _workers(self) -> Iterator[_WorkerActor]:
        equal: dict[object, list[_WorkerActor]] = {}
        for worker in self.timed.workers:
            one = self._worker(worker)
            key = (worker.parts, worker.device, one.turn[1], one.times) if one.length == 1 else worker.name
            equal.setdefault(key, []).append(one)
        for group in equal.values():
            is_whole = len(group) == group[0].turn[1] and self.timed.links is None
            yield from [replace(group[0], turn=(0, 1), replicas=len(group))] if is_whole else group

    def _worker(self, worker: Worker) -> _WorkerActor:
        parts, length = {}, 0
        for part in worker.parts:
            times = self.timed.times.get((worker.name, part))
            if times is None:
                raise InputError(f"no time is given for part '{part}' on worker '{worker.name}'")
            phases = part_phases(times, self.stages[part])
            parts[part] = length, phases
            length += len(phases.times)
        return _WorkerActor(worker.name, worker.device, parts, length, worker.replica)

    def _runs(self, end: str, outside: str) -> Mapping[int, _PartRun]:
        """The writers or readers of each frame of the iteration."""
        if end == OUTSIDE:
            return {frame: _PartRun(outside, frame, AT_ONCE) for frame in range(self.turns)}
        runs = {}
        for worker in self.workers:
            if end in worker.parts:
                first, phases = worker.parts[end]
                for turn, frame in enumerate(range(worker.turn[0], self.turns, worker.turn[1])):
                    runs[frame] = _PartRun(worker.name, turn * worker.length + first, phases)
        return dict(sorted(runs.items()))

    def _queues(self, fifo: Fifo) -> Iterator[tuple[str, _Key, _Queue]]:
        """Each queue with its reader, its contents, producer and consumer."""
        writes, device_of = self._runs(fifo.source, self.source), self.device_of
        given: dict[str, Mapping[int, _PartRun]] = {"": writes}  # by device: "" is the source's own
        reads: dict[tuple[Reader, str], dict[int, _PartRun]] = defaultdict(dict)  # by sending device
        for reader in fifo.readers:
            for frame, run in self._runs(reader.part, self.sink).items():
                home, device = device_of[writes[frame].actor], device_of[run.actor]
                reads[reader, device if home and device and device != home else ""][frame] = run
        for device in dict.fromkeys(device for _, device in reads if device):
            frames = sorted({frame for (_, to), runs in reads.items() if to == device for frame in runs})
            given[device] = self._moves(fifo, device, {frame: writes[frame] for frame in frames})
            yield from self._link(fifo, Reader(device), writes, given[device])
        for (reader, device), runs in reads.items():
            yield from self._link(fifo, reader, given[device], runs, self.delays)
        for frame, run in (pair for runs in given.values() for pair in runs.items()):
            self.writers[device_of[run.actor], fifo.what][frame] = run

    def _moves(self, fifo: Fifo, device: str, writes: Mapping[int, _PartRun]) -> Mapping[int, _PartRun]:
        """The runs that send frames to a device: a mover for each device that they come from."""
        homes: dict[str, list[int]] = defaultdict(list)
        for frame, run in writes.items():
            homes[self.device_of[run.actor]].append(frame)
        moving, links = self.timed.moving, self.timed.links
        sent = dict[int, _PartRun]()
        for home, frames in homes.items():
            name = f"{fifo.what.network}: {region_text(fifo.what)} to {device}"
            name += f" from {home}" if len(homes) > 1 else ""
            time = exact_time(moving(fifo, home, device)) if moving else 0
            delay = exact_time(links.delay(home, device)) if links else 0
            pieces = links.pieces if links else 1
            if links and time:
                self.held[name] = links.ports(home, device)
            if delay:
                self.delays[name] = f"{name}, under way"
            sending = PartPhases((Fraction(time) / pieces,) * pieces)
            for actor, lasts in ((name, sending.times[0]), *(((self.delays[name], delay),) if delay else ())):
                self.times[actor] = (lasts,) * (pieces * len(frames))
                self.frames[actor] = tuple(frame for frame in frames for _ in range(pieces))
            self.device_of[name] = device
            self.senders[name], self.labels[name] = (fifo, device), (fifo.what.tensor,) * (pieces * len(frames))
            sent |= {frame: _PartRun(name, number * pieces, sending) for number, frame in enumerate(frames)}
        return sent

    def _slot_turns(self, actors: Mapping[str, Actor]) -> Iterator[Channel]:
        """Waits of slot writers until others' memory has been read."""
        for number, turn in enumerate(self.timed.turns):
            queues: dict[tuple[str, str], _Queue] = defaultdict(_Queue)
            for frame, write in self.writers[turn.device, turn.then].items():
                back, before = divmod(frame - turn.frames, self.turns)
                for read_frame, read, end in self.readers[turn.device, turn.first]:
                    if read_frame == before:
                        queues[read.actor, write.actor].join(end, write.start, -back)
            for (source, target), queue in queues.items():
                name = f"memory in turn {number}: {source} -> {target}"
                yield _waits(name, actors[source], actors[target], queue, 0, "memory in turn")

    def _link(
        self,
        fifo: Fifo,
        reader: Reader,
        given: Mapping[int, _PartRun],
        reads: Mapping[int, _PartRun],
        delays: Mapping[str, str] = MappingProxyType({}),
    ) -> Iterator[tuple[str, _Key, _Queue]]:
        """What readers wait for, after a delay if there is one, and the free slots that they return."""
        queues: dict[_Key, _Queue] = defaultdict(_Queue)
        for frame, read in reads.items():
            write = given[frame]
            self.readers[self.device_of[write.actor], fifo.what].append((frame, read, read.end(reader.stage)))
            if fifo.rows:
                if not write.phases.pushes or not read.phases.pulls:
                    ends = f"'{fifo.source}' and '{reader.part}'"
                    raise InputError(f"{region_text(fifo.what)} crosses by rows: give times of {ends} turn by turn")
                rows, places = queues["rows", write.actor, read.actor], queues["places", read.actor, write.actor]
                rows.gives += write.rows(write.phases.pushes)
                rows.takes += read.rows(read.phases.pulls)
                places.gives += read.rows(read.phases.pulls)
                places.takes += write.rows(write.phases.claims)
                places.tokens = fifo.rows
                later, tokens, _ = self._next(frame, 1, given)
                emptied = queues["empty ring", read.actor, later.actor]
                emptied.join(read.start + max(read.phases.pulls), later.start + min(later.phases.claims), tokens)
            else:
                sender = delays.get(write.actor, write.actor)
                queues["frames", sender, read.actor].join(write.end(), read.start)
            if fifo.slots:
                later, tokens, shift = self._next(frame, fifo.slots, given)
                # A token does not say which slot is free: if a device gets only some frames, slots are not freed in the
                # order in which they are refilled, unless the number of frames in between is constant.
                what = "free slots" if shift == fifo.slots else f"slots of {shift} frames before"
                queues[what, read.actor, later.actor].join(read.end(reader.stage), later.start, tokens)
        yield from ((reader.part, key, queue) for key, queue in queues.items())

    def _next(self, frame: int, slots: int, given: Mapping[int, _PartRun]) -> tuple[_PartRun, int, int]:
        """The run that writes to the slot after this frame, the initial tokens, and the distance in frames."""
        shift = slots
        while (frame + shift) % self.turns not in given:
            shift += slots
        tokens = sum(1 for before in range(-shift, 0) if before % self.turns == frame)
        return given[(frame + shift) % self.turns], tokens, shift

    def _channel(self, fifo: Fifo, reader: str, key: _Key, queue: _Queue, actors: Mapping[str, Actor]) -> Channel:
        what, source, target = key
        is_data = what in ("frames", "rows")
        name = f"{fifo.what.network}: {what} of {region_text(fifo.what)} for {reader}, {source} -> {target}"
        size = self.timed.token_bytes.get(fifo.what, 1) if is_data else 0
        return _waits(name, actors[source], actors[target], queue, size, fifo.what.tensor if is_data else what)


def _waits(name: str, source: Actor, target: Actor, queue: _Queue, size: int, note: str) -> Channel:
    gives, takes = actor_rates(source, queue.gives), actor_rates(target, queue.takes)
    return Channel(name, source.name, target.name, gives, takes, queue.tokens, size, note)


def _one_by_one(source: Actor, target: Actor) -> Channel:
    """From a mover to its delay."""
    every = dict.fromkeys(range(source.phases), 1)
    return _waits(f"{source.name}, sent", source, target, _Queue(Counter(every), Counter(every)), 0, "sent")


def _unused(name: str, taken: set[str]) -> str:
    return name if name not in taken else _unused(f"{name}'", taken)
