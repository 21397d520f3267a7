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
from math import prod

import numpy as np

from ..network import Array, Layer, Network, Region, Shape
from ..network.operators import Conv2d, Grain, Op
from .layout.problem import align_up

MOST_INDICES = 1 << 16  # along an axis; larger layers that are not element-wise are not traced


@dataclass(frozen=True, slots=True)
class Distance:
    """Y may lie at offset(X) + delta when delta <= -below (sweeping forwards) or delta >= above (backwards)."""

    below: int
    above: int


def distance(network: Network, layer: Layer, source: str) -> Distance:
    """The safe distances between a layer's output and one of its inputs, both dense."""
    x, y = network.tensors[source], network.tensors[layer.output]
    apart = Distance(below=y.bytes, above=x.bytes)
    safe = apart
    for which, name in enumerate(layer.inputs):
        if name != source:
            continue
        one = _distance(layer.op, network.shapes(layer), which, y.shape, x.dtype.bytes, y.dtype.bytes)
        if one is None:
            return apart
        # An input that is read twice must be safe for both.
        safe = one if safe is apart else Distance(max(safe.below, one.below), max(safe.above, one.above))
    return Distance(min(safe.below, apart.below), min(safe.above, apart.above))


def most_shared(x: int, y: int, safe: Distance, alignment: int = 1) -> int:
    """The most bytes that X (of x bytes) and Y (of y bytes) can share at aligned offsets."""
    below, above = align_up(safe.below, alignment), align_up(safe.above, alignment)
    best = 0
    for delta in (-below, above, 0, (x - y) // alignment * alignment, align_up(x - y, alignment)):
        if delta <= -below or delta >= above:
            best = max(best, min(x, delta + y) - max(0, delta))
    return best


def plane_scratch(network: Network, layer: Layer, source: str, alignment: int = 1) -> int | None:
    """Bytes of scratch with which a depthwise layer can work exactly in place, channel by channel (Sweep.CHANNELS).

    None if it cannot: each output channel must depend on its own input channel alone, at the same size. Scratch is
    counted in whole words.
    """
    x, y = network.tensors[source], network.tensors[layer.output]
    depthwise = isinstance(layer.op, Conv2d) and layer.op.groups == x.shape[-1] == y.shape[-1]
    if not depthwise or x.shape != y.shape or x.dtype is not y.dtype or layer.inputs[0] != source:
        return None
    return align_up(y.bytes // y.shape[-1], alignment)


@lru_cache(maxsize=4096)
def _distance(
    op: Op, shapes: tuple[Shape, ...], which: int, out: Shape, read_bytes: int, write_bytes: int
) -> Distance | None:
    """The distance by the trace of the operator's atoms; None if the operator promises nothing or is irregular.

    Atoms t are written in row-major order. Forwards, an atom must not write beyond what itself or a later one reads:
    `below` is the most by which the end of t lies behind the first byte that some t' >= t reads; `above` the most by
    which the end of what t reads lies behind the beginning of some t' >= t. An element is read before it is
    written, so that element by element only t' > t counts.
    """
    elementwise = op.grain is Grain.ELEMENT
    if op.grain is Grain.WHOLE or not (elementwise or out):
        return None
    whole = Region.whole(out)
    is_alike = elementwise and op.needs(whole, shapes)[which].shape == out == shapes[which]
    if is_alike and _is_identity(op, shapes, which, out):
        return _in_step(whole.size, read_bytes, write_bytes)
    axes = range(len(out) if elementwise else len(out) - 1)
    if any(out[axis] > MOST_INDICES for axis in axes):
        return None
    traced = _reads(op, shapes, which, out, axes, read_bytes)
    if traced is None:
        return None
    first, last, reads = traced
    per_atom = write_bytes * (1 if elementwise else out[-1])
    inner = [per_atom * prod(out[axis + 1] for axis in axes[position:-1]) for position in range(len(axes))]
    begins = [np.arange(out[axis], dtype=np.int64) * step for axis, step in zip(axes, inner, strict=True)]
    below = per_atom - first + _most_ahead(begins, [later for later, _ in reads], not elementwise)
    above = last + _most_ahead([-sooner for _, sooner in reads], begins, not elementwise)
    return Distance(max(below, -_FAR), max(above, -_FAR))


_FAR = 1 << 56  # beyond any address: the first byte read by an atom that reads nothing


def _most_ahead(early: Sequence[Array], late: Sequence[Array], includes_same: bool) -> int:
    """The most of early(t) - late(t') over all atoms t and t' that come later, or are the same.

    Both are sums of one term for each axis. Two atoms agree along the first axes, then t' is further along one axis,
    and both are anywhere along the rest: so the most follows axis by axis, however many atoms there are.
    """
    leads = [sum(int((a - b).max()) for a, b in zip(early, late, strict=True))] if includes_same else [-_FAR]
    for k, (a, b) in enumerate(zip(early, late, strict=True)):
        if len(a) < 2:
            continue
        same = sum(int((early[j] - late[j]).max()) for j in range(k))
        further = int((np.maximum.accumulate(a[:-1]) - b[1:]).max())
        rest = sum(int(early[j].max() - late[j].min()) for j in range(k + 1, len(early)))
        leads.append(same + further + rest)
    return max(leads)


def _in_step(atoms: int, read_bytes: int, write_bytes: int) -> Distance:
    """Element i is read from and written to position i: m * (write - read) bytes apart after m elements."""
    drift = write_bytes - read_bytes
    ends = [m * drift for m in ((1, atoms - 1) if atoms > 1 else ())]
    return Distance(max(ends, default=-_FAR), max((-end for end in ends), default=-_FAR))


def _is_identity(op: Op, shapes: Sequence[Shape], which: int, out: Shape) -> bool:
    """Whether each output element reads exactly the input element at the same index, probed at the far corners."""
    corners = (
        Region(tuple((0, 1) for _ in out)),
        Region(tuple((n - 1, n) for n in out)),
        *(Region(tuple((n - 1, n) if k == axis else (0, 1) for k, n in enumerate(out))) for axis in range(len(out))),
    )
    return all(op.needs(corner, shapes)[which] == corner for corner in corners)


@lru_cache(maxsize=16)
def _slabs(op: Op, shapes: tuple[Shape, ...], out: Shape, axis: int) -> tuple[tuple[Region, ...], ...]:
    """The reads of each index along an output axis, with the other axes whole."""
    whole = Region.whole(out)
    return tuple(op.needs(whole.with_axis(axis, (i, i + 1)), shapes) for i in range(out[axis]))


def _reads(
    op: Op, shapes: tuple[Shape, ...], which: int, out: Shape, axes: range, size: int
) -> tuple[int, int, list[tuple[Array, Array]]] | None:
    """The first byte of an input that is read and one past the last; and for each axis and index, how much later
    reading begins and how much earlier it ends.

    The box that an atom reads follows, axis by axis, from the output axes; None if two of them move the same input
    axis.
    """
    x = shapes[which]
    strides = [size * prod(x[k + 1 :]) for k in range(len(x))]
    whole = Region.whole(out)
    base = np.array(op.needs(whole, shapes)[which].bounds, dtype=np.int64).reshape(-1, 2)
    first = sum(int(start) * stride for (start, _), stride in zip(base, strides, strict=True))
    last = sum((int(stop) - 1) * stride for (_, stop), stride in zip(base, strides, strict=True)) + size
    moved: set[int] = set()
    reads = []
    for axis in axes:
        slabs = _slabs(op, shapes, out, axis)
        boxes = np.array([needs[which].bounds for needs in slabs], dtype=np.int64).reshape(len(slabs), -1, 2)
        varying = [k for k in range(len(x)) if (boxes[:, k] != base[k]).any()]
        if moved & set(varying):
            return None
        moved |= set(varying)
        later, sooner = (np.zeros(out[axis], dtype=np.int64) for _ in range(2))
        for k in varying:
            later += (boxes[:, k, 0] - base[k, 0]) * strides[k]
            sooner += (base[k, 1] - boxes[:, k, 1]) * strides[k]
        is_empty = (boxes[:, :, 1] <= boxes[:, :, 0]).any(axis=1)
        later[is_empty] = sooner[is_empty] = _FAR
        reads.append((later, sooner))
    return first, last, reads
