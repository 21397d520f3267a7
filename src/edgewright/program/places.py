"""Where the regions of tensors lie while a plan is carried out: rows in windows that roll, tiles that move on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..errors import ModelError
from ..network import Array, Network, Region, Shape
from .plan import Buffer, Plan


@dataclass(frozen=True, slots=True)
class StoredPiece:
    """Part of a region that lies in memory with even strides."""

    index: tuple[slice, ...]  # which part: an index into the region
    memory: str
    offset: int  # bytes from the memory's start to its first element
    shape: Shape
    strides: tuple[int, ...]  # in bytes


class Places:
    """The addresses of a plan's tensors at one moment of its run."""

    def __init__(self, plan: Plan, network: Network) -> None:
        self.plan, self.network = plan, network
        self.buffers = plan.buffer_named
        # (buffer, axis from the end): the first index of the tile in it
        self._origins: dict[tuple[str, int], int] = {}
        self.lane = 0  # that is at work: buffers with a part for each lane are those of this one

    def start(self, buffer: Buffer) -> int:
        """The first byte of the copy of the buffer that belongs to the current lane."""
        return buffer.offset + (self.lane * buffer.part if buffer.lanes > 1 else 0)

    def turn_to(self, name: str, region: Region) -> None:
        """Makes the buffer of a tiled tensor hold this region of it from now on."""
        view = self.plan.views[name]
        for axis in view.tiled:
            self._origins[view.buffer, axis - len(view.strides)] = region.bounds[axis][0]

    def pieces(self, name: str, region: Region) -> list[StoredPiece]:
        """The region as it lies in memory; in several pieces only where a window rolls."""
        view = self.plan.views[name]
        if region.is_empty:
            return []
        if view.window is None:
            return [self._piece(name, (slice(None),) * len(region.bounds), region, region.shape)]
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
            pieces.append(self._piece(name, index, stored, stored.shape))
            at = end
        return pieces

    def addresses(self, name: str, region: Region) -> Array:
        """The address of each element's first byte."""
        view = self.plan.views[name]
        total: Array = np.full((1,) * len(region.bounds), self.start(self.buffers[view.buffer]) + view.offset)
        stored = self._stored(name, region)
        for axis, ((start, stop), stride) in enumerate(zip(stored.bounds, view.strides, strict=True)):
            index = np.arange(start, stop)
            if view.window and axis == view.window[0]:
                index = index % view.window[1]
            shape = [1] * len(region.bounds)
            shape[axis] = stop - start
            total = total + (index * stride).reshape(shape)
        return np.broadcast_to(total, region.shape)

    def may_meet(self, source: str, read: Region, target: str, written: Region) -> bool:
        """Whether the address ranges of two regions intersect at all."""
        low, high = self.shared_range(source, read, target, written)
        return low < high

    def shared_range(self, source: str, read: Region, target: str, written: Region) -> tuple[int, int]:
        """The addresses that lie in the ranges of both regions: a first one, and one past the last."""
        views = self.plan.views[source], self.plan.views[target]
        one, other = (self.buffers[view.buffer].memory for view in views)
        if one != other:
            return 0, 0
        (a, b), (c, d) = self._range(source, read), self._range(target, written)
        return max(a, c), min(b, d)

    def _range(self, name: str, region: Region) -> tuple[int, int]:
        view = self.plan.views[name]
        buffer = self.buffers[view.buffer]
        start = self.start(buffer) + view.offset
        if view.window:
            return start, self.start(buffer) + buffer.part
        steps = list(zip(self._stored(name, region).bounds, view.strides, strict=True))
        first = start + sum(a * stride for (a, _), stride in steps)
        last = start + sum((b - 1) * stride for (_, b), stride in steps)
        return first, last + self.network.tensors[name].dtype.bytes

    def _stored(self, name: str, region: Region) -> Region:
        """Where the region lies along tiled axes."""
        view = self.plan.views[name]
        for axis in view.tiled:
            start, stop = region.bounds[axis]
            origin = self._origins.get((view.buffer, axis - len(view.strides)), 0)
            region = region.with_axis(axis, (start - origin, stop - origin))
        return region

    def _piece(self, name: str, index: tuple[slice, ...], region: Region, shape: Shape) -> StoredPiece:
        view = self.plan.views[name]
        buffer = self.buffers[view.buffer]
        stored = self._stored(name, region)
        offset = view.offset + sum(a * stride for (a, _), stride in zip(stored.bounds, view.strides, strict=True))
        if view.tiled:
            reach = view.offset + sum((b - 1) * s for (_, b), s in zip(stored.bounds, view.strides, strict=True))
            reach += self.network.tensors[name].dtype.bytes
            if min(a for a, _ in stored.bounds) < 0 or reach > buffer.part:
                raise ModelError(f"a tile of '{name}' does not lie in its buffer '{view.buffer}'")
        return StoredPiece(index, buffer.memory, self.start(buffer) + offset, shape, view.strides)


def cells_of(memory: Array, piece: StoredPiece, element: int, grid: int = 1) -> Array:
    """The cells of `grid` bytes that a piece lies in: its own shape, with an axis for the cells of an element."""
    size = memory.dtype.itemsize
    return np.ndarray(
        (*piece.shape, element // grid),
        memory.dtype,
        memory.data,
        piece.offset // grid * size,
        (*(stride // grid * size for stride in piece.strides), size),
    )


class LaneTouches:
    """The cells of memory that the lanes of a stage read and write: of the lane at work, and of all before it.

    Lanes run at the same time, so none may write what another touches. Each is carried out on memory as the stage
    found it; here it is noted which cells it touches, and afterwards which of them others touch too.
    """

    def __init__(self, memories: Mapping[str, Array]) -> None:
        self._sizes = {name: memory.size for name, memory in memories.items()}
        self.read, self.written = self._nothing(), self._nothing()
        self._read_before, self._written_before = self._nothing(), self._nothing()

    def next_lane(self) -> Mapping[str, Array]:
        """Ends the lane at work: the cells that it shares with one before it, and that one of the two writes."""
        contested = {
            name: (self.written[name] & (self._read_before[name] | self._written_before[name]))
            | (self.read[name] & self._written_before[name])
            for name in self._sizes
        }
        for name in self._sizes:
            self._read_before[name] |= self.read[name]
            self._written_before[name] |= self.written[name]
        self.read, self.written = self._nothing(), self._nothing()
        return contested

    def _nothing(self) -> dict[str, Array]:
        return {name: np.zeros(size, bool) for name, size in self._sizes.items()}
