"""What is executed, as data: steps over regions, loops and streams of steps, stages."""

from __future__ import annotations

from collections.abc import Iterator
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


@dataclass(frozen=True, slots=True)
class Loop:
    """`count` repetitions of a body: a regular series of steps, so that code does not grow with the number of parts."""

    count: int
    body: tuple[Step | Loop, ...]


@dataclass(frozen=True, slots=True)
class Stream:
    """A stretch of layers row by row, on demand: the last ones are driven, the others asked for rows (see `stream`)."""

    steps: tuple[Step, ...]  # of each layer the first; each next one follows right below. Producers come first
    sinks: tuple[str, ...]  # the layers that are driven to their end
    axis: int = ROWS


Item = Step | Loop | Stream


@dataclass(frozen=True, slots=True)
class Stage:
    """One layer, or a stretch of layers fused into loops. Lifetimes of buffers are counted in stages."""

    name: str
    body: tuple[Item, ...]

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that it executes, in the order in which they are first named."""
        return tuple(dict.fromkeys(step.layer for step in _written(self.body)))


def _written(body: tuple[Item, ...]) -> Iterator[Step]:
    for item in body:
        if isinstance(item, Step):
            yield item
        else:
            yield from item.steps if isinstance(item, Stream) else _written(item.body)
