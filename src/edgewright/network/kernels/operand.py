"""What a kernel is handed for each input: exactly the values it may read, and where they lie in the tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..region import Region, Shape
from ..tensor import Array, Tensor


@dataclass(frozen=True, slots=True)
class Operand:
    """The values of `region` of `tensor`: what the operator's `needs` names, and nothing around it."""

    data: Array  # of the region's shape
    region: Region
    tensor: Tensor  # the full tensor: its shape, element type and quantisation

    @property
    def shape(self) -> Shape:
        """Shape of the whole tensor, not of the region."""
        return self.tensor.shape

    @property
    def origin(self) -> tuple[int, ...]:
        """Where the first value lies in the tensor."""
        return tuple(start for start, _ in self.region.bounds)


# (operator, region of the output, operands, output tensor) -> values of the region
Kernel = Callable[[Any, Region, Sequence[Operand], Tensor], Array]
