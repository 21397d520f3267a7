"""What steps find where a plan lets them run: free memory, rolling rows, outputs that lie over inputs."""

from __future__ import annotations

from functools import cached_property

from ..network.operators import Conv2d
from ..program import Plan, Step
from .cost_geometry import Setting
from .cost_stages import alike_steps


class Settings:
    """The settings of a plan's steps."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._buffers = {buffer.name: buffer for buffer in plan.buffers}
        self._found: dict[tuple[int, str], Setting] = {}
        self._rooms: dict[int, int] = {}

    def of(self, stage: int, step: Step) -> Setting:
        key = (stage, step.layer)
        if key not in self._found:
            layer = self.plan.network.by_name[step.layer]
            names = [*self.plan.network.activations(layer), layer.output]
            is_bent = any(self.plan.views[name].window for name in names)
            first = layer.inputs[0]
            is_shared = first in self.plan.views and self._meet(first, layer.output)
            is_skewed = first in self.plan.views and self._pixel(first) != self._pixel(layer.output)
            has_rows = stage > self._first_rows
            self._found[key] = Setting(self._room(stage), is_bent, is_shared, is_skewed, has_rows, step.sweep)
        return self._found[key]

    @cached_property
    def _first_rows(self) -> int:
        """The first stage that computes a few rows of a depthwise layer at a time."""
        for index, stage in enumerate(self.plan.program.stages):
            if any(self._is_few(step) for step, _ in alike_steps(self.plan.program, stage)):
                return index
        return len(self.plan.program.stages)

    def _is_few(self, step: Step) -> bool:
        op = self.plan.network.by_name[step.layer].op
        return isinstance(op, Conv2d) and op.groups > 1 and step.region.shape[1] <= 2

    def _room(self, stage: int) -> int:
        """Bytes of the largest piece of any memory that no buffer holds during the stage, from a multiple of 8 on."""
        if stage not in self._rooms:
            self._rooms[stage] = self.plan.hole(stage)[2]
        return self._rooms[stage]

    def _pixel(self, name: str) -> int:
        """Bytes from pixel to pixel of an image."""
        strides = self.plan.views[name].strides
        return strides[-2] if len(strides) > 1 else 0

    def _meet(self, one: str, other: str) -> bool:
        """Whether two tensors may have bytes in common."""
        (memory, first, last), (home, begin, end) = self._span(one), self._span(other)
        return memory == home and first < end and begin < last

    def _span(self, name: str) -> tuple[str, int, int]:
        """The memory that a tensor lies in, and between which bytes."""
        view, tensor = self.plan.views[name], self.plan.network.tensors[name]
        buffer = self._buffers[view.buffer]
        counts = list(tensor.shape)
        if view.window:
            counts[view.window[0]] = min(view.window[1], counts[view.window[0]])
        reach = sum((count - 1) * stride for count, stride in zip(counts, view.strides, strict=True))
        start = buffer.offset + view.offset
        end = start + reach + tensor.dtype.bytes
        return buffer.memory, start, min(end, buffer.end) if view.tiled else end
