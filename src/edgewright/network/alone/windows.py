"""Window operators restricted to a region: padding stays where the region touches the border, and is dropped elsewhere.

A region that cuts a group of channels in two needs several operators, whose outputs are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..operators import AvgPool2d, Conv2d, ConvTranspose2d, Dense, DynamicProduct, MaxPool2d, Pads, PartialSum
from ..region import Interval, Region, Shape, clip
from .answer import AloneOperator, Answer, split, unchanged


def _inside(span: Interval, size: int) -> Interval:
    """The part of a span that lies in 0..size; one row at the border where none does, which pads then crop."""
    start, stop = clip(span, size)
    if start < stop:
        return start, stop
    near = min(start, size - 1)
    return near, near + 1


def _spans(op: Conv2d | MaxPool2d | AvgPool2d, out: Region, kernel: Sequence[int]) -> list[Interval]:
    """What the windows of a region cover of the padded image, rows and columns; 0 is the image's first."""
    found = []
    for i in range(2):
        start, stop = out.bounds[1 + i]
        first = start * op.stride[i] - op.pads[i]
        found.append((first, first + (stop - 1 - start) * op.stride[i] + (kernel[i] - 1) * op.dilation[i] + 1))
    return found


def _windows(
    op: Conv2d | MaxPool2d | AvgPool2d, out: Region, x: Shape, kernel: Sequence[int], whole: Shape
) -> tuple[tuple[Interval, Interval], Pads]:
    """The rows and columns of the image that are read, and the pads around them.

    Along an axis that is not cut both stay as they are, even where the last rows of the image are never read.
    """
    reads, before, after = [], [], []
    for i, span in enumerate(_spans(op, out, kernel)):
        if out.bounds[1 + i] == (0, whole[1 + i]):
            reads.append((0, x[1 + i]))
            before.append(op.pads[i])
            after.append(op.pads[2 + i])
            continue
        start, stop = _inside(span, x[1 + i])
        reads.append((start, stop))
        before.append(start - span[0])
        after.append(span[1] - stop)
    return (reads[0], reads[1]), (before[0], before[1], after[0], after[1])


def _group_ends(channels: Interval, per_group: int) -> list[int]:
    """Where a range of channels has to be split, so that each piece is some groups, or a range within one."""
    start, stop = channels
    if start // per_group == (stop - 1) // per_group:
        return []
    return [-(-start // per_group) * per_group, stop // per_group * per_group]


def conv2d(op: Conv2d, out: Region, shapes: Sequence[Shape]) -> Answer:
    x, w = shapes[:2]
    per_group, channels = w[0] // op.groups, out.bounds[3]
    cut = split(out, 3, _group_ends(channels, per_group))
    if len(cut.regions) > 1:
        return cut
    (rows, cols), pads = _windows(op, out, x, w[1:3], op.output_shape(shapes))
    _, *others = op.needs(out, shapes)
    groups = -(-channels[1] // per_group) - channels[0] // per_group
    depth = _depth(channels, w, per_group)
    made = replace(op, pads=pads, groups=groups)
    return AloneOperator(made, (Region((out.bounds[0], rows, cols, depth)), *others))


def _depth(channels: Interval, w: Shape, per_group: int) -> Interval:
    """The channels of the image that the groups of a range read."""
    return channels[0] // per_group * w[3], -(-channels[1] // per_group) * w[3]


def conv_transpose2d(op: ConvTranspose2d, out: Region, shapes: Sequence[Shape]) -> Answer:
    """Output o gets input i where o = i * stride + tap * dilation - pad: the pad moves with both origins."""
    x, w = shapes[:2]
    per_group, channels = w[0] // op.groups, out.bounds[3]
    cut = split(out, 3, _group_ends(channels, per_group))
    if len(cut.regions) > 1:
        return cut
    whole = op.output_shape(shapes)
    reads, before, after, extra = [], [], [], []
    for i in range(2):
        start, stop = out.bounds[1 + i]
        if (start, stop) == (0, whole[1 + i]):
            reads.append((0, x[1 + i]))
            before.append(op.pads[i])
            after.append(op.pads[2 + i])
            extra.append(op.extra[i])
            continue
        reach = (w[1 + i] - 1) * op.dilation[i]
        first = -(-(start + op.pads[i] - reach) // op.stride[i])
        first = min(first, (start + op.pads[i]) // op.stride[i])  # from there on pads are never negative
        last = (stop - 1 + op.pads[i]) // op.stride[i]
        read = _inside((first, last + 1), x[1 + i])
        reads.append(read)
        before.append(op.pads[i] + start - read[0] * op.stride[i])
        rest = (read[1] - 1 - read[0]) * op.stride[i] + reach + 1 - before[i] - (stop - start)
        after.append(max(0, rest))
        extra.append(max(0, -rest))
    made = replace(
        op,
        pads=(before[0], before[1], after[0], after[1]),
        extra=(extra[0], extra[1]),
        groups=-(-channels[1] // per_group) - channels[0] // per_group,
    )
    _, *others = op.needs(out, shapes)
    return AloneOperator(made, (Region((out.bounds[0], reads[0], reads[1], _depth(channels, w, per_group))), *others))


def max_pool2d(op: MaxPool2d, out: Region, shapes: Sequence[Shape]) -> Answer:
    (rows, cols), pads = _windows(op, out, shapes[0], op.kernel, op.output_shape(shapes))
    return AloneOperator(replace(op, pads=pads), (Region((out.bounds[0], rows, cols, out.bounds[3])),))


def avg_pool2d(op: AvgPool2d, out: Region, shapes: Sequence[Shape]) -> Answer:
    """The taps that are counted are those of the whole: what counts ends where it ends there."""
    x, whole = shapes[0], op.output_shape(shapes)
    (rows, cols), pads = _windows(op, out, x, op.kernel, whole)
    uncounted = list(op.uncounted)
    for i, (_, stop) in enumerate(_spans(op, out, op.kernel)):
        if out.bounds[1 + i] != (0, whole[1 + i]):
            uncounted[i] = max(0, stop - (x[1 + i] + op.pads[2 + i] - op.uncounted[i]))
    made = replace(op, pads=pads, uncounted=(uncounted[0], uncounted[1]))
    read = Region((out.bounds[0], rows, cols, out.bounds[3]))
    if _is_global(made, read.shape) and not _is_global(op, x):
        return _not_global(made, read, out)
    return AloneOperator(made, (read,))


def _is_global(op: AvgPool2d, x: Shape) -> bool:
    return op.kernel == x[1:3] and op.pads == (0, 0, 0, 0)


def _not_global(op: AvgPool2d, read: Region, out: Region) -> AloneOperator:
    """One window that happens to be all of the part's image must not be taken for a global average.

    In onnxruntime's arithmetic those are summed in integers, others in float32, and the last bit may differ.
    """
    top, left, bottom, right = op.pads
    if op.stride[0] > 1:  # a row of padding that no window reaches
        uncounted = (op.uncounted[0] + op.count_pads, op.uncounted[1])
        return AloneOperator(replace(op, pads=(top, left, bottom + 1, right), uncounted=uncounted), (read,))
    more = replace(op, pads=(top + 1, left, bottom, right))
    return AloneOperator(more, (read,), Region.whole(out.shape).with_axis(1, (1, 2)))


def dynamic_product(op: DynamicProduct, out: Region, shapes: Sequence[Shape]) -> Answer:
    x, w, _, bias, _ = shapes
    product = op.product
    match product:
        case Conv2d():
            found = conv2d(product, out, (x, w, bias))
        case ConvTranspose2d():
            found = conv_transpose2d(product, out, (x, w, bias))
        case _:
            found = unchanged(product, out, (x, w, bias))
    if not isinstance(found, AloneOperator):
        return found
    assert isinstance(found.op, Conv2d | ConvTranspose2d | Dense)
    image, *_ = found.reads
    return AloneOperator(replace(op, product=found.op), (image, *op.needs(out, shapes)[1:]))


def partial_sum(op: PartialSum, out: Region, shapes: Sequence[Shape]) -> Answer:
    product = op.product
    match product:
        case Conv2d():
            found = conv2d(product, out, shapes)
        case AvgPool2d():
            found = avg_pool2d(product, out, shapes)
        case _:
            found = unchanged(product, out, shapes)
    if not isinstance(found, AloneOperator):
        return found
    assert isinstance(found.op, type(product))
    return replace(found, op=replace(op, product=found.op))
