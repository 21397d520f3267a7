"""Recognises operators that a file spells out in smaller ones: SiLU, hard swish, GELU, Mish, pixel shuffles."""

from __future__ import annotations

from dataclasses import replace
from math import isclose, prod, sqrt

from .. import operators as ops
from ..network import Layer, Network
from ..region import Perm, Shape
from .draft import Draft


def recognise_activations(network: Network) -> Network:
    """Replaces activations written as formulas by one layer each, for real numbers, if no inner tensor is read
    elsewhere.

    SiLU and hard swish: Ramachandran et al. 2017, Howard et al. 2019; GELU: Hendrycks & Gimpel 2016; Mish: Misra 2019.
    """
    draft = Draft(network)
    for layer in draft.walk():
        if not isinstance(layer.op, ops.Binary) or layer.op.activation or not draft.is_float(layer.output):
            continue
        if (recognised := _recognised(draft, layer)) is not None:
            op, x = recognised
            draft.put(replace(layer, op=op, inputs=(x,)))
    return draft.finish()


def _private(draft: Draft, tensor: str) -> Layer | None:
    """The layer that writes a tensor with a single reader."""
    return draft.producer(tensor) if draft.is_private(tensor) else None


def _number(draft: Draft, tensor: str) -> float | None:
    value = draft.constants.get(tensor)
    return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None


def _scaled(draft: Draft, layer: Layer | None) -> tuple[str, float] | None:
    """(x, c) for a layer that computes x * c or x / (1 / c)."""
    if layer is None or not isinstance(layer.op, ops.Binary) or layer.op.activation:
        return None
    a, b = layer.inputs
    left, right = _number(draft, a), _number(draft, b)
    match layer.op.kind:
        case ops.BinaryKind.MUL if right is not None:
            return a, right
        case ops.BinaryKind.MUL if left is not None:
            return b, left
        case ops.BinaryKind.DIV if right:
            return a, 1 / right
    return None


def _raised(draft: Draft, layer: Layer | None) -> tuple[str, float] | None:
    """(x, c) for a layer that computes x + c."""
    if layer is None or not isinstance(layer.op, ops.Binary) or layer.op.kind is not ops.BinaryKind.ADD:
        return None
    a, b = layer.inputs
    for x, other in ((a, b), (b, a)):
        number = _number(draft, other)
        if number is not None:
            return x, number
    return None


def _clipped(draft: Draft, tensor: str) -> tuple[str, float, float] | None:
    """(x, c, high) for a tensor computed as min(max(x + c, 0), high), however the clamp is written."""
    layer = _private(draft, tensor)
    if layer is None:
        return None
    clamp: object
    if isinstance(layer.op, ops.Clamp):
        clamp, sum_ = layer.op, _private(draft, layer.inputs[0])
        raised = _raised(draft, sum_) if sum_ is not None and not getattr(sum_.op, "activation", None) else None
    else:
        clamp = getattr(layer.op, "activation", None)
        raised = _raised(draft, layer)
    if raised is None or not isinstance(clamp, ops.Clamp) or clamp.low != 0:
        return None
    return *raised, clamp.high


def _recognised(draft: Draft, layer: Layer) -> tuple[ops.Op, str] | None:
    """The activation that a product spells out, and its input."""
    if not _is_product(draft, layer):
        return None
    factors, number = _factors(draft, layer)
    if len(factors) == 1 and (clipped := _clipped(draft, factors[0])) is not None:
        x, c, high = clipped  # clip(x + c, 0, h) / h is HardSigmoid(1 / h, c / h)
        return (ops.HardSigmoid(1 / high, c / high), x) if isclose(number * high, 1, rel_tol=1e-6) else None
    if len(factors) == 2:
        for x, gate in (factors, factors[::-1]):
            if (kind := _gated(draft, x, gate, number)) is not None:
                return ops.Unary(kind), x
    return None


def _gated(draft: Draft, x: str, gate: str, number: float) -> ops.UnaryKind | None:
    """The activation equal to number * x * gate, if the gate is a function of x."""
    maker = _private(draft, gate)
    if maker is None:
        return None
    if isclose(number, 1 / 6, rel_tol=1e-6):  # x * clip(x + 3, 0, 6) / 6
        return ops.UnaryKind.HARD_SWISH if _clipped(draft, gate) == (x, 3.0, 6.0) else None
    if isclose(number, 0.5, rel_tol=1e-6):  # x * (1 + erf(x / sqrt 2)) / 2
        raised = _raised(draft, maker)
        erf = _private(draft, raised[0]) if raised and raised[1] == 1 else None
        inner = _scaled(draft, _private(draft, erf.inputs[0])) if erf and erf.op == _ERF else None
        is_gelu = inner is not None and inner[0] == x and isclose(inner[1], sqrt(0.5), rel_tol=1e-5)
        return ops.UnaryKind.GELU if is_gelu else None
    if number != 1:
        return None
    match maker.op:
        case ops.Unary(ops.UnaryKind.SIGMOID) if maker.inputs == (x,):
            return ops.UnaryKind.SILU
        case ops.HardSigmoid(alpha, beta) if maker.inputs == (x,):
            is_swish = isclose(alpha, 1 / 6, rel_tol=1e-5) and isclose(beta, 0.5, rel_tol=1e-6)
            return ops.UnaryKind.HARD_SWISH if is_swish else None
        case ops.Unary(ops.UnaryKind.TANH):
            inside = _private(draft, maker.inputs[0])
            is_mish = inside is not None and inside.op == _SOFTPLUS and inside.inputs == (x,)
            return ops.UnaryKind.MISH if is_mish else None
    return None


_ERF, _SOFTPLUS = ops.Unary(ops.UnaryKind.ERF), ops.Unary(ops.UnaryKind.SOFTPLUS)


def _is_product(draft: Draft, layer: Layer) -> bool:
    return layer.op == ops.Binary(ops.BinaryKind.MUL) or _scaled(draft, layer) is not None


def _factors(draft: Draft, layer: Layer) -> tuple[list[str], float]:
    """The tensors that a tree of products multiplies, and the product of its numbers."""
    factors: list[str] = []
    number = 1.0
    stack: list[Layer] = [layer]
    while stack and len(factors) < 4:
        product = stack.pop()
        scaled = _scaled(draft, product)
        names: tuple[str, ...] = product.inputs
        if scaled is not None:
            names, number = (scaled[0],), number * scaled[1]
        for name in names:
            maker = _private(draft, name)
            if maker is not None and _is_product(draft, maker):
                stack.append(maker)
            else:
                factors.append(name)
    return factors, number


def recognise_shuffles(network: Network) -> Network:
    """Replaces Reshape, Transpose, Reshape that move blocks of pixels to channels or back by one layer."""
    draft = Draft(network)
    for layer in draft.walk():
        turn = _private(draft, layer.inputs[0]) if isinstance(layer.op, ops.Reshape) else None
        split = _private(draft, turn.inputs[0]) if turn and isinstance(turn.op, ops.Transpose) else None
        if turn is None or split is None or not isinstance(split.op, ops.Reshape):
            continue
        assert isinstance(turn.op, ops.Transpose)
        x, y = draft.tensors[split.inputs[0]].shape, draft.tensors[layer.output].shape
        if len(x) != 4 or len(y) != 4:
            continue
        shuffle = _shuffle(x, y, split.op.shape, turn.op.perm)
        if shuffle is not None:
            draft.put(replace(layer, op=shuffle, inputs=split.inputs))
    return draft.finish()


def _shuffle(x: Shape, y: Shape, middle: Shape, perm: Perm) -> ops.SpaceToDepth | ops.DepthToSpace | None:
    (n, h, w, c), (_, rows, cols, depth) = x, y
    candidates: list[tuple[ops.SpaceToDepth | ops.DepthToSpace, Shape, Perm]] = []
    if h % rows == 0:
        b = h // rows
        candidates.append((ops.SpaceToDepth(b), (n, rows, b, cols, b, c), (0, 1, 3, 2, 4, 5)))
    if rows % h == 0:
        b = rows // h
        candidates.append((ops.DepthToSpace(b), (n, h, w, b, b, depth), (0, 1, 3, 2, 4, 5)))
        candidates.append((ops.DepthToSpace(b, True), (n, h, w, depth, b, b), (0, 1, 4, 2, 5, 3)))
    told = _without_ones(middle, perm)
    for op, blocks, order in candidates:
        if prod(blocks) == prod(x) and _without_ones(blocks, order) == told and op.output_shape([x]) == y:
            return op
    return None


def _without_ones(shape: Shape, perm: Perm) -> tuple[Shape, Perm]:
    """The same movement of elements without axes of size 1."""
    kept = [axis for axis, size in enumerate(shape) if size > 1]
    return tuple(shape[axis] for axis in kept), tuple(kept.index(axis) for axis in perm if shape[axis] > 1)
