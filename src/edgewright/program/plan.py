"""A Plan: every decision taken and every prediction written down. Plain data; backends and reports read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from html import escape
from typing import ClassVar, Literal, TypeVar

from .. import text
from ..network import Layer, Network
from ..network.operators import Concat
from ..platform.target import Target
from .options import Options
from .program import Program, Stage
from .selection import CallKey, Linked, Packed, Selection, packed_bytes

Judged = TypeVar("Judged")
FORMAT = 4  # of the JSON file; raised whenever a reader of the old format would misread the new one


class BufferKind(Enum):
    """What a buffer is for. All but those of tensors serve one layer or stage, their owner."""

    TENSORS = "tensors"  # views lie in it
    SUMS = "sums"  # running sums of a layer
    PLANE = "plane"  # one channel of a layer that works channel by channel
    ROOM = "room"  # set aside for the kernels of a stage
    KERNELS = "kernels"  # scratch of the kernels that are selected for a stage

    def name_for(self, owner: str) -> str:
        """The name of the owner's buffer of this kind, which no tensor's buffer has."""
        form = {BufferKind.PLANE: "{}:scratch", BufferKind.KERNELS: "scratch of {}"}
        return form.get(self, f"{{}}:{self.value}").format(owner)


@dataclass(frozen=True, slots=True)
class Buffer:
    """A piece of memory, reserved from stage `first` to stage `last` inclusive."""

    name: str
    size: int
    offset: int
    first: int
    last: int
    memory: str = "ram"
    lanes: int = 1  # it is divided into as many equal parts, one for each lane of its stage
    kind: BufferKind = BufferKind.TENSORS
    owner: str = ""  # the layer or stage that it serves

    @property
    def part(self) -> int:
        """Bytes of each lane's own part."""
        return self.size // self.lanes

    @property
    def end(self) -> int:
        return self.offset + self.size


def slot_name(tensor: str) -> str:
    """The name of the memory of an input or output that the caller provides."""
    return f"slot of {tensor}"


@dataclass(frozen=True, slots=True)
class View:
    """Where a tensor lies: an offset into a buffer, and bytes from index to index along each axis.

    With `window` = (axis, n) only n indices along the axis are kept: index i is found at i mod n. Along the axes in
    `tiled` only the part that is being computed is kept: its first index is found at 0.
    """

    buffer: str
    offset: int
    strides: tuple[int, ...]
    window: tuple[int, int] | None = None
    tiled: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Saving:
    """The saving of one technique, in the order in which techniques were added."""

    technique: str
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class CheaperPlan:
    """The need of layers in parts, reported with a plan of whole layers."""

    peak_bytes: int
    extra_instructions: float | None  # a share; None where the target's are not known
    option: Literal["--minimise ram"] = "--minimise ram"

    @property
    def words(self) -> str:
        extra = "" if self.extra_instructions is None else f", {self.extra_instructions:+.1%} instructions"
        return f"with {self.option}{extra}"


@dataclass(frozen=True)
class Plan:
    program: Program
    buffers: tuple[Buffer, ...]
    views: Mapping[str, View]  # for each tensor that is not a constant
    alignment: int
    peak_bytes: int  # all RAM, in whole words: inputs, outputs, everything between, scratch; not the caller's
    bound_bytes: int  # no plan with these techniques can need less
    weights_bytes: int  # weights and other constants, as the network has them
    macs_plain: int  # of the network layer by layer
    method: str  # how order and layout were found
    savings: tuple[Saving, ...] = ()
    board: str | None = None
    plain: bool = False
    resident_bytes: int | None = None  # RAM with pulled inputs held in memory instead, where that is less
    searched: int = 0  # ways to run parts of the network that were priced to find this plan
    target: Target | None = None  # that kernels were selected for
    options: Options | None = None  # that they were selected by
    selections: Mapping[CallKey, Selection] = field(default_factory=dict)  # of all calls, or none yet
    # Weights as these kernels read them, in the order of flash; none before emission.
    packed: tuple[Packed, ...] = ()
    linked: Linked | None = None  # None where nothing was linked for the target
    # Inputs and outputs in the caller's memory: each in a memory of its own, which nothing else shares. Where an input
    # lies is only read; the output's is there for the plan until it has run.
    outside: tuple[str, ...] = ()
    cheaper: CheaperPlan | None = None  # the same plan's where layers in parts take no less; None: not searched for

    picture: ClassVar[Callable[[Plan], str] | None] = None  # an SVG for notebooks, set by those who can draw it

    def __repr__(self) -> str:
        stages = text.plural(len(self.program.stages), "stage")
        return f"Plan('{self.network.name}', {self.peak_bytes:,} B of RAM, {stages}, {self.quality})"

    def _repr_html_(self) -> str | None:
        picture = type(self).picture
        return None if picture is None else f"<p>{escape(repr(self))}</p>{picture(self)}"

    @property
    def network(self) -> Network:
        return self.program.network

    def is_selected_for(self, target: Target, options: Options) -> bool:
        """Whether its kernels were selected for this target by these options."""
        return bool(self.selections) and (self.target, self.options) == (target, options.of_selection)

    def selections_of(self, stage: int, layer: str) -> tuple[Selection, ...]:
        """What is selected for the calls of a layer in a stage."""
        return tuple(self._selections_by_layer.get((stage, layer), ()))

    @cached_property
    def _selections_by_layer(self) -> Mapping[tuple[int, str], Sequence[Selection]]:
        selections: dict[tuple[int, str], list[Selection]] = {}
        for key, selection in self.selections.items():
            selections.setdefault((key.stage, key.layer), []).append(selection)
        return selections

    @property
    def flash_bytes(self) -> int:
        """Bytes of flash, as far as they are known: all that was linked, or the weights as packed, or as they are."""
        if self.linked is not None:
            return self.linked.flash_bytes
        return packed_bytes(self.packed) if self.packed else self.weights_bytes

    @property
    def stack_bytes(self) -> int | None:
        """The maximum stack of a run, if known."""
        return self.linked.stack_bytes if self.linked is not None else None

    @property
    def free(self) -> tuple[str, ...]:
        """The layers that execute nothing."""
        return self.program.free

    def is_by_rows(self, tensor: str) -> bool:
        """Whether an input or output is transferred row by row, with only a few rows in memory."""
        return tensor in self.views and self.views[tensor].window is not None

    @cached_property
    def pulled(self) -> tuple[str, ...]:
        """The inputs that arrive row by row."""
        return tuple(filter(self.is_by_rows, self.network.inputs))

    def pulls(self, stage: Stage) -> bool:
        """Whether the stage reads an input that arrives row by row."""
        return any(name in self.pulled for layer in stage.layers for name in self.network.by_name[layer].inputs)

    @property
    def optimal(self) -> bool:
        return self.peak_bytes == self.bound_bytes

    @property
    def is_in_parts(self) -> bool:
        """Whether some layers run in rows or tiles."""
        return any(not stage.schedule.is_undivided for stage in self.program.stages)

    @property
    def is_least_whole(self) -> bool:
        """Whether it is proven least among plans of whole layers only."""
        return self.optimal and not self.is_in_parts

    @property
    def scope(self) -> str:
        """The set of plans that an optimality proof covers, as the end of a phrase."""
        if self.is_in_parts:
            return ""
        return " for whole layers that share no memory" if self.plain else " for whole layers"

    @property
    def less_ram(self) -> tuple[str, str]:
        """A cheaper alternative outside the proof: its bytes, if known, and how to get it; empty if there is none."""
        if self.cheaper is None:
            return ("", "layers in parts may take less RAM: --minimise ram") if self.is_least_whole else ("", "")
        if self.cheaper.peak_bytes >= self.peak_bytes:
            return "", ""
        return f"{text.count(self.cheaper.peak_bytes)} B", self.cheaper.words

    @property
    def quality(self) -> str:
        """The plan's quality as a phrase: optimal, or the gap to its bound."""
        if self.optimal:
            return f"proven least{self.scope}"
        if self.searched:
            ways = text.plural(self.searched, "priced way")
            return f"least of {ways} to run its parts; no plan at all needs less than {text.size(self.bound_bytes)}"
        if not self.bound_bytes:
            return "no bound is known"
        gap = text.at_most_percent(self.peak_bytes - self.bound_bytes, self.bound_bytes)
        return f"at most {gap} above the bound of {text.size(self.bound_bytes)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for users beyond the plan's figures."""
        if self.resident_bytes is None:
            return ()
        return (
            f"pulling the input takes {text.size(self.peak_bytes)} of RAM, holding it only "
            f"{text.size(self.resident_bytes)}: leave --pull-input out, unless rows can only come one by one",
        )

    @cached_property
    def macs(self) -> int:
        return self.program.macs()

    @cached_property
    def lanes(self) -> int:
        """The number of cores that the plan uses: the most that compute parts of a stage at the same time."""
        return max((stage.schedule.lanes for stage in self.program.stages), default=1)

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(stage.name for stage in self.program.stages)

    @cached_property
    def buffer_named(self) -> Mapping[str, Buffer]:
        return {buffer.name: buffer for buffer in self.buffers}

    def buffer_for(self, kind: BufferKind, owner: str) -> Buffer | None:
        """The buffer of this kind that serves a layer or a stage, if there is one."""
        return self._serving.get((kind, owner))

    @cached_property
    def _serving(self) -> Mapping[tuple[BufferKind, str], Buffer]:
        return {(buffer.kind, buffer.owner): buffer for buffer in self.buffers}

    @cached_property
    def arenas(self) -> Mapping[str, int]:
        """Bytes used of each memory, in whole words, without the caller's memories."""
        own = (buffer for buffer in self.buffers if buffer.memory not in self.slots)
        return arena_sizes(own, self.alignment)

    @cached_property
    def slots(self) -> Mapping[str, int]:
        """Bytes of each of the caller's memories."""
        memories = {slot_name(name) for name in self.outside}
        return arena_sizes((buffer for buffer in self.buffers if buffer.memory in memories), 1)

    @property
    def memories(self) -> Mapping[str, int]:
        """Bytes of all memories, the plan's own and the caller's."""
        return {**self.arenas, **self.slots}

    def live(self, stage: int) -> tuple[Buffer, ...]:
        return self._live[stage]

    @cached_property
    def _live(self) -> tuple[tuple[Buffer, ...], ...]:
        """The buffers of each stage."""
        stages = range(max(1, len(self.program.stages)))
        live: list[list[Buffer]] = [[] for _ in stages]
        for buffer in self.buffers:
            for stage in stages[max(0, buffer.first) : max(0, buffer.last + 1)]:
                live[stage].append(buffer)
        return tuple(map(tuple, live))

    def largest_gap(self, stage: int) -> tuple[str, int, int]:
        """The largest contiguous piece of any memory that no buffer occupies during a stage: memory, offset and bytes.

        It begins at a multiple of 8. What is set aside for the kernels of the stage is free to them.
        """
        own = self.buffer_for(BufferKind.ROOM, self.program.stages[stage].name)
        best = ("", 0, 0)
        for memory, size in self.arenas.items():
            at = 0
            taken = sorted((b.offset, b.end) for b in self.live(stage) if b.memory == memory and b is not own)
            for start, end in [*taken, (size, size)]:
                first = -(-at // 8) * 8
                if start - first > best[2]:
                    best = (memory, first, start - first)
                at = max(at, end)
        return best

    @cached_property
    def occupied(self) -> Mapping[str, tuple[int, ...]]:
        """Bytes held by buffers, for each memory and stage; shared bytes count once."""
        stages = range(max(1, len(self.program.stages)))
        lives = [self.live(stage) for stage in stages]
        return {
            memory: tuple(_covered([b for b in live if b.memory == memory]) for live in lives) for memory in self.arenas
        }

    @cached_property
    def live_bytes(self) -> tuple[int, ...]:
        """Bytes in use at each stage, over all memories."""
        nothing = (0,) * max(1, len(self.program.stages))
        return tuple(map(sum, zip(nothing, *self.occupied.values(), strict=True)))


def arena_sizes(buffers: Iterable[Buffer], alignment: int) -> Mapping[str, int]:
    """Bytes of all buffers in each memory, in whole words."""
    sizes: dict[str, int] = {}
    for buffer in buffers:
        end = -(-buffer.end // alignment) * alignment
        sizes[buffer.memory] = max(sizes.get(buffer.memory, 0), end)
    return sizes


def copied_parts(network: Network, views: Mapping[str, View]) -> Mapping[str, tuple[int, ...]]:
    """For each concat with some inputs in place: its other inputs, which must be copied."""
    copied_axes = {}
    for layer in network.layers:
        if not isinstance(layer.op, Concat) or not _is_joined(network, layer):
            continue
        copied, start = [], 0
        for position, name in enumerate(layer.inputs):
            if not _lies_in_place(network, views, name, layer.output, layer.op.axis, start):
                copied.append(position)
            start += network.tensors[name].shape[layer.op.axis]
        if len(copied) < len(layer.inputs):
            copied_axes[layer.name] = tuple(copied)
    return copied_axes


def _is_joined(network: Network, layer: Layer) -> bool:
    """Whether a concat is well formed; a plan from a file may hold anything."""
    assert isinstance(layer.op, Concat)
    ranks = {len(network.tensors[name].shape) if name in network.tensors else -1 for name in layer.inputs}
    (rank, *others) = {*ranks, len(network.tensors[layer.output].shape) if layer.output in network.tensors else -1}
    return not others and -rank <= layer.op.axis < rank


def _lies_in_place(
    network: Network, views: Mapping[str, View], source: str, target: str, axis: int, start: int
) -> bool:
    """Whether a tensor lies at the part of another tensor that begins at an index along the axis."""
    x, y = network.tensors[source], network.tensors[target]
    if source not in views or target not in views or x.dtype is not y.dtype or x.quant != y.quant:
        return False
    own, whole = views[source], views[target]
    strides = zip(x.shape, own.strides, whole.strides, strict=False)
    return (
        own.buffer == whole.buffer
        and len(own.strides) == len(whole.strides) == len(x.shape)
        and own.offset == whole.offset + start * whole.strides[axis]
        and all(n == 1 or a == b for n, a, b in strides)
        and not (own.window or whole.window or own.tiled or whole.tiled)
    )


def _covered(buffers: Sequence[Buffer]) -> int:
    total = at = 0
    for buffer in sorted(buffers, key=lambda b: b.offset):
        total += max(0, buffer.end - max(at, buffer.offset))
        at = max(at, buffer.end)
    return total


class FaultKind(Enum):
    """The requirement that a plan violates."""

    FORM = "form"  # names that exist, ranks that agree
    ORDER = "order"  # every step finds what it reads, every output is complete
    MEMORY = "memory"  # nothing is overwritten while it is needed
    PROMISE = "promise"  # figures are what the plan's own parts come to
    KERNEL = "kernel"  # kernels offer what the plan says, where it says so


@dataclass(frozen=True, slots=True)
class PlanFault:
    """A fault of a plan or a deployment."""

    kind: FaultKind
    message: str  # without a full stop: it goes into a sentence


def judged(thing: Judged, judges: Iterable[tuple[FaultKind, Callable[[Judged], Iterator[str]]]]) -> Iterator[PlanFault]:
    """The faults from the first judge that finds any."""
    for kind, judge in judges:
        has_faults = False
        for message in judge(thing):
            has_faults = True
            yield PlanFault(kind, message)
        if has_faults:
            return
