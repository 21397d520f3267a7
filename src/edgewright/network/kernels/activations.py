"""Functions of one real number: activations, separate or folded into another layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import erf as exact_erf
from math import pi, sqrt

import numpy as np

from ..operators import Activation, Clamp, Elu, HardSigmoid, LeakyRelu, Unary, UnaryKind
from ..tensor import Array


def activate(activation: Activation | None, x: Array) -> Array:
    """Applies the activation to every element, in x's own type if it is a float."""
    match activation:
        case None:
            return x
        case Clamp(low, high):
            return clamp(x, low, high)
        case LeakyRelu(alpha):
            return np.where(x >= 0, x, x * _like(x, alpha))
        case Elu(alpha, gamma):
            with np.errstate(over="ignore"):
                return _like(x, gamma) * np.where(x > 0, x, _like(x, alpha) * np.expm1(x))
        case HardSigmoid(alpha, beta):
            return clamp(x * _like(x, alpha) + _like(x, beta), 0.0, 1.0)
        case Unary(kind):
            # Overflow to infinity and NaN for roots of negatives are the expected IEEE results.
            with np.errstate(all="ignore"):
                return UNARY[kind](x)


def clamp(x: Array, low: float, high: float) -> Array:
    """x within low..high; integers stay integers."""
    if np.issubdtype(x.dtype, np.integer):
        info = np.iinfo(x.dtype)
        return np.clip(x, int(max(low, info.min)), int(min(high, info.max)))
    return np.clip(x, _like(x, low), _like(x, high))


def _like(x: Array, value: float) -> np.generic:
    """A number in x's float type, so that float32 is not widened."""
    return (x.dtype if np.issubdtype(x.dtype, np.floating) else np.dtype(np.float64)).type(value)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softplus(x: Array) -> Array:
    return np.logaddexp(0, x).astype(x.dtype, copy=False)


def erf(x: Array) -> Array:
    """The error function: cubic Hermite interpolation in a table of exact values; error below 1e-11."""
    steps, value, slope = _erf_table()
    place = np.minimum(np.abs(x).astype(np.float64), 6.0) * steps  # erf(6) is 1 to 16 digits
    place = np.where(np.isnan(place), 0.0, place)
    i = np.minimum(place.astype(np.intp), len(value) - 2)
    t = place - i
    rise = value[i + 1] - value[i]
    first, last = slope[i] / steps - rise, rise - slope[i + 1] / steps
    result = value[i] + t * rise + t * (1 - t) * ((1 - t) * first + t * last)
    return np.where(np.isnan(x), x, np.copysign(result, x)).astype(x.dtype, copy=False)


@cache
def _erf_table() -> tuple[int, Array, Array]:
    steps = 256  # per unit; the interpolation error is h^4 / 384 * max |erf''''|
    x = np.arange(6 * steps + 2) / steps
    return steps, np.array([exact_erf(v) for v in x]), 2 / sqrt(pi) * np.exp(-x * x)


def _gelu(x: Array) -> Array:
    return x * (1 + erf(x * _like(x, sqrt(0.5)))) / 2


def _gelu_tanh(x: Array) -> Array:
    return x * (1 + np.tanh(_like(x, sqrt(2 / pi)) * (x + _like(x, 0.044715) * x * x * x))) / 2


def _hard_swish(x: Array) -> Array:
    return x * np.clip(x + 3, 0, 6) / 6


UNARY: Mapping[UnaryKind, Callable[[Array], Array]] = {
    UnaryKind.ABS: np.abs,
    UnaryKind.CEIL: np.ceil,
    UnaryKind.COS: np.cos,
    UnaryKind.ERF: erf,
    UnaryKind.EXP: np.exp,
    UnaryKind.FLOOR: np.floor,
    UnaryKind.GELU: _gelu,
    UnaryKind.GELU_TANH: _gelu_tanh,
    UnaryKind.HARD_SWISH: _hard_swish,
    UnaryKind.LOG: np.log,
    UnaryKind.MISH: lambda x: x * np.tanh(softplus(x)),
    UnaryKind.NEG: np.negative,
    UnaryKind.RECIPROCAL: lambda x: 1 / x,
    UnaryKind.ROUND: np.rint,  # half to even
    UnaryKind.RSQRT: lambda x: 1 / np.sqrt(x),
    UnaryKind.SIGMOID: sigmoid,
    UnaryKind.SIGN: np.sign,
    UnaryKind.SILU: lambda x: x * sigmoid(x),
    UnaryKind.SIN: np.sin,
    UnaryKind.SOFTPLUS: softplus,
    UnaryKind.SOFTSIGN: lambda x: x / (1 + np.abs(x)),
    UnaryKind.SQRT: np.sqrt,
    UnaryKind.SQUARE: np.square,
    UnaryKind.TANH: np.tanh,
}
