"""The judge of cluster deployments: parts run on bytes of their device's memory, in a random order that could happen.

Transfers, parts and the outside world take turns at random, each in two steps: what it writes is spoilt when it begins
and valid when it ends. Slots are read at the addresses of the layout, so a part that overwrites what another still
needs is named. The judge shares no code with the layout of slots or the search for divisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from ..network import Array
from ..network.kernels import execute
from ..network.parts import TensorRegion
from ..program.deployment import OUTSIDE, Fifo, Worker
from ..program.deployment_check import region_text
from ..program.deployment_run import Frame
from ..program.interpreter import POISON, Interpreter
from .deploying import ClusterDeployment

End = Callable[[], str]  # of an event that has begun: what is wrong, or ""


@dataclass
class _SlotCopy:
    """The slots of a FIFO on one device."""

    fifo: Fifo
    device: str
    starts: tuple[int, ...]
    size: int
    readers: tuple[str, ...]  # parts, devices that it is sent to ("to NAME"), the outside
    begun: int = 0  # frames that somebody began to write
    written: int = 0
    read: dict[str, int] = field(default_factory=dict)  # frames that each reader is done with

    def place(self, frame: int) -> slice:
        start = self.starts[frame % len(self.starts)]
        return slice(start, start + self.size)

    def is_read(self, frame: int) -> bool:
        return frame < 0 or all(self.read.get(reader, 0) > frame for reader in self.readers)


def cluster_errors(
    planned: ClusterDeployment, gateway: str, frames: Sequence[Frame], seed: int = 0, tolerance: float = 1e-4
) -> Iterator[str]:
    """What goes wrong when the frames run on the cluster in a random order; nothing where all is right."""
    with np.errstate(all="ignore"):
        yield from _ClusterRun(planned, gateway, frames, Random(seed), tolerance).errors()


class _ClusterRun:
    def __init__(
        self, planned: ClusterDeployment, gateway: str, frames: Sequence[Frame], random: Random, tolerance: float
    ) -> None:
        self.deployment, self.turns = planned.deployment, planned.turns
        self.gateway, self.frames, self.random, self.tolerance = gateway, frames, random, tolerance
        self.memories = {
            home: np.full(layout.bytes, POISON, np.uint8) for home, layout in self.deployment.arenas.items()
        }
        self.device_of = {part: worker.device for worker in self.deployment.workers for part in worker.parts}
        self.copies = {
            (fifo.what, device): self._copy(fifo, device)
            for fifo in self.deployment.fifos
            for device in self.deployment.devices_of(fifo)
        }
        self.truth: dict[tuple[TensorRegion, int], bytes] = {}  # what was written for a frame
        self.ahead = {
            worker.name: [(part, frame) for frame in range(len(frames)) for part in worker.parts][::-1]
            for worker in self.deployment.workers
        }
        self.running: list[End] = []
        self.busy: set[str] = set()  # devices that compute
        self.sending: set[tuple[TensorRegion, str]] = set()
        self.wanted = [
            {network.name: execute(network, frame[network.name]) for network in self.deployment.networks}
            for frame in frames
        ]

    def _copy(self, fifo: Fifo, device: str) -> _SlotCopy:
        home = device, fifo.memory
        near = [name for name in fifo.reading if self.device_of.get(name) == device]
        is_source = self.device_of.get(fifo.source) == device
        others = dict.fromkeys(self.device_of[name] for name in fifo.reading if name in self.device_of)
        sent = [f"to {other}" for other in others if other != device] if is_source else []
        outside = [OUTSIDE] if is_source and OUTSIDE in fifo.reading else []
        starts = self.deployment.arenas[home].slots[fifo.what]
        return _SlotCopy(fifo, device, starts, self.deployment.tensor(fifo).bytes, (*near, *sent, *outside))

    def errors(self) -> Iterator[str]:
        while True:
            events = [*self._beginnings(), *(("end", number) for number in range(len(self.running)))]
            if not events:
                break
            what, which = self.random.choice(events)
            if what == "end":
                problem = self.running.pop(int(str(which)))()
            else:
                problem = self._begin(what, which)
            if problem:
                yield problem
                return
        for name, left in self.ahead.items():
            if left:
                yield f"nobody can go on: worker '{name}' waits to run '{left[-1][0]}' for frame {left[-1][1]}"
                return

    def _beginnings(self) -> Iterator[tuple[str, object]]:
        for worker in self.deployment.workers:
            if worker.device not in self.busy and self.ahead[worker.name] and self._can_run(worker):
                yield "run", worker
        for copy in self.copies.values():
            if copy.begun < len(self.frames) and self.device_of.get(copy.fifo.source) != copy.device:
                is_there = copy.fifo.source == OUTSIDE or self._source(copy).written > copy.begun
                if copy.begun == copy.written and is_there and self._may_write(copy, copy.begun):
                    yield "move", copy
            if OUTSIDE in copy.readers and copy.written > copy.read.get(OUTSIDE, 0):
                yield "result", copy

    def _begin(self, what: str, which: object) -> str:
        if isinstance(which, Worker):
            self._run(which)
            return ""
        assert isinstance(which, _SlotCopy)
        if what == "result":
            return self._give(which)
        self._move(which)
        return ""

    def _source(self, copy: _SlotCopy) -> _SlotCopy:
        return self.copies[copy.fifo.what, self.device_of[copy.fifo.source]]

    def _memory(self, copy: _SlotCopy) -> Array:
        return self.memories[copy.device, copy.fifo.memory]

    def _may_write(self, copy: _SlotCopy, frame: int) -> bool:
        """Whether the slot is free, and those before it in the same bytes have had their turn."""
        before = [turn for turn in self.turns if (turn.device, turn.then) == (copy.device, copy.fifo.what)]
        return copy.is_read(frame - len(copy.starts)) and all(
            self.copies[turn.first, copy.device].is_read(frame - turn.frames) for turn in before
        )

    def _can_run(self, worker: Worker) -> bool:
        part, frame = self.ahead[worker.name][-1]
        reads, writes = (each[part].values() for each in (self.deployment.reads, self.deployment.writes))
        near = self.copies, worker.device
        has_inputs = all(near[0][fifo.what, near[1]].written > frame for fifo in reads)
        return has_inputs and all(self._may_write(self.copies[fifo.what, worker.device], frame) for fifo in writes)

    def _run(self, worker: Worker) -> None:
        part, frame = self.ahead[worker.name].pop()
        self.busy.add(worker.device)
        writes = [self.copies[fifo.what, worker.device] for fifo in self.deployment.writes[part].values()]
        for copy in writes:
            copy.begun += 1
            self._memory(copy)[copy.place(frame)] = POISON
        self._spoil_arena(worker, part)

        def end() -> str:
            self.busy.discard(worker.device)
            return self._compute(worker, part, frame)

        self.running.append(end)

    def _spoil_arena(self, worker: Worker, part: str) -> None:
        for memory, size in self.deployment.part_named[part].arenas.items():
            base = self.deployment.arenas[worker.device, memory].workers[worker.name]
            self.memories[worker.device, memory][base : base + size] = POISON

    def _compute(self, worker: Worker, name: str, frame: int) -> str:
        part = self.deployment.part_named[name]
        assert part.plan is not None
        reads, writes = self.deployment.reads[name], self.deployment.writes[name]
        for fifo in reads.values():
            if problem := self._spoilt(self.copies[fifo.what, worker.device], frame, f"part '{name}'"):
                return problem
        self._spoil_arena(worker, name)
        slots, given = {}, {}
        for own, fifo in {**reads, **writes}.items():
            copy, tensor = self.copies[fifo.what, worker.device], self.deployment.tensor(fifo)
            place = self._memory(copy)[copy.place(frame)]
            if own in part.plan.outside:
                slots[own] = place.copy()
            elif own in reads:
                given[own] = place.copy().view(tensor.dtype.numpy).reshape(tensor.shape)
        found = Interpreter(part.plan, part.network).run(given, slots)
        for own, fifo in writes.items():
            copy = self.copies[fifo.what, worker.device]
            value = slots[own] if own in slots else np.ascontiguousarray(found[own]).view(np.uint8).reshape(-1)
            self._memory(copy)[copy.place(frame)] = value
            self.truth[fifo.what, frame] = value.tobytes()
            copy.written += 1
        for fifo in reads.values():
            self.copies[fifo.what, worker.device].read[name] = frame + 1
        return ""

    def _spoilt(self, copy: _SlotCopy, frame: int, reader: str) -> str:
        if self._memory(copy)[copy.place(frame)].tobytes() == self.truth[copy.fifo.what, frame]:
            return ""
        return (
            f"{region_text(copy.fifo.what)} of frame {frame} is overwritten on '{copy.device}' before {reader} reads it"
        )

    def _move(self, copy: _SlotCopy) -> None:
        """A frame comes over the network, from another device or from outside."""
        frame, what = copy.begun, copy.fifo.what
        copy.begun += 1
        self._memory(copy)[copy.place(frame)] = POISON

        def end() -> str:
            if copy.fifo.source == OUTSIDE:
                region = self.frames[frame][what.network][what.tensor][what.region.slices]
                data = np.ascontiguousarray(region).view(np.uint8).reshape(-1)
                self.truth[what, frame] = data.tobytes()
            else:
                source = self._source(copy)
                if problem := self._spoilt(source, frame, f"it is sent to '{copy.device}'"):
                    return problem
                data = self._memory(source)[source.place(frame)].copy()
                source.read[f"to {copy.device}"] = frame + 1
            self._memory(copy)[copy.place(frame)] = data
            copy.written += 1
            return ""

        self.running.append(end)

    def _give(self, copy: _SlotCopy) -> str:
        frame, what = copy.read.get(OUTSIDE, 0), copy.fifo.what
        tensor = self.deployment.tensor(copy.fifo)
        value = self._memory(copy)[copy.place(frame)].copy().view(tensor.dtype.numpy).reshape(tensor.shape)
        copy.read[OUTSIDE] = frame + 1
        wanted = self.wanted[frame][what.network][what.tensor][what.region.slices]
        if np.issubdtype(wanted.dtype, np.floating):
            is_equal = np.allclose(value, wanted, rtol=self.tolerance, atol=self.tolerance, equal_nan=True)
        else:
            is_equal = np.array_equal(value, wanted)
        return "" if is_equal else f"{region_text(what)} of frame {frame} is not what the whole network gives"
