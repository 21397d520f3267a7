"""Workers, FIFOs and times as a CSDF graph: an actor per worker with phases for its parts, channels for what they
wait for.

Frames in and results out are actors too, which take no time, and where a FIFO crosses from one device to another a
mover takes the time of moving. Replicas have turns: the graph's iteration is as many frames as it takes until all
workers have had the same number of them. Equal replicas of one phase are one actor that fires several times at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf, lcm

from ...errors import InputError
from ...network.parts import TensorRegion
from ...program.deployment import OUTSIDE, Fifo, Reader, Worker
from ...program.deployment_check import region_text
from ..cnn.durations import exact_time
from ..graph import Actor, Channel, Graph, Rates, Time, serial_loop
from ..throughput.ratio import cycle_ratio
from .phases import GivenTime, PartPhases, PartTimes, part_phases

MoveTime = Callable[[Fifo, str, str], GivenTime]  # of a FIFO's region from one device to another


@dataclass(frozen=True)
class TimedDeployment:
    """All that decides how fast a deployment runs. FIFOs with 0 slots have no limit."""

    name: str
    workers: tuple[Worker, ...]
    fifos: tuple[Fifo, ...]
    times: Mapping[tuple[str, str], PartTimes]  # by worker and part
    token_bytes: Mapping[TensorRegion, int] = field(default_factory=dict)
    moving: MoveTime | None = None

    @cached_property
    def graph(self) -> Graph:
        """The workers as they wait for each other; the channel of a FIFO to a reader has its tensor as note."""
        return self._drawn.graph()

    @cached_property
    def period(self) -> Fraction | float:
        """Time from frame to frame when everybody starts as soon as possible; infinite where parts wait for ever."""
        ratio = cycle_ratio(self.graph)
        return inf if ratio is None else ratio / self._drawn.turns

    @property
    def slowest(self) -> Fraction:
        """The time that the slowest worker takes for a frame, which no period beats."""
        runs = ((worker, sum(self.times[worker.name, part].run for part in worker.parts)) for worker in self.workers)
        return max(Fraction(run) / worker.replica[1] for worker, run in runs)

    @property
    def rings(self) -> tuple[Fifo, ...]:
        return tuple(fifo for fifo in self.fifos if fifo.rows)

    def with_fifo(self, old: Fifo, new: Fifo) -> TimedDeployment:
        return replace(self, fifos=tuple(new if fifo == old else fifo for fifo in self.fifos))

    def releasing(self, stages: Mapping[str, int]) -> TimedDeployment:
        """The deployment in which these parts release all that they read after these stages."""
        readers = [tuple(Reader(one.part, stages.get(one.part, one.stage)) for one in f.readers) for f in self.fifos]
        return replace(self, fifos=tuple(map(lambda fifo, new: replace(fifo, readers=new), self.fifos, readers)))

    @cached_property
    def _drawn(self) -> _DeployedGraph:
        return _DeployedGraph(self)


@dataclass(frozen=True)
class _WorkerActor:
    """A worker, or equal replicas in one."""

    name: str
    device: str
    parts: Mapping[str, tuple[int, PartPhases]]  # with the first phase of each
    length: int  # phases of a frame
    turn: tuple[int, int]  # it takes the frames f with f mod n = i
    replicas: int = 1  # firings at a time

    @property
    def times(self) -> tuple[Time, ...]:
        return tuple(time for _, phases in self.parts.values() for time in phases.times)


@dataclass(frozen=True, slots=True)
class _PartRun:
    """A part at work on one frame of the iteration: phases of an actor from `start` on."""

    actor: str
    start: int
    phases: PartPhases

    def end(self, stage: int | None = None) -> int:
        """The last phase of a stage, or of the run where times are not given by stage."""
        return self.start + self.phases.ends.get(stage, len(self.phases.times) - 1)

    def rows(self, by_phase: Mapping[int, int]) -> Counter[int]:
        return Counter({self.start + phase: rows for phase, rows in by_phase.items()})


AT_ONCE = PartPhases((0,))


@dataclass
class _Queue:
    """Tokens that the phases of one actor give and those of another take."""

    gives: Counter[int] = field(default_factory=Counter)
    takes: Counter[int] = field(default_factory=Counter)
    tokens: int = 0

    def join(self, give: int, take: int, tokens: int = 0) -> None:
        self.gives[give] += 1
        self.takes[take] += 1
        self.tokens += tokens


_Key = tuple[str, str, str]  # what a queue holds, the actor that gives it and the one that takes it


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
        self.movers: dict[str, tuple[Time, ...]] = {}  # the times of the frames that each sends

    def graph(self) -> Graph:
        queues = [(fifo, *one) for fifo in self.timed.fifos for one in self._queues(fifo)]
        ends = {name for *_, (_, *pair), _ in queues for name in pair}
        times = {one.name: one.times * (self.turns // one.turn[1]) for one in self.workers}
        times |= {end: (0,) * self.turns for end in (self.source, self.sink) if end in ends} | self.movers
        notes = {one.name: ", ".join(one.parts) for one in self.workers}
        actors = [Actor(name, len(each), each, note=notes.get(name, "")) for name, each in times.items()]
        phases = {actor.name: actor.phases for actor in actors}
        channels = [self._channel(fifo, reader, key, queue, phases) for fifo, reader, key, queue in queues]
        at_once = {one.name: one.replicas for one in self.workers}
        loops = {actor.name: serial_loop(actor, "one part at a time") for actor in actors}
        channels += [replace(loop, tokens=at_once.get(name, 1)) for name, loop in loops.items()]
        return Graph(self.timed.name, tuple(actors), tuple(channels))

    def _workers(self) -> Iterator[_WorkerActor]:
        equal: dict[object, list[_WorkerActor]] = {}
        for worker in self.timed.workers:
            one = self._worker(worker)
            key = (worker.parts, worker.device, one.turn[1], one.times) if one.length == 1 else worker.name
            equal.setdefault(key, []).append(one)
        for group in equal.values():
            is_whole = len(group) == group[0].turn[1]
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
        """Who writes or reads each frame of the iteration."""
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
        """Each with the reader that it is for, and what it holds from whom for whom."""
        writes, device_of = self._runs(fifo.source, self.source), {one.name: one.device for one in self.workers}
        given: dict[str, Mapping[int, _PartRun]] = {"": writes}  # by device: "" is the source's own
        reads: dict[tuple[Reader, str], dict[int, _PartRun]] = defaultdict(dict)  # by the device that gives
        for reader in fifo.readers:
            for frame, run in self._runs(reader.part, self.sink).items():
                home, device = (device_of.get(one.actor, "") for one in (writes[frame], run))
                reads[reader, device if home and device != home else ""][frame] = run
        for device in dict.fromkeys(device for _, device in reads if device):
            frames = sorted({frame for (_, to), runs in reads.items() if to == device for frame in runs})
            name = f"{fifo.what.network}: {region_text(fifo.what)} to {device}"
            given[device] = {frame: _PartRun(name, number, AT_ONCE) for number, frame in enumerate(frames)}
            homes, moving = (device_of[writes[frame].actor] for frame in frames), self.timed.moving
            self.movers[name] = tuple(exact_time(moving(fifo, home, device)) if moving else 0 for home in homes)
            yield from self._link(fifo, Reader(device), writes, given[device])
        for (reader, device), runs in reads.items():
            yield from self._link(fifo, reader, given[device], runs)

    def _link(
        self, fifo: Fifo, reader: Reader, given: Mapping[int, _PartRun], reads: Mapping[int, _PartRun]
    ) -> Iterator[tuple[str, _Key, _Queue]]:
        queues: dict[_Key, _Queue] = defaultdict(_Queue)
        for frame, read in reads.items():
            write = given[frame]
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
                later, tokens = self._next(frame, 1, given)
                emptied = queues["empty ring", read.actor, later.actor]
                emptied.join(read.start + max(read.phases.pulls), later.start + min(later.phases.claims), tokens)
            else:
                queues["frames", write.actor, read.actor].join(write.end(), read.start)
            if fifo.slots:
                later, tokens = self._next(frame, fifo.slots, given)
                queues["free slots", read.actor, later.actor].join(read.end(reader.stage), later.start, tokens)
        yield from ((reader.part, key, queue) for key, queue in queues.items())

    def _next(self, frame: int, slots: int, given: Mapping[int, _PartRun]) -> tuple[_PartRun, int]:
        """The run that writes to the slot after this frame, and the tokens that let the first ones begin."""
        shift = slots
        while (frame + shift) % self.turns not in given:
            shift += slots
        tokens = sum(1 for before in range(-shift, 0) if before % self.turns == frame)
        return given[(frame + shift) % self.turns], tokens

    def _channel(self, fifo: Fifo, reader: str, key: _Key, queue: _Queue, phases: Mapping[str, int]) -> Channel:
        what, source, target = key
        is_data = what in ("frames", "rows")
        return Channel(
            f"{fifo.what.network}: {what} of {region_text(fifo.what)} for {reader}, {source} -> {target}",
            source,
            target,
            Rates(tuple(queue.gives[phase] for phase in range(phases[source]))),
            Rates(tuple(queue.takes[phase] for phase in range(phases[target]))),
            queue.tokens,
            self.timed.token_bytes.get(fifo.what, 1) if is_data else 0,
            fifo.what.tensor if is_data else what,
        )


def _unused(name: str, taken: set[str]) -> str:
    return name if name not in taken else _unused(f"{name}'", taken)
