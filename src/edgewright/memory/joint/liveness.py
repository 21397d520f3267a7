"""The live bytes of a plan's buffers at the points where its part may be interrupted: ends of stages, and between
rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ...program import ROWS, Buffer, BufferKind, Plan, Step
from ...program.deployment import InterruptionPoints
from ...program.steps import has_rows

Span = tuple[int, int]  # bytes of a buffer


@dataclass(frozen=True)
class Liveness:
    """The bytes of a plan's buffers that are live at preemption points."""

    plan: Plan

    @property
    def stage_ends(self) -> InterruptionPoints:
        """The ends of all stages except the last."""
        return InterruptionPoints(frozenset(range(len(self.plan.program.stages) - 1)))

    @property
    def points(self) -> InterruptionPoints:
        """The ends of stages, and all turns of stages with several turns."""
        rows = frozenset((n, turn) for n, turns in self._divided.items() for turn in range(len(turns)))
        return InterruptionPoints(self.stage_ends.after, rows)

    def spans(self, points: InterruptionPoints) -> Mapping[str, Span]:
        """For each buffer, the span of bytes that are live at any of the points."""
        live: dict[str, Span] = {}
        alive = [{b.name: (0, b.size) for b in self.plan.buffers if b.first <= n < b.last} for n in points.after]
        for spans in (*alive, *(self._rows[place] for place in points.rows)):
            for name, (low, high) in spans.items():
                before = live.get(name, (low, high))
                live[name] = min(low, before[0]), max(high, before[1])
        return live

    @cached_property
    def _divided(self) -> Mapping[int, Sequence[Sequence[Step]]]:
        """The turns of each stage with several turns."""
        stages = enumerate(self.plan.program.stages)
        divided = {
            n: list(self.plan.program.turns(stage))
            for n, stage in stages
            if not stage.schedule.is_whole and stage.schedule.lanes == 1
        }
        return {n: turns for n, turns in divided.items() if len(turns) > 1}

    @cached_property
    def _rows(self) -> Mapping[tuple[int, int], Mapping[str, Span]]:
        """The bytes live after each turn, by (stage, turn)."""
        return {
            (n, turn): spans for n, turns in self._divided.items() for turn, spans in enumerate(self._stage(n, turns))
        }

    def _stage(self, n: int, turns: Sequence[Sequence[Step]]) -> Iterator[Mapping[str, Span]]:
        """The bytes live after each turn: the written part of outputs, the unread part of inputs that die here."""
        sums = {BufferKind.SUMS.name_for(name) for name in self.plan.program.partial(self.plan.program.stages[n])}
        tensors = {view.buffer for view in self.plan.views.values()}
        held = [b for b in self.plan.buffers if b.first <= n <= b.last and b.name in tensors | sums]
        progress = {b.name: self._progress(b, n, turns) for b in held}
        for turn in range(len(turns)):
            spans = {b.name: progress[b.name][turn] for b in held}
            yield {name: (low, high) for name, (low, high) in spans.items() if low < high}

    def _progress(self, buffer: Buffer, n: int, turns: Sequence[Sequence[Step]]) -> Sequence[Span]:
        """The live bytes of a buffer after each turn; all of it, unless it holds one tensor that is processed row by
        row."""
        network, stage, whole = self.plan.network, self.plan.program.stages[n], [(0, buffer.size)] * len(turns)
        inside = [name for name, view in self.plan.views.items() if view.buffer == buffer.name]
        if len(inside) != 1 or not self._is_by_rows(inside[0]):
            return whole
        name, view = inside[0], self.plan.views[inside[0]]
        rows = network.tensors[name].shape[ROWS]
        makers = {layer for layer in stage.layers if network.by_name[layer].output == name}
        if makers and not makers & set(self.plan.program.partial(stage)) and buffer.first == n:
            ends = [max((s.region.bounds[ROWS][1] for s in turn if s.layer in makers), default=0) for turn in turns]
            return [(0, view.offset + view.strides[ROWS] * end) for end in accumulate(ends, max)]
        if not makers and buffer.last == n and name not in network.outputs:
            begins = [self._first_read(turn, name) for turn in turns]
            rest = [*([*accumulate(reversed(begins), min)][::-1][1:]), rows]
            return [(view.offset + view.strides[ROWS] * begin, buffer.size) for begin in rest]
        return whole

    def _is_by_rows(self, name: str) -> bool:
        view, tensor = self.plan.views[name], self.plan.network.tensors[name]
        return has_rows(tensor.shape) and view.window is None and not view.tiled and view.strides == tensor.strides

    def _first_read(self, turn: Sequence[Step], name: str) -> int:
        """The first row of a tensor that a turn reads; beyond the last if it reads none."""
        rows = [self.plan.network.tensors[name].shape[ROWS]]
        for step in turn:
            layer = self.plan.network.by_name[step.layer]
            needs = zip(layer.inputs, self.plan.program.needs(step), strict=True)
            rows += [needed.bounds[ROWS][0] for read, needed in needs if read == name]
        return min(rows)
