"""The questions that every operator answers: its output shape, what a region of the output reads, and its cost.

An operator is a frozen dataclass of attributes. `Layer` holds its wiring, `Tensor` shapes and types; kernels compute
the numbers. Spatial operators are NHWC, with one output each.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import inf
from typing import ClassVar

from ..region import Region, Shape


class Grain(Enum):
    """How finely a kernel's reads and writes interleave. Part of its contract, since buffers share memory based on it.

    Atoms are processed in row-major order of the output (or in exactly the reverse order).
    """

    ELEMENT = "element"  # an atom is one output element; all it reads is read before it is written
    PIXEL = "pixel"  # an atom is the whole last axis; its reads and writes may come in any order
    WHOLE = "whole"  # any input may be read until the last output is written


class Operator:
    """Defaults for an operator that reads all of every input and multiplies nothing."""

    __slots__ = ()
    grain: ClassVar[Grain] = Grain.WHOLE

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        """The shape of the output; ValueError (shown with the layer's name) if the inputs do not fit."""
        raise NotImplementedError

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        """The region of each input that is read to produce `out` (padding clipped; may be empty)."""
        return tuple(Region.whole(shape) for shape in shapes)

    def macs(self, out: Region, shapes: Sequence[Shape]) -> int:
        """Multiply-accumulates to produce `out`."""
        return 0


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def require_positive(what: str, numbers: Sequence[float]) -> None:
    """Refuses attributes of a damaged file that would divide by zero or be negative."""
    require(all(0 < number < inf for number in numbers), f"{what} {list(numbers)} must be positive")


def normal_axis(axis: int, rank: int) -> int:
    require(-rank <= axis < rank, f"axis {axis} does not exist in a tensor of rank {rank}")
    return axis % rank


def broadcast_needs(out: Region, shape: Shape) -> Region:
    """The part of an operand of this shape that `out` reads under numpy's broadcasting rules."""
    bounds = out.bounds[len(out.bounds) - len(shape) :]
    return Region(tuple((0, 1) if size == 1 else bound for bound, size in zip(bounds, shape, strict=True)))


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    rank = max(len(shape) for shape in shapes)
    result = [1] * rank
    for shape in shapes:
        for i, size in enumerate(shape, rank - len(shape)):
            require(size == result[i] or 1 in (size, result[i]), f"shapes {list(shapes)} do not broadcast")
            result[i] = size if result[i] == 1 else result[i]
    return tuple(result)
