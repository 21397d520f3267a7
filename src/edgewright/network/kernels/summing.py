"""Kernels in two halves: the sums, which may be taken share by share, and what is done once when all are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..region import Region
from ..tensor import Array, Tensor
from .operand import Kernel, Operand

# (operator, region of the output, its sums, first input, the others: weights and bias, output tensor) -> its values
Finish = Callable[[Any, Region, Array, Tensor, Sequence[Operand], Tensor], Array]


@dataclass(frozen=True, slots=True)
class Summing:
    """A kernel that sums over its first input, and only then does what is not linear: bias, scale, activation."""

    sums: Kernel
    finish: Finish  # may overwrite the sums

    def __call__(self, op: Any, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
        total = self.sums(op, out, operands, result)
        return self.finish(op, out, total, operands[0].tensor, operands[1:], result)
