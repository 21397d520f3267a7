"""A Deployment as a CSDF graph: an actor per worker with a phase per part, channels for FIFOs and for their free slots.

Frames in and results out are actors too, which take no time, and where a FIFO crosses from one device to another a
mover takes the time of moving. Replicas have turns: the graph's iteration is as many frames as it takes until all
workers have had the same number of them, and each worker has a phase for every part of every frame of its own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from ...errors import InputError
from ...network.parts import TensorRegion
from ...program.deployment import OUTSIDE, Deployment, Fifo, Part, Worker
from ...program.deployment_check import checked_deployment, region_text, turns
from ...program.deployment_memory import with_slots
from ..graph import Actor, Channel, Graph, Rates, Time, serial_loop
from ..throughput.ratio import period
from .durations import exact_time, layer_work

PartTimes = Mapping[tuple[str, str], int | float | Fraction]  # of (worker, part), all in one unit
MoveTime = Callable[[Fifo, str, str], int | float | Fraction]  # of a FIFO's region from one device to another
MOST_SLOTS_TRIED = 64


def deployed_csdf(deployment: Deployment, times: PartTimes | None = None, moving: MoveTime | None = None) -> Graph:
    """The deployment as its workers execute it, for `turns(deployment)` frames an iteration.

    `times` are those of parts on workers, by default their work; `moving` those of sending a region from device to
    device, by default none. Each FIFO is, for each worker that reads it, a channel of frames and a channel back of
    free slots.
    """
    return _DeployedGraph(checked_deployment(deployment, with_plans=False), times, moving).graph()


def frame_period(deployment: Deployment, times: PartTimes | None = None, moving: MoveTime | None = None) -> Fraction:
    """Time from frame to frame when everybody starts as soon as possible: one over the throughput."""
    return period(deployed_csdf(deployment, times, moving)) / turns(deployment)


def fifo_slots(
    deployment: Deployment, times: PartTimes | None = None, moving: MoveTime | None = None
) -> Mapping[TensorRegion, int]:
    """Slots with which frames come as fast as with any number of them; no single FIFO can do with fewer.

    FIFOs of large tensors are asked first. To run at all one slot for each is enough.
    """
    count = 1
    best = min(frame_period(_uniform(deployment, n), times, moving) for n in (MOST_SLOTS_TRIED, MOST_SLOTS_TRIED - 1))
    while count < MOST_SLOTS_TRIED and frame_period(_uniform(deployment, count), times, moving) > best:
        count *= 2
    found = {fifo.what: count for fifo in deployment.fifos}

    def is_enough(what: TensorRegion, slots: int) -> bool:
        return frame_period(with_slots(deployment, {**found, what: slots}), times, moving) <= best

    for fifo in sorted(deployment.fifos, key=lambda fifo: -deployment.slot_bytes(fifo)):
        found[fifo.what] = 1 + bisect_left(range(1, count), True, key=partial(is_enough, fifo.what))
    return found


def _uniform(deployment: Deployment, count: int) -> Deployment:
    return with_slots(deployment, {fifo.what: count for fifo in deployment.fifos})


def part_work(part: Part) -> int:
    """Multiply-accumulates of a part, or the elements that it writes where it multiplies nothing."""
    return sum(layer_work(part.network, layer) for layer in part.network.by_name)


@dataclass(frozen=True, slots=True)
class _Firing:
    """A phase of an actor."""

    actor: str
    phase: int


@dataclass
class _Waits:
    """Channels in the making: between two actors the phases that give and take, and tokens that are there at first."""

    gives: list[int] = field(default_factory=list)
    takes: list[int] = field(default_factory=list)
    tokens: int = 0


class _DeployedGraph:
    def __init__(self, deployment: Deployment, times: PartTimes | None, moving: MoveTime | None) -> None:
        self.deployment, self.times, self.moving = deployment, times, moving
        self.turns = turns(deployment)
        names = {worker.name for worker in deployment.workers}
        self.source, self.sink = (_unused(name, names) for name in ("frames in", "results out"))
        # The frames that each mover sends, and how long it takes.
        self.movers: dict[str, list[tuple[int, Time]]] = {}

    def graph(self) -> Graph:
        channels = [channel for fifo in self.deployment.fifos for channel in self._channels(fifo)]
        actors = [self._worker(worker) for worker in self.deployment.workers]
        ends = {channel.source for channel in channels} | {channel.target for channel in channels}
        actors += [Actor(end, self.turns, (0,) * self.turns) for end in (self.source, self.sink) if end in ends]
        for name, sent in self.movers.items():
            actors.append(Actor(name, len(sent), tuple(time for _, time in sent)))
        phases = {actor.name: actor.phases for actor in actors}
        whole = [_with_phases(channel, phases) for channel in channels]
        name = " + ".join(network.name for network in self.deployment.networks)
        return Graph(name, tuple(actors), (*whole, *(serial_loop(actor, "one part at a time") for actor in actors)))

    def _worker(self, worker: Worker) -> Actor:
        each = tuple(self._time(worker, self.deployment.part_named[part]) for part in worker.parts)
        frames = self.turns // worker.replica[1]
        return Actor(worker.name, frames * len(each), each * frames, note=", ".join(worker.parts))

    def _time(self, worker: Worker, part: Part) -> Time:
        if self.times is None:
            return part_work(part)
        if (worker.name, part.name) not in self.times:
            raise InputError(f"no time is given for part '{part.name}' on worker '{worker.name}'")
        return exact_time(self.times[worker.name, part.name])

    def _firing(self, end: str, frame: int, outside: str) -> _Firing:
        """Who writes or reads a frame, counted from 0 to the last of an iteration."""
        if end == OUTSIDE:
            return _Firing(outside, frame)
        worker = self.deployment.worker_of(end, frame)
        turn = frame // worker.replica[1]
        return _Firing(worker.name, turn * len(worker.parts) + worker.parts.index(end))

    def _channels(self, fifo: Fifo) -> Iterator[Channel]:
        forward: dict[tuple[str, str], _Waits] = {}
        back: dict[tuple[str, str], _Waits] = {}
        writes = [self._firing(fifo.source, frame, self.source) for frame in range(self.turns)]
        senders = {device: self._sends(fifo, device) for device in self.deployment.devices_of(fifo)}
        for device, sent in senders.items():
            for frame, sending in sent.items():
                _join(forward, writes[frame], sending)
                self._frees(back, sending, frame, fifo.slots, dict(enumerate(writes)))
            for reader in fifo.reading:
                for frame in sent:
                    if reader != OUTSIDE and self.deployment.worker_of(reader, frame).device == device:
                        reading = self._firing(reader, frame, self.sink)
                        _join(forward, sent[frame], reading)
                        self._frees(back, reading, frame, fifo.slots, sent)
        for reader in fifo.reading:
            for frame, writing in enumerate(writes):
                if not self._is_sent(fifo, reader, frame):
                    reading = self._firing(reader, frame, self.sink)
                    _join(forward, writing, reading)
                    self._frees(back, reading, frame, fifo.slots, dict(enumerate(writes)))
        tensor, title = self.deployment.tensor(fifo), f"{fifo.what.network}: {region_text(fifo.what)}"
        for waits, note, size in ((forward, "", tensor.bytes), (back, "free slots of ", 0)):
            for (source, target), each in waits.items():
                yield Channel(
                    f"{note}{title}, {source} -> {target}",
                    source,
                    target,
                    Rates(tuple(each.gives)),
                    Rates(tuple(each.takes)),
                    tokens=each.tokens,
                    token_bytes=size,
                )

    def _is_sent(self, fifo: Fifo, reader: str, frame: int) -> bool:
        """Whether the reader of a frame is on another device than its writer."""
        if OUTSIDE in (fifo.source, reader):
            return False
        ends = (self.deployment.worker_of(end, frame).device for end in (fifo.source, reader))
        return len(set(ends)) > 1

    def _sends(self, fifo: Fifo, device: str) -> Mapping[int, _Firing]:
        """The frames that a mover brings to a device, each with its phase."""
        name = f"{fifo.what.network}: {region_text(fifo.what)} to {device}"
        found: dict[int, _Firing] = {}
        for frame in range(self.turns):
            there = [
                reader
                for reader in fifo.reading
                if self._is_sent(fifo, reader, frame) and self.deployment.worker_of(reader, frame).device == device
            ]
            if there:
                source = self.deployment.worker_of(fifo.source, frame).device
                time = exact_time(self.moving(fifo, source, device)) if self.moving else 0
                sent = self.movers.setdefault(name, [])
                found[frame] = _Firing(name, len(sent))
                sent.append((frame, time))
        return found

    def _frees(
        self,
        back: dict[tuple[str, str], _Waits],
        reading: _Firing,
        frame: int,
        slots: int,
        writes: Mapping[int, _Firing],
    ) -> None:
        """Whoever writes to the slot next waits for this reading: so many frames later."""
        shift = slots
        while (frame + shift) % self.turns not in writes:
            shift += slots
        had = sum(1 for before in range(-shift, 0) if before % self.turns == frame)
        _join(back, reading, writes[(frame + shift) % self.turns], had)


def _join(waits: dict[tuple[str, str], _Waits], source: _Firing, target: _Firing, tokens: int = 0) -> None:
    found = waits.setdefault((source.actor, target.actor), _Waits())
    found.gives.append(source.phase)
    found.takes.append(target.phase)
    found.tokens += tokens


def _with_phases(channel: Channel, phases: Mapping[str, int]) -> Channel:
    """The channel with a rate for each phase, where there was a list of phases that move a token."""
    gives = [channel.production.cycle.count(phase) for phase in range(phases[channel.source])]
    takes = [channel.consumption.cycle.count(phase) for phase in range(phases[channel.target])]
    return replace(channel, production=Rates(tuple(gives)), consumption=Rates(tuple(takes)))


def _unused(name: str, taken: set[str]) -> str:
    return name if name not in taken else _unused(f"{name}'", taken)
