"""Expands sparse constants of a TFLite file to ordinary arrays.

The format is TACO's: axes are traversed in their own order, each level dense or compressed (CSR), and an axis may be
divided into blocks, which are traversed as additional axes at the end.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import tflite

from ..region import Shape
from ..tensor import Array

_INDEX_TYPES = {
    getattr(tflite.SparseIndexVector, kind): getattr(tflite, kind)
    for kind in ("Int32Vector", "Uint16Vector", "Uint8Vector")
}


def dense(shape: Shape, sparsity: Any, values: Array) -> Array:
    """The dense array of this shape; ValueError if its description does not match the shape or the values."""
    order, blocks = (_numbers(whole) for whole in (sparsity.TraversalOrderAsNumpy(), sparsity.BlockMapAsNumpy()))
    rank, levels = len(shape), sparsity.DimMetadataLength()
    if levels != rank + len(blocks) or sorted(order) != list(range(levels)):
        raise ValueError(f"a sparse tensor of shape {shape} has {levels} levels in the order {order}")
    if any(not 0 <= axis < rank for axis in blocks) or len(set(blocks)) < len(blocks):
        raise ValueError(f"a sparse tensor of shape {shape} has blocks along {blocks}")
    block = dict.fromkeys(range(rank), 1)  # along each axis
    for level, axis in enumerate(order):
        if axis >= rank:
            block[blocks[axis - rank]] = sparsity.DimMetadata(level).DenseSize()
    if any(size < 1 or shape[axis] % size for axis, size in block.items()):
        raise ValueError(f"a sparse tensor of shape {shape} has blocks of {list(block.values())}")
    sizes = [shape[axis] // block[axis] for axis in range(rank)] + [block[axis] for axis in blocks]
    # The position of every stored value so far: among the values, and along each level's axis.
    place = np.zeros(1, np.int64)
    index: dict[int, Array] = {}
    for level, axis in enumerate(order):
        parent, place, along = _walk(sparsity.DimMetadata(level), place, sizes[axis], prod(shape))
        index = {known: positions[parent] for known, positions in index.items()} | {axis: along}
    if len(place) and int(place.max()) >= values.size:
        raise ValueError(f"a sparse tensor has {values.size} values and names number {int(place.max())}")
    for number, axis in enumerate(blocks):
        index[axis] = index[axis] * block[axis] + index[rank + number]
    whole = np.zeros(shape, values.dtype)
    whole[tuple(index[axis] for axis in range(rank))] = values[place]
    return whole


def _walk(level: Any, place: Array, size: int, most: int) -> tuple[Array, Array, Array]:
    """One level further: for each entry its parent, its position among the entries, its index along the axis."""
    if level.Format() == tflite.DimensionType.DENSE:
        if level.DenseSize() != size or len(place) * size > most:
            raise ValueError(f"a dense level of a sparse tensor has {level.DenseSize()} elements instead of {size}")
        parent, along = (grid.reshape(-1) for grid in np.indices((len(place), size)))
        return parent, place[parent] * size + along, along
    segments = _index(level.ArraySegmentsType(), level.ArraySegments())
    indices = _index(level.ArrayIndicesType(), level.ArrayIndices())
    if len(place) and int(place.max()) + 1 >= len(segments):
        raise ValueError(f"a compressed level of a sparse tensor has {len(segments)} segments, too few")
    starts, stops = segments[place], segments[place + 1]
    counts = stops - starts
    total = int(counts.sum())
    if (counts < 0).any() or (starts < 0).any() or int(stops.max(initial=0)) > len(indices) or total > most:
        raise ValueError("the segments of a sparse tensor do not fit its indices")
    parent = np.repeat(np.arange(len(place)), counts)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    entries = starts[parent] + np.arange(total) - before
    along = indices[entries]
    if total and not 0 <= int(along.min()) <= int(along.max()) < size:
        raise ValueError(f"a sparse tensor has an index {int(along.max())} along an axis of {size}")
    return parent, entries, along


def _index(kind: int, table: Any) -> Array:
    if kind not in _INDEX_TYPES or table is None:
        raise ValueError(f"a sparse tensor has indices of kind {kind}")
    vector = _INDEX_TYPES[kind]()
    vector.Init(table.Bytes, table.Pos)
    values = vector.ValuesAsNumpy()
    return np.zeros(0, np.int64) if isinstance(values, int) else values.astype(np.int64)


def _numbers(vector: Any) -> list[int]:
    return [] if isinstance(vector, int) else [int(number) for number in vector]
