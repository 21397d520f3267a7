"""Element-wise operators: activations, arithmetic, casts. Operands are cut so that numpy can broadcast them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..operators import Binary, BinaryKind, CompareKind, Select
from ..tensor import Array, DType
from .activations import activate
from .operand import Kernel, of_values


def widened(x: Array) -> Array:
    """x with float16 widened to float32, since computations use float32."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def of_floats(function: Callable[..., Array]) -> Kernel:
    """`of_values` for functions that compute, and therefore widen float16."""
    return of_values(lambda op, *values: function(op, *map(widened, values)))


def binary(op: Binary, a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):  # division by zero gives infinity or NaN, as IEEE says
        return activate(op.activation, BINARY[op.kind](a, b))


def select(op: Select, condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


def _divide(a: Array, b: Array) -> Array:
    """a / b; integer quotients are truncated towards zero, as in C."""
    if not np.issubdtype(np.result_type(a, b), np.integer):
        return a / b
    quotient = np.abs(a) // np.where(b == 0, 1, np.abs(b))
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def _power(a: Array, b: Array) -> Array:
    if np.issubdtype(a.dtype, np.integer):
        a = a.astype(np.float64)
    return np.power(a, b)


BINARY: Mapping[BinaryKind, Callable[[Array, Array], Array]] = {
    BinaryKind.ADD: np.add,
    BinaryKind.SUB: np.subtract,
    BinaryKind.MUL: np.multiply,
    BinaryKind.DIV: _divide,
    BinaryKind.MIN: np.minimum,
    BinaryKind.MAX: np.maximum,
    BinaryKind.POW: _power,
    BinaryKind.SQUARED_DIFFERENCE: lambda a, b: np.square(a - b),
}


COMPARE: Mapping[CompareKind, Callable[[Array, Array], Array]] = {
    CompareKind.AND: np.logical_and,
    CompareKind.EQUAL: np.equal,
    CompareKind.GREATER: np.greater,
    CompareKind.GREATER_EQUAL: np.greater_equal,
    CompareKind.LESS: np.less,
    CompareKind.LESS_EQUAL: np.less_equal,
    CompareKind.NOT_EQUAL: np.not_equal,
    CompareKind.OR: np.logical_or,
}


def converted(values: Array, dtype: DType) -> Array:
    """The numbers as another type, the same on every processor; C and numpy leave out-of-range values undefined.

    Real numbers are truncated towards zero and clamped to int32 (int64 for that type); NaN becomes the minimum.

    Narrower types keep the lowest bits, as for integers: onnxruntime and LiteRT do the same within the range of int32.
    """
    is_whole = not (dtype.is_float or dtype is DType.BOOL)
    if not np.issubdtype(values.dtype, np.floating) or not is_whole:
        with np.errstate(over="ignore"):
            return values.astype(dtype.numpy)
    limits = np.iinfo(np.int64 if dtype is DType.INT64 else np.int32)
    real = values.astype(np.float64)  # holds -2^63, and 2^63 in place of the largest int64
    inside = (real > limits.min) & (real < limits.max)
    whole = np.where(inside, real, 0.0).astype(np.int64)
    return np.where(inside, whole, np.where(real >= limits.max, limits.max, limits.min)).astype(dtype.numpy)
