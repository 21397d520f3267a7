"""Importers of operators that move elements: reshape, transpose, concat, slice, pad, tile."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod

import numpy as np

from .. import operators as ops
from ..operators.base import broadcast_shape
from ..region import Shape
from .context import Constant, Value
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
    """The target shape of Reshape: 0 copies a size, -1 takes the rest."""
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
    kept = [value for value in values if prod(node.shape(value))]  # empty parts add nothing
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
        cut(node, x, {axis: (start, stop - start, 1)}, str(i)) for i, (start, stop) in enumerate(pairwise(ends))
    )


def cut(node: OnnxNode, x: Value, cuts: dict[int, tuple[int, int, int]], tag: str = "") -> Value:
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
    return cut(node, x, cuts)


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
    # ONNX pads with a stored number, our layer with a real one
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
