"""Dynamic quantisation: real numbers stored in eight bits with scales computed at run time, and products of them.

TFLite's dynamic range layers and ONNX's DynamicQuantizeLinear differ in the rounding of scales and numbers (`even`).

The scale of an image, or of a row, depends on its own largest numbers, so finding it is a layer, storing is another,
and the product, which may be computed in parts again, a third.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ..region import Region, Shape
from .base import Answer, Grain, Operator, RestrictedOperator, require
from .linear import Dense
from .window import Conv2d, ConvTranspose2d

RANGE = 3  # numbers per item: its scale, its multiplier, its zero point


@dataclass(frozen=True, slots=True)
class DynamicRange(Operator):
    """Inputs: x (items, ...). Gives (items, 3): scale, inverse and zero point of each item.

    The first `lead` axes distinguish items. Numbers are stored in -127..127 with zero point 0, or, if `asymmetric`, in
    -128..127 with any zero point. `even` rounds halves to even, as ONNX does, and is asymmetric.
    """

    lead: int = 1
    asymmetric: bool = False
    even: bool = False

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        require(0 < self.lead < len(shapes[0]), f"a tensor of shape {shapes[0]} has no {self.lead} leading axes")
        return (*shapes[0][: self.lead], RANGE)

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        return (Region((*out.bounds[: self.lead], *((0, size) for size in shapes[0][self.lead :]))),)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        reason = "scale, inverse and zero point belong together"
        return self._restrict_lines(out, shapes, len(out.bounds) - 1, reason)


@dataclass(frozen=True, slots=True)
class DynamicQuantize(Operator):
    """Inputs: x, range (of a DynamicRange of x). Gives int8: x * inverse, rounded half away from 0, plus the zero
    point.

    With `even` it is x / scale, rounded half to even, plus the zero point.
    """

    grain: ClassVar[Grain] = Grain.ELEMENT
    asymmetric: bool = False
    even: bool = False

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        x, ranges = shapes
        require(ranges == (*x[: len(ranges) - 1], RANGE), f"ranges of shape {ranges} do not fit {x}")
        return x

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        lead = len(shapes[1]) - 1
        return (out, Region((*out.bounds[:lead], (0, RANGE))))


@dataclass(frozen=True, slots=True)
class DynamicProduct(Operator):
    """Inputs: x and w (int8), scale and b (one for each output channel), range (of a DynamicRange, for x).

    Integer sums of (x - zero point) * w, times the scales of w and x, plus b; then the product's activation. With
    `in_turn` sums are multiplied by one scale after the other, else by the product of the two.
    """

    grain: ClassVar[Grain] = Grain.PIXEL
    product: Conv2d | ConvTranspose2d | Dense
    asymmetric: bool = False
    in_turn: bool = False

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        x, w, scale, bias, ranges = shapes
        require(scale == bias == (w[0],), f"scales {scale} and bias {bias} do not match weights {w}")
        lead = len(ranges) - 1
        require(ranges == (*x[:lead], RANGE), f"ranges of shape {ranges} do not fit {x}")
        return self.product.output_shape((x, w, bias))

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        x, w, bias = self.product.needs(out, (shapes[0], shapes[1], shapes[3]))
        lead = len(shapes[4]) - 1
        return (x, w, bias, bias, Region((*out.bounds[:lead], (0, RANGE))))

    def macs(self, out: Region, shapes: Sequence[Shape]) -> int:
        return self.product.macs(out, shapes)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        x, w, _, bias, _ = shapes
        answer = self.product.restrict(out, (x, w, bias))
        if not isinstance(answer, RestrictedOperator):
            return answer
        reads = (answer.reads[0], *self.needs(out, shapes)[1:])
        return RestrictedOperator(replace(self, product=answer.op), reads)
