"""Importers of operators that sum: products (Dense for a constant right side), reductions, ArgMax, TopK."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod

import numpy as np

from ..decompositions import running_sums
from ..operators import (
    ArgMax,
    Binary,
    BinaryKind,
    Conv2d,
    Dense,
    GatherElements,
    MatMul,
    Reduce,
    ReduceKind,
    TopK,
    Unary,
    UnaryKind,
)
from ..tensor import DType
from .context import Computed, Constant, Dequantized, Value
from .node import OnnxNode

MOST_SUMMED = 1024  # elements of running sums, whose products grow quadratically


def gemm(node: OnnxNode) -> Value:
    """alpha * A' * B' + beta * C; a Dense with bias if alpha is 1 and C is one row."""
    a, b, c = node.input(0), node.input(1), node.optional(2)
    if len(node.shape(a)) != 2 or len(node.shape(b)) != 2:
        raise node.error(f"needs matrices, not {list(node.shape(a))} and {list(node.shape(b))}")
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    if node.opset < 7:
        node.flag("broadcast")  # C broadcasts in any case
    if node.flag("transA"):
        a = node.transposed(a, (1, 0), "a")
    if isinstance(b, Computed):
        y: Value = node.layer(MatMul(transpose_b=node.flag("transB")), [a, b])
        bias = None
    else:
        w = b if node.flag("transB") else node.transposed(b, (1, 0), "w")
        bias = None if c is None or alpha != 1.0 else _row(node, c, beta, node.shape(w)[0])
        y = node.layer(Dense(), [a, w] if bias is None else [a, w, bias])
    if alpha != 1.0:
        y = node.layer(Binary(BinaryKind.MUL), [y, node.number("alpha", alpha)], "alpha")
    if c is None or bias is not None or beta == 0.0:
        return y
    if beta != 1.0:
        c = node.layer(Binary(BinaryKind.MUL), [c, node.number("beta", beta)], "beta")
    total = node.layer(Binary(BinaryKind.ADD), [y, c], "bias")
    if node.shape(total) != node.shape(y):
        raise node.error(f"C of shape {list(node.shape(c))} does not fit the product {list(node.shape(y))}")
    return total


def _row(node: OnnxNode, c: Value, beta: float, outputs: int) -> Value | None:
    """beta * C as a bias with one number for each output; None if C is computed or has several rows."""
    shape = node.shape(c)
    if beta == 0.0 or isinstance(c, Computed) or prod(shape[:-1]) != 1 or len(shape) > 2:
        return None
    if shape and shape[-1] == outputs and beta == 1.0:
        return node.reshaped(c, (outputs,), "bias")
    if isinstance(c, Dequantized) or prod(shape) not in (1, outputs):
        return None
    data = np.broadcast_to(node.array(c, "C").reshape(-1), (outputs,))
    return node.constant("bias", (data * np.float32(beta)).astype(data.dtype) if beta != 1.0 else data)


def matmul(node: OnnxNode) -> Value:
    """Dense for a constant matrix on the right; otherwise MatMul. Vectors become matrices of one row or column."""
    return product(node, node.input(0), node.input(1))


def product(node: OnnxNode, a: Value, b: Value) -> Value:
    if not node.shape(a) or not node.shape(b):
        raise node.error("cannot multiply numbers; use Mul")
    if isinstance(b, Constant | Dequantized) and len(node.shape(b)) == 2:
        return node.layer(Dense(), [a, node.transposed(b, (1, 0), "w")])
    rows, cols = len(node.shape(a)) == 1, len(node.shape(b)) == 1
    if rows:
        a = node.reshaped(a, (1, *node.shape(a)), "row")
    if cols:
        b = node.reshaped(b, (*node.shape(b), 1), "column")
    y: Value = node.layer(MatMul(), [a, b])
    shape = node.shape(y)
    if rows or cols:
        kept = shape[:-2] + (() if rows else shape[-2:-1]) + (() if cols else shape[-1:])
        y = node.reshaped(y, kept, "vector")
    return y


def einsum(node: OnnxNode) -> Value:
    """A sum of products of one or two operands: axes are reordered so that a batched MatMul remains."""
    left, arrow, right = node.text("equation", "").replace(" ", "").partition("->")
    values, terms = node.all_inputs(), left.split(",")
    if "..." in left or len(terms) != len(values) or len(values) > 2:
        raise node.unsupported(f"the equation '{node.text('equation', '')}'")
    sizes: dict[str, int] = {}
    for term, value in zip(terms, values, strict=True):
        if len(set(term)) < len(term) or len(term) != len(node.shape(value)):
            raise node.unsupported(f"axes '{term}' of a tensor of shape {list(node.shape(value))}")
        for label, size in zip(term, node.shape(value), strict=True):
            if sizes.setdefault(label, size) != size:
                raise node.error(f"axis '{label}' has {sizes[label]} and {size} elements")
    counts = Counter("".join(terms))
    kept = right if arrow else "".join(sorted(label for label, count in counts.items() if count == 1))
    if not set(kept) <= set(counts) or len(set(kept)) < len(kept):
        raise node.error(f"the result '{kept}' has axes that no operand has, or one twice")
    operands = []
    for i, (term, value) in enumerate(zip(terms, values, strict=True)):
        summed = tuple(axis for axis, label in enumerate(term) if counts[label] == 1 and label not in kept)
        if summed:
            value = node.layer(Reduce(summed, False, ReduceKind.SUM), [value], f"sum{i}")
        operands.append((value, "".join(label for label in term if counts[label] > 1 or label in kept)))
    result, labels = operands[0]
    if len(operands) == 2:
        result, labels = _product(node, operands[0], operands[1], kept, sizes)
    return node.transposed(result, tuple(labels.index(label) for label in kept), "order")


Labelled = tuple[Value, str]  # a value and the labels of its axes


def _product(node: OnnxNode, a: Labelled, b: Labelled, kept: str, sizes: Mapping[str, int]) -> Labelled:
    shared = [label for label in a[1] if label in b[1]]
    batch = [label for label in shared if label in kept]
    summed = [label for label in shared if label not in kept]
    rows, columns = ([label for label in term if label not in shared] for term in (a[1], b[1]))
    lengths = [prod(sizes[label] for label in group) for group in (batch, rows, summed, columns)]

    def matrix(value: Value, labels: str, first: list[str], second: list[str], tag: str) -> Value:
        order = tuple(labels.index(label) for label in (*batch, *first, *second))
        ends = (prod(sizes[label] for label in group) for group in (first, second))
        return node.reshaped(node.transposed(value, order, f"{tag}/order"), (lengths[0], *ends), tag)

    pair = [matrix(*a, rows, summed, "a"), matrix(*b, summed, columns, "b")]
    y = node.layer(MatMul(), pair, "product")
    labels = (*batch, *rows, *columns)
    return node.reshaped(y, tuple(sizes[label] for label in labels), "shaped"), "".join(labels)


def cum_sum(node: OnnxNode) -> Value:
    """Running sums along a constant axis."""
    x = node.input(0)
    shape = node.shape(x)
    if node.tensor(x).dtype is not DType.FLOAT32 or node.tensor(x).quant is not None:
        raise node.unsupported(f"sums of {node.tensor(x).dtype.value}")
    axis = node.axis(int(node.scalar(node.input(1), "axis")), len(shape))
    if shape[axis] > MOST_SUMMED:
        raise node.unsupported(f"running sums of {shape[axis]} elements, more than {MOST_SUMMED}")
    exclusive, backward = node.flag("exclusive"), node.flag("reverse")
    return node.layer(*running_sums(node, x, axis, exclusive=exclusive, backward=backward))


def stft(node: OnnxNode) -> Value:
    """Frames times a constant matrix that includes the window: a convolution along the signal."""
    x, window, length = node.input(0), node.optional(2), node.optional(3)
    shape = node.shape(x)
    if len(shape) not in (2, 3) or shape[2:] not in ((), (1,)) or not node.tensor(x).dtype.is_float:
        raise node.unsupported(f"a signal of shape {list(shape)} and {node.tensor(x).dtype.value}")
    if window is None and length is None:
        raise node.error("neither window nor frame_length is given")
    weights = None if window is None else node.array(window, "window").astype(np.float64)
    size = (
        int(node.scalar(length, "frame_length")) if length is not None else len(weights) if weights is not None else 0
    )
    step = int(node.scalar(node.input(1), "frame_step"))
    if weights is None:
        weights = np.ones(size)
    if weights.shape != (size,) or not 1 <= size <= min(shape[1], MOST_SUMMED) or step < 1:
        raise node.unsupported(f"frames of {size} elements, every {step}, of {shape[1]} (at most {MOST_SUMMED})")
    bins = size // 2 + 1 if node.flag("onesided", True) else size
    turns = np.exp(-2j * np.pi * np.outer(np.arange(bins), np.arange(size)) / size) * weights
    matrix = np.stack([turns.real, turns.imag], axis=1).reshape(2 * bins, 1, size, 1).astype(np.float32)
    image = node.reshaped(x, (shape[0], 1, shape[1], 1), "image")
    frames = node.layer(Conv2d(stride=(1, step)), [image, node.constant("matrix", matrix)])
    return node.reshaped(frames, (shape[0], node.shape(frames)[2], bins, 2), "frames")


def log_sum_exp(node: OnnxNode) -> Value:
    """The logarithm of the sum of exponentials, which stay below 1: the largest element is taken out before."""
    x = node.input(0)
    rank = len(node.shape(x))
    axes = node.axes(node.ints_from("axes", 1, 18) or (), rank) or tuple(range(rank))
    if node.tensor(x).dtype is not DType.FLOAT32 or node.flag("noop_with_empty_axes"):
        raise node.unsupported("integers, or noop_with_empty_axes")
    most = node.layer(Reduce(axes, True, ReduceKind.MAX), [x], "most")
    below = node.layer(Binary(BinaryKind.SUB), [x, most], "below")
    powers = node.layer(Unary(UnaryKind.EXP), [below], "powers")
    total = node.layer(Reduce(axes, True, ReduceKind.SUM), [powers], "total")
    logarithm = node.layer(Unary(UnaryKind.LOG), [total], "logarithm")
    result = node.layer(Binary(BinaryKind.ADD), [logarithm, most], "sum")
    if node.flag("keepdims", True):
        return result
    left = tuple(size for axis, size in enumerate(node.shape(x)) if axis not in axes)
    return node.reshaped(result, left, "left")


def reduce(node: OnnxNode, kind: ReduceKind) -> Value:
    x = node.input(0)
    tensor = node.tensor(x)
    if tensor.quant is not None or tensor.dtype not in (DType.FLOAT32, DType.INT32, DType.INT64):
        raise node.unsupported(f"reducing {tensor.dtype.value}")
    since = 13 if kind is ReduceKind.SUM else 18  # the opset in which axes become an input
    axes = node.axes(node.ints_from("axes", 1, since) or (), len(tensor.shape))
    keep, noop = node.flag("keepdims", True), node.flag("noop_with_empty_axes")
    if not axes:
        if noop:
            # Without axes, only the element-wise function remains, such as the square of SumSquare.
            if kind in (ReduceKind.L1, ReduceKind.L2, ReduceKind.SUM_SQUARE):
                raise node.unsupported("noop_with_empty_axes without axes")
            return x
        axes = tuple(range(len(tensor.shape)))
    return node.layer(Reduce(axes, keep, kind), [x])


def arg_max(node: OnnxNode, least: bool) -> Value:
    x = node.input(0)
    axis = node.axis(node.integer("axis", 0), len(node.shape(x)))
    op = ArgMax((axis,), node.flag("keepdims", True), node.flag("select_last_index"), least)
    return node.layer(op, [x], dtype=DType.INT64)


def top_k(node: OnnxNode) -> tuple[Value, Value]:
    """The elements, gathered by the indices, and the indices; k is an attribute before opset 10."""
    x = node.input(0)
    count = node.integer("k", 1) if node.opset < 10 else int(node.scalar(node.input(1), "k"))
    axis = node.axis(node.integer("axis", -1), len(node.shape(x)))
    node.flag("sorted", True)  # any order is allowed if not requested
    op = TopK(axis, count, not node.flag("largest", True))
    indices = node.layer(op, [x], "indices", dtype=DType.INT64)
    return node.layer(GatherElements(axis), [x, indices]), indices
