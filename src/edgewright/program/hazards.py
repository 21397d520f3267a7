"""Which input elements a step would read after it has itself overwritten them: the interpreter's view of time.

Nothing here is shared with the planner's safe distances (`memory.overlap`): stamps are found by asking the operator,
atom by atom along each axis, what it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

import numpy as np

from ..network import Array, Region, Shape
from ..network.operators import Grain, Op
from .steps import Sweep


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


def last_reads(
    op: Op,
    out: Region,
    shapes: Sequence[Shape],
    which: int,
    needed: Region,
    axes: Sequence[int],
    sweep: Sweep,
) -> Array:
    """For each element of the needed region of input `which`: the time of the last atom that reads it, or -1.

    Operators read boxes whose extent along each axis follows one output axis, so the last atom is found axis by
    axis. The times count atoms in the order of the sweep.
    """
    sizes = [out.shape[axis] for axis in axes]
    backward = sweep is Sweep.BACKWARD
    total = prod(sizes)
    time: Array = np.zeros((1,) * len(needed.bounds), dtype=np.int64)
    never: Array = np.zeros((1,) * len(needed.bounds), dtype=bool)
    for position, axis in enumerate(axes):
        begin, size = out.bounds[axis][0], sizes[position]
        boxes = []
        for i in range(size):
            part = out.with_axis(axis, (begin + i, begin + i + 1))
            boxes.append(op.needs(part, shapes)[which])
        varying = [k for k in range(len(needed.bounds)) if any(box.bounds[k] != needed.bounds[k] for box in boxes)]
        last: Array = np.full(
            tuple(n if k in varying else 1 for k, n in enumerate(needed.shape)), -1, dtype=np.int64
        )
        for i in reversed(range(size)) if backward else range(size):
            if boxes[i].is_empty:
                continue
            bounds = zip(boxes[i].bounds, needed.bounds, strict=True)
            index = tuple(
                slice(b[0] - n[0], b[1] - n[0]) if k in varying else slice(None) for k, (b, n) in enumerate(bounds)
            )
            last[index] = i
        never = never | (last < 0)
        time = time + last * prod(sizes[position + 1 :])
    if backward:
        time = total - 1 - time
    stamped: Array = np.where(never, -1, time)
    return np.broadcast_to(stamped, needed.shape)


def write_times(out: Region, axes: Sequence[int], sweep: Sweep) -> Array:
    """For each element of the output region: the time of the atom that writes it."""
    sizes = [out.shape[axis] for axis in axes]
    time: Array = np.zeros((1,) * len(out.bounds), dtype=np.int64)
    for position, axis in enumerate(axes):
        shape = [1] * len(out.bounds)
        shape[axis] = sizes[position]
        time = time + np.arange(sizes[position]).reshape(shape) * prod(sizes[position + 1 :])
    if sweep is Sweep.BACKWARD:
        time = prod(sizes) - 1 - time
    return np.broadcast_to(time, out.shape)


def overwritten(
    reads: Array,
    read_at: Array,
    writes: Array,
    write_at: Array,
    read_bytes: int,
    write_bytes: int,
    strict: bool,
) -> Array:
    """Which of the elements read are overwritten too early.

    `reads`, `writes`: the address of each element's first byte; `read_at`, `write_at`: times as above. `strict`: a
    write in the same atom already spoils the read (reads and writes of an atom come in any order).
    """
    low = max(int(reads.min()), int(writes.min()))
    high = min(int(reads.max()) + read_bytes, int(writes.max()) + write_bytes)
    spoiled: Array = np.zeros(reads.shape, dtype=bool)
    if low >= high:
        return spoiled
    grid = gcd(read_bytes, write_bytes)
    if ((reads - low) % grid).any() or ((writes - low) % grid).any():
        grid = 1
    # The earliest write to each granule of the shared range; never is a time after all.
    never = np.iinfo(np.int64).max
    first_write = np.full((high - low + grid - 1) // grid, never, dtype=np.int64)
    for k in range(0, write_bytes, grid):
        at = writes + k
        inside = (at >= low) & (at < high)
        np.minimum.at(first_write, (at[inside] - low) // grid, write_at[inside])
    for k in range(0, read_bytes, grid):
        at = reads + k
        inside = (at >= low) & (at < high)
        writing = first_write[(at[inside] - low) // grid]
        spoiled[inside] |= (writing <= read_at[inside]) if strict else (writing < read_at[inside])
    return spoiled
