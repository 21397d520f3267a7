"""Sliding windows over images (NHWC): convolution, transposed convolution, pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..region import Interval, Region, Shape, clip, window, window_output
from .base import Grain, Operator, require, require_positive
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


@dataclass(frozen=True, slots=True)
class AvgPool2d(_Pool):
    """Inputs: x (N, H, W, C). `count_pads`: divide by the number of taps inside the padded image rather than the image.

    `uncounted` rows and columns at the bottom and right of the pads are never counted (ONNX's ceil_mode).
    """

    count_pads: bool = False
    uncounted: Pair = (0, 0)


def is_global(op: AvgPool2d, x: Shape) -> bool:
    """Whether the one window of a pool is the whole image."""
    return op.kernel == x[1:3] and op.pads == (0, 0, 0, 0)
