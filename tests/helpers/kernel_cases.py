"""Random operators with inputs that fit them, for the tests of kernels: one strategy for each operator class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from edgewright.network.kernels import Operand, compute
from edgewright.network.network import Arithmetic
from edgewright.network.operators import (
    ArgMax,
    AvgPool2d,
    BatchNorm,
    Binary,
    BinaryKind,
    Cast,
    Clamp,
    Compare,
    CompareKind,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Coordinates,
    Dense,
    DepthToSpace,
    Dequantize,
    DynamicProduct,
    DynamicQuantize,
    DynamicRange,
    Elu,
    Expand,
    Gather,
    GatherElements,
    HardSigmoid,
    L2Normalize,
    LeakyRelu,
    LogSoftmax,
    Lrn,
    LstmPart,
    LstmStep,
    MatMul,
    MaxPool2d,
    NearestMode,
    NonMaxSuppression,
    Op,
    Pad,
    PadMode,
    PRelu,
    Quantize,
    Reduce,
    ReduceKind,
    Reshape,
    Resize,
    ResizeMode,
    Select,
    Slice,
    Softmax,
    SpaceToDepth,
    Tile,
    TopK,
    Transpose,
    Unary,
    UnaryKind,
)
from edgewright.network.region import Region, Shape
from edgewright.network.tensor import Array, DType, Tensor

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Case:
    """An operator, the shapes of its inputs, and a seed for their values."""

    op: Op
    shapes: tuple[Shape, ...]
    seed: int = 0
    integers: tuple[int, ...] = ()  # inputs that are indices, below `limit`
    limit: int = 1
    bytes: tuple[int, ...] = ()  # inputs that are int8
    bools: tuple[int, ...] = ()  # inputs that are conditions
    ranges: int | None = None  # the input that says how items are stored: scale, inverse, zero point

    @property
    def whole(self) -> Region:
        return Region.whole(self.op.output_shape(self.shapes))

    def values(self) -> list[Array]:
        rng = np.random.default_rng(self.seed)
        found = [
            rng.integers(-self.limit, self.limit, shape)
            if i in self.integers
            else rng.integers(-127, 128, shape).astype(np.int8)
            if i in self.bytes
            else rng.integers(0, 2, shape).astype(bool)
            if i in self.bools
            else rng.standard_normal(shape).astype(np.float32) * 2
            for i, shape in enumerate(self.shapes)
        ]
        if self.ranges is not None:
            range_ = found[self.ranges]
            range_[..., :2] = np.abs(range_[..., :2]) * 20 + np.float32(0.1)
            range_[..., 2] = np.rint(range_[..., 2] * 20)
        return found


def run(
    op: Op,
    out: Region,
    values: list[Array],
    tensors: list[Tensor],
    result: Tensor,
    arithmetic: Arithmetic = Arithmetic.ONNX,
) -> Array:
    """The region of the output, from copies of exactly what the operator says that it needs."""
    needs = op.needs(out, [tensor.shape for tensor in tensors])
    operands = [
        Operand(value[region.slices].copy(), region, tensor)
        for value, region, tensor in zip(values, needs, tensors, strict=True)
    ]
    return compute(op, out, operands, result, arithmetic)


def tensors_for(values: list[Array]) -> list[Tensor]:
    return [Tensor(f"i{i}", v.shape, DType(v.dtype.name)) for i, v in enumerate(values)]


def result_for(case: Case) -> Tensor:
    known = {
        ArgMax: DType.INT64,
        TopK: DType.INT64,
        NonMaxSuppression: DType.INT32,
        Cast: getattr(case.op, "dtype", None),
        DynamicQuantize: DType.INT8,
        Compare: DType.BOOL,
    }
    dtype = known.get(type(case.op)) or DType.FLOAT32
    return Tensor("y", case.op.output_shape(case.shapes), dtype)


@st.composite
def regions(draw: Draw, shape: Shape) -> Region:
    """A box inside a tensor; often narrow, sometimes whole along an axis."""
    bounds = []
    for size in shape:
        start = draw(st.integers(0, size - 1))
        bounds.append((start, draw(st.integers(start + 1, size))))
        if draw(st.integers(0, 3)) == 0:
            bounds[-1] = (0, size)
    return Region(tuple(bounds))


def pair(draw: Draw, low: int, high: int) -> tuple[int, int]:
    return draw(st.integers(low, high)), draw(st.integers(low, high))


def image(draw: Draw, channels: int | None = None, least: int = 4) -> Shape:
    return (draw(st.integers(1, 2)), *pair(draw, least, 9), channels or draw(st.integers(1, 6)))


def shape(draw: Draw, ranks: tuple[int, int] = (1, 4), high: int = 5) -> Shape:
    rank = draw(st.integers(*ranks))
    return tuple(draw(st.integers(1, high)) for _ in range(rank))


def pads(draw: Draw, low: int = -1, high: int = 2) -> tuple[int, int, int, int]:
    return (*pair(draw, low, high), *pair(draw, low, high))


def activation(draw: Draw) -> Any:
    return draw(st.sampled_from([None, None, Clamp(0.0), Clamp(-0.5, 1.0), LeakyRelu(0.1), Unary(UnaryKind.TANH)]))


def conv(draw: Draw) -> Case:
    kind = draw(st.sampled_from(["dense", "depthwise", "grouped"]))
    groups, depth = {"dense": (1, draw(st.integers(1, 5))), "depthwise": (draw(st.integers(2, 5)), 1)}.get(
        kind, (draw(st.integers(2, 3)), draw(st.integers(2, 3)))
    )
    outputs = groups * draw(st.integers(1, 3))
    kernel = pair(draw, 1, 3)
    op = Conv2d(pair(draw, 1, 3), pair(draw, 1, 2), pads(draw), groups, activation(draw))
    x = image(draw, groups * depth, least=8)
    bias = [(outputs,)] * draw(st.integers(0, 1))
    return Case(op, (x, (outputs, *kernel, depth), *bias))


def conv_transpose(draw: Draw) -> Case:
    groups, depth = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    outputs = groups * draw(st.integers(1, 3))
    stride = pair(draw, 1, 3)
    extra = tuple(draw(st.integers(0, s - 1)) for s in stride)
    op = ConvTranspose2d(stride, pair(draw, 1, 2), pads(draw, 0, 1), (extra[0], extra[1]), groups, activation(draw))
    bias = [(outputs,)] * draw(st.integers(0, 1))
    return Case(op, (image(draw, groups * depth), (outputs, *pair(draw, 2, 4), depth), *bias))


def max_pool(draw: Draw) -> Case:
    return Case(
        MaxPool2d(pair(draw, 2, 3), pair(draw, 1, 3), pair(draw, 1, 2), pads(draw, 0, 1)),
        (image(draw, least=6),),
    )


def avg_pool(draw: Draw) -> Case:
    op = AvgPool2d(pair(draw, 2, 3), pair(draw, 1, 3), (1, 1), pads(draw, 0, 1), count_pads=draw(st.booleans()))
    return Case(op, (image(draw),))


def dense(draw: Draw) -> Case:
    inner = shape(draw, (1, 3), 4)
    outputs = draw(st.integers(1, 6))
    bias = [(outputs,)] * draw(st.integers(0, 1))
    return Case(Dense(activation(draw)), ((*shape(draw, (1, 2)), int(np.prod(inner))), (outputs, *inner), *bias))


def matmul(draw: Draw) -> Case:
    m, k, n = (draw(st.integers(1, 6)) for _ in range(3))
    op = MatMul(draw(st.booleans()), draw(st.booleans()))
    batch = shape(draw, (0, 2), 3)
    a = (*batch, k, m) if op.transpose_a else (*batch, m, k)
    b = (n, k) if op.transpose_b else (k, n)
    return Case(op, (a, (*draw(st.sampled_from([(), batch])), *b)))


def dynamic_range(draw: Draw) -> Case:
    x = shape(draw, (2, 4))
    return Case(DynamicRange(draw(st.integers(1, len(x) - 1)), *dynamic_rounding(draw)), (x,))


def dynamic_quantize(draw: Draw) -> Case:
    x = shape(draw, (2, 4))
    lead = draw(st.integers(1, len(x) - 1))
    return Case(DynamicQuantize(*dynamic_rounding(draw)), (x, (*x[:lead], 3)), ranges=1)


def dynamic_rounding(draw: Draw) -> tuple[bool, bool]:
    """Asymmetric, and halves to even: LiteRT's two ways and ONNX's."""
    return draw(st.sampled_from([(False, False), (True, False), (True, True)]))


def dynamic_product(draw: Draw) -> Case:
    product = draw(st.sampled_from([conv, conv_transpose, dense]))(draw)
    x, w = product.shapes[:2]
    lead = len(x) - 1 if isinstance(product.op, Dense) else 1
    op = DynamicProduct(product.op, draw(st.booleans()), draw(st.booleans()))
    return Case(op, (x, w, w[:1], w[:1], (*x[:lead], 3)), bytes=(0, 1), ranges=4)


def binary(draw: Draw) -> Case:
    full = shape(draw, (1, 4))
    cut = draw(st.integers(0, len(full) - 1))
    other = tuple(draw(st.sampled_from([1, size])) for size in full[cut:])
    kind = draw(st.sampled_from(list(BinaryKind)))
    pair_ = (full, other) if draw(st.booleans()) else (other, full)
    return Case(Binary(kind, activation(draw)), pair_)


def lrn(draw: Draw) -> Case:
    return Case(Lrn(draw(st.integers(1, 5)), 0.1, 0.75, 1.0), (image(draw),))


def along(make: Callable[..., Op]) -> Callable[[Draw], Case]:
    def case(draw: Draw) -> Case:
        x = shape(draw, (1, 4), 6)
        return Case(make(draw(st.integers(-len(x), len(x) - 1))), (x,))

    return case


def reduced(make: Callable[[Draw, tuple[int, ...], bool], Op], most: int) -> Callable[[Draw], Case]:
    def case(draw: Draw) -> Case:
        x = shape(draw, (1, 4))
        axes = draw(st.lists(st.integers(0, len(x) - 1), min_size=1, max_size=most, unique=True))
        signed = tuple(a - len(x) if draw(st.booleans()) else a for a in axes)
        return Case(make(draw, signed, draw(st.booleans())), (x,))

    return case


def reshape(draw: Draw) -> Case:
    parts = [draw(st.integers(1, 4)) for _ in range(4)]
    joins = [list(parts), [parts[0] * parts[1], *parts[2:]], [parts[0], parts[1] * parts[2], parts[3]]]
    joins += [[parts[0], int(np.prod(parts[1:]))], [int(np.prod(parts))], [parts[3], *parts[:3]]]
    x, y = draw(st.sampled_from(joins)), draw(st.sampled_from(joins))
    return Case(Reshape(tuple(y)), (tuple(x),))


def transpose(draw: Draw) -> Case:
    x = shape(draw)
    return Case(Transpose(tuple(draw(st.permutations(range(len(x)))))), (x,))


def concat(draw: Draw) -> Case:
    x = list(shape(draw))
    axis = draw(st.integers(0, len(x) - 1))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    return Case(Concat(axis - len(x)), tuple((*x[:axis], n, *x[axis + 1 :]) for n in sizes))


def slice_(draw: Draw) -> Case:
    x = shape(draw, high=8)
    starts, sizes, steps = [], [], []
    for extent in x:
        step = draw(st.sampled_from([-2, -1, 1, 2, 3]))
        start = draw(st.integers(0, extent - 1))
        room = (extent - 1 - start) // step if step > 0 else start // -step
        starts.append(start)
        steps.append(step)
        sizes.append(draw(st.integers(1, room + 1)))
    return Case(Slice(tuple(starts), tuple(sizes), tuple(steps)), (x,))


def pad(draw: Draw) -> Case:
    x = tuple(draw(st.integers(3, 6)) for _ in range(draw(st.integers(1, 4))))
    mode = draw(st.sampled_from(list(PadMode)))
    low = -1
    sides = [tuple(draw(st.integers(low, 2)) for _ in x) for _ in range(2)]
    return Case(Pad(sides[0], sides[1], mode, 1.5 if mode is PadMode.CONSTANT else 0.0), (x,))


def expand(draw: Draw) -> Case:
    full = shape(draw)
    x = tuple(draw(st.sampled_from([1, size])) for size in full[draw(st.integers(0, len(full) - 1)) :])
    return Case(Expand(full), (x,))


def tile(draw: Draw) -> Case:
    x = shape(draw)
    return Case(Tile(tuple(draw(st.integers(1, 3)) for _ in x)), (x,))


def space_to_depth(draw: Draw) -> Case:
    k = draw(st.integers(1, 3))
    n, h, w, c = image(draw, least=1)
    return Case(SpaceToDepth(k), ((n, h * k, w * k, c),))


def depth_to_space(draw: Draw) -> Case:
    k = draw(st.integers(1, 3))
    n, h, w, c = image(draw, least=1)
    return Case(DepthToSpace(k, draw(st.booleans())), ((n, h, w, c * k * k),))


def gather(draw: Draw) -> Case:
    data = shape(draw, (1, 3))
    axis = draw(st.integers(0, len(data) - 1))
    return Case(Gather(axis), (data, shape(draw, (1, 2))), integers=(1,), limit=data[axis])


def gather_elements(draw: Draw) -> Case:
    data = shape(draw, (1, 4))
    axis = draw(st.integers(0, len(data) - 1))
    sizes = tuple(draw(st.integers(1, 5 if i == axis else size)) for i, size in enumerate(data))
    return Case(GatherElements(axis), (data, sizes), integers=(1,), limit=data[axis])


def top_k(draw: Draw) -> Case:
    x = shape(draw, (1, 4))
    axis = draw(st.integers(-len(x), len(x) - 1))
    return Case(TopK(axis, draw(st.integers(1, x[axis])), draw(st.booleans())), (x,))


def non_max_suppression(draw: Draw) -> Case:
    number, count = draw(st.integers(1, 12)), draw(st.integers(1, 8))
    op = NonMaxSuppression(count, draw(st.sampled_from([-9.0, 0.1])), draw(st.sampled_from([0.0, 0.2, 0.6])))
    return Case(op, ((number, 4), (number,)))


def resize(draw: Draw) -> Case:
    x = image(draw, least=1)
    size = pair(draw, 1, 12)
    op = Resize(
        size,
        draw(st.sampled_from(list(ResizeMode))),
        draw(st.sampled_from(list(Coordinates))),
        draw(st.sampled_from(list(NearestMode))),
    )
    return Case(op, (x,))


def compare(draw: Draw) -> Case:
    kind = draw(st.sampled_from(list(CompareKind)))
    both = (0, 1) if kind in (CompareKind.AND, CompareKind.OR) else ()
    return Case(Compare(kind), (x := image(draw), draw(st.sampled_from([x, x[-1:], (1,)]))), bools=both)


def lstm_step(draw: Draw) -> Case:
    cell = shape(draw)
    clip = draw(st.sampled_from([None, 0.7]))
    return Case(LstmStep(draw(st.sampled_from(list(LstmPart))), clip), ((*cell[:-1], 4 * cell[-1]), cell))


def select(draw: Draw) -> Case:
    x = image(draw)
    others = st.sampled_from([x, x[-1:], (x[1], 1, 1), (1,)])
    return Case(Select(), (draw(others), draw(others), x), bools=(0,))


def unary(make: Callable[[Draw], Op]) -> Callable[[Draw], Case]:
    return lambda draw: Case(make(draw), (shape(draw),))


CASES: Mapping[type, Callable[[Draw], Case]] = {
    Conv2d: conv,
    ConvTranspose2d: conv_transpose,
    Dense: dense,
    MatMul: matmul,
    DynamicProduct: dynamic_product,
    DynamicRange: dynamic_range,
    DynamicQuantize: dynamic_quantize,
    MaxPool2d: max_pool,
    AvgPool2d: avg_pool,
    Clamp: unary(lambda draw: Clamp(-0.5, draw(st.sampled_from([1.0, float("inf")])))),
    LeakyRelu: unary(lambda draw: LeakyRelu(0.1)),
    Elu: unary(lambda draw: Elu(1.5, draw(st.sampled_from([1.0, 1.2])))),
    HardSigmoid: unary(lambda draw: HardSigmoid(0.3, 0.4)),
    Unary: unary(lambda draw: Unary(draw(st.sampled_from(list(UnaryKind))))),
    PRelu: lambda draw: Case(PRelu(), (x := image(draw), draw(st.sampled_from([x, x[-1:], (1,)])))),
    Binary: binary,
    Compare: compare,
    Select: select,
    BatchNorm: lambda draw: Case(BatchNorm(activation(draw)), (x := image(draw), x[-1:], x[-1:])),
    Cast: unary(lambda draw: Cast(draw(st.sampled_from([DType.INT32, DType.FLOAT32, DType.BOOL])))),
    Quantize: unary(lambda draw: Quantize()),
    Dequantize: unary(lambda draw: Dequantize()),
    Softmax: along(Softmax),
    LogSoftmax: along(LogSoftmax),
    L2Normalize: along(L2Normalize),
    Lrn: lrn,
    LstmStep: lstm_step,
    Reduce: reduced(lambda draw, axes, keep: Reduce(axes, keep, draw(st.sampled_from(list(ReduceKind)))), 3),
    ArgMax: reduced(lambda draw, axes, keep: ArgMax(axes, keep, draw(st.booleans()), draw(st.booleans())), 1),
    Reshape: reshape,
    Transpose: transpose,
    Concat: concat,
    Slice: slice_,
    Pad: pad,
    Expand: expand,
    Tile: tile,
    SpaceToDepth: space_to_depth,
    DepthToSpace: depth_to_space,
    Gather: gather,
    GatherElements: gather_elements,
    TopK: top_k,
    NonMaxSuppression: non_max_suppression,
    Resize: resize,
}


@st.composite
def cases(draw: Draw, kind: type) -> Case:
    case: Case = CASES[kind](draw)
    return Case(
        case.op, case.shapes, draw(st.integers(0, 99)), case.integers, case.limit, case.bytes, case.bools, case.ranges
    )
