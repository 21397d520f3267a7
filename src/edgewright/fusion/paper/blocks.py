"""The blocks of fused tiling paths (S fig. 4.11), and the blocks that a layer can become."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import groupby, pairwise
from math import lcm, prod

from ...network import Interval, Layer, Network, Region, Shape
from ...network import operators as ops
from ...program import CHANNELS, COLUMNS, ROWS, rows_needed
from ...program.legal import can_sum


class Terminal(Enum):
    """How a tensor is split where a block reads or writes it."""

    I = "I"  # noqa: E741  path start: whole, about to be split
    O = "O"  # noqa: E741  path end: recombined
    PD_D = "PD_D"  # partitioned along its channels
    PD_FM = "PD_FM"  # partitioned along rows, columns or both of its feature maps


Joins = tuple[tuple[Terminal, Terminal], ...]

_WINDOWS = (ops.Conv2d, ops.ConvTranspose2d, ops.MaxPool2d, ops.AvgPool2d, ops.Resize)
_FAN_OUT: Joins = ((Terminal.I, Terminal.PD_D),)
_FAN_IN: Joins = ((Terminal.PD_D, Terminal.O),)
_MAPS: Joins = ((Terminal.PD_FM, Terminal.PD_FM),)


class Block(Enum):
    """What an operation in a path becomes; SPLIT and CONCAT are inserted, the others replace an operation."""

    SPLIT = ((*_FAN_OUT, (Terminal.I, Terminal.PD_FM)), ())
    FDTO = (_FAN_OUT, (ops.Conv2d, ops.ConvTranspose2d, ops.Dense, ops.Gather))
    PART = (
        ((Terminal.PD_D, Terminal.PD_D), *_MAPS),
        (ops.Elementwise, *_WINDOWS, ops.Pad, ops.Reduce, ops.Reshape),
    )
    CONCAT = ((*_FAN_IN, (Terminal.PD_FM, Terminal.O)), ())
    FDTI = (_FAN_IN, (ops.Conv2d, ops.Dense))
    FFMT = (_MAPS, _WINDOWS)

    def __init__(self, joins: Joins, operators: tuple[type, ...]) -> None:
        self.joins = joins  # valid pairs of terminals at its input and output
        self.operators = operators


@dataclass(frozen=True)
class Partition:
    """A tensor divided into equal parts along channels (PD_D), or along rows, columns or both (PD_FM)."""

    cuts: tuple[tuple[int, int], ...]  # axis, number of parts

    @property
    def terminal(self) -> Terminal:
        return Terminal.PD_D if self.axes == (CHANNELS,) else Terminal.PD_FM

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(axis for axis, _ in self.cuts)

    @property
    def parts(self) -> int:
        return prod(parts for _, parts in self.cuts)

    def __str__(self) -> str:
        names = {CHANNELS: "channels", ROWS: "rows", COLUMNS: "columns"}
        axes = " and ".join(names[axis] for axis in self.axes)
        return f"{self.terminal.value} along {axes}, N={'x'.join(str(parts) for _, parts in self.cuts)}"


def matches(network: Network, layer: Layer, source: str, partition: Partition) -> tuple[Block, ...]:
    """The blocks for a layer whose output (FDTO), input `source` (FDTI) or both are partitioned."""
    return tuple(block for block in Block if _suits(network, layer, source, partition, block))


def _suits(network: Network, layer: Layer, source: str, partition: Partition, block: Block) -> bool:
    if not isinstance(layer.op, block.operators):
        return False
    if block is Block.FDTO:
        return partition.terminal is Terminal.PD_D and _fans_out(network, layer, source, partition.parts)
    if block is Block.FDTI:
        return partition.terminal is Terminal.PD_D and _fans_in(network, layer, source)
    if partition.terminal is Terminal.PD_D:
        runs = channel_runs(network, layer, source) if block is Block.PART else None
        return runs is not None and partition.parts <= network.tensors[layer.output].shape[CHANNELS] // runs[0]
    wanted = Block.FFMT if isinstance(layer.op, _WINDOWS) else Block.PART
    return block is wanted and all(_moves(network, layer, source, axis, n) for axis, n in partition.cuts)


def _fans_out(network: Network, layer: Layer, source: str, parts: int) -> bool:
    """Whether every channel is computed from all inputs that are read."""
    shape = network.tensors[layer.output].shape
    if not shape:
        return False
    which, shapes = layer.inputs.index(source), network.shapes(layer)
    whole = Region.whole(shape)
    one = layer.op.needs(whole.with_axis(len(shape) - 1, (0, 1)), shapes)[which]
    return parts <= shape[-1] and one == layer.op.needs(whole, shapes)[which]


def _fans_in(network: Network, layer: Layer, source: str) -> bool:
    """Whether each input channel contributes a separate sum to the whole output."""
    return source == layer.inputs[0] and can_sum(network, layer, CHANNELS)


def _moves(network: Network, layer: Layer, source: str, axis: int, parts: int) -> bool:
    """Whether the output has this many rows (or columns), and they read different ones of the input."""
    shape = network.tensors[layer.output].shape
    if len(shape) != 4 or shape[axis] < parts:
        return False
    rows = rows_needed(network, layer, source, axis)
    return rows is not None and rows[0] != rows[-1]


def channel_runs(network: Network, layer: Layer, source: str) -> tuple[int, int] | None:
    """(n, m): every n output channels are computed from their own m input channels; None if they mix."""
    shapes, out = network.shapes(layer), network.tensors[layer.output].shape
    which = layer.inputs.index(source)
    return _runs(layer.op, shapes, which, out) if out and shapes[which] else None  # scalars have no channels


@lru_cache(maxsize=4096)
def _runs(op: ops.Op, shapes: tuple[Shape, ...], which: int, out: Shape) -> tuple[int, int] | None:
    channels = list(_channels_read(op, shapes, which, out))
    runs = [(len(list(same)), stop - start) for (start, stop), same in groupby(channels)]
    at = [start for (start, _), _ in groupby(channels)]
    is_dense = len(set(runs)) == 1 and at == [index * runs[0][1] for index in range(len(runs))]
    return runs[0] if is_dense and runs[0][1] > 0 and len(runs) * runs[0][1] == shapes[which][-1] else None


def _channels_read(op: ops.Op, shapes: tuple[Shape, ...], which: int, out: Shape) -> Iterator[Interval]:
    whole = Region.whole(out)
    for channel in range(out[-1]):
        yield op.needs(whole.with_axis(len(out) - 1, (channel, channel + 1)), shapes)[which].bounds[-1]


def with_runs(unit: int, runs: tuple[int, int]) -> int:
    """The required multiple for parts of a layer's output, if parts of its input are multiples of `unit`."""
    written, read = runs
    return lcm(unit, read) // read * written


def overlaps(network: Network, layer: Layer, source: str, partition: Partition) -> bool:
    """Whether neighbours along a split axis read the same elements: a kernel larger than its stride (S 4.3.3)."""
    rows = [rows_needed(network, layer, source, axis) for axis in partition.axes if axis != CHANNELS]
    return any(below[0] < above[1] for ranges in rows if ranges for above, below in pairwise(ranges))
