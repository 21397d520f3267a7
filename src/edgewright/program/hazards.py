"""The input elements that a step would read after it has itself overwritten them.

Nothing here is shared with the planner's safe distances (`memory.overlap`): stamps are found by asking the operator,
atom by atom along each axis, what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from ..network import Array, Layer, Region, Shape
from ..network.operators import Grain, Op
from .places import Places
from .steps import Step, Sweep

MOST_AT_ONCE = 1 << 20  # elements that are looked at together, so that large images take little memory


def atom_axes(grain: Grain, sweep: Sweep, rank: int) -> tuple[int, ...]:
    """The output axes whose indices number the atoms of a step, slowest first."""
    if sweep is Sweep.CHANNELS:
        return (rank - 1,)
    match grain:
        case Grain.ELEMENT:
            return tuple(range(rank))
        case Grain.PIXEL:
            return tuple(range(rank - 1))
        case Grain.WHOLE:
            return ()


@dataclass(frozen=True)
class TouchTimes:
    """The time at which each element of a region is touched, counted in atoms, or -1 for never. Times are kept as one
    term per axis, which broadcast to the region."""

    shape: Shape
    terms: tuple[Array, ...] = ()
    never: tuple[Array, ...] = ()  # where one is true, nothing touches the element
    last: int | None = None  # the number of the last atom, where they are counted backwards

    def part(self, region: Sequence[slice]) -> Array:
        """The times of a part of the region."""
        shape = tuple(len(range(*s.indices(n))) for s, n in zip(region, self.shape, strict=True))
        time: Array = np.zeros((1,) * len(shape), dtype=np.int64)
        for term in self.terms:
            time = time + term[_within(term, region)]
        if self.last is not None:
            time = self.last - time
        for never in self.never:
            time = np.where(never[_within(never, region)], -1, time)
        return np.broadcast_to(time, shape)


def _within(term: Array, region: Sequence[slice]) -> tuple[slice, ...]:
    return tuple(slice(None) if n == 1 else s for n, s in zip(term.shape, region, strict=True))


def overwritten_before_read(
    places: Places, step: Step, layer: Layer, which: int, name: str, needed: Region
) -> Iterator[tuple[tuple[slice, ...], Array]]:
    """The elements of an input that the step overwrites before it reads them, by bounded parts of the region."""
    network = places.network
    source, target = places.plan.views[name], places.plan.views[layer.output]
    x, y = network.tensors[name], network.tensors[layer.output]
    if needed.is_empty or not places.may_meet(name, needed, layer.output, step.region):
        return
    if layer.op.grain is Grain.ELEMENT and source == target and x.dtype is y.dtype and needed == step.region:
        return  # each element is read just before it is overwritten
    if layer.op.grain is Grain.WHOLE and step.sweep is not Sweep.CHANNELS:
        read_at, write_at = TouchTimes(needed.shape), TouchTimes(step.region.shape)
    else:
        axes = atom_axes(layer.op.grain, step.sweep, len(step.region.bounds))
        shapes = network.shapes(layer)
        read_at = last_reads(layer.op, step.region, shapes, which, needed, axes, step.sweep)
        write_at = write_times(step.region, axes, step.sweep)
    # Reads and writes of an atom come in any order, unless it is one element, or a channel computed in scratch.
    strict = layer.op.grain is not Grain.ELEMENT and step.sweep is not Sweep.CHANNELS
    low, high = places.shared_range(name, needed, layer.output, step.region)
    first_write = _FirstWrites(low, high, _grid(places, (name, layer.output)))
    for part, region in _parts(step.region):
        if places.may_meet(name, needed, layer.output, region):
            first_write.add(places.addresses(layer.output, region), write_at.part(part), y.dtype.bytes)
    for part, region in _parts(needed):
        if not places.may_meet(name, region, layer.output, step.region):
            continue
        overwritten = first_write.before(places.addresses(name, region), read_at.part(part), x.dtype.bytes, strict)
        if overwritten is not None:
            yield part, overwritten


def _grid(places: Places, names: Sequence[str]) -> int:
    """The greatest common divisor of all addresses of these tensors, in bytes."""
    numbers = []
    for name in names:
        view = places.plan.views[name]
        numbers += [places.start(places.buffers[view.buffer]) + view.offset, *view.strides]
        numbers.append(places.network.tensors[name].dtype.bytes)
    return gcd(*numbers)


def _parts(region: Region) -> Iterator[tuple[tuple[slice, ...], Region]]:
    """The region in boxes of bounded size, each with its index into the region. The longest axis is cut first."""
    if region.size <= MOST_AT_ONCE:
        yield (slice(None),) * len(region.bounds), region
        return
    axis = max(range(len(region.bounds)), key=region.shape.__getitem__)
    start, stop = region.bounds[axis]
    size = max(1, region.shape[axis] * MOST_AT_ONCE // region.size)
    for at in range(start, stop, size):
        end = min(at + size, stop)
        index = tuple(slice(at - start, end - start) if k == axis else slice(None) for k in range(len(region.bounds)))
        yield index, region.with_axis(axis, (at, end))


class _FirstWrites:
    """The time of the first write to each cell of a range of memory."""

    def __init__(self, low: int, high: int, grid: int) -> None:
        self.low, self.high, self.grid = low, high, grid
        self.times = np.full(-(-(high - low) // grid), np.iinfo(np.int64).max)  # never is a time after all

    def add(self, addresses: Array, times: Array, size: int) -> None:
        for k in range(0, size, self.grid):
            inside = (addresses + k >= self.low) & (addresses + k < self.high)
            np.minimum.at(self.times, (addresses[inside] + k - self.low) // self.grid, times[inside])

    def before(self, addresses: Array, times: Array, size: int, strict: bool) -> Array | None:
        """The elements written before their given times, or at them too if `strict`; None if there are none."""
        earlier: Array = np.zeros(addresses.shape, dtype=bool)
        for k in range(0, size, self.grid):
            inside = (addresses + k >= self.low) & (addresses + k < self.high)
            writing = self.times[(addresses[inside] + k - self.low) // self.grid]
            earlier[inside] |= (writing <= times[inside]) if strict else (writing < times[inside])
        return earlier if earlier.any() else None


def last_reads(
    op: Op, out: Region, shapes: Sequence[Shape], which: int, needed: Region, axes: Sequence[int], sweep: Sweep
) -> TouchTimes:
    """For each element of the needed region of input `which`: the time of the last atom that reads it, or -1.

    Operators read boxes whose extent along each axis follows one output axis, so the last atom is found axis by
    axis. The times count atoms in the order of the sweep.
    """
    if op.grain is Grain.ELEMENT and needed == out:  # each element is read once, for the one that takes its place
        return write_times(out, axes, sweep)
    sizes = [out.shape[axis] for axis in axes]
    backward = sweep is Sweep.BACKWARD
    terms, never = [], []
    for position, axis in enumerate(axes):
        begin, size = out.bounds[axis][0], sizes[position]
        boxes = []
        for i in range(size):
            part = out.with_axis(axis, (begin + i, begin + i + 1))
            boxes.append(op.needs(part, shapes)[which])
        varying = [k for k in range(len(needed.bounds)) if any(box.bounds[k] != needed.bounds[k] for box in boxes)]
        last: Array = np.full(tuple(n if k in varying else 1 for k, n in enumerate(needed.shape)), -1, dtype=np.int64)
        for i in reversed(range(size)) if backward else range(size):
            if boxes[i].is_empty:
                continue
            bounds = zip(boxes[i].bounds, needed.bounds, strict=True)
            index = tuple(
                slice(b[0] - n[0], b[1] - n[0]) if k in varying else slice(None) for k, (b, n) in enumerate(bounds)
            )
            last[index] = i
        never.append(last < 0)
        terms.append(last * prod(sizes[position + 1 :]))
    return TouchTimes(needed.shape, tuple(terms), tuple(never), prod(sizes) - 1 if backward else None)


def write_times(out: Region, axes: Sequence[int], sweep: Sweep) -> TouchTimes:
    """For each element of the output region: the time of the atom that writes it."""
    sizes = [out.shape[axis] for axis in axes]
    terms = []
    for position, axis in enumerate(axes):
        shape = [1] * len(out.bounds)
        shape[axis] = sizes[position]
        terms.append(np.arange(sizes[position]).reshape(shape) * prod(sizes[position + 1 :]))
    return TouchTimes(out.shape, tuple(terms), (), prod(sizes) - 1 if sweep is Sweep.BACKWARD else None)
