"""The type of kernels and of their operands: exactly the values that may be read, and their position.

Kernels that sum have two halves: the sums, which may be accumulated in parts, and the final computation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..region import Region, Shape
from ..tensor import Array, Tensor


@dataclass(frozen=True, slots=True)
class Operand:
    """The values of `region` of `tensor`: exactly what the operator's `needs` names."""

    data: Array  # of the region's shape
    region: Region
    tensor: Tensor  # the full tensor: its shape, element type and quantisation

    @property
    def shape(self) -> Shape:
        """Shape of the whole tensor, not of the region."""
        return self.tensor.shape

    @property
    def origin(self) -> tuple[int, ...]:
        """The index of the first value in the tensor."""
        return tuple(start for start, _ in self.region.bounds)


# (operator, region of the output, operands, output tensor) -> values of the region
Kernel = Callable[[Any, Region, Sequence[Operand], Tensor], Array]


def of_values(function: Callable[..., Array]) -> Kernel:
    """A kernel for a function of the operator and its operands' values that does not depend on their position."""
    return lambda op, out, operands, result: function(op, *(operand.data for operand in operands))


# (operator, region of the output, its sums, first input, the others: weights and bias, output tensor) -> its values
Finish = Callable[[Any, Region, Array, Tensor, Sequence[Operand], Tensor], Array]


@dataclass(frozen=True, slots=True)
class Summing:
    """A kernel that sums over its first input and then applies the non-linear rest: bias, scale, activation."""

    sums: Kernel
    finish: Finish  # may overwrite the sums

    def __call__(self, op: Any, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
        total = self.sums(op, out, operands, result)
        return self.finish(op, out, total, operands[0].tensor, operands[1:], result)
