"""Executes a plan symbolically: each byte remembers which element was last written to it.

A step is right when every byte that it reads still belongs to the element that it means, and when it does not itself
overwrite what it has yet to read. Nothing is computed, no lifetime is believed, and nothing is shared with those who
make plans: order, addresses, windows, tiles and overlaps are judged by what becomes of them, byte by byte.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from math import gcd

import numpy as np

from ..errors import ModelError
from ..network import Array, Layer, Network, Region
from ..network.operators import Concat, Reshape, Slice
from ..network.operators.partial_sums import reduction_axes
from . import hazards
from .places import LaneTouches, Places, StoredPiece, cells_of
from .plan import Buffer, BufferKind, FaultKind, Plan, PlanFault
from .program import Stage
from .steps import SUM_BYTES, Step, Sweep

MOST_CELLS = 1 << 25  # of a plan that is judged: 128 MiB of float32; marks take a few times as much


def is_too_large(plan: Plan) -> bool:
    """Whether the marks of a plan would take more memory than is reasonable."""
    grid = _grid(plan)
    sizes = (*plan.memories.values(), *(plan.network.tensors[name].bytes for name in plan.views))
    return max(sizes, default=0) // grid > MOST_CELLS


def misuses(plan: Plan, pushed: Collection[str] = ()) -> Iterator[PlanFault]:
    """The faults of the first wrong step of a symbolic run; the plan must be well formed.

    Rows of outputs in `pushed` leave as soon as they are made.
    """
    run = _Run(plan, pushed)
    try:
        yield from run.faults()
    except ModelError as error:  # a tile outside its buffer
        yield PlanFault(FaultKind.MEMORY, str(error))
        return
    yield from run.overdrawn()


class _Run:
    """The memories of a plan, filled with marks of elements."""

    def __init__(self, plan: Plan, pushed: Collection[str] = ()) -> None:
        self.plan, self.network, self.pushed = plan, plan.network, pushed
        self.places = Places(plan, plan.network)
        self.marks = _Marks(plan)
        self.memories = {
            name: np.zeros(-(-size // self.marks.grid), self.marks.dtype) for name, size in plan.memories.items()
        }
        self.stage = 0
        self.used: dict[str, tuple[int, int]] = {}  # of each buffer: the first and the last stage that touches it
        self.begun: set[str] = set()  # tensors that are computed in part or whole
        self.touches: LaneTouches | None = None  # of the lanes of the stage, where it has several
        self.coming = dict.fromkeys(plan.pulled, 0)  # rows had so far

    def faults(self) -> Iterator[PlanFault]:
        for name in self.network.inputs:
            self.begun.add(name)
            if name not in self.coming:
                self._write(name, Region.whole(self.network.tensors[name].shape))
        for index, stage in enumerate(self.plan.program.stages):
            self.stage = index
            for fault in self._stage(stage):
                yield fault
                return
        for name in self.network.outputs:
            if name not in self.network.constants and name not in self.pushed:
                yield from self._read("the caller", name, Region.whole(self.network.tensors[name].shape))

    def overdrawn(self) -> Iterator[PlanFault]:
        """Buffers that are touched in stages for which they are not reserved."""
        for name, (first, last) in self.used.items():
            buffer = self.places.buffers[name]
            if first < buffer.first or buffer.last < last:
                yield PlanFault(
                    FaultKind.MEMORY,
                    f"buffer '{name}' is reserved from stage {buffer.first} to {buffer.last}, and used "
                    f"from {first} to {last}",
                )

    def _lanes(self, stage: Stage) -> Iterator[PlanFault]:
        """Each lane on memory as the stage found it; what one writes and another touches is a fault."""
        memories, self.touches = self.memories, LaneTouches(self.memories)
        merged = {name: memory.copy() for name, memory in memories.items()}
        for lane in range(stage.schedule.lanes):
            self.places.lane = lane
            self.memories = {name: memory.copy() for name, memory in memories.items()}
            for step in self.plan.program.lane_steps(stage, lane):
                yield from self._step(step, self.network.by_name[step.layer])
            for name, written in self.touches.written.items():
                merged[name][written] = self.memories[name][written]
            for name, contested in self.touches.next_lane().items():
                if contested.any():
                    yield self._contested(stage, int(merged[name][contested][0]))
                    return
        self.memories, self.touches, self.places.lane = merged, None, 0

    def _contested(self, stage: Stage, mark: int) -> PlanFault:
        owner = self.marks.owner(mark)
        return PlanFault(
            FaultKind.MEMORY, f"two lanes of stage '{stage.name}' touch '{owner}' at once, and one writes it"
        )

    def _stage(self, stage: Stage) -> Iterator[PlanFault]:
        if stage.schedule.lanes > 1:
            yield from self._lanes(stage)
            return
        shares: dict[str, list[Region]] = {name: [] for name in self.plan.program.partial(stage)}
        for name in shares:
            self._write_sums(name)
        for step in self.plan.program.steps(stage):
            layer = self.network.by_name[step.layer]
            yield from self._step(step, layer)
            if step.partial is not None:
                shares[step.layer].append(_part_of_sum(self.plan, step, layer))
        for name, parts in shares.items():
            layer = self.network.by_name[name]
            yield from self._read_sums(name)
            if not _are_all(parts, _whole_sum(self.network, layer)):
                yield PlanFault(FaultKind.ORDER, f"the sums of '{name}' do not take every share of its input once")
            self._write(layer.output, Region.whole(self.network.tensors[layer.output].shape))
            if self.plan.buffer_for(BufferKind.SUMS, name):  # the order in which sums become output is the kernel's own
                yield from self._read_sums(name)

    def _step(self, step: Step, layer: Layer) -> Iterator[PlanFault]:
        if step.region not in Region.whole(self.network.tensors[layer.output].shape):
            yield PlanFault(FaultKind.FORM, f"a step of '{step.layer}' computes what is not there")
            return
        self.places.turn_to(layer.output, step.region)
        self._use_scratch(step)
        who = f"layer '{step.layer}'"
        for which, (name, needed) in enumerate(zip(layer.inputs, self.plan.program.needs(step), strict=True)):
            if name in self.network.constants or needed.is_empty:
                continue
            if len(needed.bounds) != len(self.network.tensors[name].shape):
                yield PlanFault(FaultKind.FORM, f"{who} reads '{name}' as if it had {len(needed.bounds)} axes")
                return
            self._pull(name, needed)
            yield from self._read(who, name, needed)
            if step.partial is None and self.places.may_meet(name, needed, layer.output, step.region):
                yield from self._collisions(step, layer, which, name, needed)
        if step.partial is not None:
            yield from self._read_sums(step.layer, step.region)
            return
        self._write(layer.output, step.region)
        self._use_scratch(step)

    def _collisions(self, step: Step, layer: Layer, which: int, name: str, needed: Region) -> Iterator[PlanFault]:
        """Whether the step overwrites what it reads itself too early."""
        if any(True for _ in hazards.overwritten_before_read(self.places, step, layer, which, name, needed)):
            yield PlanFault(FaultKind.MEMORY, f"layer '{step.layer}' overwrites part of '{name}' before it has read it")

    def _pull(self, name: str, needed: Region) -> None:
        """Writes the missing rows of a pulled input into its window, one by one."""
        if name not in self.coming:
            return
        axis = (self.plan.views[name].window or (0, 0))[0]
        whole = Region.whole(self.network.tensors[name].shape)
        for row in range(self.coming[name], needed.bounds[axis][1]):
            self._write(name, whole.with_axis(axis, (row, row + 1)))
        self.coming[name] = max(self.coming[name], needed.bounds[axis][1])

    def _use(self, buffer: str) -> None:
        first, last = self.used.get(buffer, (self.stage, self.stage))
        self.used[buffer] = min(first, self.stage), max(last, self.stage)

    def _use_scratch(self, step: Step) -> None:
        """Scratch may hold anything before a step and after it."""
        if step.sweep is Sweep.CHANNELS:
            plane = self.plan.buffer_for(BufferKind.PLANE, step.layer)
            assert plane is not None
            self._scribble(plane, plane.part)
        for selection in self.plan.selections_of(self.stage, step.layer):
            if selection.scratch is not None:
                self._scribble(self.places.buffers[selection.scratch], selection.offer.scratch)

    def _scribble(self, buffer: Buffer, size: int) -> None:
        self._use(buffer.name)
        grid = self.marks.grid
        start = self.places.start(buffer)
        cells = slice(start // grid, -(-(start + size) // grid))
        self.memories[buffer.memory][cells] = self.marks.of(buffer.name)
        if self.touches is not None:
            self.touches.written[buffer.memory][cells] = True

    def _write(self, name: str, region: Region) -> None:
        self._use(self.plan.views[name].buffer)
        self.begun.add(name)
        wanted, base = self.marks.tensor(name)
        for piece in self.places.pieces(name, region):
            np.add(wanted[region.slices][piece.index], base, out=self._memory(name, piece))
            if self.touches is not None:
                self._cells(self.touches.written, name, piece)[...] = True

    def _read(self, who: str, name: str, region: Region) -> Iterator[PlanFault]:
        self._use(self.plan.views[name].buffer)
        wanted, base = self.marks.tensor(name)
        for piece in self.places.pieces(name, region):
            marks = self._memory(name, piece)
            if self.touches is not None:
                self._cells(self.touches.read, name, piece)[...] = True
            expected = wanted[region.slices][piece.index]
            wrong = marks != (expected + base if base else expected)
            if wrong.any():
                yield self._missed(who, name, int(marks[wrong][0]))
                return

    def _missed(self, who: str, name: str, mark: int) -> PlanFault:
        """Describes what a reader finds in memory where the tensor should be."""
        owner = self.marks.owner(mark)
        if name in self.network.producers and not self._is_begun(name):
            return PlanFault(FaultKind.ORDER, f"{who} reads '{name}' before it is computed")
        if owner is None or owner == name:
            return PlanFault(FaultKind.ORDER, f"{who} reads a part of '{name}' that no longer exists")
        return PlanFault(FaultKind.MEMORY, f"{who} reads '{name}' where '{owner}' lies at that time")

    def _is_begun(self, name: str) -> bool:
        """Whether any element of the tensor, or of a tensor that it is a view of, has been computed."""
        layer = self.network.producers.get(name)
        if name in self.begun or layer is None or not self.marks.moves(layer):
            return name in self.begun
        return any(self._is_begun(source) for source in self.network.activations(layer))

    def _memory(self, name: str, piece: StoredPiece) -> Array:
        """The marks where a piece lies: one for each cell of the grid that an element covers."""
        return self._cells(self.memories, name, piece)

    def _cells(self, memories: Mapping[str, Array], name: str, piece: StoredPiece) -> Array:
        element = self.network.tensors[name].dtype.bytes
        return cells_of(memories[piece.memory], piece, element, self.marks.grid)

    def _sums(self, layer: str) -> Array:
        """The marks where the running sums of a layer lie: in a buffer of their own, or in its output."""
        output = self.network.by_name[layer].output
        shape = self.network.tensors[output].shape
        buffer = self.plan.buffer_for(BufferKind.SUMS, layer)
        if buffer is None:
            self._use(self.plan.views[output].buffer)
            return self._memory(output, self.places.pieces(output, Region.whole(shape))[0])
        self._use(buffer.name)
        cells = (*shape, SUM_BYTES // self.marks.grid)
        start = buffer.offset // self.marks.grid
        return self.memories[buffer.memory][start : start + int(np.prod(cells))].reshape(cells)

    def _write_sums(self, layer: str) -> None:
        sums = self._sums(layer)
        sums[...] = self.marks.sums(layer, sums.shape)

    def _read_sums(self, layer: str, region: Region | None = None) -> Iterator[PlanFault]:
        sums = self._sums(layer)
        part = region.slices if region else ()
        wrong = sums[part] != self.marks.sums(layer, sums.shape)[part]
        if wrong.any():
            owner = self.marks.owner(int(sums[part][wrong][0]))
            yield PlanFault(FaultKind.MEMORY, f"'{owner}' is written over the running sums of '{layer}'")


def _grid(plan: Plan) -> int:
    """The largest number of bytes that divides every address and the size of every element."""
    numbers = [SUM_BYTES, *(plan.network.tensors[name].dtype.bytes for name in plan.views)]
    numbers += [buffer.offset for buffer in plan.buffers]
    numbers += [buffer.part for buffer in plan.buffers if buffer.lanes > 1]
    for view in plan.views.values():
        numbers += [view.offset, *view.strides]
    return gcd(*numbers)


class _Marks:
    """A number for every cell of every tensor; elements that are only moved keep their number.

    Memory is divided into cells of `grid` bytes, which divide every address and the size of every element.
    """

    def __init__(self, plan: Plan) -> None:
        self.network = network = plan.network
        self.grid = _grid(plan)
        named = {*plan.views, *(name for layer in network.layers if self.moves(layer) for name in layer.inputs)}
        cells = {name: network.tensors[name].bytes // self.grid for name in sorted(named)}
        for stage in plan.program.stages:
            for name in plan.program.partial(stage):
                size = network.tensors[network.by_name[name].output].size
                cells[BufferKind.SUMS.name_for(name)] = size * SUM_BYTES // self.grid
        for buffer in plan.buffers:
            cells.setdefault(buffer.name, 1)
        self.names = tuple(cells)
        self.starts = list(accumulate(cells.values(), initial=1))  # 0: not written yet
        self.first = dict(zip(self.names, self.starts, strict=False))
        self.dtype = np.dtype(np.uint32 if self.starts[-1] < 1 << 32 else np.uint64)
        self._ramp: Array = np.arange(max(cells.values(), default=1), dtype=self.dtype)
        self._known: dict[str, tuple[Array, int]] = {}

    def of(self, name: str) -> int:
        return self.first[name]

    def owner(self, mark: int) -> str | None:
        """The tensor or buffer that a mark belongs to."""
        at = bisect_right(self.starts, mark) - 1
        return self.names[at] if 0 <= at < len(self.names) else None

    def sums(self, layer: str, shape: Sequence[int]) -> Array:
        count = int(np.prod(shape))
        first = self.dtype.type(self.first[BufferKind.SUMS.name_for(layer)])
        marks: Array = (self._ramp[:count] + first).reshape(shape)
        return marks

    def tensor(self, name: str) -> tuple[Array, int]:
        """The marks of a tensor: an array of its shape with an axis for the cells of an element, and what to add."""
        if name not in self._known:
            self._known[name] = self._found(name)
        return self._known[name]

    def moves(self, layer: Layer) -> bool:
        """Whether the layer only moves elements: then its output carries the marks of its inputs."""
        return layer.op.may_be_view and any(self._is_alike(name, layer.output) for name in layer.inputs)

    def _is_alike(self, a: str, b: str) -> bool:
        x, y = self.network.tensors[a], self.network.tensors[b]
        return x.dtype is y.dtype and x.quant == y.quant

    def _found(self, name: str) -> tuple[Array, int]:
        tensor = self.network.tensors[name]
        shape = (*tensor.shape, tensor.dtype.bytes // self.grid)
        own: Array = self._ramp[: tensor.bytes // self.grid].reshape(shape)
        layer = self.network.producers.get(name)
        if layer is None or not self.moves(layer):
            return own, self.first[name]
        match layer.op:
            case Reshape():
                marks, base = self.tensor(layer.inputs[0])
                return marks.reshape(shape), base
            case Slice(starts=starts, sizes=sizes, steps=steps):
                marks, base = self.tensor(layer.inputs[0])
                return marks[tuple(map(_taken, starts, sizes, steps))], base
            case Concat(axis=axis):
                return self._joined(layer, own + self.dtype.type(self.first[name]), axis % len(tensor.shape)), 0
        raise AssertionError(layer)

    def _joined(self, layer: Layer, own: Array, axis: int) -> Array:
        """The marks of a concat's inputs side by side; an input that is converted on the way gets marks of its own."""
        at = 0
        for name in layer.inputs:
            end = at + self.network.tensors[name].shape[axis]
            if self._is_alike(name, layer.output):
                marks, base = self.tensor(name)
                own[(slice(None),) * axis + (slice(at, end),)] = marks + self.dtype.type(base)
            at = end
        return own


def _taken(start: int, size: int, step: int) -> slice:
    stop = start + size * step
    return slice(start, None if stop < 0 else stop, step)


def _part_of_sum(plan: Plan, step: Step, layer: Layer) -> Region:
    """The contribution of a step: a region of the output and of the input's summed axes."""
    needed = plan.program.needs(step)[0]
    axes = reduction_axes(layer.op, plan.network.shapes(layer))
    return Region((*step.region.bounds, *(needed.bounds[axis] for axis in axes)))


def _whole_sum(network: Network, layer: Layer) -> Region:
    shapes = network.shapes(layer)
    out = network.tensors[layer.output].shape
    return Region.whole((*out, *(shapes[0][axis] for axis in reduction_axes(layer.op, shapes))))


def _are_all(parts: Sequence[Region], whole: Region) -> bool:
    """Whether the parts cover the whole exactly once, counted on the grid that their bounds define."""
    marks = [sorted({at for part in parts for at in part.bounds[axis]}) for axis in range(len(whole.bounds))]
    if any([line[0], line[-1]] != [0, end] for line, (_, end) in zip(marks, whole.bounds, strict=True) if line):
        return False
    places = [{at: i for i, at in enumerate(line)} for line in marks]
    count = np.zeros([max(0, len(line) - 1) for line in marks], np.int32)
    for part in parts:
        count[tuple(slice(at[a], at[b]) for at, (a, b) in zip(places, part.bounds, strict=True))] += 1
    return bool(parts) and bool((count == 1).all())
