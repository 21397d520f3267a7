"""What is executed, as data: steps over regions; loops, streams and tiles of steps; stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from ..network import Region
from .rows import ROWS


class Sweep(Enum):
    """In which order a kernel works through its region. Part of the contract that shared memory relies on."""

    FORWARD = "forward"  # row-major
    BACKWARD = "backward"  # row-major, from the last to the first
    CHANNELS = "channels"  # one channel plane after the other, each computed in scratch before it is written


@dataclass(frozen=True, slots=True)
class Step:
    """Compute one region of one layer's output from the regions of its inputs that it needs."""

    layer: str
    region: Region
    sweep: Sweep = Sweep.FORWARD
    # How far the region moves with each repetition of the loops around it, outermost first.
    moves: tuple[tuple[int, ...], ...] = ()
    # The part of the first input that is added to the layer's running sums; they become output when the stage ends.
    share: Region | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """`count` repetitions of a body: a regular series of steps, so that code does not grow with the number of parts."""

    count: int
    body: tuple[Step | Loop, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """Layers that hand each pixel on to the next one alone: one step of a stream, with nothing kept in between."""

    steps: tuple[Step, ...]  # of each layer the first; each next one follows right below
    width: int = 0  # columns in a go; 0 for whole rows

    @property
    def last(self) -> Step:
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class Stream:
    """A stretch of layers row by row, on demand: the last ones are driven, the others asked for rows (see `stream`)."""

    units: tuple[Unit, ...]  # producers come first
    sinks: tuple[str, ...]  # the layers that are driven to their end, each the last of its unit
    axis: int = ROWS

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for unit in self.units for step in unit.steps)


@dataclass(frozen=True, slots=True)
class Tiles:
    """A stretch of layers part by part: each part of the last layers with all that it needs (see `tiling`).

    Along rows or columns it is fused feature map tiling (FFMT), the halo computed again; along channels fused
    depthwise tiling (FDT). Steps in the body say the whole; what a part needs of it follows from the operators.
    """

    axis: int  # of every tensor inside; -1 for channels
    ends: tuple[int, ...]  # where each part of the last layers ends
    body: tuple[Step | Stream | Tiles, ...]
    sinks: tuple[str, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(_written(self.body))


Item = Step | Loop | Stream | Tiles


@dataclass(frozen=True, slots=True)
class Stage:
    """One layer, or a stretch of layers fused into loops. Lifetimes of buffers are counted in stages."""

    name: str
    body: tuple[Item, ...]

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that it executes, in the order in which they are first named."""
        return tuple(dict.fromkeys(step.layer for step in _written(self.body)))

    @property
    def summing(self) -> tuple[str, ...]:
        """The layers whose output is summed up share by share."""
        return tuple(dict.fromkeys(step.layer for step in _written(self.body) if step.share))


def _written(body: Sequence[Item]) -> Iterator[Step]:
    for item in body:
        if isinstance(item, Step):
            yield item
        else:
            yield from item.steps if isinstance(item, Stream) else _written(item.body)
