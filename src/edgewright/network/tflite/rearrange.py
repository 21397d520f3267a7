"""Importers of operators that move elements: transpose, concat, slices, pads, gather, resize."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import tflite

from ...errors import Unsupported
from .. import operators as ops
from ..decompositions import blocks_at, elements_at, reversed_places
from ..kernels.scales import dequantized
from ..kernels.tflite_images import fixed_places
from ..region import Region, Shape
from ..tensor import DType
from .import_state import InnerLayers, LayerImport

MOST_PLACES = 1 << 22  # elements that are indexed while reading


def transpose(layer: LayerImport) -> None:
    rank = len(layer.shape())
    perm = layer.integers(1, "order of axes")
    layer.move(ops.Transpose(tuple(axis + rank if axis < 0 else axis for axis in perm)))


def concatenation(layer: LayerImport) -> None:
    options = layer.options(tflite.ConcatenationOptions)
    if options.FusedActivationFunction() != 0:
        raise Unsupported("an activation is folded in")
    count = len(layer.operator.inputs)
    layer.same_type(*range(count))
    axis = layer.axis(options.Axis(), len(layer.shape()))
    parts = [layer.input(i) for i in range(count) if prod(layer.shape(i))]
    if layer.state.depth and axis == 0 and parts:
        _emit_joined(layer, [part for name in parts for part in layer.state.joined.get(name, (name,))])
    else:
        layer.emit(ops.Concat(axis), parts)


def _emit_joined(layer: LayerImport, parts: list[str]) -> None:
    """Joins parts along the first axis. Loops write list elements one by one, by cutting and rejoining the list: its
    parts are remembered, so that earlier iterations leave no copies."""
    layer.emit(ops.Concat(0), parts)
    layer.state.joined[layer.state.names[layer.outputs[0]]] = tuple(parts)


def _joined_between(layer: LayerImport, start: int, stop: int) -> list[str] | None:
    """The parts of the first input between two indices of its first axis; constants are cut; None if others would
    be."""
    state, parts, begin = layer.state, [], 0
    for part in state.joined.get(layer.input(), ()):
        end = begin + state.builder.shape(part)[0]
        low, high = max(start, begin), min(stop, end)
        if low < high and (low, high) == (begin, end):
            parts.append(part)
        elif low < high:
            if part not in state.builder.constants:
                return None
            cut, quant = state.builder.constants[part][low - begin : high - begin], state.builder.tensors[part].quant
            parts.append(state.add_constant(part, cut, quant))
        begin = end
    return parts or None


def pack(layer: LayerImport) -> None:
    """Stacks tensors along a new axis: each gets that axis, then they are joined."""
    count = len(layer.operator.inputs)
    layer.same_type(*range(count))
    axis = layer.axis(layer.options(tflite.PackOptions).Axis(), len(layer.shape()) + 1)
    parts = []
    for i in range(count):
        shape = layer.shape(i)
        parts.append(layer.inner(ops.Reshape((*shape[:axis], 1, *shape[axis:])), [layer.input(i)], f"part_{i}"))
    layer.emit(ops.Concat(axis), parts)


def unpack(layer: LayerImport) -> None:
    """The reverse of `pack`: each index along the axis is a slice without that axis."""
    shape = layer.shape()
    axis = layer.axis(layer.options(tflite.UnpackOptions).Axis(), len(shape))
    if shape[axis] != len(layer.outputs):
        raise layer.error(f"axis {axis} of {shape} has {len(layer.outputs)} outputs")
    for i in range(shape[axis]):
        part = layer.inner(_one_axis(shape, axis, i, 1), [layer.input()], f"part_{i}")
        layer.move(ops.Reshape((*shape[:axis], *shape[axis + 1 :])), [part], i)


def split(layer: LayerImport) -> None:
    """Inputs of the file: axis, x."""
    (axis,) = layer.integers(0, "axis")
    shape = layer.shape(1)
    axis = layer.axis(axis, len(shape))
    count = len(layer.outputs)
    if count == 0 or shape[axis] % count:
        raise layer.error(f"axis {axis} of {shape} does not divide into {count} parts")
    _emit_parts(layer, 1, axis, (shape[axis] // count,) * count)


def split_v(layer: LayerImport) -> None:
    """Inputs of the file: x, sizes (one may be -1: the rest), axis."""
    (axis,) = layer.integers(2, "axis")
    shape, sizes = layer.shape(), list(layer.integers(1, "sizes"))
    axis = layer.axis(axis, len(shape))
    if -1 in sizes:
        sizes[sizes.index(-1)] = shape[axis] - sum(sizes) - 1
    if len(sizes) != len(layer.outputs) or sum(sizes) != shape[axis] or min(sizes) < 0:
        raise layer.error(f"axis {axis} of {shape} does not split into {sizes}")
    _emit_parts(layer, 0, axis, tuple(sizes))


def _emit_parts(layer: LayerImport, source: int, axis: int, sizes: tuple[int, ...]) -> None:
    shape, begin = layer.shape(source), 0
    for i, size in enumerate(sizes):
        layer.same_type(source, position=i)
        layer.emit(_one_axis(shape, axis, begin, size), [layer.input(source)], i)
        begin += size


def slice_(layer: LayerImport) -> None:
    shape = layer.shape()
    begin, size = layer.integers(1, "begin"), layer.integers(2, "size")
    _same_rank(layer, begin, size)
    sizes = tuple(extent - b if s == -1 else s for extent, b, s in zip(shape, begin, size, strict=True))
    if 0 in sizes and min(sizes) == 0 and layer.state.depth:  # of a list, before its first or after its last element
        layer.emit_constant(np.broadcast_to(np.zeros((), layer.result().dtype.numpy), sizes), layer.result().quant)
        return
    if sizes[1:] == shape[1:] and (parts := _joined_between(layer, begin[0], begin[0] + sizes[0])):
        layer.same_type(0)
        _emit_joined(layer, parts)
        return
    layer.move(ops.Slice(begin, sizes, (1,) * len(shape)))


def where(layer: LayerImport) -> None:
    """The indices at which a constant condition holds."""
    if not layer.is_constant():
        raise Unsupported("the size of its result depends on the data; use SELECT (tf.where with three arguments)")
    layer.emit_constant(np.argwhere(layer.value(0, "condition")).astype(layer.result().dtype.numpy))


def reverse(layer: LayerImport) -> None:
    """A slice with negative steps."""
    shape = layer.shape()
    axes = {layer.axis(axis, len(shape)) for axis in layer.integers(1, "axes")}
    starts = tuple(size - 1 if i in axes else 0 for i, size in enumerate(shape))
    layer.move(ops.Slice(starts, shape, tuple(-1 if i in axes else 1 for i in range(len(shape)))))


def strided_slice(layer: LayerImport) -> None:
    """numpy's indexing as bit masks: one entry for each index rather than for each axis."""
    options = layer.options(tflite.StridedSliceOptions)
    begin, end, step = (layer.integers(i, what) for i, what in ((1, "begin"), (2, "end"), (3, "step")))
    if not len(begin) == len(end) == len(step):
        raise layer.error(f"begin {begin}, end {end} and step {step} do not fit")
    new_axes, ellipses = options.NewAxisMask(), options.EllipsisMask()
    shape = layer.shape()
    cuts: list[tuple[int, int, int]] = []  # for each axis: start, size, step
    result: list[int] = []

    def keep_axes(count: int) -> None:
        for extent in shape[len(cuts) : len(cuts) + count]:
            cuts.append((0, extent, 1))
            result.append(extent)

    indexed = sum(not (new_axes | ellipses) >> i & 1 for i in range(len(begin)))
    for i in range(len(begin)):
        if ellipses >> i & 1:
            keep_axes(len(shape) - indexed)
        elif new_axes >> i & 1:
            result.append(1)
        elif options.ShrinkAxisMask() >> i & 1:
            extent = shape[len(cuts)]
            if not -extent <= begin[i] < extent:
                raise layer.error(f"index {begin[i]} of an axis of {extent}")
            cuts.append((begin[i] % extent, 1, 1))
        else:
            first = None if options.BeginMask() >> i & 1 else begin[i]
            last = begin[i] + end[i] if options.Offset() else end[i]
            bounds = slice(first, None if options.EndMask() >> i & 1 else last, step[i])
            places = range(*bounds.indices(shape[len(cuts)]))
            cuts.append((places.start, len(places), step[i]))
            result.append(len(places))
    keep_axes(len(shape) - len(cuts))
    starts, sizes, steps = zip(*cuts, strict=True) if cuts else ((), (), ())
    op = ops.Slice(tuple(starts), tuple(sizes), tuple(steps))
    if tuple(result) == op.sizes:
        layer.move(op)
    else:
        layer.move(ops.Reshape(tuple(result)), [layer.inner(op, [layer.input()], "slice")])


def pad(layer: LayerImport) -> None:
    """PAD fills with the zero point, PADV2 with its third input."""
    before, after = _paddings(layer)
    value = 0.0
    if layer.has(2):
        stored, quant = layer.value(2, "fill value").reshape(()).item(), layer.tensor(2).quant
        value = float(stored) if quant is None else (stored - quant.zero[0]) * quant.scale[0]
    layer.move(ops.Pad(before, after, ops.PadMode.CONSTANT, value))


def mirror_pad(layer: LayerImport) -> None:
    is_symmetric = layer.options(tflite.MirrorPadOptions).Mode() == tflite.MirrorPadMode.SYMMETRIC
    before, after = _paddings(layer)
    most = [size if is_symmetric else size - 1 for size in layer.shape()]
    if any(max(a, b) > m for a, b, m in zip(before, after, most, strict=True)):
        raise layer.error(f"pads {before}, {after} are wider than {layer.shape()}")
    layer.move(ops.Pad(before, after, ops.PadMode.SYMMETRIC if is_symmetric else ops.PadMode.REFLECT))


def _paddings(layer: LayerImport) -> tuple[Shape, Shape]:
    pairs = layer.integers(1, "paddings")
    _same_rank(layer, pairs[::2], pairs[1::2])
    if min(pairs, default=0) < 0:
        raise layer.error(f"negative paddings {pairs}")
    return pairs[::2], pairs[1::2]


def tile(layer: LayerImport) -> None:
    repeats = layer.integers(1, "repeats")
    _same_rank(layer, repeats)
    layer.move(ops.Tile(repeats))


def broadcast_to(layer: LayerImport) -> None:
    layer.move(ops.Expand(layer.integers(1, "shape")))


def gather(layer: LayerImport) -> None:
    options = layer.options(tflite.GatherOptions)
    shape, batches = layer.shape(), options.BatchDims()
    axis = layer.axis(options.Axis(), len(shape))
    if batches:
        _gather_one_batch(layer, axis, batches)
        return
    if not layer.is_constant(1) or (index := layer.value(1, "indices")).size != 1 or layer.is_constant():
        layer.move(ops.Gather(axis), [layer.input(0), layer.input(1)])
        return
    if not 0 <= (place := int(index.reshape(()))) < shape[axis]:
        raise layer.error(f"index {place} of an axis of {shape[axis]}")
    part = layer.inner(_one_axis(shape, axis, place, 1), [layer.input()], "slice")
    layer.move(ops.Reshape((*shape[:axis], *index.shape, *shape[axis + 1 :])), [part])


def _gather_one_batch(layer: LayerImport, axis: int, batches: int) -> None:
    """With a batch of 1, the batch axes can be dropped."""
    shape, index = layer.shape(), layer.tensor(1)
    rest = index.shape[batches:]
    if not 0 < batches <= min(axis, len(index.shape)) or prod(shape[:batches]) * prod(index.shape[:batches]) != 1:
        raise Unsupported(f"batch_dims is {batches}, with {shape} and {index.shape}")
    places = layer.inner(ops.Reshape(rest), [layer.input(1)], "places", index.dtype)
    picked = layer.inner(ops.Gather(axis), [layer.input(), places], "picked")
    layer.move(ops.Reshape((*shape[:axis], *rest, *shape[axis + 1 :])), [picked])


def gather_nd(layer: LayerImport) -> None:
    shape, index = layer.shape(), layer.tensor(1)
    depth = index.shape[-1] if index.shape else 0
    if not 1 <= depth <= len(shape) or index.dtype not in (DType.INT32, DType.INT64):
        raise Unsupported(f"{index} chooses from {shape}")
    if layer.is_constant(1):
        indices = layer.value(1, "indices")
        if (indices < 0).any() or (indices >= shape[:depth]).any():
            raise layer.error("an index lies outside the tensor")
    layer.move(*blocks_at(InnerLayers(layer), layer.input(), layer.input(1), index.dtype, from_end=False))


def reverse_sequence(layer: LayerImport) -> None:
    """Reverses the first elements of each batch; their number is constant."""
    options, shape = layer.options(tflite.ReverseSequenceOptions), layer.shape()
    time, batch = (layer.axis(axis, len(shape)) for axis in (options.SeqDim(), options.BatchDim()))
    lengths = layer.value(1, "lengths")
    if lengths.shape != (shape[batch],) or time == batch or lengths.min() < 0 or lengths.max() > shape[time]:
        raise layer.error(f"lengths {lengths.shape} do not fit {shape}")
    if prod(shape) > MOST_PLACES:
        raise Unsupported(f"{shape} is reversed in part")
    places = reversed_places(shape, time, batch, lengths)
    layer.move(ops.Reshape(shape), [elements_at(InnerLayers(layer), layer.input(), places)])


def embedding_lookup(layer: LayerImport) -> None:
    """Inputs of the file: indices, table. A quantised table with real results is dequantised."""
    table = layer.tensor(1)
    values = layer.input(1)
    if table.quant is not None and layer.result().dtype is DType.FLOAT32:
        values = layer.constant("table", dequantized(layer.value(1, "table"), table.quant))
    elif table.dtype is not layer.result().dtype:
        raise Unsupported(f"{table.dtype.value} becomes {layer.result().dtype.value}")
    layer.emit(ops.Gather(0), [values, layer.input(0)])


def blocks(layer: LayerImport, kind: type[ops.SpaceToDepth | ops.DepthToSpace]) -> None:
    block = layer.options(getattr(tflite, f"{kind.__name__}Options")).BlockSize()
    if not 1 <= block <= np.iinfo(np.int16).max or len(layer.shape()) != 4:
        raise layer.error(f"blocks of {block} in {layer.shape()}")
    layer.move(kind(block))


def resize(layer: LayerImport, mode: ops.ResizeMode) -> None:
    """Nearest takes the pixel that contains the position, except with aligned corners, where it takes the closest."""
    is_nearest = mode is ops.ResizeMode.NEAREST
    options = layer.options(tflite.ResizeNearestNeighborOptions if is_nearest else tflite.ResizeBilinearOptions)
    size = layer.integers(1, "size")
    if len(size) != 2 or min(size) < 1 or len(layer.shape()) != 4:
        raise layer.error(f"{layer.shape()} cannot be resized to {size}")
    if options.AlignCorners() and options.HalfPixelCenters():
        raise layer.error("align_corners and half_pixel_centers exclude each other")
    coordinates, rounding = ops.Coordinates.ASYMMETRIC, ops.NearestMode.FLOOR
    if options.AlignCorners():
        # A single row or column has no corners to align; TFLite then scales as without the option.
        coordinates, rounding = ops.Coordinates.ALIGN_CORNERS, ops.NearestMode.HALF_UP
    elif options.HalfPixelCenters():
        coordinates, rounding = ops.Coordinates.HALF_PIXEL, ops.NearestMode.HALF_UP
    op = ops.Resize((size[0], size[1]), mode, coordinates, rounding, by_product=True)
    if not is_nearest and layer.tensor().dtype in (DType.INT8, DType.INT16):
        op = replace(op, slack=op.slack + _drift(op, layer.shape()))
    layer.move(op)


def _drift(op: ops.Resize, shape: Shape) -> float:
    """The largest error of fixed-point positions, which is at one of the ends."""
    apart = [0.0]
    for axis in range(2):
        for index in (0, op.size[axis] - 1):
            out = Region(((0, 1), (index, index + 1), (index, index + 1), (0, 1)))
            first, _, share = fixed_places(op, axis, out, shape[1 + axis])
            apart.append(abs(int(first[0]) + int(share[0]) / 1024 - op.place(axis, index, shape[1 + axis])))
    return max(apart)


def _one_axis(shape: Shape, axis: int, start: int, size: int) -> ops.Slice:
    """A slice that cuts along one axis."""
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    return ops.Slice(starts, tuple(size if i == axis else n for i, n in enumerate(shape)), (1,) * len(shape))


def _same_rank(layer: LayerImport, *lists: tuple[int, ...]) -> None:
    rank = len(layer.shape())
    if any(len(values) != rank for values in lists):
        raise layer.error(f"{lists} do not fit a tensor of rank {rank}")
