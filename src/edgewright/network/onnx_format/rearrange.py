"""Importers of operators that move elements: shapes, axes, joining, cutting, padding, repeating, picking."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod

import numpy as np

from .. import operators as ops
from ..operators.base import broadcast_shape
from ..region import Shape
from ..tensor import Array, DType
from .context import Computed, Constant, Value
from .node import FOLD_LIMIT, NCHW, NHWC, OnnxNode
from .tensors import check_shape


def dropout(node: OnnxNode) -> Value:
    training = node.optional(2)
    if node.opset >= 12 and training is not None and node.scalar(training, "training_mode"):
        ratio = node.optional(1)
        if ratio is None or node.scalar(ratio, "ratio"):
            raise node.unsupported("training mode; export the model for inference")
    return node.input(0)


def reshape(node: OnnxNode) -> Value:
    x = node.input(0)
    wanted = node.integers("shape") if node.opset < 5 else node.array_ints(node.input(1), "shape")
    return node.reshaped(x, _target_shape(node, node.shape(x), wanted or (), node.flag("allowzero")), "")


def _target_shape(node: OnnxNode, old: Shape, wanted: tuple[int, ...], allow_zero: bool) -> Shape:
    """The shape that Reshape's input asks for: 0 copies a size, -1 takes what is left."""
    if any(size < -1 for size in wanted) or wanted.count(-1) > 1:
        raise node.error(f"cannot reshape {list(old)} to {list(wanted)}")
    if not allow_zero and any(size == 0 and i >= len(old) for i, size in enumerate(wanted)):
        raise node.error(f"shape {list(wanted)} copies an axis that {list(old)} does not have")
    shape = [old[i] if size == 0 and not allow_zero else size for i, size in enumerate(wanted)]
    if -1 in shape:
        known = prod(size for size in shape if size != -1)
        if known == 0 or prod(old) % known:
            raise node.error(f"cannot reshape {list(old)} to {list(wanted)}")
        shape[shape.index(-1)] = prod(old) // known
    return check_shape(tuple(shape), str(node))


def flatten(node: OnnxNode) -> Value:
    x = node.input(0)
    shape = node.shape(x)
    axis = node.integer("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise node.error(f"axis {axis} does not exist in a tensor of rank {len(shape)}")
    axis += len(shape) if axis < 0 else 0
    return node.reshaped(x, (prod(shape[:axis]), prod(shape[axis:])), "")


def squeeze(node: OnnxNode) -> Value:
    x = node.input(0)
    shape = node.shape(x)
    axes = node.ints_from("axes", 1, 13)
    if axes is None:
        return node.reshaped(x, tuple(size for size in shape if size != 1), "")
    dropped = node.axes(axes, len(shape))
    if wide := [axis for axis in dropped if shape[axis] != 1]:
        raise node.error(f"cannot drop axis {wide[0]} of {list(shape)}")
    return node.reshaped(x, tuple(size for i, size in enumerate(shape) if i not in dropped), "")


def unsqueeze(node: OnnxNode) -> Value:
    x = node.input(0)
    axes = node.ints_from("axes", 1, 13)
    if axes is None:
        raise node.error("axes are missing")
    rank = len(node.shape(x)) + len(axes)
    added = node.axes(axes, rank)
    old = iter(node.shape(x))
    return node.reshaped(x, tuple(1 if i in added else next(old) for i in range(rank)), "")


def transpose(node: OnnxNode) -> Value:
    x = node.input(0)
    perm = node.integers("perm") or tuple(reversed(range(len(node.shape(x)))))
    return node.transposed(x, perm, "")


def concat(node: OnnxNode) -> Value:
    values = node.all_inputs()
    rank = len(node.shape(values[0]))
    axis = node.axis(node.integer("axis", 1), rank)
    if len(values) == 1:
        return values[0]
    kept = [value for value in values if prod(node.shape(value))]  # nothing comes of empty ones
    tensors = [node.tensor(value) for value in kept or values]
    if len({tensor.dtype for tensor in tensors}) > 1:
        raise node.error("joins tensors of different types")
    if len({tensor.quant for tensor in tensors}) > 1:
        raise node.unsupported("joins the stored integers of tensors that are quantised in different ways")
    return node.layer(ops.Concat(axis), kept or values)


def split(node: OnnxNode) -> tuple[Value, ...]:
    x = node.input(0)
    shape = node.shape(x)
    axis = node.axis(node.integer("axis", 0), len(shape))
    sizes = node.ints_from("split", 1, 13)
    count = len(node.outputs)
    if node.integer("num_outputs", count) != count:
        raise node.error(f"has {count} outputs, but num_outputs is {node.integer('num_outputs', 0)}")
    if not sizes:
        part = -(-shape[axis] // count)
        sizes = (*(part,) * (count - 1), shape[axis] - part * (count - 1))
    if len(sizes) != count or sum(sizes) != shape[axis] or min(sizes) < 0:
        raise node.error(f"cannot split {shape[axis]} into {list(sizes)} for {count} outputs")
    ends = [sum(sizes[:i]) for i in range(count + 1)]
    return tuple(
        _cut(node, x, {axis: (start, stop - start, 1)}, str(i)) for i, (start, stop) in enumerate(pairwise(ends))
    )


def _cut(node: OnnxNode, x: Value, cuts: dict[int, tuple[int, int, int]], tag: str = "") -> Value:
    """A slice given as start, size and step for some axes."""
    shape = node.shape(x)
    whole = [(0, size, 1) for size in shape]
    for axis, cut in cuts.items():
        whole[axis] = cut
    if whole == [(0, size, 1) for size in shape]:
        return x
    if isinstance(x, Constant) and x.data.size <= FOLD_LIMIT:
        index = tuple(np.arange(size) * step + start for start, size, step in whole)
        return Constant(x.name, x.data[np.ix_(*index)])
    if any(size == 0 for _, size, _ in whole):
        raise node.unsupported(f"gives an empty part of {list(shape)}")
    starts, sizes, steps = zip(*whole, strict=True)
    return node.layer(ops.Slice(starts, sizes, steps), [x], tag)


def slice_(node: OnnxNode) -> Value:
    x = node.input(0)
    shape = node.shape(x)
    if node.opset < 10:
        starts, ends, axes = node.integers("starts"), node.integers("ends"), node.integers("axes")
        steps = None
    else:
        starts = node.array_ints(node.input(1), "starts")
        ends = node.array_ints(node.input(2), "ends")
        axes, steps = node.ints_from("axes", 3, 10), node.ints_from("steps", 4, 10)
    starts, ends = starts or (), ends or ()
    axes = node.axes(tuple(range(len(starts))) if axes is None else axes, len(shape))
    steps = (1,) * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise node.error(f"starts {starts}, ends {ends}, axes {axes}, steps {steps} do not fit each other")
    cuts = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        chosen = range(*slice(start, end, step).indices(shape[axis]))
        cuts[axis] = (chosen.start if len(chosen) else 0, len(chosen), step if len(chosen) > 1 else 1)
    return _cut(node, x, cuts)


_PAD_MODES = {"constant": ops.PadMode.CONSTANT, "reflect": ops.PadMode.REFLECT, "edge": ops.PadMode.EDGE}


def pad(node: OnnxNode) -> Value:
    """Pads are an attribute before opset 11, then an input; opset 18 lets them name axes."""
    x = node.input(0)
    shape = node.shape(x)
    mode = node.text("mode", "constant")
    if mode not in _PAD_MODES:
        raise node.unsupported(f"mode '{mode}' is not supported")
    pads = node.integers("paddings" if node.opset < 2 else "pads") if node.opset < 11 else None
    value, axes = node.real("value", 0.0) if node.opset < 11 else 0.0, None
    if node.opset >= 11:
        pads = node.array_ints(node.input(1), "pads")
        fill = node.optional(2)
        value = node.scalar(fill, "constant_value") if fill is not None else 0.0
        axes = node.ints_from("axes", 3, 18)
    chosen = tuple(range(len(shape))) if axes is None else node.axes(axes, len(shape))
    if pads is None or len(pads) != 2 * len(chosen):
        raise node.error(f"pads {pads} do not fit {len(chosen)} axes")
    before, after = [0] * len(shape), [0] * len(shape)
    for i, axis in enumerate(chosen):
        before[axis], after[axis] = pads[i], pads[len(chosen) + i]
    return _pad(node, x, tuple(before), tuple(after), _PAD_MODES[mode], value)


def _pad(node: OnnxNode, x: Value, before: Shape, after: Shape, mode: ops.PadMode, value: float) -> Value:
    tensor = node.tensor(x)
    for size, a, b in zip(tensor.shape, before, after, strict=True):
        if mode is ops.PadMode.REFLECT and max(a, b) >= size:
            raise node.unsupported(f"reflects {max(a, b)} elements of an axis that has {size}")
        if mode is not ops.PadMode.CONSTANT and min(a, b) < 0 and max(a, b) > 0:
            raise node.unsupported(f"crops and pads one axis in mode '{mode.value}'")
    # ONNX pads with a stored number, we with a real one
    if tensor.quant is not None and mode is ops.PadMode.CONSTANT:
        if tensor.quant.axis is not None:
            raise node.unsupported("padding a tensor quantised along an axis")
        value = tensor.quant.scale[0] * (value - tensor.quant.zero[0])
    if value != value:
        raise node.error("pads with NaN")
    return node.layer(ops.Pad(before, after, mode, value), [x])


def expand(node: OnnxNode) -> Value:
    x = node.input(0)
    wanted = check_shape(node.array_ints(node.input(1), "shape"), str(node))
    shape = check_shape(broadcast_shape([node.shape(x), wanted]), str(node))
    if shape == node.shape(x):
        return x
    if isinstance(x, Constant):
        return Constant(x.name, np.broadcast_to(x.data, shape))
    return node.layer(ops.Expand(shape), [x])


def tile(node: OnnxNode) -> Value:
    x = node.input(0)
    if node.opset < 6:
        raise node.unsupported("opset 1 form is not supported")
    repeats = node.array_ints(node.input(1), "repeats")
    shape = node.shape(x)
    if len(repeats) != len(shape) or min(repeats, default=1) < 0:
        raise node.error(f"repeats {list(repeats)} do not fit {list(shape)}")
    result = check_shape(tuple(size * n for size, n in zip(shape, repeats, strict=True)), str(node))
    if result == shape:
        return x
    if isinstance(x, Constant) and prod(result) <= FOLD_LIMIT:
        return Constant(x.name, np.tile(x.data, repeats))
    return node.layer(ops.Tile(repeats), [x])


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
        return node.reshaped(_cut(node, x, {axis: (index, 1, 1)}), result, "index")
    return node.layer(ops.Gather(axis), [x, indices])


def scatter_elements(node: OnnxNode) -> Value:
    """Updates at constant places along an axis."""
    data, indices = node.shape(node.input(0)), _indices(node, 1)
    axis = node.axis(node.integer("axis", 0), len(data))
    if indices.shape != node.shape(node.input(2)) or indices.ndim != len(data):
        raise node.error(f"indices {list(indices.shape)} do not fit updates {list(node.shape(node.input(2)))}")
    return _scattered(node, _places_along(node, indices, axis, data))


def scatter_nd(node: OnnxNode) -> Value:
    """Updates at constant places, as exporters write an assignment to a slice."""
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
    """Indices, negative ones from the end, are counted together, so that one axis is left to choose from."""
    shape, index = node.shape(x), node.tensor(indices)
    depth = index.shape[-1] if index.shape else 0
    if node.integer("batch_dims", 0) or not 1 <= depth <= len(shape) or index.dtype is not DType.INT64:
        raise node.unsupported(f"indices of shape {list(index.shape)} into {list(shape)}, or batches")
    sizes = node.constant("sizes", np.array(shape[:depth], np.int64))
    strides = node.constant("strides", np.array([prod(shape[i + 1 : depth]) for i in range(depth)], np.int64))
    less, zero = ops.Compare(ops.CompareKind.LESS), node.constant("zero", np.array(0, np.int64))
    is_back = node.layer(less, [indices, zero], "is_back", dtype=DType.BOOL)
    ahead = node.layer(ops.Binary(ops.BinaryKind.ADD), [indices, sizes], "ahead")
    places = node.layer(ops.Select(), [is_back, ahead, indices], "places", dtype=DType.INT64)
    counted = node.layer(ops.Binary(ops.BinaryKind.MUL), [places, strides], "counted")
    total = node.layer(ops.Reduce((len(index.shape) - 1,), False, ops.ReduceKind.SUM), [counted], "total")
    flat = node.reshaped(x, (prod(shape[:depth]), *shape[depth:]), "flat")
    return node.layer(ops.Gather(0), [flat, total], "picked")


def compress(node: OnnxNode) -> Value:
    """The elements that a constant condition keeps, along an axis or of all in row-major order."""
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
    """The first elements of each batch in reverse order; how many is constant."""
    shape, lengths = node.shape(node.input(0)), node.array_ints(node.input(1), "sequence_lens")
    time, batch = (
        node.axis(node.integer(name, default), len(shape)) for name, default in (("time_axis", 0), ("batch_axis", 1))
    )
    if len(lengths) != shape[batch] or not all(1 <= length <= shape[time] for length in lengths) or time == batch:
        raise node.error(f"lengths {list(lengths)} do not fit {list(shape)}")
    if prod(shape) > FOLD_LIMIT:
        raise node.unsupported(f"places in a tensor of shape {list(shape)}")
    places = np.indices(shape)
    limits = np.array(lengths)[places[batch]]
    places[time] = np.where(places[time] < limits, limits - 1 - places[time], places[time])
    return _picked(node, node.input(0), np.asarray(np.ravel_multi_index(tuple(places), shape)))


def _indices(node: OnnxNode, which: int) -> Array:
    indices = node.array(node.input(which), "indices")
    if not np.issubdtype(indices.dtype, np.integer):
        raise node.error(f"indices are {indices.dtype.name}")
    if prod(node.shape(node.input(0))) > FOLD_LIMIT or indices.size > FOLD_LIMIT:
        raise node.unsupported(f"places in a tensor of shape {list(node.shape(node.input(0)))}")
    return indices


def _counted(node: OnnxNode, indices: Array, size: int | Array) -> Array:
    """The indices, negative ones counted from the end; refused where one lies outside."""
    if ((indices < -size) | (indices >= size)).any():
        raise node.error("an index lies outside the tensor")
    return np.where(indices < 0, indices + size, indices)


def _places_along(node: OnnxNode, indices: Array, axis: int, data: Shape) -> Array:
    """Places in row-major order: those of the indices themselves, but along the axis what the indices say."""
    places: list[Array] = list(np.indices(indices.shape))
    places[axis] = _counted(node, indices, data[axis])
    return np.asarray(np.ravel_multi_index(tuple(places), data))


def _places_of_blocks(node: OnnxNode, indices: Array, data: Shape) -> Array:
    """Places of the blocks that rows of indices, for the first axes, stand for."""
    depth = indices.shape[-1]
    first = _counted(node, indices, np.array(data[:depth])).reshape(-1, depth)
    return np.arange(prod(data), dtype=np.int64).reshape(*data[:depth], -1)[tuple(first.T)]


def _picked(node: OnnxNode, x: Value, places: Array) -> Value:
    """The elements at these places, counted in row-major order."""
    flat = node.reshaped(x, (prod(node.shape(x)),), "flat")
    stored = node.constant("places", places.reshape(-1).astype(np.int32))
    return node.reshaped(node.layer(ops.Gather(0), [flat, stored], "picked"), places.shape, "shaped")


def _scattered(node: OnnxNode, places: Array) -> Value:
    """The tensor with updates at these places, counted in row-major order: joined of slices where they fill a box."""
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
    """x with the updates in a box, axis by axis: what lies before it, the box in what is left, what lies behind."""
    if axis == len(box):
        return updates
    start, stop = box[axis]
    size = node.shape(x)[axis]
    middle = _boxed(node, _cut(node, x, {axis: (start, stop - start, 1)}, f"across{axis}"), updates, box, axis + 1)
    before = [_cut(node, x, {axis: (0, start, 1)}, f"before{axis}")] if start else []
    after = [_cut(node, x, {axis: (stop, size - stop, 1)}, f"after{axis}")] if stop < size else []
    if not before and not after:
        return middle
    return node.layer(ops.Concat(axis), [*before, middle, *after], f"joined{axis}")


def space_to_depth(node: OnnxNode) -> Value:
    if node.text("mode", "DCR") != "DCR":
        raise node.unsupported(f"mode '{node.text('mode', '')}' is not supported")
    return _blocks(node, ops.SpaceToDepth)


def depth_to_space(node: OnnxNode) -> Value:
    mode = node.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise node.error(f"mode '{mode}' is neither DCR nor CRD")
    return _blocks(node, lambda block: ops.DepthToSpace(block, mode == "CRD"))


def _blocks(node: OnnxNode, op: Callable[[int], ops.SpaceToDepth | ops.DepthToSpace]) -> Value:
    x, block = node.input(0), node.integer("blocksize", 0)
    if not 1 <= block < 2**20:
        raise node.error(f"attribute 'blocksize' is {block}")
    if len(node.shape(x)) != 4:
        raise node.error(f"needs an image, not a tensor of shape {list(node.shape(x))}")
    return node.transposed(node.layer(op(block), [node.transposed(x, NHWC, "nhwc")]), NCHW, "nchw")
