"""How far a layer's output may trail its dying input in the same memory.

While a layer consumes X and produces Y, let w(t) be how far Y has been written after atom t and r(t) the first byte
of X still to be read. Y may lie so that offset(Y) + w(t) <= offset(X) + r(t) for all t (diagonal memory optimisation,
arXiv 2010.01668; vMCU, MLSys'24). Sweeping backwards gives the mirror image. The interpreter proves each distance it
is given (`program.hazards` shares nothing with this file).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..network import Array, Layer, Network, Region, Shape
from ..network.operators import Conv2d, Grain, Op
from .layout.problem import align_up

MOST_ATOMS = 1 << 22  # above this, an irregular element-wise operator is not worth tracing


@dataclass(frozen=True, slots=True)
class Distance:
    """Y may lie at offset(X) + delta when delta <= -below (sweeping forwards) or delta >= above (backwards)."""

    below: int
    above: int


def distance(network: Network, layer: Layer, source: str) -> Distance:
    """The safe distances between a layer's output and one of its inputs, both lying densely."""
    x, y = network.tensors[source], network.tensors[layer.output]
    apart = Distance(below=y.bytes, above=x.bytes)
    found = apart
    for which, name in enumerate(layer.inputs):
        if name != source:
            continue
        one = _distance(layer.op, network.shapes(layer), which, y.shape, x.dtype.bytes, y.dtype.bytes)
        if one is None:
            return apart
        # An input that is read twice must be safe for both.
        found = one if found is apart else Distance(max(found.below, one.below), max(found.above, one.above))
    return Distance(min(found.below, apart.below), min(found.above, apart.above))


def most_shared(x: int, y: int, safe: Distance, alignment: int = 1) -> int:
    """The most bytes that X (of x bytes) and Y (of y bytes) can share at aligned offsets."""
    below, above = align_up(safe.below, alignment), align_up(safe.above, alignment)
    best = 0
    for delta in (-below, above, 0, _down(x - y, alignment), align_up(x - y, alignment)):
        if delta <= -below or delta >= above:
            best = max(best, min(x, delta + y) - max(0, delta))
    return best


def plane_scratch(network: Network, layer: Layer, source: str, alignment: int = 1) -> int | None:
    """Bytes of scratch with which a depthwise layer can work exactly in place, channel by channel (Sweep.CHANNELS).

    None where it cannot: each output channel must depend on its own input channel alone, at the same size. Scratch is
    counted in whole words.
    """
    x, y = network.tensors[source], network.tensors[layer.output]
    depthwise = isinstance(layer.op, Conv2d) and layer.op.groups == x.shape[-1] == y.shape[-1]
    if not depthwise or x.shape != y.shape or x.dtype is not y.dtype or layer.inputs[0] != source:
        return None
    return align_up(y.bytes // y.shape[-1], alignment)


def _down(value: int, alignment: int) -> int:
    return value // alignment * alignment


@lru_cache(maxsize=4096)
def _distance(
    op: Op, shapes: tuple[Shape, ...], which: int, out: Shape, read_bytes: int, write_bytes: int
) -> Distance | None:
    """The distance by the trace of the operator's atoms; None if the operator promises nothing or is irregular."""
    x = shapes[which]
    if op.grain is Grain.WHOLE:
        return None
    elementwise = op.grain is Grain.ELEMENT
    whole = Region.whole(out)
    if elementwise and op.needs(whole, shapes)[which].shape == out == x and _is_identity(op, shapes, which, out):
        return _in_step(whole.size, read_bytes, write_bytes)
    axes = range(len(out) if elementwise else len(out) - 1)
    atoms = int(np.prod([out[axis] for axis in axes], dtype=np.int64))
    if elementwise and atoms > MOST_ATOMS:
        return None
    ends = _read_ranges(op, shapes, which, out, axes, read_bytes)
    if ends is None:
        return None
    first, last = ends
    per_atom = write_bytes * (1 if elementwise else out[-1])
    begin = np.arange(atoms, dtype=np.int64) * per_atom
    # Forwards: what this atom and all later ones read lies at or after `ahead`.
    ahead = np.minimum.accumulate(first[::-1])[::-1]
    behind = np.maximum.accumulate(last)
    if elementwise:  # an element is read before it is written, so only the others count
        below = (begin + per_atom)[:-1] - ahead[1:]
        above = behind[:-1] - begin[1:]
    else:
        below = begin + per_atom - ahead
        above = behind - begin
    return Distance(int(below.max(initial=-_FAR)), int(above.max(initial=-_FAR)))


_FAR = 1 << 60  # beyond any address: the first byte read by an atom that reads nothing


def _in_step(atoms: int, read_bytes: int, write_bytes: int) -> Distance:
    """Element i is read from and written to the i-th place: m * (write - read) bytes apart after m elements."""
    drift = write_bytes - read_bytes
    ends = [m * drift for m in ((1, atoms - 1) if atoms > 1 else ())]
    return Distance(max(ends, default=-_FAR), max((-end for end in ends), default=-_FAR))


def _is_identity(op: Op, shapes: Sequence[Shape], which: int, out: Shape) -> bool:
    """Whether each output element reads just the input element at the same place, probed at the far corners."""
    corners = (
        Region(tuple((0, 1) for _ in out)),
        Region(tuple((n - 1, n) for n in out)),
        *(
            Region(tuple((n - 1, n) if k == axis else (0, 1) for k, n in enumerate(out)))
            for axis in range(len(out))
        ),
    )
    return all(op.needs(corner, shapes)[which] == corner for corner in corners)


@lru_cache(maxsize=64)
def _slabs(op: Op, shapes: tuple[Shape, ...], out: Shape, axis: int) -> tuple[tuple[Region, ...], ...]:
    """What each index along an output axis reads of every input, the other axes whole."""
    whole = Region.whole(out)
    return tuple(op.needs(whole.with_axis(axis, (i, i + 1)), shapes) for i in range(out[axis]))


def _read_ranges(
    op: Op, shapes: tuple[Shape, ...], which: int, out: Shape, axes: range, size: int
) -> tuple[Array, Array] | None:
    """For each atom, in row-major order: the first byte that it reads and the one after the last.

    The box an atom reads follows, axis by axis, from the output axes; None if two of them move the same input axis.
    """
    x = shapes[which]
    strides = [size * int(np.prod(x[k + 1 :], dtype=np.int64)) for k in range(len(x))]
    whole = Region.whole(out)
    base = op.needs(whole, shapes)[which].bounds
    grid = tuple(out[axis] for axis in axes)
    first: Array = np.full(grid, sum(b[0] * s for b, s in zip(base, strides, strict=True)), dtype=np.int64)
    last: Array = np.full(grid, sum((b[1] - 1) * s for b, s in zip(base, strides, strict=True)) + size)
    moved: set[int] = set()
    for axis in axes:
        boxes = [needs[which] for needs in _slabs(op, shapes, out, axis)]
        varying = {k for k in range(len(x)) if any(box.bounds[k] != base[k] for box in boxes)}
        if varying & moved:
            return None
        moved |= varying
        shape = tuple(out[axis] if a == axis else 1 for a in axes)
        later = [sum((box.bounds[k][0] - base[k][0]) * strides[k] for k in varying) for box in boxes]
        sooner = [sum((base[k][1] - box.bounds[k][1]) * strides[k] for k in varying) for box in boxes]
        empty = np.array([box.is_empty for box in boxes]).reshape(shape)
        first = np.where(empty, _FAR, np.minimum(first + np.array(later).reshape(shape), _FAR))
        last = np.where(empty, -_FAR, np.maximum(last - np.array(sooner).reshape(shape), -_FAR))
    return first.reshape(-1), last.reshape(-1)
