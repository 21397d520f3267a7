"""The bytes of each buffer over time with its role, and the work of each layer including recomputation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from math import prod

import numpy as np

from ..errors import InputError
from ..network import Array, Network
from ..network.operators.partial_sums import partial_macs, reduction_axes
from ..program import Buffer, Plan, Program, Stage, Step


@dataclass(frozen=True, slots=True)
class LayerWork:
    """What a stage computes for one layer, and the work of computing its output once."""

    macs: int
    done: int  # computed elements; for partial sums, times the inputs of each
    whole: int  # the same without recomputation

    @property
    def again(self) -> float:
        """Recomputed work as a share of the whole."""
        return max(0, self.done - self.whole) / (self.whole or 1)


def layer_work(plan: Plan) -> Mapping[str, LayerWork]:
    """The work of each layer, over all stages."""
    return {name: work for stage in plan.program.stages for name, work in stage_work(plan.program, stage).items()}


def stage_work(program: Program, stage: Stage) -> Mapping[str, LayerWork]:
    """The work of each layer of the stage."""
    macs: dict[str, int] = dict.fromkeys(stage.layers, 0)
    done, whole = dict(macs), dict(macs)
    for step in program.steps(stage):
        count, part, total = _step_work(program.network, step)
        macs[step.layer] += count
        done[step.layer] += part
        whole[step.layer] = total
    return {name: LayerWork(macs[name], done[name], whole[name]) for name in macs}


def _step_work(network: Network, step: Step) -> tuple[int, int, int]:
    """MACs of the step, elements computed, and elements of the output."""
    layer = network.by_name[step.layer]
    shapes, total = network.shapes(layer), network.tensors[layer.output].size
    if step.partial is None:
        return layer.op.macs(step.region, shapes), step.region.size, total
    axes = reduction_axes(layer.op, shapes)
    part = step.region.size * prod(step.partial.shape[axis] for axis in axes)
    return (
        partial_macs(layer.op, step.region, shapes, step.partial),
        part,
        total * prod(shapes[0][axis] for axis in axes),
    )


class Role(Enum):
    """The role of a buffer for the user of the network; also its CSS class."""

    INPUT = "input"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"
    SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class SharedBytes:
    """Bytes that two buffers share in the same stages: an output that overlaps an input that dies there."""

    older: Buffer
    younger: Buffer
    first: int
    last: int  # included
    low: int
    high: int  # one past the last byte


@dataclass(frozen=True)
class Occupancy:
    """Facts about the buffers of one plan, each computed once."""

    plan: Plan

    @cached_property
    def buffers(self) -> Mapping[str, Buffer]:
        return {buffer.name: buffer for buffer in self.plan.buffers}

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each buffer, which links table rows to rectangles."""
        return {buffer.name: number for number, buffer in enumerate(self.plan.buffers)}

    @cached_property
    def tensors(self) -> Mapping[str, tuple[str, ...]]:
        """The tensors in each buffer by address; empty for scratch."""
        by_buffer: dict[str, list[str]] = {buffer.name: [] for buffer in self.plan.buffers}
        for name in sorted(self.plan.views, key=lambda name: self.plan.views[name].offset):
            by_buffer[self.plan.views[name].buffer].append(name)
        return {buffer: tuple(names) for buffer, names in by_buffer.items()}

    @cached_property
    def work(self) -> Mapping[str, LayerWork]:
        """The work for each layer that a stage executes."""
        return layer_work(self.plan)

    def named(self, names: Collection[str]) -> frozenset[str]:
        """The names that are buffers of this plan."""
        if unknown := sorted(set(names) - set(self.buffers)):
            where = f"the plan of '{self.plan.network.name}'"
            raise InputError(f"{where} has no buffer {unknown}; name buffers of this plan")
        return frozenset(names)

    def role(self, buffer: str) -> Role:
        names, network = self.tensors[buffer], self.plan.network
        if not names:
            return Role.SCRATCH
        if any(name in network.inputs for name in names):
            return Role.INPUT
        return Role.OUTPUT if any(name in network.outputs for name in names) else Role.INTERMEDIATE

    @cached_property
    def shared(self) -> tuple[SharedBytes, ...]:
        return tuple(self._shared())

    def _shared(self) -> Iterator[SharedBytes]:
        ordered = sorted(self.plan.buffers, key=lambda b: (b.first, b.last, b.name))
        for i, older in enumerate(ordered):
            for younger in ordered[i + 1 :]:
                if younger.first > older.last:
                    break
                low, high = max(older.offset, younger.offset), min(older.end, younger.end)
                if low < high and older.memory == younger.memory:
                    yield SharedBytes(older, younger, younger.first, min(older.last, younger.last), low, high)

    def shared_bytes(self, x: str, y: str) -> int:
        """The bytes that the two complete tensors have in common; exact for interleaved views as well."""
        a, b = self._span(x), self._span(y)
        low, high = min(a[0], b[0]), max(a[1], b[1])
        if self._memory(x) != self._memory(y) or a[1] <= b[0] or b[1] <= a[0]:
            return 0
        mine, theirs = self._marks(x, low, high), self._marks(y, low, high)
        return int(np.count_nonzero(mine & theirs))

    def kept_shape(self, name: str) -> tuple[int, ...]:
        """The shape that stays in memory: a rolling window, or the current tile."""
        view, kept = self.plan.views[name], list(self.plan.network.tensors[name].shape)
        if view.window:
            kept[view.window[0]] = min(kept[view.window[0]], view.window[1])
        for axis in sorted(view.tiled):
            # Indices are dense: an axis is kept up to the next index of the axis before it.
            room = self.buffers[view.buffer].size - view.offset
            room = min(room, view.strides[axis - 1]) if axis else room
            kept[axis] = max(1, min(kept[axis], -(-room // view.strides[axis])))
        return tuple(kept)

    def address(self, name: str) -> int:
        view = self.plan.views[name]
        return self.buffers[view.buffer].offset + view.offset

    def _memory(self, name: str) -> str:
        return self.buffers[self.plan.views[name].buffer].memory

    def _span(self, name: str) -> tuple[int, int]:
        steps = zip(self.kept_shape(name), self.plan.views[name].strides, strict=True)
        reach = sum((n - 1) * stride for n, stride in steps)
        start = self.address(name)
        return start, start + reach + self.plan.network.tensors[name].dtype.bytes

    def _marks(self, name: str, low: int, high: int) -> Array:
        """One flag for each byte of low..high: whether the tensor covers it."""
        marks: Array = np.zeros(high - low, dtype=bool)
        width = self.plan.network.tensors[name].dtype.bytes
        shape = (*self.kept_shape(name), width)
        strides = (*self.plan.views[name].strides, 1)
        np.ndarray(shape, bool, marks.data, self.address(name) - low, strides)[...] = True
        return marks
