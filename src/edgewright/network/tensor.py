"""Tensors: shape, element type and quantisation. The network holds the values of constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .region import Shape

Array = NDArray[Any]
MOST_ELEMENTS = 1 << 36  # of one tensor; a file that claims more is broken
# Largest repeated constant: C stores all its bytes, though the file need not contain them.
MOST_REPEATED = 1 << 28


class DType(Enum):
    """Element types, named as in numpy."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    BOOL = "bool"

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(self.value)

    @cached_property
    def bytes(self) -> int:
        return self.numpy.itemsize

    @property
    def is_float(self) -> bool:
        return self in (DType.FLOAT32, DType.FLOAT16)


@dataclass(frozen=True, slots=True)
class Quant:
    """real = scale * (stored - zero). One pair for the tensor, or one for each index along `axis`."""

    scale: tuple[float, ...]
    zero: tuple[int, ...]
    axis: int | None = None

    @classmethod
    def of(cls, scale: float, zero: int = 0) -> Quant:
        return cls((float(scale),), (int(zero),))

    @property
    def is_per_channel(self) -> bool:
        return len(self.scale) > 1

    def transposed(self, perm: Sequence[int]) -> Quant:
        """The quantisation of the transposed tensor: its axis i is axis perm[i] of this one."""
        return self if self.axis is None else Quant(self.scale, self.zero, perm.index(self.axis))

    def along(self, rank: int) -> tuple[Array, Array]:
        """Scales (float32) and zero points (int64), shaped to broadcast over a tensor of this rank."""
        shape = [-1 if axis == self.axis else 1 for axis in range(rank)]
        return np.array(self.scale, np.float32).reshape(shape), np.array(self.zero, np.int64).reshape(shape)


@dataclass(frozen=True, slots=True)
class Tensor:
    name: str
    shape: Shape
    dtype: DType
    quant: Quant | None = None

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.bytes

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in bytes if the tensor is dense."""
        steps = accumulate(reversed(self.shape), mul, initial=self.dtype.bytes)
        return tuple(steps)[-2::-1]

    def is_dense(self, strides: Sequence[int]) -> bool:
        """Whether these strides leave no gaps; axes of size 1 do not matter."""
        return all(n == 1 or a == b for n, a, b in zip(self.shape, strides, self.strides, strict=True))

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype.value}[{'x'.join(map(str, self.shape))}]"
