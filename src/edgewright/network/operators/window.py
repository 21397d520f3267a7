"""Sliding windows over images (NHWC): convolution, transposed convolution, pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ..region import Interval, Region, Shape, clip, span, window, window_output
from .base import Answer, Grain, Operator, RestrictedOperator, inside, require, require_positive, split
from .elementwise import Activation

Pair = tuple[int, int]  # (vertical, horizontal)
Pads = tuple[int, int, int, int]  # (top, left, bottom, right); negative ones crop (M 2.1)


def same_padding(size: int, kernel: int, stride: int, dilation: int) -> int:
    """The padding of an axis that gives ceil(size / stride) windows; negative if windows leave gaps."""
    return (-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size


def split_pads(totals: Sequence[int], upper: bool = True) -> Pads:
    """Totals split between both ends; an odd one goes below and to the right with `upper`."""
    top, left = (int((total if upper else total + 1) / 2) for total in totals)  # rounds towards zero
    return (top, left, totals[0] - top, totals[1] - left)


def _window_shape(x: Shape, kernel: Pair, stride: Pair, dilation: Pair, pads: Pads) -> Pair:
    require(len(x) == 4, f"expected an image of rank 4 (NHWC), got shape {x}")
    require_positive("kernel, stride and dilation", (*kernel, *stride, *dilation))
    h = window_output(x[1], kernel[0], stride[0], dilation[0], (pads[0], pads[2]))
    w = window_output(x[2], kernel[1], stride[1], dilation[1], (pads[1], pads[3]))
    require(h > 0 and w > 0, f"window {kernel} with pads {pads} leaves nothing of an image of {x[1]}x{x[2]}")
    return h, w


def _window_needs(out: Region, x: Shape, kernel: Pair, stride: Pair, dilation: Pair, pads: Pads) -> Region:
    _, rows, cols, _ = out.bounds
    return Region(
        (
            out.bounds[0],
            window(rows, kernel[0], stride[0], dilation[0], pads[0], x[1]),
            window(cols, kernel[1], stride[1], dilation[1], pads[1], x[2]),
            (0, x[3]),
        )
    )


def _image_and_weights(shapes: Sequence[Shape], groups: int) -> tuple[Shape, Shape]:
    """The shapes of a convolution's image and weights, after a check that they and the bias fit."""
    x, w = shapes[0], shapes[1]
    require(len(w) == 4, f"expected weights of rank 4 (O, kh, kw, I), got shape {w}")
    require(len(x) == 4, f"expected an image of rank 4 (NHWC), got shape {x}")
    require_positive("groups and output channels", (groups, w[0]))
    require(x[3] == w[3] * groups, f"{x[3]} channels do not match weights {w} in {groups} groups")
    require(w[0] % groups == 0, f"{w[0]} output channels do not divide into {groups} groups")
    require(len(shapes) < 3 or shapes[2] == (w[0],), f"bias {shapes[-1]} does not match weights {w}")
    return x, w


def input_channels(channels: Interval, w: Shape, groups: int) -> Interval:
    """The channels of x that a range of output channels reads: those of the groups it touches."""
    per_group = w[0] // groups
    return (channels[0] // per_group * w[3], -(-channels[1] // per_group) * w[3])


@dataclass(frozen=True, slots=True)
class Conv2d(Operator):
    """Inputs: x (N, H, W, C), w (O, kh, kw, C / groups), optional b (O). Depthwise has groups == C."""

    grain: ClassVar[Grain] = Grain.PIXEL
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    groups: int = 1
    activation: Activation | None = None

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        x, w = _image_and_weights(shapes, self.groups)
        h, wd = _window_shape(x, (w[1], w[2]), self.stride, self.dilation, self.pads)
        return (x[0], h, wd, w[0])

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        x, w = shapes[0], shapes[1]
        channels = out.bounds[3]
        region = _window_needs(out, x, (w[1], w[2]), self.stride, self.dilation, self.pads)
        region = region.with_axis(3, input_channels(channels, w, self.groups))
        weights = Region.whole(w).with_axis(0, channels)
        return (region, weights, *(Region((channels,)) for _ in shapes[2:]))

    def macs(self, out: Region, shapes: Sequence[Shape]) -> int:
        _, kh, kw, depth = shapes[1]
        return out.size * kh * kw * depth

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        return _restrict_convolution(self, out, shapes)


@dataclass(frozen=True, slots=True)
class ConvTranspose2d(Operator):
    """Inputs: x (N, H, W, C), w (O, kh, kw, C / groups), optional b (O). Pads crop the output."""

    grain: ClassVar[Grain] = Grain.PIXEL
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    extra: Pair = (0, 0)  # rows below and columns to the right ("output padding")
    groups: int = 1
    activation: Activation | None = None

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        x, w = _image_and_weights(shapes, self.groups)
        require_positive("kernel, stride and dilation", (*w[1:3], *self.stride, *self.dilation))
        size = [
            (x[1 + i] - 1) * self.stride[i] + (w[1 + i] - 1) * self.dilation[i] + 1
            - self.pads[i] - self.pads[2 + i] + self.extra[i]
            for i in range(2)
        ]  # fmt: skip
        require(min(size) > 0, f"pads {self.pads} leave nothing of the output")
        return (x[0], size[0], size[1], w[0])

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        x, w = shapes[0], shapes[1]
        channels = out.bounds[3]
        spatial = []
        for i in range(2):
            start, stop = out.bounds[1 + i]
            reach = (w[1 + i] - 1) * self.dilation[i]
            first = -(-(start + self.pads[i] - reach) // self.stride[i])
            last = (stop - 1 + self.pads[i]) // self.stride[i]
            spatial.append(clip((first, last + 1), x[1 + i]) if stop > start else (0, 0))
        depth = input_channels(channels, w, self.groups)
        region = Region((out.bounds[0], spatial[0], spatial[1], depth))
        weights = Region.whole(w).with_axis(0, channels)
        return (region, weights, *(Region((channels,)) for _ in shapes[2:]))

    def macs(self, out: Region, shapes: Sequence[Shape]) -> int:
        """Taps that meet an input, summed over the region; computed axis by axis."""
        x, w = shapes[0], shapes[1]
        taps = [self._taps(i, out.bounds[1 + i], x[1 + i], w[1 + i]) for i in range(2)]
        batch, channels = out.shape[0], out.shape[3]
        return batch * taps[0] * taps[1] * channels * w[3]

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        return _restrict_convolution(self, out, shapes)

    def _taps(self, i: int, out: Interval, size: int, kernel: int) -> int:
        """Pairs of an input and a tap that meet in `out`: o = input * stride + tap * dilation - pad, along one axis."""
        inputs, taps = (size, self.stride[i]), (kernel, self.dilation[i])
        (few, long), (many, short) = sorted((inputs, taps))
        total = 0
        for index in range(few):
            start, stop = (bound + self.pads[i] - index * long for bound in out)
            total += max(0, min(many, -(-stop // short)) - max(0, -(-start // short)))
        return total


@dataclass(frozen=True, slots=True)
class _Pool(Operator):
    """Inputs: x (N, H, W, C)."""

    grain: ClassVar[Grain] = Grain.PIXEL
    kernel: Pair
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    activation: Activation | None = None

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        x = shapes[0]
        h, w = _window_shape(x, self.kernel, self.stride, self.dilation, self.pads)
        return (x[0], h, w, x[3])

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        region = _window_needs(out, shapes[0], self.kernel, self.stride, self.dilation, self.pads)
        return (region.with_axis(3, out.bounds[3]),)


@dataclass(frozen=True, slots=True)
class MaxPool2d(_Pool):
    """Inputs: x (N, H, W, C). Padding is ignored."""

    moves: ClassVar[bool] = True

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        (rows, cols), pads, _ = _restrict_windows(self, out, shapes[0], self.kernel, self.output_shape(shapes))
        return RestrictedOperator(replace(self, pads=pads), (Region((out.bounds[0], rows, cols, out.bounds[3])),))


@dataclass(frozen=True, slots=True)
class AvgPool2d(_Pool):
    """Inputs: x (N, H, W, C). `count_pads`: divide by the number of taps inside the padded image rather than the image.

    `uncounted` rows and columns at the bottom and right of the pads are never counted (ONNX's ceil_mode).
    """

    count_pads: bool = False
    uncounted: Pair = (0, 0)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """The same taps count as in the whole: counting ends at the same position."""
        x, whole = shapes[0], self.output_shape(shapes)
        (rows, cols), pads, _ = _restrict_windows(self, out, x, self.kernel, whole)
        uncounted = list(self.uncounted)
        for i in range(2):
            _, stop = span(out.bounds[1 + i], self.kernel[i], self.stride[i], self.dilation[i], self.pads[i])
            if out.bounds[1 + i] != (0, whole[1 + i]):
                uncounted[i] = max(0, stop - (x[1 + i] + self.pads[2 + i] - self.uncounted[i]))
        made = replace(self, pads=pads, uncounted=(uncounted[0], uncounted[1]))
        read = Region((out.bounds[0], rows, cols, out.bounds[3]))
        if is_global(made, read.shape) and not is_global(self, x):
            return _not_global(made, read, out)
        return RestrictedOperator(made, (read,))


def is_global(op: AvgPool2d, x: Shape) -> bool:
    """Whether the one window of a pool is the whole image."""
    return op.kernel == x[1:3] and op.pads == (0, 0, 0, 0)


# Regions: padding stays where the region touches the border, and is dropped elsewhere.

CutAxis = tuple[Interval, int, int, int]  # the range read along an axis, pads before and after it, rows to be added


def _window_axis(op: Conv2d | _Pool, i: int, out: Interval, size: int, kernel: int) -> CutAxis:
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


def _restrict_windows(
    op: Conv2d | ConvTranspose2d | _Pool, out: Region, x: Shape, kernel: Sequence[int], whole: Shape
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


def _restrict_convolution(op: Conv2d | ConvTranspose2d, out: Region, shapes: Sequence[Shape]) -> Answer:
    x, w = shapes[:2]
    per_group, channels = w[0] // op.groups, out.bounds[3]
    cut = split(out, 3, _group_ends(channels, per_group))
    if len(cut.regions) > 1:
        return cut
    (rows, cols), pads, extra = _restrict_windows(op, out, x, w[1:3], op.output_shape(shapes))
    made = replace(op, pads=pads, groups=-(-channels[1] // per_group) - channels[0] // per_group)
    if isinstance(made, ConvTranspose2d):
        made = replace(made, extra=extra)
    _, *others = op.needs(out, shapes)
    image = Region((out.bounds[0], rows, cols, input_channels(channels, w, op.groups)))
    return RestrictedOperator(made, (image, *others))


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
