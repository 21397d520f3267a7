"""Importers of operators that gather or scatter elements by index."""

from __future__ import annotations

from math import prod

import numpy as np

from .. import operators as ops
from ..decompositions import blocks_at, elements_at, reversed_places
from ..region import Shape
from ..tensor import Array, DType
from .context import Computed, Constant, Value
from .node import FOLD_LIMIT, OnnxNode
from .rearrange import cut
from .tensors import check_shape


def gather(node: OnnxNode) -> Value:
    """One index is a slice, several need Gather."""
    x, indices = node.input(0), node.input(1)
    shape = node.shape(x)
    axis = node.axis(node.integer("axis", 0), len(shape))
    if not isinstance(indices, Constant):
        if node.tensor(indices).dtype.value not in ("int32", "int64"):
            raise node.error(f"indices are {node.tensor(indices).dtype.value}")
        return node.layer(ops.Gather(axis), [x, indices])
    picked = node.array(indices, "indices")
    if not np.issubdtype(picked.dtype, np.integer):
        raise node.error(f"indices are {picked.dtype.name}")
    if picked.size and not (-shape[axis] <= picked.min() and picked.max() < shape[axis]):
        raise node.error(f"an index lies outside the {shape[axis]} elements of axis {axis}")
    result = (*shape[:axis], *picked.shape, *shape[axis + 1 :])
    check_shape(result, str(node))
    if isinstance(x, Constant) and x.data.size <= FOLD_LIMIT and prod(result) <= FOLD_LIMIT:
        return Constant(x.name, np.take(x.data, picked, axis))
    if picked.size == 1:
        index = int(picked.reshape(-1)[0]) % shape[axis]
        return node.reshaped(cut(node, x, {axis: (index, 1, 1)}), result, "index")
    return node.layer(ops.Gather(axis), [x, indices])


def scatter_elements(node: OnnxNode) -> Value:
    """Updates at constant indices along an axis."""
    data, indices = node.shape(node.input(0)), _indices(node, 1)
    axis = node.axis(node.integer("axis", 0), len(data))
    if indices.shape != node.shape(node.input(2)) or indices.ndim != len(data):
        raise node.error(f"indices {list(indices.shape)} do not fit updates {list(node.shape(node.input(2)))}")
    return _scattered(node, _places_along(node, indices, axis, data))


def scatter_nd(node: OnnxNode) -> Value:
    """Updates at constant indices, as exporters write an assignment to a slice."""
    data, indices = node.shape(node.input(0)), _indices(node, 1)
    depth = indices.shape[-1] if indices.ndim else 0
    if not 1 <= depth <= len(data) or node.shape(node.input(2)) != (*indices.shape[:-1], *data[depth:]):
        raise node.error(f"indices {list(indices.shape)} and updates {list(node.shape(node.input(2)))} do not fit")
    return _scattered(node, _places_of_blocks(node, indices, data).reshape(node.shape(node.input(2))))


def gather_elements(node: OnnxNode) -> Value:
    data = node.shape(node.input(0))
    axis = node.axis(node.integer("axis", 0), len(data))
    if isinstance(node.input(1), Computed):
        return node.layer(ops.GatherElements(axis), [node.input(0), node.input(1)])
    indices = _indices(node, 1)
    if indices.ndim != len(data):
        raise node.error(f"indices {list(indices.shape)} do not fit {list(data)}")
    return _picked(node, node.input(0), _places_along(node, indices, axis, data))


def gather_nd(node: OnnxNode) -> Value:
    if isinstance(node.input(1), Computed):
        return _gather_computed(node, node.input(0), node.input(1))
    data, indices = node.shape(node.input(0)), _indices(node, 1)
    depth = indices.shape[-1] if indices.ndim else 0
    if node.integer("batch_dims", 0) or not 1 <= depth <= len(data):
        raise node.unsupported(f"indices of shape {list(indices.shape)} into {list(data)}, or batches")
    places = _places_of_blocks(node, indices, data).reshape(*indices.shape[:-1], *data[depth:])
    return _picked(node, node.input(0), places)


def _gather_computed(node: OnnxNode, x: Value, indices: Value) -> Value:
    shape, index = node.shape(x), node.tensor(indices)
    depth = index.shape[-1] if index.shape else 0
    if node.integer("batch_dims", 0) or not 1 <= depth <= len(shape) or index.dtype is not DType.INT64:
        raise node.unsupported(f"indices of shape {list(index.shape)} into {list(shape)}, or batches")
    return node.layer(*blocks_at(node, x, indices, index.dtype, from_end=True))


def compress(node: OnnxNode) -> Value:
    """The elements selected by a constant condition, along an axis or of all in row-major order."""
    x = node.input(0)
    kept = np.flatnonzero(node.array(node.input(1), "condition"))
    axis = node.integer("axis", 0)
    if "axis" not in node.attributes:
        x = node.reshaped(x, (prod(node.shape(x)),), "flat")
    axis = node.axis(axis, len(node.shape(x)))
    if not kept.size or kept[-1] >= node.shape(x)[axis]:
        raise node.error(f"the condition keeps {kept.size} of {node.shape(x)[axis]} elements")
    return node.layer(ops.Gather(axis), [x, node.constant("kept", kept.astype(np.int32))])


def reverse_sequence(node: OnnxNode) -> Value:
    """Reverses the first elements of each batch; their number is constant."""
    shape, lengths = node.shape(node.input(0)), node.array_ints(node.input(1), "sequence_lens")
    time, batch = (
        node.axis(node.integer(name, default), len(shape)) for name, default in (("time_axis", 0), ("batch_axis", 1))
    )
    if len(lengths) != shape[batch] or not all(1 <= length <= shape[time] for length in lengths) or time == batch:
        raise node.error(f"lengths {list(lengths)} do not fit {list(shape)}")
    if prod(shape) > FOLD_LIMIT:
        raise node.unsupported(f"places in a tensor of shape {list(shape)}")
    return _picked(node, node.input(0), reversed_places(shape, time, batch, np.array(lengths)))


def _indices(node: OnnxNode, which: int) -> Array:
    indices = node.array(node.input(which), "indices")
    if not np.issubdtype(indices.dtype, np.integer):
        raise node.error(f"indices are {indices.dtype.name}")
    if prod(node.shape(node.input(0))) > FOLD_LIMIT or indices.size > FOLD_LIMIT:
        raise node.unsupported(f"places in a tensor of shape {list(node.shape(node.input(0)))}")
    return indices


def _counted(node: OnnxNode, indices: Array, size: int | Array) -> Array:
    """The indices, negative ones counted from the end; an error if one is out of range."""
    if ((indices < -size) | (indices >= size)).any():
        raise node.error("an index lies outside the tensor")
    return np.where(indices < 0, indices + size, indices)


def _places_along(node: OnnxNode, indices: Array, axis: int, data: Shape) -> Array:
    """Row-major positions: each index's own position with its coordinate along the axis replaced."""
    places: list[Array] = list(np.indices(indices.shape))
    places[axis] = _counted(node, indices, data[axis])
    return np.asarray(np.ravel_multi_index(tuple(places), data))


def _places_of_blocks(node: OnnxNode, indices: Array, data: Shape) -> Array:
    """Row-major positions of the blocks selected by rows of indices into the first axes."""
    depth = indices.shape[-1]
    first = _counted(node, indices, np.array(data[:depth])).reshape(-1, depth)
    return np.arange(prod(data), dtype=np.int64).reshape(*data[:depth], -1)[tuple(first.T)]


def _picked(node: OnnxNode, x: Value, places: Array) -> Value:
    """The elements at these row-major positions."""
    return node.reshaped(elements_at(node, x, places), places.shape, "shaped")


def _scattered(node: OnnxNode, places: Array) -> Value:
    """The tensor with updates at these row-major positions; joined from slices if they form a box."""
    x, updates = node.input(0), node.input(2)
    shape = node.shape(x)
    if node.text("reduction", "none") != "none":
        raise node.unsupported(f"reduction '{node.text('reduction', '')}' is not supported")
    if node.tensor(x).dtype is not node.tensor(updates).dtype or node.tensor(x).quant or node.tensor(updates).quant:
        raise node.unsupported("puts elements of one type among those of another")
    if not places.size:
        return x
    corners = np.unravel_index(places.reshape(-1), shape)
    box = [(int(axis.min()), int(axis.max()) + 1) for axis in corners]
    inside = np.arange(prod(shape)).reshape(shape)[tuple(slice(*bounds) for bounds in box)]
    if np.array_equal(inside.reshape(-1), places.reshape(-1)):
        return _boxed(node, x, node.reshaped(updates, inside.shape, "box"), box, 0)
    source = np.arange(prod(shape))
    source[places.reshape(-1)] = np.arange(places.size) + prod(shape)
    parts = [node.reshaped(value, (prod(node.shape(value)),), tag) for value, tag in ((x, "old"), (updates, "new"))]
    return _picked(node, node.layer(ops.Concat(0), parts, "both"), source.reshape(shape))


def _boxed(node: OnnxNode, x: Value, updates: Value, box: list[tuple[int, int]], axis: int) -> Value:
    """x with the updates in a box, axis by axis: the part before, the box in the rest, the part after."""
    if axis == len(box):
        return updates
    start, stop = box[axis]
    size = node.shape(x)[axis]
    middle = _boxed(node, cut(node, x, {axis: (start, stop - start, 1)}, f"across{axis}"), updates, box, axis + 1)
    before = [cut(node, x, {axis: (0, start, 1)}, f"before{axis}")] if start else []
    after = [cut(node, x, {axis: (stop, size - stop, 1)}, f"after{axis}")] if stop < size else []
    if not before and not after:
        return middle
    return node.layer(ops.Concat(axis), [*before, middle, *after], f"joined{axis}")
