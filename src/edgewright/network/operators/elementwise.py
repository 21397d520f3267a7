"""Operators that compute each element from the elements at the same index: activations and arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import ClassVar, get_args

from ..region import Region, Shape
from ..tensor import DType
from .base import Grain, Operator, broadcast_needs, broadcast_shape, require


class Elementwise(Operator):
    """Inputs: one or more, broadcast against each other."""

    __slots__ = ()
    grain: ClassVar[Grain] = Grain.ELEMENT
    pointwise: ClassVar[bool] = True
    operands: ClassVar[int] = 1

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        require(len(shapes) == self.operands, f"it has {len(shapes)} inputs instead of {self.operands}")
        return broadcast_shape(shapes)

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        return tuple(broadcast_needs(out, shape) for shape in shapes)


class UnaryKind(Enum):
    ABS = "abs"
    CEIL = "ceil"
    COS = "cos"
    ERF = "erf"
    EXP = "exp"
    FLOOR = "floor"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"
    HARD_SWISH = "hard_swish"
    LOG = "log"
    MISH = "mish"
    NEG = "neg"
    RECIPROCAL = "reciprocal"
    ROUND = "round"
    RSQRT = "rsqrt"
    SIGMOID = "sigmoid"
    SIGN = "sign"
    SILU = "silu"
    SIN = "sin"
    SOFTPLUS = "softplus"
    SOFTSIGN = "softsign"
    SQRT = "sqrt"
    SQUARE = "square"
    TANH = "tanh"


class BinaryKind(Enum):
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    MIN = "min"
    MAX = "max"
    POW = "pow"
    SQUARED_DIFFERENCE = "squared_difference"


class CompareKind(Enum):
    AND = "and"
    EQUAL = "equal"
    GREATER = "greater"
    GREATER_EQUAL = "greater_equal"
    LESS = "less"
    LESS_EQUAL = "less_equal"
    NOT_EQUAL = "not_equal"
    OR = "or"


@dataclass(frozen=True, slots=True)
class Clamp(Elementwise):
    """Inputs: x. ReLU is Clamp(0), ReLU6 is Clamp(0, 6)."""

    low: float = -inf
    high: float = inf


@dataclass(frozen=True, slots=True)
class LeakyRelu(Elementwise):
    """Inputs: x."""

    alpha: float = 0.01


@dataclass(frozen=True, slots=True)
class Elu(Elementwise):
    """Inputs: x. gamma * (x if x > 0 else alpha * (exp(x) - 1)); SELU has gamma != 1."""

    alpha: float = 1.0
    gamma: float = 1.0


@dataclass(frozen=True, slots=True)
class HardSigmoid(Elementwise):
    """Inputs: x. max(0, min(1, alpha * x + beta))."""

    alpha: float = 0.2
    beta: float = 0.5


@dataclass(frozen=True, slots=True)
class Unary(Elementwise):
    """Inputs: x. A function without parameters."""

    kind: UnaryKind


Activation = Clamp | LeakyRelu | Elu | HardSigmoid | Unary  # functions that may be folded into the layer before
ACTIVATIONS: tuple[type[Activation], ...] = get_args(Activation)


@dataclass(frozen=True, slots=True)
class PRelu(Elementwise):
    """Inputs: x, slope (broadcast)."""

    operands: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class Binary(Elementwise):
    """Inputs: a, b (broadcast)."""

    operands: ClassVar[int] = 2
    kind: BinaryKind
    activation: Activation | None = None


@dataclass(frozen=True, slots=True)
class Compare(Elementwise):
    """Inputs: a, b (broadcast), of one type and scale. Gives bool; And and Or treat non-zero as true."""

    operands: ClassVar[int] = 2
    kind: CompareKind


@dataclass(frozen=True, slots=True)
class Select(Elementwise):
    """Inputs: condition (bool), a, b (broadcast), of one type and scale: a where the condition holds, else b."""

    moves: ClassVar[bool] = True
    operands: ClassVar[int] = 3


@dataclass(frozen=True, slots=True)
class BatchNorm(Elementwise):
    """Inputs: x, scale (C), shift (C): x * scale + shift. Mean, variance and epsilon are folded in by the readers."""

    pointwise: ClassVar[bool] = False  # scale and shift lie along the last axis
    operands: ClassVar[int] = 3
    activation: Activation | None = None


@dataclass(frozen=True, slots=True)
class Quantize(Elementwise):
    """Inputs: x, real or with other parameters. The output tensor's Quant gives the parameters."""


@dataclass(frozen=True, slots=True)
class Dequantize(Elementwise):
    """Inputs: x, quantised."""


@dataclass(frozen=True, slots=True)
class Cast(Elementwise):
    """Inputs: x. Out-of-range numbers: see `converted` in `kernels/elementwise.py`."""

    dtype: DType
