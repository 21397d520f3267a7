"""Executes any Plan step by step in byte arrays, as the chip would, to check every planner.

Every byte that is not live is poisoned after each stage, and an input element that a step would overwrite before its
last read is poisoned before the step. So a wrong region, order, lifetime, address or overlap shows as a wrong result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..errors import ModelError
from ..network import Array, Network, Region, Tensor
from ..network.kernels import Operand, add_partial_sum, compute, finish_partial_sums
from ..network.kernels.compute import by_name
from . import hazards
from .places import LaneTouches, Places, StoredPiece, cells_of
from .plan import BufferKind, Plan, View, slot_name
from .program import Stage
from .steps import SUM_BYTES, Step

POISON = 0xFF  # NaN as a float, -1 as an integer


class Interpreter:
    """Executes the steps of a plan in its memories."""

    def __init__(
        self,
        plan: Plan,
        network: Network | None = None,
        poison: int = POISON,
        memories: Mapping[str, Array] | None = None,
    ) -> None:
        """`memories` are byte arrays that others use too; by default the plan has some of its own."""
        self.plan = plan
        # A plan read from a file holds no weights: they come from the network it was made of.
        self.network = replace(plan.network, constants=network.constants) if network else plan.network
        self.poison = poison
        self.places = Places(plan, self.network)
        own = {name: np.full(size, poison, dtype=np.uint8) for name, size in plan.memories.items()}
        self.memories = own if memories is None else dict(memories)
        self._placed = {view.buffer for view in plan.views.values()}
        self._kept: set[str] = set()  # memories that others read too
        self._touches: LaneTouches | None = None  # of the lanes of a stage, where it has several
        self._coming: dict[str, tuple[Array, int]] = {}  # inputs that are pulled by rows, and the rows had so far
        for name, view in plan.views.items():
            self._check_view(self.network.tensors[name], view)

    def run(self, inputs: Mapping[str, Array], slots: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """The network's outputs, computed in the plan's memory.

        Inputs and outputs in `slots` lie there, as bytes, in the caller's memory (`Plan.outside`).
        """
        given = slots or {}
        self.memories |= {slot_name(name): memory for name, memory in given.items()}
        self._kept = {slot_name(name) for name in given if name in self.network.inputs}
        for name, memory in self.memories.items():
            if name not in self._kept:
                memory.fill(self.poison)
        self.begin({name: inputs[name] for name in self.network.inputs if name not in given})
        for index in range(len(self.plan.program.stages)):
            self.advance(index)
            self._poison_dead(index)
        return self.results()

    def begin(self, inputs: Mapping[str, Array]) -> None:
        """Writes the inputs into memory; an input that is not given is already there."""
        for name in self.network.inputs:
            if name not in inputs:
                continue
            tensor = self.network.tensors[name]
            value = np.asarray(inputs[name])
            if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
                raise ModelError(
                    f"input '{name}' is {value.dtype}{list(value.shape)}, expected {tensor.dtype.value}"
                    f"{list(tensor.shape)}"
                )
            if self.plan.views[name].window:
                self._coming[name] = (value, 0)
            else:
                self._store(name, Region.whole(tensor.shape), value)

    def advance(self, index: int) -> None:
        """Runs one stage; all stages before it must have run."""
        for _ in self.by_turns(index):
            pass

    def by_turns(self, index: int) -> Iterator[None]:
        """Runs one stage as a generator that yields between rows, or between tiles."""
        for buffer in self.plan.live(index):
            if buffer.name not in self._placed:  # scratch: nothing may rely on what is there
                self.memories[buffer.memory][buffer.offset : buffer.end] = self.poison
        yield from self._run_stage(self.plan.program.stages[index])

    def results(self) -> dict[str, Array]:
        """The outputs, after all stages have run."""
        return {name: self._result(name) for name in self.network.outputs}

    def _result(self, name: str) -> Array:
        """An output from memory; an output that depends on no input is a constant."""
        if name in self.network.constants:
            return self.network.constants[name]
        return self._load(name, Region.whole(self.network.tensors[name].shape))

    def _run_lanes(self, stage: Stage) -> None:
        """Each lane on memory as the stage found it. What one writes and another touches is poisoned, and with it all
        that a lane makes which reads what others write."""
        memories, self._touches = self.memories, LaneTouches(self.memories)
        merged = {name: memory.copy() for name, memory in memories.items()}
        spoiled = []
        for lane in range(stage.schedule.lanes):
            self.places.lane = lane
            self.memories = {name: memory.copy() for name, memory in memories.items()}
            for step in self.plan.program.lane_steps(stage, lane):
                self._step(step)
            written = dict(self._touches.written)
            for name, cells in written.items():
                merged[name][cells] = self.memories[name][cells]
            contested = self._touches.next_lane()
            is_contested = any(cells.any() for cells in contested.values())
            spoiled += [contested, written] if is_contested else []
        for touched in spoiled:
            for name, cells in touched.items():
                merged[name][cells] = self.poison
        for name in merged.keys() - self._kept:
            memories[name][...] = merged[name]
        self.memories, self._touches, self.places.lane = memories, None, 0

    def _run_stage(self, stage: Stage) -> Iterator[None]:
        if stage.schedule.lanes > 1:
            self._run_lanes(stage)
            return
        summing = self.plan.program.partial(stage)
        for name in summing:
            self._sums(name)[...] = 0
        for turn in self.plan.program.turns(stage):
            for step in turn:
                self._step(step)
            yield
        for name in summing:
            layer = self.network.by_name[name]
            tensors = [self.network.tensors[x] for x in layer.inputs]
            constants = [self.network.constants.get(x) for x in layer.inputs]
            result = self.network.tensors[layer.output]
            value = finish_partial_sums(
                layer.op, self._sums(name).copy(), tensors, constants, result, self.network.arithmetic
            )
            self._store(layer.output, Region.whole(result.shape), value)

    def _sums(self, name: str) -> Array:
        """The running sums of a layer: in a separate buffer, or in its output."""
        output = self.network.by_name[name].output
        shape = self.network.tensors[output].shape
        buffer = self.plan.buffer_for(BufferKind.SUMS, name)
        if buffer is None:
            return self._memory(output, self.places.pieces(output, Region.whole(shape))[0])
        assert buffer.size >= SUM_BYTES * Region.whole(shape).size
        return np.ndarray(shape, np.int32, self.memories[buffer.memory].data, buffer.offset)

    def _step(self, step: Step) -> None:
        layer = self.network.by_name[step.layer]
        result = self.network.tensors[layer.output]
        self.places.turn_to(layer.output, step.region)
        if scratch := self.plan.buffer_for(BufferKind.PLANE, step.layer):
            self.memories[scratch.memory][scratch.offset : scratch.end] = self.poison
        operands = []
        for which, (name, needed) in enumerate(zip(layer.inputs, self.plan.program.needs(step), strict=True)):
            if name in self.network.constants:
                data = self.network.constants[name][needed.slices]
            else:
                self._pull(name, needed)
                data = self._load(name, needed)
                if step.partial is None:  # else the output is written when the stage ends
                    self._spoil(step, which, name, needed, data)
            operands.append(Operand(data, needed, self.network.tensors[name]))
        if step.partial is not None:
            self._sums(step.layer)[step.region.slices] += add_partial_sum(
                layer.op, step.region, operands, result, self.network.arithmetic
            )
            return
        value = compute(layer.op, step.region, operands, result, self.network.arithmetic)
        assert value.shape == step.region.shape, layer
        assert value.dtype == result.dtype.numpy, layer
        self._store(layer.output, step.region, value)

    def _pull(self, name: str, needed: Region) -> None:
        """Writes the missing rows of a pulled input into its window, one by one."""
        if name not in self._coming:
            return
        value, had = self._coming[name]
        axis = (self.plan.views[name].window or (0, 0))[0]
        for row in range(had, needed.bounds[axis][1]):
            part = Region.whole(value.shape).with_axis(axis, (row, row + 1))
            self._store(name, part, value[part.slices])
        self._coming[name] = (value, max(had, needed.bounds[axis][1]))

    def _spoil(self, step: Step, which: int, name: str, needed: Region, data: Array) -> None:
        """Poisons the elements in `data` that the step itself overwrites before it reads them."""
        layer = self.network.by_name[step.layer]
        for part, wrong in hazards.overwritten_before_read(self.places, step, layer, which, name, needed):
            data[part][wrong] = np.frombuffer(bytes([self.poison] * 8), dtype=data.dtype)[0]

    def _load(self, name: str, region: Region) -> Array:
        """A copy of the region's current values in memory."""
        data = np.empty(region.shape, dtype=self.network.tensors[name].dtype.numpy)
        for piece in self.places.pieces(name, region):
            data[piece.index] = self._memory(name, piece)
            if self._touches is not None:
                self._cells(self._touches.read, name, piece)[...] = True
        return data

    def _store(self, name: str, region: Region, value: Array) -> None:
        for piece in self.places.pieces(name, region):
            self._memory(name, piece)[...] = value[piece.index]
            if self._touches is not None:
                self._cells(self._touches.written, name, piece)[...] = True

    def _memory(self, name: str, piece: StoredPiece) -> Array:
        dtype = self.network.tensors[name].dtype.numpy
        return np.ndarray(piece.shape, dtype, self.memories[piece.memory].data, piece.offset, piece.strides)

    def _cells(self, memories: Mapping[str, Array], name: str, piece: StoredPiece) -> Array:
        return cells_of(memories[piece.memory], piece, self.network.tensors[name].dtype.bytes)

    def _poison_dead(self, stage: int) -> None:
        """Overwrites every byte that no buffer carries into the next stage."""
        last = len(self.plan.program.stages) - 1
        for name, memory in self.memories.items():
            if name in self._kept:
                continue
            kept = sorted(
                (b.offset, b.end)
                for b in self.plan.buffers
                if b.memory == name and b.first <= stage and (b.last > stage or stage == last == b.last)
            )
            at = 0
            for start, end in kept:
                memory[at : max(at, start)] = self.poison
                at = max(at, end)
            memory[at:] = self.poison

    def _check_view(self, tensor: Tensor, view: View) -> None:
        """Every byte of the tensor lies in its buffer."""
        if view.tiled:
            return  # checked tile by tile
        size = list(tensor.shape)
        if view.window:
            size[view.window[0]] = min(size[view.window[0]], view.window[1])
        reach = view.offset + sum((n - 1) * s for n, s in zip(size, view.strides, strict=True))
        if view.offset < 0 or reach + tensor.dtype.bytes > self.places.buffers[view.buffer].part:
            raise ModelError(f"tensor '{tensor.name}' does not lie in its buffer '{view.buffer}'")


def interpret(
    plan: Plan, inputs: Mapping[str, Array] | Array, network: Network | None = None, poison: int = POISON
) -> dict[str, Array]:
    """The outputs of the plan, computed in one byte array per memory with everything dead poisoned."""
    return Interpreter(plan, network, poison).run(by_name(plan.network, inputs))
