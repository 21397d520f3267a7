"""A Deployment: parts of one or several networks on processors and devices, joined by FIFOs. Plain data.

What it means, for everybody who makes, judges or executes one:

- **Frames** are numbered from 0. For every frame each part runs once, and each FIFO carries one region of one tensor.
- **A worker** executes its parts one after the other in the order of `parts`, frame by frame. It starts a part when all
  FIFOs that the part reads hold the frame and all that it writes have a slot for it. When the part has ended, what it
  wrote is there for the readers, and what it read is read.
- **A FIFO's slot is the buffer** that the producing part writes and the reading parts read: densely, row-major, nothing
  is copied. Frame f lies in slot f mod `slots`. A slot is free again when all readers have read it: whoever writes
  frame f waits until frame f - slots is read by all. Several readers of one FIFO find the same bytes and may not write.
- **Inputs and outputs of parts are FIFOs**, exactly: each input of a part is what one FIFO carries (the same tensor,
  region and share), and so is each output. A part that reads less than a FIFO holds, or from several, has the slices
  and joins in its own network. Inside one worker as well: what one of its parts leaves for another goes through a FIFO.
- **The outside world** is the source of FIFOs that bring a network's inputs, and a reader of those that carry its
  outputs: `OUTSIDE`. It gives and takes frames in order.
- **Replicas** are workers that list the same part: `replica` = (i, n) says that a worker takes the frames f with
  f mod n = i, all its parts alike. The workers that list a part take every frame between them exactly once: (0, 2) and
  (1, 2) are two equal replicas; (0, 2), (1, 4) and (3, 4) one fast and two slow ones. A FIFO is one for all replicas of
  its source and of its readers; since a frame has its slot by its number, order needs no restoring.
- **Memory**: a worker has an arena for each memory of its plans, as large as the largest of its parts needs; its parts
  run one at a time and overlay each other. Each device that writes or reads a FIFO has its slots, in the FIFO's
  `memory`; where source and reader are on different devices, both have them, and what is written is sent. Weights are
  not in it: parts and replicas of one device share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from ..network import Network, Tensor
from ..network.part_draft import tensor_part
from ..network.parts import TensorRegion
from .plan import Plan

OUTSIDE = ""  # the source of frames, and the reader of results
SLOT_ALIGNMENT = 64  # bytes: a cache line, so that two workers never write to one


@dataclass(frozen=True)
class Part:
    """A part of a network as one executor runs it for one frame.

    The plan keeps what FIFOs carry in memories of their own (`Plan.outside`), which are slots when it runs. An input
    or output that the plan has in its arena is copied from or to its slot instead.
    """

    name: str
    network: Network  # of its own: a region of the whole, cut out
    plan: Plan | None  # None: another runtime executes it
    inputs: Mapping[str, TensorRegion]  # the part's own tensors -> regions of the whole
    outputs: Mapping[str, TensorRegion]
    runtime: str = "onnxruntime"  # that executes it where there is no plan: or torch, for a GPU


@dataclass(frozen=True, slots=True)
class Worker:
    """A thread, a task or a core that fires parts in this order, for every frame that is its own."""

    name: str
    device: str
    processor: str  # of the device: a kind of core, a GPU
    cores: tuple[int, ...]  # that it may use; several where its plans have lanes
    parts: tuple[str, ...]
    replica: tuple[int, int] = (0, 1)  # index, of how many: it takes the frames f with f mod n = i

    def takes(self, frame: int) -> bool:
        """Whether the frame is one of its own."""
        index, count = self.replica
        return frame % count == index


@dataclass(frozen=True, slots=True)
class Fifo:
    """Slots that carry a region of a tensor from the part that computes it to all parts that read it."""

    what: TensorRegion
    source: str  # a part, or OUTSIDE
    readers: tuple[str, ...]  # parts, or OUTSIDE; a slot is free when all have read
    slots: int
    memory: str = "ram"

    @property
    def ends(self) -> tuple[str, ...]:
        """Everybody who writes or reads it."""
        return (self.source, *self.readers)


@dataclass(frozen=True, slots=True)
class Prediction:
    """A promise about the deployment."""

    name: str  # throughput, latency, memory, ...
    value: int | float
    unit: str
    how: str  # it was found: "exact", or what kind of estimate from what


@dataclass(frozen=True)
class Deployment:
    networks: tuple[Network, ...]  # whole, each with a name of its own
    parts: tuple[Part, ...]
    workers: tuple[Worker, ...]
    fifos: tuple[Fifo, ...]
    arenas: Mapping[tuple[str, str], int]  # (device, memory) -> bytes of all workers' arenas and of slots
    predictions: tuple[Prediction, ...] = ()

    @cached_property
    def network_named(self) -> Mapping[str, Network]:
        return {network.name: network for network in self.networks}

    @cached_property
    def part_named(self) -> Mapping[str, Part]:
        return {part.name: part for part in self.parts}

    @cached_property
    def workers_of(self) -> Mapping[str, tuple[Worker, ...]]:
        """The workers that run each part: its replicas, in their order."""
        return {part.name: tuple(w for w in self.workers if part.name in w.parts) for part in self.parts}

    def worker_of(self, part: str, frame: int) -> Worker:
        """The worker that runs a part for a frame."""
        return next(worker for worker in self.workers_of[part] if worker.takes(frame))

    @cached_property
    def reads(self) -> Mapping[str, Mapping[str, Fifo]]:
        """The FIFO of each input of each part."""
        return {part.name: self._joined(part.name, part.inputs, is_source=False) for part in self.parts}

    @cached_property
    def writes(self) -> Mapping[str, Mapping[str, Fifo]]:
        """The FIFO of each output of each part."""
        return {part.name: self._joined(part.name, part.outputs, is_source=True) for part in self.parts}

    def _joined(self, part: str, ends: Mapping[str, TensorRegion], is_source: bool) -> Mapping[str, Fifo]:
        carried = {fifo.what: fifo for fifo in self.fifos if part in ((fifo.source,) if is_source else fifo.readers)}
        return {own: carried[what] for own, what in ends.items() if what in carried}

    def tensor(self, fifo: Fifo) -> Tensor:
        """What lies in a slot. Partial sums are of the type that the part has which gives them."""
        what = fifo.what
        if what.share is None:
            return tensor_part(self.network_named[what.network].tensors[what.tensor], what.region)
        source = self.part_named[fifo.source]
        return next(source.network.tensors[own] for own, given in source.outputs.items() if given == what)

    def slot_bytes(self, fifo: Fifo) -> int:
        """Bytes from one slot to the next."""
        return -(-self.tensor(fifo).bytes // SLOT_ALIGNMENT) * SLOT_ALIGNMENT

    def devices_of(self, fifo: Fifo) -> tuple[str, ...]:
        """The devices that have its slots: those of all workers that write or read it."""
        workers = chain.from_iterable(self.workers_of.get(name, ()) for name in fifo.ends)
        return tuple(dict.fromkeys(worker.device for worker in workers))
