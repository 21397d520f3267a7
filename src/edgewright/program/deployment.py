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
- **A ring of rows** (`Fifo.rows`) stands for a slot: the source makes a frame from top to bottom and waits while the
  ring is full, the only reader takes rows out of it. No row of a frame is made before all of the last one are taken.
- **Early release**: a reader may be done with a slot before its run ends: after the stage `Reader.stage`.
- **Relations** say which parts may run at the same time. Parts without one run in parallel on different workers, and
  exclude each other on the same worker.
- **The latest frame**: where `Fifo.keeps_latest`, the source may write the next frame before all have read the last
  one, which is then gone; it waits only for readers that have begun to read it.
- **Frames under way** keep others out: a part that excludes all parts of a network runs while none of that network's
  frames has been begun and not ended.
- **Memory**: a worker has an arena for each memory of its plans, as large as the largest of its parts needs; its parts
  run one at a time and overlay each other. Each device that writes or reads a FIFO has its slots, in the FIFO's
  `memory`; where source and reader are on different devices, both have them, and what is written is sent. Arenas of
  workers may overlay each other where their parts do not meet. Single slots on a device of a cluster may overlay each
  other where one worker uses them one after the other: what comes over a link waits until the bytes are free. A FIFO
  without slots in any `ArenaLayout` lies in place: in a buffer of the plans of its source and its readers, at one
  address. Weights are not in it: parts and replicas of one device share them.
- **A reduced deployment** is what a device executes: each part says what was built for it (`Part.built`), and has no
  plan. Networks have no layers and no weights, only their ends and the tensors that FIFOs carry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import chain, permutations
from typing import Annotated, Any

from ..network import Network, Tensor
from ..network.part_draft import tensor_part
from ..network.parts import TensorRegion
from .plan import Plan
from .steps import row_count

OUTSIDE = ""  # the source of frames, and the reader of results
SLOT_ALIGNMENT = 64  # bytes: a cache line, so that two workers never write to one


class _FileForm:
    """Marks a type that files store in another form (`deployment_schema`)."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from .deployment_schema import file_form  # pydantic takes a while to load

        return handler.generate_schema(file_form(source))


IN_FILE = _FileForm()


def aligned(size: int) -> int:
    """The size in whole cache lines."""
    return -(-size // SLOT_ALIGNMENT) * SLOT_ALIGNMENT


@dataclass(frozen=True)
class BuiltPart:
    """The file that executes a part on one kind of machine."""

    executor: str  # native, onnxruntime, torch
    file: str  # in the folder of the deployment
    digest: str  # SHA-256 of the file
    weights_bytes: int
    layers: tuple[str, ...]  # that it computes, for messages
    function: str = ""  # native: the run function, which takes arenas, inputs, outputs
    arenas: Mapping[str, int] = field(default_factory=dict)  # native: bytes of each memory, in the function's order
    lanes: int = 1
    lanes_stop: str = ""  # native: the function that ends the threads of its lanes
    architecture: str = ""  # native: the instruction set
    features: tuple[str, ...] = ()  # native: of the processor that it was compiled for


@dataclass(frozen=True)
class Part:
    """A part of a network as one executor runs it for one frame.

    The plan keeps what FIFOs carry in memories of their own (`Plan.outside`), which are slots when it runs. An input
    or output that the plan has in its arena is copied from or to its slot instead.
    """

    name: str
    network: Annotated[Network, IN_FILE]  # of its own: a region of the whole, cut out
    plan: Annotated[Plan, IN_FILE] | None  # None: another runtime executes it, or it is built
    inputs: Mapping[str, TensorRegion]  # the part's own tensors -> regions of the whole
    outputs: Mapping[str, TensorRegion]
    runtime: str = "onnxruntime"  # that executes it where there is no plan: or torch, for a GPU
    built: BuiltPart | None = None

    @property
    def arenas(self) -> Mapping[str, int]:
        """Bytes of each memory that the part needs while it runs."""
        return self.plan.arenas if self.plan else self.built.arenas if self.built else {}

    @property
    def owner(self) -> str:
        """The name of the network that the part belongs to."""
        return next(iter(self.outputs.values())).network

    def own(self, fifo: Fifo) -> str:
        """The part's own name of the tensor that a FIFO carries."""
        ends = self.outputs if fifo.source == self.name else self.inputs
        return next(own for own, what in ends.items() if what == fifo.what)

    @property
    def where(self) -> str:
        """The part's name in messages."""
        layers = self.built.layers if self.built else tuple(self.network.by_name)
        if len(layers) == 1:
            return f"layer '{layers[0]}'"
        return f"part '{self.name}'" + (f" (layers {layers[0]} to {layers[-1]})" if layers else "")


@dataclass(frozen=True, slots=True)
class Worker:
    """A thread, task or core that runs its parts in this order, for each of its frames."""

    name: str
    device: str
    processor: str  # of the device: a kind of core, a GPU
    cores: tuple[int, ...]  # that it may use; several where its plans have lanes
    parts: tuple[str, ...]
    replica: tuple[int, int] = (0, 1)  # index, of how many: it takes the frames f with f mod n = i

    def takes(self, frame: int) -> bool:
        """Whether the worker takes this frame."""
        index, count = self.replica
        return frame % count == index


@dataclass(frozen=True, slots=True)
class Reader:
    """A part that reads a FIFO, and the stage of its plan after which the slot is free."""

    part: str  # or OUTSIDE
    stage: int | None = None  # None: when it has run; -1: as soon as it has begun


@dataclass(frozen=True, slots=True)
class Fifo:
    """Slots that carry a region of a tensor from the part that computes it to all parts that read it."""

    what: TensorRegion
    source: str  # a part, or OUTSIDE
    readers: tuple[Reader, ...]  # a slot is free when all have read
    slots: int
    rows: int = 0  # of the ring that stands for a slot; 0: whole frames
    memory: str = "ram"
    keeps_latest: bool = False  # the source may replace a frame that some have not read
    is_kept: bool = False  # nothing may overlay it at any time: others fill it or read it while parts run

    @property
    def name(self) -> str:
        return f"{self.what.network}:{self.what.tensor}"

    @property
    def frame_rows(self) -> int:
        """Rows of a frame."""
        return row_count(self.what.region.shape)

    @property
    def reading(self) -> tuple[str, ...]:
        """The parts that read the FIFO, or OUTSIDE."""
        return tuple(reader.part for reader in self.readers)

    @property
    def ends(self) -> tuple[str, ...]:
        """All parts that write or read the FIFO, or OUTSIDE."""
        return (self.source, *self.reading)

    @property
    def writer(self) -> str:
        """The part that writes a frame: the source, or the first reader, which copies what the outside passes to it."""
        return self.readers[0].part if self.source == OUTSIDE else self.source


class RelationKind(Enum):
    """How parts may run beside each other."""

    EXCLUSIVE = "exclusive"  # one runs from its start to its end before the other begins
    PARALLEL = "parallel"  # any moment of one may fall into the run of the other
    PIPELINED = "pipelined"  # partitions of one network at work on different frames: parallel
    PREEMPTS = "preempts"  # the first may interrupt the second at some of its points
    AFTER = "after"  # the first part's output is the second one's input
    SAME_INPUT = "same input"  # they read one FIFO in this order


# The kinds that say how two parts may run beside each other.
CONCURRENCY = {RelationKind.EXCLUSIVE, RelationKind.PARALLEL, RelationKind.PIPELINED, RelationKind.PREEMPTS}


@dataclass(frozen=True, slots=True)
class InterruptionPoints:
    """Where a part may be interrupted: at the ends of stages, and after turns of a stage (`Program.turns`)."""

    after: frozenset[int] = frozenset()
    rows: frozenset[tuple[int, int]] = frozenset()  # (stage, turn)


@dataclass(frozen=True, slots=True)
class Relation:
    kind: RelationKind
    parts: tuple[str, ...]
    # Of the second part, for PREEMPTS. None: anywhere; empty where the part has no plan yet.
    points: InterruptionPoints | None = None


@dataclass(frozen=True, slots=True)
class FirmwareBuffer:
    """A buffer that the firmware itself owns and may write while it is in use."""

    name: str
    bytes: int
    parts: tuple[str, ...] | None = None  # during whose runs it is in use; None: always


@dataclass(frozen=True)
class ArenaLayout:
    """The layout of one memory of a device: offsets in bytes from its start."""

    bytes: int
    workers: Mapping[str, int] = field(default_factory=dict)  # where the arena of each worker begins
    # Of each FIFO that has some here.
    slots: Annotated[Mapping[TensorRegion, tuple[int, ...]], IN_FILE] = field(default_factory=dict)
    buffers: Mapping[str, int] = field(default_factory=dict)  # of the firmware


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted figure of the deployment, which measurements must confirm."""

    name: str  # throughput, latency, memory, ...
    value: int | float
    unit: str
    how: str  # it was found: "exact", or what kind of estimate from what


@dataclass(frozen=True)
class Deployment:
    networks: tuple[Annotated[Network, IN_FILE], ...]  # whole, each with a name of its own
    parts: tuple[Part, ...]
    workers: tuple[Worker, ...]
    fifos: tuple[Fifo, ...]
    arenas: Annotated[Mapping[tuple[str, str], ArenaLayout], IN_FILE]  # by device and memory
    predictions: tuple[Prediction, ...] = ()
    relations: tuple[Relation, ...] = ()
    buffers: tuple[FirmwareBuffer, ...] = ()

    @property
    def name(self) -> str:
        return "+".join(network.name for network in self.networks)

    @property
    def built_weights_bytes(self) -> int:
        """Bytes of weights of all built parts: those that use one file share them."""
        return sum({part.built.digest: part.built.weights_bytes for part in self.parts if part.built}.values())

    @cached_property
    def network_named(self) -> Mapping[str, Network]:
        return {network.name: network for network in self.networks}

    @cached_property
    def part_named(self) -> Mapping[str, Part]:
        return {part.name: part for part in self.parts}

    @cached_property
    def plans(self) -> Mapping[str, Plan]:
        """The plans of the parts that have one."""
        return {part.name: part.plan for part in self.parts if part.plan is not None}

    def with_plans(self, plans: Mapping[str, Plan]) -> Deployment:
        """The deployment with these plans. A part's network is the planned one: planning may add layers that copy."""
        return replace(self, parts=tuple(_planned(part, plans[part.name]) for part in self.parts))

    def parts_of(self, network: str) -> tuple[Part, ...]:
        """The parts of a network."""
        return tuple(part for part in self.parts if part.owner == network)

    @cached_property
    def queues(self) -> tuple[Fifo, ...]:
        """The FIFOs that carry every frame from part to part."""
        return tuple(fifo for fifo in self.fifos if OUTSIDE not in fifo.ends and not fifo.keeps_latest)

    @property
    def rings(self) -> tuple[Fifo, ...]:
        """The FIFOs that carry frames row by row."""
        return tuple(fifo for fifo in self.queues if fifo.rows)

    @cached_property
    def shared(self) -> tuple[Fifo, ...]:
        """The FIFOs whose readers get the latest frame."""
        return tuple(fifo for fifo in self.fifos if fifo.keeps_latest)

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

    @cached_property
    def _paired(self) -> Mapping[tuple[str, str], Relation]:
        return {
            pair: relation
            for relation in self.relations
            if relation.kind in CONCURRENCY
            for pair in permutations(relation.parts, 2)
        }

    def concurrency(self, a: str, b: str) -> Relation:
        """The relation of two parts: as stated, or else parallel on different workers and exclusive on the same one."""
        if (a, b) in self._paired:
            return self._paired[a, b]
        apart = not any({a, b} <= set(worker.parts) for worker in self.workers)
        return Relation(RelationKind.PARALLEL if apart else RelationKind.EXCLUSIVE, (a, b))

    def may_meet(self, a: str, b: str) -> bool:
        """Whether one of two parts may run while the other is in progress."""
        return a == b or self.concurrency(a, b).kind is not RelationKind.EXCLUSIVE

    def are_parallel(self, a: str, b: str) -> bool:
        """Whether two parts may run at the same time."""
        return self.concurrency(a, b).kind in (RelationKind.PARALLEL, RelationKind.PIPELINED)

    @cached_property
    def preemptions(self) -> tuple[Relation, ...]:
        return tuple(relation for relation in self.relations if relation.kind is RelationKind.PREEMPTS)

    def preemption(self, high: str, low: str) -> Relation | None:
        """The relation that lets one part interrupt another."""
        relation = self.concurrency(high, low)
        return relation if relation.kind is RelationKind.PREEMPTS and relation.parts == (high, low) else None

    def may_be_interrupted(self, part: str) -> bool:
        """Whether another part may start while this one runs."""
        others = (other.name for other in self.parts)
        return any(self.are_parallel(part, other) or self.preemption(other, part) for other in others)

    def points_of(self, part: str) -> InterruptionPoints:
        """The points at which any other part may interrupt this one; parts that may interrupt anywhere do not count."""
        points = [one.points for one in self.preemptions if one.parts[1] == part and one.points is not None]
        return InterruptionPoints(
            frozenset(chain.from_iterable(one.after for one in points)),
            frozenset(chain.from_iterable(one.rows for one in points)),
        )

    def release_stage(self, fifo: Fifo, reader: str) -> int:
        """The stage after which a reader's slot is free; the last stage if the reader states none."""
        stage = next(each.stage for each in fifo.readers if each.part == reader)
        plan = self.part_named[reader].plan
        return stage if stage is not None else len(plan.program.stages) - 1 if plan else 0

    def read_before(self, fifo: Fifo, reader: str) -> frozenset[str]:
        """The readers of a FIFO that read each frame before this reader."""
        orders = [relation.parts for relation in self.relations if relation.kind is RelationKind.SAME_INPUT]
        return all_before(reader, orders) & set(fifo.reading)

    def is_last(self, fifo: Fifo, reader: str) -> bool:
        """Whether no other reader reads a frame after this one has begun."""
        others = set(fifo.reading) - {reader}
        return others == self.read_before(fifo, reader) and not any(self.may_meet(reader, x) for x in others)

    def _joined(self, part: str, ends: Mapping[str, TensorRegion], is_source: bool) -> Mapping[str, Fifo]:
        carried = {fifo.what: fifo for fifo in self.fifos if part in ((fifo.source,) if is_source else fifo.reading)}
        return {own: carried[what] for own, what in ends.items() if what in carried}

    def tensor(self, fifo: Fifo) -> Tensor:
        """The tensor in a slot. Partial sums have the accumulator type of the part that produces them."""
        what = fifo.what
        if what.share is None:
            return tensor_part(self.network_named[what.network].tensors[what.tensor], what.region)
        source = self.part_named[fifo.source]
        return next(source.network.tensors[own] for own, given in source.outputs.items() if given == what)

    @property
    def ram_bytes(self) -> int:
        """Bytes of all memories of all devices."""
        return sum(layout.bytes for layout in self.arenas.values())

    def slot_size(self, fifo: Fifo) -> int:
        """Bytes of a slot, or of the ring that replaces it."""
        tensor = self.tensor(fifo)
        return tensor.bytes if not fifo.rows else tensor.bytes // fifo.frame_rows * fifo.rows

    def slot_bytes(self, fifo: Fifo) -> int:
        """Bytes from one slot to the next."""
        return aligned(self.tensor(fifo).bytes)

    def devices_of(self, fifo: Fifo) -> tuple[str, ...]:
        """The devices that hold the FIFO's slots: those of all workers that write or read it."""
        workers = chain.from_iterable(self.workers_of.get(name, ()) for name in fifo.ends)
        return tuple(dict.fromkeys(worker.device for worker in workers))


def _planned(part: Part, plan: Plan) -> Part:
    constants = {**plan.network.constants, **part.network.constants}
    return replace(part, network=replace(plan.network, constants=constants), plan=plan)


def all_before(name: str, orders: Sequence[Sequence[str]]) -> frozenset[str]:
    """The names that precede this one in any of the orders, directly or through others."""
    earlier: set[str] = set()
    todo = [name]
    while todo:
        last = todo.pop()
        for order in orders:
            if last in order:
                new = set(order[: order.index(last)]) - earlier
                earlier |= new
                todo += new
    return frozenset(earlier)
