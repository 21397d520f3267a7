"""A run of a plan, cell by cell: when each cell of each buffer holds a value that is still to be read, and when it is
written.

Followed from the plan's steps and the operators alone, one atom (a pixel, an element) after the other. Neither the
product's judges nor those who lay plans out are asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import gcd

import numpy as np

from edgewright.network import Array, Layer, Region
from edgewright.network.operators import Grain
from edgewright.program import Plan, Step, Sweep, sums_name
from edgewright.program.plan import scratch_name


@dataclass
class _Moment:
    """What is read and written at one time, before anything of the next."""

    stage: int
    turn: int
    reads: dict[str, Array] = field(default_factory=dict)  # cells of buffers
    writes: dict[str, Array] = field(default_factory=dict)

    def add(self, buffer: str, cells: Array, is_write: bool) -> None:
        kind = self.writes if is_write else self.reads
        kind[buffer] = np.union1d(kind[buffer], cells) if buffer in kind else np.unique(cells)


def cell_bytes(plan: Plan) -> int:
    """The bytes of a cell, of which every address inside a buffer is a multiple."""
    numbers = [plan.alignment, *(tensor.dtype.bytes for tensor in plan.network.tensors.values())]
    for view in plan.views.values():
        numbers += [view.offset, *view.strides]
    return gcd(*numbers, *(buffer.size for buffer in plan.buffers))


class PlanTrace:
    """`given` are the inputs that others put in place before the run, `held` those that others read after it.

    In a stage of several layers a step reads and writes in any order, unless `is_fine`.
    """

    def __init__(
        self, plan: Plan, cell: int, given: Collection[str] = (), held: Collection[str] = (), is_fine: bool = False
    ) -> None:
        self.is_fine = is_fine
        self.plan, self.network, self.cell = plan, plan.network, cell
        self._origins: dict[tuple[str, int], int] = {}  # (buffer, axis from the end): the first index of the tile
        self._pulled = dict.fromkeys(plan.pulled, 0)
        moments = list(self._moments(frozenset(given), frozenset(held)))
        self.stages = np.array([moment.stage for moment in moments])
        self.turns = np.array([moment.turn for moment in moments])
        self.live, self.written = {}, {}
        for buffer in plan.buffers:
            self._follow(buffer.name, -(-buffer.size // cell), moments)

    def _follow(self, buffer: str, cells: int, moments: list[_Moment]) -> None:
        live, written = (np.zeros((cells, len(moments)), bool) for _ in range(2))
        holds = np.zeros(cells, bool)
        for at in reversed(range(len(moments))):
            if buffer in moments[at].writes:
                written[moments[at].writes[buffer], at] = True
                holds[moments[at].writes[buffer]] = False
            if buffer in moments[at].reads:
                holds[moments[at].reads[buffer]] = True
            live[:, at] = holds
        self.live[buffer], self.written[buffer] = live, written

    def during(self, stages: Collection[int] | None) -> Array:
        """The moments of these stages; the first begins with the copies of inputs, the last ends with outputs."""
        if stages is None:
            return np.ones(len(self.stages), bool)
        last = len(self.plan.program.stages) - 1
        return np.isin(np.clip(self.stages, 0, last), sorted(stages))

    def used(self, buffer: str, stages: Collection[int] | None = None) -> Array:
        """The cells that hold something in these stages, or are written."""
        return np.any((self.live[buffer] | self.written[buffer])[:, self.during(stages)], axis=1)

    def wrote(self, buffer: str, stages: Collection[int] | None = None) -> Array:
        return np.any(self.written[buffer][:, self.during(stages)], axis=1)

    def live_after(self, buffer: str, after: Collection[int], turns: Collection[tuple[int, int]]) -> Array:
        """The cells that hold something at the end of one of these stages, or of one of these turns."""
        found = np.zeros(len(self.live[buffer]), bool)
        for at in range(len(self.stages) - 1):
            here, there = (self.stages[at], self.turns[at]), (self.stages[at + 1], self.turns[at + 1])
            if here != there and (here in turns or (here[0] != there[0] and here[0] in after)):
                found |= self.live[buffer][:, at + 1]
        return found

    # What happens, moment by moment.

    def _moments(self, given: frozenset[str], held: frozenset[str]) -> Iterator[_Moment]:
        network, stages = self.network, self.plan.program.stages
        yield _Moment(-1, 0)
        for name in network.inputs:
            if name in self.plan.views and name not in given and name not in self._pulled:
                yield self._whole(-1, name, is_write=True)
        for number in range(len(stages)):
            yield from self._stage(number)
        last = _Moment(len(stages), 0)
        for name in {*network.outputs, *held}:
            if name in self.plan.views and self.plan.views[name].window is None:
                cells = self._cells(name, Region.whole(network.tensors[name].shape))
                last.add(self.plan.views[name].buffer, cells, False)
        yield last

    def _whole(self, stage: int, name: str, is_write: bool) -> _Moment:
        moment = _Moment(stage, 0)
        region = Region.whole(self.network.tensors[name].shape)
        moment.add(self.plan.views[name].buffer, self._cells(name, region), is_write)
        return moment

    def _stage(self, number: int) -> Iterator[_Moment]:
        program, stage = self.plan.program, self.plan.program.stages[number]
        assert stage.schedule.lanes == 1, "a part of an application runs on one core"
        sums = program.partial(stage)
        reserved = self._untouched(number)
        turns = list(program.turns(stage))
        for at, steps in enumerate(turns):
            moments = [self._sums(number, at, name) for name in sums] if at == 0 else []
            for step in steps:
                moments += self._step(number, at, step)
            if at == len(turns) - 1:
                moments += [self._finished(number, at, name) for name in sums]
            for moment in moments:
                for buffer, cells in reserved.items():
                    moment.add(buffer, cells, True)
                    moment.add(buffer, cells, False)
                yield moment

    def _untouched(self, number: int) -> dict[str, Array]:
        """Buffers without a tensor, which the kernels of a stage may use as they like."""
        own = {view.buffer for view in self.plan.views.values()}
        for stage in self.plan.program.stages:
            own |= {sums_name(name) for name in self.plan.program.partial(stage)}
        own |= {scratch_name(layer) for layer in self.network.by_name}
        return {
            b.name: np.arange(-(-b.size // self.cell))
            for b in self.plan.buffers
            if b.name not in own and b.first <= number <= b.last
        }

    def _sums(self, stage: int, turn: int, layer: str) -> _Moment:
        moment = _Moment(stage, turn)
        moment.add(*self._where_summed(layer), True)
        return moment

    def _finished(self, stage: int, turn: int, layer: str) -> _Moment:
        """Sums become the output, in the kernel's own order."""
        moment = self._whole(stage, self.network.by_name[layer].output, is_write=True)
        moment.turn = turn
        moment.add(*self._where_summed(layer), False)
        return moment

    def _where_summed(self, layer: str) -> tuple[str, Array]:
        name, output = sums_name(layer), self.network.by_name[layer].output
        if name in self.plan.buffer_named:
            return name, np.arange(self.network.tensors[output].size * 4 // self.cell)
        return self.plan.views[output].buffer, self._cells(output, Region.whole(self.network.tensors[output].shape))

    def _step(self, stage: int, turn: int, step: Step) -> list[_Moment]:
        layer, view = self.network.by_name[step.layer], self.plan.views[self.network.by_name[step.layer].output]
        for axis in view.tiled:
            self._origins[view.buffer, axis - len(view.strides)] = step.region.bounds[axis][0]
        found = []
        coming = _Moment(stage, turn)
        for name, needed in zip(layer.inputs, self.plan.program.needs(step), strict=True):
            if name in self._pulled and not needed.is_empty:
                axis = (self.plan.views[name].window or (0, 0))[0]
                for row in range(self._pulled[name], needed.bounds[axis][1]):
                    part = Region.whole(self.network.tensors[name].shape).with_axis(axis, (row, row + 1))
                    coming.add(self.plan.views[name].buffer, self._cells(name, part), True)
                self._pulled[name] = max(self._pulled[name], needed.bounds[axis][1])
        found += [coming] if coming.writes else []
        if step.partial is not None:
            moment = _Moment(stage, turn)
            self._read(moment, layer, self.plan.program.needs(step))
            buffer, cells = self._where_summed(step.layer)
            moment.add(buffer, cells, False)
            moment.add(buffer, cells, True)
            return [*found, moment]
        shapes = self.network.shapes(layer)
        is_alone = self.is_fine or len(self.plan.program.stages[stage].layers) == 1
        for atom in _atoms(step, layer.op.grain if is_alone else Grain.WHOLE):
            reading = _Moment(stage, turn)
            self._read(reading, layer, layer.op.needs(atom, shapes))
            # A kernel may read and write the numbers of one pixel in any order; one number is read, then written.
            is_in_order = (is_alone and layer.op.grain is Grain.ELEMENT) or step.sweep is Sweep.CHANNELS
            writing = _Moment(stage, turn) if is_in_order else reading
            writing.add(view.buffer, self._cells(layer.output, atom), True)
            if step.sweep is Sweep.CHANNELS:
                scratch = np.arange(-(-self.plan.buffer_named[scratch_name(step.layer)].size // self.cell))
                for moment in (reading, writing):
                    moment.add(scratch_name(step.layer), scratch, True)
                    moment.add(scratch_name(step.layer), scratch, False)
            found += [reading, writing] if is_in_order else [reading]
        return found

    def _read(self, moment: _Moment, layer: Layer, needs: Collection[Region]) -> None:
        for name, needed in zip(layer.inputs, needs, strict=True):
            if name not in self.network.constants and not needed.is_empty:
                moment.add(self.plan.views[name].buffer, self._cells(name, needed), False)

    def _cells(self, name: str, region: Region) -> Array:
        """The cells of its buffer that a region of a tensor lies in."""
        view, size = self.plan.views[name], self.network.tensors[name].dtype.bytes
        total: Array = np.array([view.offset])
        for axis, ((start, stop), stride) in enumerate(zip(region.bounds, view.strides, strict=True)):
            index = np.arange(start, stop)
            if axis in view.tiled:
                index = index - self._origins.get((view.buffer, axis - len(view.strides)), 0)
            if view.window is not None and axis == view.window[0]:
                index = index % view.window[1]
            total = np.add.outer(total, index * stride).ravel()
        starts = np.unique(total) // self.cell
        return np.unique(np.add.outer(starts, np.arange(-(-size // self.cell))))


def _atoms(step: Step, grain: Grain) -> Iterator[Region]:
    """What a kernel computes at a time, in the order of the sweep (`Grain`, `Sweep`)."""
    rank = len(step.region.bounds)
    if step.sweep is Sweep.CHANNELS:
        axes: range = range(rank - 1, rank)
    else:
        axes = range(rank if grain is Grain.ELEMENT else rank - 1 if grain is Grain.PIXEL else 0)
    found = []
    for index in product(*(range(*step.region.bounds[axis]) for axis in axes)):
        atom = step.region
        for axis, i in zip(axes, index, strict=True):
            atom = atom.with_axis(axis, (i, i + 1))
        found.append(atom)
    yield from reversed(found) if step.sweep is Sweep.BACKWARD else found
