"""Executes any Plan step by step in byte arrays, as the chip would: the judge of every planner.

Every byte that is not live is poisoned after each stage, and an input element that a step would overwrite before its
last read is poisoned before the step. So a wrong region, order, lifetime, address or overlap shows as a wrong result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..errors import ModelError
from ..network import Array, Network, Region, Tensor
from ..network.kernels import Operand, add_share, compute, finish_shares
from ..network.operators import Grain
from . import hazards
from .plan import Buffer, Plan, View
from .shares import SUM_BYTES, sums_name
from .steps import Stage, Step, Sweep

POISON = 0xFF  # NaN as a float, -1 as an integer


class Interpreter:
    """The memories of a plan, and the plan's steps carried out in them."""

    def __init__(self, plan: Plan, network: Network | None = None, poison: int = POISON) -> None:
        self.plan = plan
        # A plan read from a file holds no weights: they come from the network it was made of.
        self.network = replace(plan.network, constants=network.constants) if network else plan.network
        self.poison = poison
        self.buffers: Mapping[str, Buffer] = {buffer.name: buffer for buffer in plan.buffers}
        self.memories = {name: np.full(size, poison, dtype=np.uint8) for name, size in plan.arenas.items()}
        self._placed = {view.buffer for view in plan.views.values()}
        self._coming: dict[str, tuple[Array, int]] = {}  # inputs that are pulled by rows, and the rows had so far
        self._origins: dict[
            tuple[str, int], int
        ] = {}  # (buffer, axis from the end): the first index of the tile in it
        for name, view in plan.views.items():
            self._check_view(self.network.tensors[name], view)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The network's outputs, computed in the plan's memory."""
        for memory in self.memories.values():
            memory.fill(self.poison)
        for name in self.network.inputs:
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
        for index, stage in enumerate(self.plan.program.stages):
            for buffer in self.plan.live(index):
                if buffer.name not in self._placed:  # scratch: nothing may rely on what is there
                    self.memories[buffer.memory][buffer.offset : buffer.end] = self.poison
            self._run_stage(stage)
            self._poison_dead(index)
        return {name: self._result(name) for name in self.network.outputs}

    def _result(self, name: str) -> Array:
        """An output as it lies in memory; one that depends on no input is a constant."""
        if name in self.network.constants:
            return self.network.constants[name]
        return self._load(name, Region.whole(self.network.tensors[name].shape))

    def _run_stage(self, stage: Stage) -> None:
        for name in stage.summing:
            self._sums(name)[...] = 0
        for step in self.plan.program.steps(stage):
            self._step(step)
        for name in stage.summing:
            layer = self.network.by_name[name]
            tensors = [self.network.tensors[x] for x in layer.inputs]
            constants = [self.network.constants.get(x) for x in layer.inputs]
            result = self.network.tensors[layer.output]
            value = finish_shares(
                layer.op, self._sums(name).copy(), tensors, constants, result, self.network.arithmetic
            )
            self._store(layer.output, Region.whole(result.shape), value)

    def _sums(self, name: str) -> Array:
        """The running sums of a layer, as they lie in memory: in a buffer of their own, or in its output."""
        output = self.network.by_name[name].output
        shape = self.network.tensors[output].shape
        buffer = self.buffers.get(sums_name(name))
        if buffer is None:
            return self._memory(output, Region.whole(shape), Region.whole(shape))
        assert buffer.size >= SUM_BYTES * Region.whole(shape).size
        return np.ndarray(shape, np.int32, self.memories[buffer.memory].data, buffer.offset)

    def _step(self, step: Step) -> None:
        layer = self.network.by_name[step.layer]
        result = self.network.tensors[layer.output]
        self._turn_to(layer.output, step.region)
        operands = []
        for which, (name, needed) in enumerate(zip(layer.inputs, self.plan.program.needs(step), strict=True)):
            if name in self.network.constants:
                data = self.network.constants[name][needed.slices]
            else:
                self._pull(name, needed)
                data = self._load(name, needed)
                self._spoil(step, which, name, needed, data)
            operands.append(Operand(data, needed, self.network.tensors[name]))
        if step.share is not None:
            self._sums(step.layer)[step.region.slices] += add_share(
                layer.op, step.region, operands, result, self.network.arithmetic
            )
            return
        value = compute(layer.op, step.region, operands, result, self.network.arithmetic)
        assert value.shape == step.region.shape, layer
        assert value.dtype == result.dtype.numpy, layer
        self._store(layer.output, step.region, value)

    def _turn_to(self, name: str, region: Region) -> None:
        """From now on, the buffer of a tiled tensor holds this part of it."""
        view = self.plan.views[name]
        for axis in view.tiled:
            self._origins[view.buffer, axis - len(view.strides)] = region.bounds[axis][0]

    def _stored(self, name: str, region: Region) -> Region:
        """Where the region lies along tiled axes."""
        view = self.plan.views[name]
        for axis in view.tiled:
            start, stop = region.bounds[axis]
            origin = self._origins.get((view.buffer, axis - len(view.strides)), 0)
            region = region.with_axis(axis, (start - origin, stop - origin))
        return region

    def _pull(self, name: str, needed: Region) -> None:
        """Puts the rows of a pulled input that are not there yet into its window, one after the other."""
        if name not in self._coming:
            return
        value, had = self._coming[name]
        axis = (self.plan.views[name].window or (0, 0))[0]
        for row in range(had, needed.bounds[axis][1]):
            part = Region.whole(value.shape).with_axis(axis, (row, row + 1))
            self._store(name, part, value[part.slices])
        self._coming[name] = (value, max(had, needed.bounds[axis][1]))

    def _spoil(self, step: Step, which: int, name: str, needed: Region, data: Array) -> None:
        """Poisons what the step itself would have overwritten before reading it."""
        layer = self.network.by_name[step.layer]
        source, target = self.plan.views[name], self.plan.views[layer.output]
        if needed.is_empty or not self._may_meet(name, needed, layer.output, step.region):
            return
        same = source == target and self.network.tensors[name].dtype is self.network.tensors[layer.output].dtype
        if layer.op.grain is Grain.ELEMENT and same and needed == step.region:
            return  # each element is read just before it is overwritten
        if layer.op.grain is Grain.WHOLE and step.sweep is not Sweep.CHANNELS:
            times = np.zeros((), dtype=np.int64)
            read_at = np.broadcast_to(times, needed.shape)
            write_at = np.broadcast_to(times, step.region.shape)
        else:
            axes = hazards.atom_axes(layer.op.grain, step.sweep, len(step.region.bounds))
            shapes = self.network.shapes(layer)
            read_at = hazards.last_reads(layer.op, step.region, shapes, which, needed, axes, step.sweep)
            write_at = hazards.write_times(step.region, axes, step.sweep)
        strict = layer.op.grain is not Grain.ELEMENT and step.sweep is not Sweep.CHANNELS
        spoiled = hazards.overwritten(
            self._addresses(name, needed),
            read_at,
            self._addresses(layer.output, step.region),
            write_at,
            self.network.tensors[name].dtype.bytes,
            self.network.tensors[layer.output].dtype.bytes,
            strict,
        )
        if spoiled.any():
            data[spoiled] = np.frombuffer(bytes([self.poison] * 8), dtype=data.dtype)[0]

    def _may_meet(self, source: str, read: Region, target: str, written: Region) -> bool:
        """Whether the two regions' address ranges intersect at all."""
        views = self.plan.views[source], self.plan.views[target]
        memory = [self.buffers[view.buffer].memory for view in views]
        if memory[0] != memory[1]:
            return False
        (a, b), (c, d) = self._range(source, read), self._range(target, written)
        return a < d and c < b

    def _range(self, name: str, region: Region) -> tuple[int, int]:
        view = self.plan.views[name]
        start = self.buffers[view.buffer].offset + view.offset
        if view.window:
            return start, start + self.buffers[view.buffer].size
        steps = list(zip(self._stored(name, region).bounds, view.strides, strict=True))
        first = start + sum(a * stride for (a, _), stride in steps)
        last = start + sum((b - 1) * stride for (_, b), stride in steps)
        return first, last + self.network.tensors[name].dtype.bytes

    def _addresses(self, name: str, region: Region) -> Array:
        view = self.plan.views[name]
        total: Array = np.full((1,) * len(region.bounds), self.buffers[view.buffer].offset + view.offset)
        stored = self._stored(name, region)
        for axis, ((start, stop), stride) in enumerate(zip(stored.bounds, view.strides, strict=True)):
            index = np.arange(start, stop)
            if view.window and axis == view.window[0]:
                index = index % view.window[1]
            shape = [1] * len(region.bounds)
            shape[axis] = stop - start
            total = total + (index * stride).reshape(shape)
        return np.broadcast_to(total, region.shape)

    def _load(self, name: str, region: Region) -> Array:
        """A copy of the region as it lies in memory now."""
        data = np.empty(region.shape, dtype=self.network.tensors[name].dtype.numpy)
        for part, target in self._pieces(name, region):
            data[part] = target
        return data

    def _store(self, name: str, region: Region, value: Array) -> None:
        for part, target in self._pieces(name, region):
            target[...] = value[part]

    def _pieces(self, name: str, region: Region) -> list[tuple[tuple[slice, ...], Array]]:
        """Parts of the region (as an index) with the memory where each lies; several only for a rolling window."""
        view = self.plan.views[name]
        if region.is_empty:
            return []
        if view.window is None:
            return [(tuple(slice(None) for _ in region.bounds), self._memory(name, region, region))]
        axis, n = view.window
        pieces = []
        start, stop = region.bounds[axis]
        at = start
        while at < stop:
            end = min(stop, at - at % n + n)
            index = tuple(
                slice(at - start, end - start) if k == axis else slice(None) for k in range(len(region.bounds))
            )
            stored = region.with_axis(axis, (at % n, at % n + end - at))
            pieces.append((index, self._memory(name, region.with_axis(axis, (at, end)), stored)))
            at = end
        return pieces

    def _memory(self, name: str, region: Region, stored: Region) -> Array:
        view = self.plan.views[name]
        buffer = self.buffers[view.buffer]
        stored = self._stored(name, stored)
        offset = buffer.offset + view.offset
        self._check_tile(name, stored)
        offset += sum(a * stride for (a, _), stride in zip(stored.bounds, view.strides, strict=True))
        dtype = self.network.tensors[name].dtype.numpy
        return np.ndarray(region.shape, dtype, self.memories[buffer.memory].data, offset, view.strides)

    def _poison_dead(self, stage: int) -> None:
        """Overwrites every byte that no buffer carries into the next stage."""
        last = len(self.plan.program.stages) - 1
        for name, memory in self.memories.items():
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

    def _check_tile(self, name: str, stored: Region) -> None:
        """The part at hand lies in the buffer of a tiled tensor."""
        view = self.plan.views[name]
        if view.tiled:
            reach = sum((b - 1) * s for (_, b), s in zip(stored.bounds, view.strides, strict=True))
            reach += view.offset + self.network.tensors[name].dtype.bytes
            if min(a for a, _ in stored.bounds) < 0 or reach > self.buffers[view.buffer].size:
                raise ModelError(f"a tile of '{name}' does not lie in its buffer '{view.buffer}'")

    def _check_view(self, tensor: Tensor, view: View) -> None:
        """Every byte of the tensor lies in its buffer."""
        if view.tiled:
            return  # checked tile by tile
        size = list(tensor.shape)
        if view.window:
            size[view.window[0]] = min(size[view.window[0]], view.window[1])
        reach = view.offset + sum((n - 1) * s for n, s in zip(size, view.strides, strict=True))
        if view.offset < 0 or reach + tensor.dtype.bytes > self.buffers[view.buffer].size:
            raise ModelError(f"tensor '{tensor.name}' does not lie in its buffer '{view.buffer}'")


def interpret(
    plan: Plan, inputs: Mapping[str, Array], network: Network | None = None, poison: int = POISON
) -> dict[str, Array]:
    """The outputs of the plan, computed in one byte array per memory with everything dead poisoned."""
    return Interpreter(plan, network, poison).run(inputs)
