"""Integer sums computed in one part of a network and finished in another.

A layer that sums over a range of its input gives 32-bit sums; the part that adds them requantises once, so that every
byte equals that of the whole layer. Real numbers need no such operators: a layer without activation and an Add suffice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ..region import Region, Shape
from ..tensor import DType
from .base import Answer, Grain, Operator, RestrictedOperator, require
from .linear import Dense
from .reduce import Reduce
from .window import AvgPool2d, Conv2d


@dataclass(frozen=True, slots=True)
class PartialSum(Operator):
    """Inputs: those of the product, without bias. Gives int32: the sums over what it reads (see `partial_sums`).

    Convolutions and dense layers sum (x - zero of x) * (w - zero of w), reductions and global averages x as stored.
    """

    grain: ClassVar[Grain] = Grain.PIXEL
    product: Conv2d | Dense | Reduce | AvgPool2d

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        wanted = 2 if isinstance(self.product, Conv2d | Dense) else 1
        require(len(shapes) == wanted, f"partial sums have {wanted} inputs, not {len(shapes)}")
        return self.product.output_shape(shapes)

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        return self.product.needs(out, shapes)

    def macs(self, out: Region, shapes: Sequence[Shape]) -> int:
        return self.product.macs(out, shapes)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        answer = self.product.restrict(out, shapes)
        if not isinstance(answer, RestrictedOperator):
            return answer
        return replace(answer, op=replace(self, product=answer.op))


@dataclass(frozen=True, slots=True)
class FinishSums(Operator):
    """Inputs: partial sums (int32, one or more), and with `biased` b (O). Adds them and requantises the result.

    The other attributes describe the product's own inputs, which are needed to finish sums and are not tensors here.
    """

    grain: ClassVar[Grain] = Grain.ELEMENT
    product: Conv2d | Dense | Reduce | AvgPool2d
    shapes: tuple[Shape, ...] = ()  # of x, and of w if there are weights
    dtype: DType = DType.INT8  # of x
    scale: float = 1.0  # of x
    zero: int = 0  # of x
    weight_scales: tuple[float, ...] = ()  # one, or one for each channel of the output
    biased: bool = False

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        sums = self._sums(shapes)
        require(len(sums) > 0, "no sums are given")
        require(all(shape == sums[0] for shape in sums), f"sums of shapes {list(sums)} cannot be added")
        require(not self.biased or shapes[-1] == sums[0][-1:], f"bias {shapes[-1]} does not match sums {sums[0]}")
        channels = sums[0][-1:] if self.weight_scales else ()
        require(len(self.weight_scales) in (0, 1, *channels), f"{len(self.weight_scales)} scales for {channels}")
        return sums[0]

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        bias = (Region(out.bounds[-1:]),) if self.biased else ()
        return (*(out for _ in self._sums(shapes)), *bias)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        """Uses the scales and weights of the region's channels."""
        made, (start, stop) = self, out.bounds[-1] if out.bounds else (0, 1)
        if len(self.weight_scales) > 1:
            made = replace(made, weight_scales=self.weight_scales[start:stop])
        if len(self.shapes) > 1:
            made = replace(made, shapes=(self.shapes[0], (stop - start, *self.shapes[1][1:])))
        return RestrictedOperator(made, self.needs(out, shapes))

    def _sums(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        return shapes[:-1] if self.biased else shapes


BETWEEN_PARTS = (PartialSum, FinishSums)  # never in files: they result from cutting a network
