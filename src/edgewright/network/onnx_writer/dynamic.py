"""Writers of dynamic quantisation and its products, spelled out because ONNX's own operators round differently."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import TensorProto

from ...errors import Unsupported
from .. import operators as ops
from .elementwise import activate
from .node import NodeWriter
from .windows import constant_weights, window


def _float(node: NodeWriter, value: float) -> str:
    return node.graph.constant(np.array(value, np.float32), f"{node.layer.name}_number")


def _double(node: NodeWriter, value: float) -> str:
    return node.graph.constant(np.array(value, np.float64), f"{node.layer.name}_number")


def _away(node: NodeWriter, x: str) -> str:
    """The nodes that round a double half away from zero."""
    size = node.add("Floor", [node.add("Add", [node.add("Abs", [x]), _double(node, 0.5)])])
    return node.add("Mul", [node.add("Sign", [x]), size])


def dynamic_range(node: NodeWriter, op: ops.DynamicRange) -> str:
    axes = node.integers(range(op.lead, len(node.tensor(0).shape)), "axes")
    x = node.input()
    low, high = (node.add(kind, [x, axes], keepdims=0) for kind in ("ReduceMin", "ReduceMax"))
    numbers = (_even if op.even else _asymmetric if op.asymmetric else _symmetric)(node, low, high)
    last = node.integers((op.lead,), "last")
    return node.add("Concat", [node.add("Unsqueeze", [part, last]) for part in numbers], axis=op.lead)


def _symmetric(node: NodeWriter, low: str, high: str) -> tuple[str, ...]:
    one, most = _float(node, 1), _float(node, 127)
    reach = node.add("Max", [node.add("Abs", [low]), node.add("Abs", [high])])
    nothing = node.add("Equal", [reach, _float(node, 0)])
    some = node.add("Where", [nothing, one, reach])
    scale = node.add("Where", [nothing, one, node.add("Div", [some, most])])
    return scale, node.add("Div", [most, some]), node.add("Sub", [scale, scale])


def _asymmetric(node: NodeWriter, low: str, high: str) -> tuple[str, ...]:
    low, high = node.add("Min", [low, _float(node, 0)]), node.add("Max", [high, _float(node, 0)])
    nothing = node.add("Equal", [low, high])
    span = node.add("Cast", [node.add("Sub", [high, low])], to=TensorProto.DOUBLE)
    step = node.add("Where", [nothing, _double(node, 1), node.add("Div", [span, _double(node, 255)])])
    least, most = (node.add("Div", [node.add("Cast", [end], to=TensorProto.DOUBLE), step]) for end in (low, high))
    from_low = node.add("Sub", [_double(node, -128), least])
    from_high = node.add("Sub", [_double(node, 127), most])
    errors = [
        node.add("Add", [_double(node, limit), node.add("Abs", [end])]) for limit, end in ((128, least), (127, most))
    ]
    zero = _away(node, node.add("Where", [node.add("Less", errors), from_low, from_high]))
    zero = node.add("Min", [node.add("Max", [zero, _double(node, -128)]), _double(node, 127)])
    zero = node.add("Where", [nothing, _double(node, 0), zero])
    scale = node.add("Cast", [step], to=TensorProto.FLOAT)
    return scale, node.add("Div", [_float(node, 1), scale]), node.add("Cast", [zero], to=TensorProto.FLOAT)


def _even(node: NodeWriter, low: str, high: str) -> tuple[str, ...]:
    low, high = node.add("Min", [low, _float(node, 0)]), node.add("Max", [high, _float(node, 0)])
    step = node.add("Div", [node.add("Sub", [high, low]), _float(node, 255)])
    scale = node.add("Where", [node.add("Equal", [low, high]), _float(node, 1), step])
    steps = node.add("Div", [node.add("Neg", [low]), scale])
    zero = node.add("Round", [node.add("Clip", [steps, _float(node, 0), _float(node, 255)])])
    return scale, node.add("Reciprocal", [scale]), node.add("Sub", [zero, _float(node, 128)])


def _part(node: NodeWriter, which: int, i: int, rank: int) -> str:
    """Number `i` of each item's range, of a rank that broadcasts."""
    shape = node.tensor(which).shape
    part = node.add("Gather", [node.input(which), node.integers((i,), "index")], axis=len(shape) - 1)
    return node.add("Reshape", [part, node.integers((*shape[:-1], *(1,) * (rank - len(shape) + 1)), "shape")])


def dynamic_quantize(node: NodeWriter, op: ops.DynamicQuantize) -> str:
    rank = len(node.tensor(0).shape)
    if op.even:
        steps = node.add("Round", [node.add("Div", [node.input(), _part(node, 1, 0, rank)])])
        moved = node.add("Add", [steps, _part(node, 1, 2, rank)])
        kept = node.add("Clip", [moved, _float(node, -128), _float(node, 127)])
        return node.add("Cast", [kept], to=TensorProto.INT8)
    steps = node.add("Mul", [node.input(), _part(node, 1, 1, rank)])
    moved = _away(node, node.add("Cast", [steps], to=TensorProto.DOUBLE))
    if op.asymmetric:
        zero = node.add("Cast", [_part(node, 1, 2, rank)], to=TensorProto.DOUBLE)
        moved = node.add("Add", [moved, zero])
    limits = [_double(node, -128 if op.asymmetric else -127), _double(node, 127)]
    kept = node.add("Min", [node.add("Max", [moved, limits[0]]), limits[1]])
    return node.add("Cast", [kept], to=TensorProto.INT8)


def dynamic_product(node: NodeWriter, op: ops.DynamicProduct) -> str:
    """In float32, which holds the sums of all but the largest layers exactly."""
    rank = len(node.tensor(0).shape)
    x = node.add("Cast", [node.input()], to=TensorProto.FLOAT)
    centred = node.add("Sub", [x, _part(node, 4, 2, rank)]) if op.asymmetric else x
    total, mine = _sums(node, op, centred), _part(node, 4, 0, rank)
    scale, bias = node.input(2), node.input(3)
    if op.in_turn:
        scaled = node.add("Mul", [node.add("Mul", [total, scale]), mine])
    else:
        scaled = node.add("Mul", [total, node.add("Mul", [mine, scale])])
    return _activated(node, op.product.activation, node.add("Add", [scaled, bias]))


def _activated(node: NodeWriter, activation: ops.Activation | None, value: str) -> str:
    match activation:
        case None:
            return value
        case ops.Clamp(low, high):
            return node.add("Clip", [value, _float(node, low), _float(node, high)])
        case _:
            return activate(node, activation, value)


def _sums(node: NodeWriter, op: ops.DynamicProduct, x: str) -> str:
    name, product = node.layer.inputs[1], op.product
    w = constant_weights(node).astype(np.float32)
    match product:
        case ops.Dense():
            matrix = node.graph.constant(w.reshape(w.shape[0], prod(w.shape[1:])).T, name)
            return node.add("MatMul", [x, matrix])
        case ops.Conv2d() | ops.ConvTranspose2d() if min(product.pads) < 0:
            raise Unsupported(f"layer '{node.layer.name}': pads of {product.pads} are not written")
        case ops.Conv2d():
            kind, weights, more = "Conv", w.transpose(0, 3, 1, 2), {}
        case ops.ConvTranspose2d():
            if product.groups != 1:
                raise Unsupported(f"layer '{node.layer.name}': groups are not written")
            kind, weights, more = "ConvTranspose", w.transpose(3, 0, 1, 2), {"output_padding": product.extra}
    inputs = [node.add("Transpose", [x], perm=(0, 3, 1, 2)), node.graph.constant(weights, name)]
    total = node.add(kind, inputs, **window(product, w.shape[1:3], product.pads), group=product.groups, **more)
    return node.add("Transpose", [total], perm=(0, 2, 3, 1))
