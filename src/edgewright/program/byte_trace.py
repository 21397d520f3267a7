"""The bytes that a plan reads, writes and keeps live, turn by turn.

Computed by following the plan's steps; the lifetimes that the plan states are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..network import Array, Region
from .deployment import InterruptionPoints
from .places import Places, StoredPiece, cells_of
from .plan import BufferKind, Plan
from .program import Stage
from .steps import SUM_BYTES, Step

START = -1  # the stage before the first: inputs are copied into memory


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes that are read or written."""

    buffer: str
    memory: str
    where: StoredPiece | slice
    element: int  # bytes
    is_write: bool

    def mark(self, mask: Array, value: bool) -> None:
        if isinstance(self.where, slice):
            mask[self.where] = value
        else:
            cells_of(mask, self.where, self.element)[...] = value


@dataclass
class Turn:
    """The accesses between two points at which a run can be interrupted."""

    stage: int
    number: int
    touches: list[Touch] = field(default_factory=list)


class ByteTrace:
    """A run of a plan. `copied` are the inputs that the run copies into memory before its first stage."""

    def __init__(self, plan: Plan, copied: Collection[str]) -> None:
        self.plan, self.network, self._places = plan, plan.network, Places(plan, plan.network)
        self._copied = copied
        self._pulled = dict.fromkeys(plan.pulled, 0)  # rows that have come

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """All turns in order, with one before the first stage and one after the last."""
        first, last = Turn(START, 0), Turn(len(self.plan.program.stages), 0)
        for name in self._copied:
            first.touches += self._whole(name, is_write=True)
        for name in self.network.outputs:
            if name in self.plan.views and not self.plan.is_by_rows(name):
                last.touches += self._whole(name, is_write=False)
        inner = [turn for n, stage in enumerate(self.plan.program.stages) for turn in self._stage(n, stage)]
        return (first, *inner, last)

    def written(self, memory: str, stages: Collection[int] | None = None, but: str | None = None) -> Array:
        """The bytes that are written in these stages, or in any; `but` is a buffer whose own bytes do not count."""
        return self._marked(memory, lambda turn, touch: touch.is_write and touch.buffer != but and _is_in(turn, stages))

    def computed(self, memory: str) -> Array:
        """The bytes that stages write: all but the inputs that are copied first."""
        return self._marked(memory, lambda turn, touch: touch.is_write and turn.stage != START)

    def used(self, memory: str, stages: Collection[int] | None = None) -> Array:
        """The bytes that are read or written in these stages, or hold a value there that is read later."""
        mask = self._marked(memory, lambda turn, _: _is_in(turn, stages))
        if stages:
            mask |= self.live(memory, InterruptionPoints(frozenset((min(stages) - 1,))))
        return mask

    def live(self, memory: str, points: InterruptionPoints) -> Array:
        """The bytes that hold a value which is still to be read at one of these points."""
        in_use, live = self._nothing(memory), self._nothing(memory)
        for turn, after in zip(reversed(self.turns), (None, *reversed(self.turns)), strict=False):
            is_end = after is None or after.stage != turn.stage
            if (is_end and turn.stage in points.after) or (turn.stage, turn.number) in points.rows:
                in_use |= live
            for touch in reversed(turn.touches):
                if touch.memory == memory:
                    touch.mark(live, not touch.is_write)
        return in_use

    def _marked(self, memory: str, is_wanted: Callable[[Turn, Touch], bool]) -> Array:
        mask = self._nothing(memory)
        for turn in self.turns:
            for touch in turn.touches:
                if touch.memory == memory and is_wanted(turn, touch):
                    touch.mark(mask, True)
        return mask

    def _nothing(self, memory: str) -> Array:
        return np.zeros(self.plan.memories.get(memory, 0), bool)

    def _stage(self, number: int, stage: Stage) -> Iterator[Turn]:
        sums = self.plan.program.partial(stage)
        if stage.schedule.lanes > 1:
            turns: Iterable[Iterable[tuple[int, Step]]] = [
                [(lane, step) for lane in range(stage.schedule.lanes) for step in self._lane(stage, lane)]
            ]
        else:
            turns = ([(0, step) for step in turn] for turn in self.plan.program.turns(stage))
        touched = [touch for name in sums for touch in self._sums(name, is_write=True)]
        last: Turn | None = None
        for at, steps in enumerate(turns):
            if last is not None:
                yield last
            last = Turn(number, at, touched)
            for lane, step in steps:
                self._places.lane = lane
                last.touches += self._step(number, step)
            touched = []
        self._places.lane = 0
        last = last or Turn(number, 0, touched)
        for name in sums:
            last.touches += self._sums(name, is_write=False)
            last.touches += self._whole(self.network.by_name[name].output, is_write=True)
        yield last

    def _lane(self, stage: Stage, lane: int) -> Iterator[Step]:
        return self.plan.program.lane_steps(stage, lane)

    def _step(self, stage: int, step: Step) -> Iterator[Touch]:
        """Everything is read before anything is written; scratch holds nothing before a step or after it."""
        layer = self.network.by_name[step.layer]
        self._places.turn_to(layer.output, step.region)
        yield from self._scratch(stage, step)
        for name, needed in zip(layer.inputs, self.plan.program.needs(step), strict=True):
            if name not in self.network.constants and not needed.is_empty:
                yield from self._pull(name, needed)
                yield from self._touches(name, needed, is_write=False)
        if step.partial is not None:
            yield from self._sums(step.layer, is_write=False)
        else:
            yield from self._touches(layer.output, step.region, is_write=True)

    def _pull(self, name: str, needed: Region) -> Iterator[Touch]:
        """Rows of a pulled input that come into its window."""
        if name not in self._pulled:
            return
        axis = (self.plan.views[name].window or (0, 0))[0]
        end = needed.bounds[axis][1]
        for row in range(self._pulled[name], end):
            whole = Region.whole(self.network.tensors[name].shape)
            yield from self._touches(name, whole.with_axis(axis, (row, row + 1)), is_write=True)
        self._pulled[name] = max(self._pulled[name], end)

    def _scratch(self, stage: int, step: Step) -> Iterator[Touch]:
        sizes = {}
        if plane := self.plan.buffer_for(BufferKind.PLANE, step.layer):
            sizes[plane.name] = plane.part
        for selection in self.plan.selections_of(stage, step.layer):
            if selection.scratch is not None:
                sizes[selection.scratch] = selection.offer.scratch
        for name, size in sizes.items():
            buffer = self._places.buffers[name]
            start = self._places.start(buffer)
            yield Touch(name, buffer.memory, slice(start, start + size), 1, is_write=True)

    def _sums(self, layer: str, is_write: bool) -> Iterator[Touch]:
        """The running sums of a layer: in a buffer of their own, or in its output."""
        output = self.network.by_name[layer].output
        buffer = self.plan.buffer_for(BufferKind.SUMS, layer)
        if buffer is None:
            yield from self._whole(output, is_write)
        else:
            size = self.network.tensors[output].size * SUM_BYTES
            yield Touch(buffer.name, buffer.memory, slice(buffer.offset, buffer.offset + size), 1, is_write)

    def _whole(self, name: str, is_write: bool) -> Iterator[Touch]:
        return self._touches(name, Region.whole(self.network.tensors[name].shape), is_write)

    def _touches(self, name: str, region: Region, is_write: bool) -> Iterator[Touch]:
        element = self.network.tensors[name].dtype.bytes
        for piece in self._places.pieces(name, region):
            yield Touch(self.plan.views[name].buffer, piece.memory, piece, element, is_write)


def _is_in(turn: Turn, stages: Collection[int] | None) -> bool:
    """Whether a turn falls into these stages; inputs are copied in the first, outputs in the last."""
    return stages is None or max(0, turn.stage) in stages
