"""Window operators restricted to a region: padding stays where the region touches the border, and is dropped elsewhere.

A region that cuts a group of channels in two needs several operators, whose outputs are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..operators import AvgPool2d, Conv2d, ConvTranspose2d, Dense, DynamicProduct, MaxPool2d, Pads, Pair, PartialSum
from ..operators.window import input_channels, is_global
from ..region import Interval, Region, Shape, span
from .answer import Answer, RestrictedOperator, inside, split, unchanged

Windowed = Conv2d | ConvTranspose2d | MaxPool2d | AvgPool2d
CutAxis = tuple[Interval, int, int, int]  # the range read along an axis, pads before and after it, rows to be added


def _window_axis(op: Conv2d | MaxPool2d | AvgPool2d, i: int, out: Interval, size: int, kernel: int) -> CutAxis:
    start, stop = span(out, kernel, op.stride[i], op.dilation[i], op.pads[i])
    read = inside((start, stop), size)
    return read, read[0] - start, stop - read[1], 0


def _transposed_axis(op: ConvTranspose2d, i: int, out: Interval, size: int, kernel: int) -> CutAxis:
    """Output o gets input i where o = i * stride + tap * dilation - pad: the pad moves with both origins."""
    (start, stop), stride, pad, reach = out, op.stride[i], op.pads[i], (kernel - 1) * op.dilation[i]
    first = min(-(-(start + pad - reach) // stride), (start + pad) // stride)  # from there on pads are never negative
    read = inside((first, (stop - 1 + pad) // stride + 1), size)
    before = pad + start - read[0] * stride
    rest = (read[1] - 1 - read[0]) * stride + reach + 1 - before - (stop - start)
    return read, before, max(0, rest), max(0, -rest)


def _windows(
    op: Windowed, out: Region, x: Shape, kernel: Sequence[int], whole: Shape
) -> tuple[tuple[Interval, Interval], Pads, Pair]:
    """The rows and columns of the image that are read, the pads around them, and what is added to the output.

    Along an uncut axis all stay, even if the last rows of the image are never read.
    """
    axes: list[CutAxis] = []
    for i in range(2):
        bounds, size = out.bounds[1 + i], x[1 + i]
        if bounds == (0, whole[1 + i]):
            added = op.extra[i] if isinstance(op, ConvTranspose2d) else 0
            axes.append(((0, size), op.pads[i], op.pads[2 + i], added))
        elif isinstance(op, ConvTranspose2d):
            axes.append(_transposed_axis(op, i, bounds, size, kernel[i]))
        else:
            axes.append(_window_axis(op, i, bounds, size, kernel[i]))
    (rows, top, bottom, below), (cols, left, right, beside) = axes
    return (rows, cols), (top, left, bottom, right), (below, beside)


def _group_ends(channels: Interval, per_group: int) -> list[int]:
    """Where a range of channels must be split, so that each piece is some groups, or a range within one."""
    start, stop = channels
    if start // per_group == (stop - 1) // per_group:
        return []
    return [-(-start // per_group) * per_group, stop // per_group * per_group]


def convolution(op: Conv2d | ConvTranspose2d, out: Region, shapes: Sequence[Shape]) -> Answer:
    x, w = shapes[:2]
    per_group, channels = w[0] // op.groups, out.bounds[3]
    cut = split(out, 3, _group_ends(channels, per_group))
    if len(cut.regions) > 1:
        return cut
    (rows, cols), pads, extra = _windows(op, out, x, w[1:3], op.output_shape(shapes))
    made = replace(op, pads=pads, groups=-(-channels[1] // per_group) - channels[0] // per_group)
    if isinstance(made, ConvTranspose2d):
        made = replace(made, extra=extra)
    _, *others = op.needs(out, shapes)
    image = Region((out.bounds[0], rows, cols, input_channels(channels, w, op.groups)))
    return RestrictedOperator(made, (image, *others))


def max_pool2d(op: MaxPool2d, out: Region, shapes: Sequence[Shape]) -> Answer:
    (rows, cols), pads, _ = _windows(op, out, shapes[0], op.kernel, op.output_shape(shapes))
    return RestrictedOperator(replace(op, pads=pads), (Region((out.bounds[0], rows, cols, out.bounds[3])),))


def avg_pool2d(op: AvgPool2d, out: Region, shapes: Sequence[Shape]) -> Answer:
    """The same taps count as in the whole: counting ends at the same position."""
    x, whole = shapes[0], op.output_shape(shapes)
    (rows, cols), pads, _ = _windows(op, out, x, op.kernel, whole)
    uncounted = list(op.uncounted)
    for i in range(2):
        _, stop = span(out.bounds[1 + i], op.kernel[i], op.stride[i], op.dilation[i], op.pads[i])
        if out.bounds[1 + i] != (0, whole[1 + i]):
            uncounted[i] = max(0, stop - (x[1 + i] + op.pads[2 + i] - op.uncounted[i]))
    made = replace(op, pads=pads, uncounted=(uncounted[0], uncounted[1]))
    read = Region((out.bounds[0], rows, cols, out.bounds[3]))
    if is_global(made, read.shape) and not is_global(op, x):
        return _not_global(made, read, out)
    return RestrictedOperator(made, (read,))


def _not_global(op: AvgPool2d, read: Region, out: Region) -> RestrictedOperator:
    """One window that covers exactly the part's image must not become a global average.

    In onnxruntime's arithmetic global averages are summed in integers, others in float32, and the last bit may differ.
    """
    top, left, bottom, right = op.pads
    if op.stride[0] > 1:  # a row of padding that no window reaches
        uncounted = (op.uncounted[0] + op.count_pads, op.uncounted[1])
        return RestrictedOperator(replace(op, pads=(top, left, bottom + 1, right), uncounted=uncounted), (read,))
    more = replace(op, pads=(top + 1, left, bottom, right))
    return RestrictedOperator(more, (read,), Region.whole(out.shape).with_axis(1, (1, 2)))


_PRODUCTS: Mapping[type, Callable[..., Answer]] = {
    Conv2d: convolution,
    ConvTranspose2d: convolution,
    AvgPool2d: avg_pool2d,
}


def dynamic_product(op: DynamicProduct, out: Region, shapes: Sequence[Shape]) -> Answer:
    x, w, _, bias, _ = shapes
    found = _PRODUCTS.get(type(op.product), unchanged)(op.product, out, (x, w, bias))
    if not isinstance(found, RestrictedOperator):
        return found
    assert isinstance(found.op, Conv2d | ConvTranspose2d | Dense)
    return RestrictedOperator(replace(op, product=found.op), (found.reads[0], *op.needs(out, shapes)[1:]))


def partial_sum(op: PartialSum, out: Region, shapes: Sequence[Shape]) -> Answer:
    found = _PRODUCTS.get(type(op.product), unchanged)(op.product, out, shapes)
    if not isinstance(found, RestrictedOperator):
        return found
    assert isinstance(found.op, type(op.product))
    return replace(found, op=replace(op, product=found.op))
