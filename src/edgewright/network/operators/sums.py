"""Sums taken share by share: which operators can, along which axes (FDT); sums that cross from part to part.

A layer that sums over a range of its input gives 32-bit sums; they cross to the part that adds them up and requantises
once, so that every byte is that of the whole layer. Real numbers need neither: a layer without activation and an Add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..region import Region, Shape
from ..tensor import DType
from . import Op
from .base import Grain, Operator, require
from .linear import Dense
from .reduce import Reduce, ReduceKind
from .window import AvgPool2d, Conv2d


@dataclass(frozen=True, slots=True)
class PartialSum(Operator):
    """Inputs: those of the product, without bias. Gives int32: its sums over what it reads, as `shares` defines them.

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


@dataclass(frozen=True, slots=True)
class FinishSums(Operator):
    """Inputs: partial sums (int32, one or more), and with `biased` b (O). Adds them up and requantises them.

    The other attributes say what the product's own inputs are, which finished sums depend on and no tensor here tells.
    """

    grain: ClassVar[Grain] = Grain.ELEMENT
    product: Conv2d | Dense | Reduce | AvgPool2d
    shapes: tuple[Shape, ...] = ()  # of x, and of w where there are weights
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

    def _sums(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        return shapes[:-1] if self.biased else shapes


BETWEEN_PARTS = (PartialSum, FinishSums)  # no file has them: they come of cutting a network


def share_axes(op: Op, shapes: Sequence[Shape]) -> Mapping[int, int | None]:
    """The axes of the first input that are summed over, each with the axis of the weights that goes along with it."""
    rank = len(shapes[0])
    match op:
        case Conv2d(groups=1):
            return {3: 3}
        case Dense() if len(shapes[1]) == 2:
            return {rank - 1: 1}
        case Reduce(kind=ReduceKind.MEAN | ReduceKind.SUM, axes=axes):
            return {axis % rank: None for axis in axes}
        case AvgPool2d(kernel=kernel, pads=(0, 0, 0, 0)) if kernel == shapes[0][1:3]:
            return {1: None, 2: None}
        case _:
            return {}


def share_needs(op: Op, out: Region, shapes: Sequence[Shape], share: Region) -> tuple[Region, ...]:
    """The region of each input that is read to add what `share`, a part of the first input, contributes to `out`."""
    first, *others = op.needs(out, shapes)
    for axis, other in share_axes(op, shapes).items():
        first = first.with_axis(axis, (Region((first.bounds[axis],)) & Region((share.bounds[axis],))).bounds[0])
        if other is not None:
            others[0] = others[0].with_axis(other, first.bounds[axis])
    return (first, *others)


def share_macs(op: Op, out: Region, shapes: Sequence[Shape], share: Region) -> int:
    """Multiply-accumulates of the share."""
    total = op.macs(out, shapes)
    for axis in share_axes(op, shapes):
        start, stop = share.bounds[axis]
        total = total * (stop - start) // shapes[0][axis]
    return total
